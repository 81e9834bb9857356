"""A policy says auto, prompt or never for a call.

Of all rules that match, in each respect the strictest wins.
"""

from itertools import permutations
from typing import cast

import pytest

from adjourn.core.ask import Approver, Terms
from adjourn.core.call import Json
from adjourn.core.policy.commands import programs_of
from adjourn.core.policy.judge import judge, judge_since
from adjourn.core.policy.judgement import Action, Effect, Judgement, Never
from adjourn.core.policy.opening import Surroundings
from adjourn.core.policy.policy import NO_POLICY, Policy, decode_policy, encode_policy
from adjourn.core.policy.policy_file import read_policy
from tests.unit.policies import NOW, WORKSPACE, allowance, judged, policy, seen

READS = """
[[rule]]
args = ["ls", "**"]
action = "auto"
effect = "read_only"
"""


# --- the three actions ----------------------------------------------------------------------------


def test_without_a_rule_a_call_needs_a_person() -> None:  # A-R70
    assert (
        judge(NO_POLICY, "command", {"argv": ["ls"]}, workspace=WORKSPACE, now=NOW).action
        is Action.PROMPT
    )


def test_a_command_that_an_auto_rule_names_runs_by_itself() -> None:  # A-R69
    assert judged(READS, "ls", "-l").action is Action.AUTO


def test_a_command_that_a_never_rule_names_waits_for_somebody_who_names_it() -> None:  # A-R71
    found = judged('[[rule]]\nargs = ["rm", "**"]\naction = "never"', "rm", "-rf", "/")
    assert (found.action, found.never, found.terms.by_name) == (Action.NEVER, Never.PAUSE, True)


def test_whether_never_pauses_or_rejects_is_the_policys_to_say() -> None:  # A-R71
    assert (
        judged('never = "reject"\n[[rule]]\nargs = ["rm", "**"]\naction = "never"', "rm").never
        is Never.REJECT
    )


def test_whoever_judges_says_which_line_decided() -> None:
    assert judged(READS, "ls").why == ("policy.toml:2: * ls **: auto, effect read_only",)
    assert judged(READS, "make").why == ("no rule lets make run by itself",)


# --- order does not matter ------------------------------------------------------------------------

RULES = (
    '[[rule]]\nargs = ["git", "**"]\naction = "auto"\neffect = "read_only"',
    '[[rule]]\nargs = ["git", "push", "**"]\naction = "prompt"\nexpires_after = "8h"\neffect = "idempotent"',
    '[[rule]]\nargs = ["git", "**"]\napprover = "human"\nexpires_after = "1h"',
    '[[rule]]\ntool = "comm*"\nnot_requester = true',
    '[[rule]]\nargs = ["git", "push", "--force"]\naction = "never"\nsigned = true',
)


@pytest.mark.parametrize("order", list(permutations(RULES)))
def test_in_any_order_the_strictest_wins_in_each_respect(order: tuple[str, ...]) -> None:
    found = judged("\n".join(order), "git", "push", "--force")
    terms = Terms(
        approver=Approver.HUMAN, not_requester=True, signed=True, by_name=True, override=True
    )
    assert (found.action, found.terms, found.expires_after) == (Action.NEVER, terms, 3_600_000)
    assert found.effect is Effect.IDEMPOTENT


def test_a_rule_without_an_action_lets_nothing_pass() -> None:
    assert judged('[[rule]]\nargs = ["ls"]\neffect = "read_only"', "ls").action is Action.PROMPT


# --- strict and generous --------------------------------------------------------------------------

NEVER_RM = '[[rule]]\nargs = ["rm", "**"]\naction = "never"\n'


@pytest.mark.parametrize("program", ["rm", "/bin/rm", "./rm", "../../bin/rm"])
def test_a_bare_name_that_is_forbidden_is_forbidden_by_any_path(program: str) -> None:
    assert judged(NEVER_RM, program, "x").action is Action.NEVER


def test_a_forbidden_program_is_forbidden_under_another_name() -> None:
    there = Surroundings(program="/bin/rm", programs={"tidy": "/bin/rm"})
    assert (
        judge(
            policy(NEVER_RM),
            "command",
            {"argv": ["tidy"]},
            surroundings=there,
            workspace=WORKSPACE,
            now=NOW,
        ).action
        == "never"
    )


def test_an_auto_rule_matches_its_program_as_it_is_written_only() -> None:
    assert judged(READS, "/bin/ls").action is Action.PROMPT
    assert judged(READS, "./ls").action is Action.PROMPT


def test_a_fake_program_inside_the_workspace_is_not_the_one_that_is_meant() -> None:
    fake = seen("ls", at=f"{WORKSPACE}/bin/ls")
    found = judge(
        policy(READS), "command", {"argv": ["ls"]}, surroundings=fake, workspace=WORKSPACE, now=NOW
    )
    assert found.action is Action.PROMPT
    assert found.effect is Effect.UNKNOWN
    assert "inside the workspace" in found.why[0]


def test_a_program_that_nobody_looked_for_needs_a_person() -> None:
    assert (
        judge(policy(READS), "command", {"argv": ["ls"]}, workspace=WORKSPACE, now=NOW).action
        is Action.PROMPT
    )


def test_a_rule_may_name_a_program_of_the_workspace_by_its_path() -> None:
    text = '[[rule]]\nargs = ["./check.sh"]\naction = "auto"'
    there = seen("./check.sh", at=f"{WORKSPACE}/check.sh")
    assert (
        judge(
            policy(text),
            "command",
            {"argv": ["./check.sh"]},
            surroundings=there,
            workspace=WORKSPACE,
            now=NOW,
        ).action
        == "auto"
    )


@pytest.mark.parametrize("word", ["-rf", "--output=x", "../secret", "a/../../b", ".."])
def test_a_wildcard_of_an_auto_rule_stands_for_no_option_and_no_way_upwards(word: str) -> None:
    text = '[[rule]]\nargs = ["cat", "*"]\naction = "{}"'
    assert judged(text.format("auto"), "cat", "a/b").action is Action.AUTO
    assert judged(text.format("auto"), "cat", word).action is Action.PROMPT
    assert judged(text.format("never"), "cat", word).action is Action.NEVER


# --- other tools ----------------------------------------------------------------------------------


def test_the_arguments_of_another_tool_are_matched_by_name() -> None:
    rules = policy('[[rule]]\ntool = "read_*"\nargs = { path = "/srv/*" }\naction = "auto"')
    for path, action in (
        ("/srv/a", "auto"),
        ("/etc/passwd", "prompt"),
        ("/srv/../etc/passwd", "prompt"),
    ):
        assert (
            judge(
                rules, "read_file", {"path": path, "lines": 3}, workspace=WORKSPACE, now=NOW
            ).action
            == action
        )
    assert judge(rules, "read_file", {}, workspace=WORKSPACE, now=NOW).action == "prompt"
    assert (
        judge(rules, "write_file", {"path": "/srv/a"}, workspace=WORKSPACE, now=NOW).action
        == "prompt"
    )


def test_arguments_that_are_no_text_are_matched_as_json() -> None:
    rules = policy(
        '[[rule]]\ntool = "scale"\nargs = { count = "[0-9]", dry = "true" }\naction = "auto"'
    )
    assert (
        judge(rules, "scale", {"count": 3, "dry": True}, workspace=WORKSPACE, now=NOW).action
        == "auto"
    )
    assert (
        judge(rules, "scale", {"count": 30, "dry": True}, workspace=WORKSPACE, now=NOW).action
        == "prompt"
    )


@pytest.mark.parametrize("tool", ["run_command", "Bash", "shell"])
def test_the_text_of_a_shell_tool_is_judged_command_by_command(tool: str) -> None:
    rules = policy(READS + NEVER_RM)
    for text, action in (
        ("ls", "auto"),
        ("ls -l | ls", "auto"),
        ("ls; cat x", "prompt"),
        ("ls; rm x", "never"),
    ):
        assert (
            judge(
                rules, tool, {"command": text}, surroundings=seen(), workspace=WORKSPACE, now=NOW
            ).action
            == action
        )


def test_a_pattern_over_shell_text_lets_nothing_pass() -> None:
    rules = policy('[[rule]]\ntool = "Bash"\nargs = { command = "git *" }\naction = "auto"')
    found = judge(
        rules,
        "Bash",
        {"command": "git status; rm x"},
        surroundings=seen(),
        workspace=WORKSPACE,
        now=NOW,
    )
    assert found.action is Action.PROMPT


@pytest.mark.parametrize("argv", [None, [], [1], "ls", [{"bytes": "?"}], {"a": 1}])
def test_words_that_cannot_be_read_need_a_person(argv: object) -> None:
    rules = policy('[[rule]]\naction = "auto"')
    arguments = cast("dict[str, Json]", {"argv": argv})  # a wrong value is the point
    found = judge(rules, "command", arguments, workspace=WORKSPACE, now=NOW)
    assert found.action is Action.PROMPT


# --- snapshots ------------------------------------------------------------------------------------


def test_a_policy_survives_being_kept() -> None:
    kept = policy("\n".join(RULES), allowances=(allowance("make"),))
    assert decode_policy(encode_policy(kept)) == kept
    assert encode_policy(decode_policy(encode_policy(kept))) == encode_policy(kept)
    assert encode_policy(kept) != encode_policy(NO_POLICY)


def since(snapshot: Policy, current: Policy, *words: str, task: str = "t1") -> Judgement:
    return judge_since(
        snapshot,
        current,
        "command",
        {"argv": list(words)},
        surroundings=seen(),
        workspace=WORKSPACE,
        task=task,
        now=NOW,
    )


def test_for_a_task_under_way_stricter_rules_count_and_weaker_do_not() -> None:
    assert since(policy(READS), NO_POLICY, "ls").action is Action.PROMPT
    assert since(NO_POLICY, policy(READS), "ls").action is Action.PROMPT
    assert since(policy(READS), policy(READS), "ls").action is Action.AUTO
    assert (
        since(
            policy(READS), policy(READS + '[[rule]]\nargs = ["ls"]\naction = "never"'), "ls"
        ).action
        is Action.NEVER
    )


def test_of_later_always_allow_rules_only_one_that_names_the_task_counts() -> None:
    later = policy("", allowances=(allowance("make"),))
    assert since(NO_POLICY, later, "make").action is Action.PROMPT
    named = policy("", allowances=(allowance("make", task="t1"),))
    assert since(NO_POLICY, named, "make").action is Action.AUTO
    assert since(NO_POLICY, named, "make", task="t2").action is Action.PROMPT


# --- always-allow rules ---------------------------------------------------------------------------


def test_an_always_allow_rule_makes_exactly_its_call_auto() -> None:
    rules = policy("", allowances=(allowance("make", "deploy"),))
    for words, action in (
        (["make", "deploy"], "auto"),
        (["make"], "prompt"),
        (["make", "deploy", "x"], "prompt"),
    ):
        assert judged(rules, *words).action == action


@pytest.mark.parametrize(
    ("says", "action"),
    [
        ('action = "prompt"', "auto"),
        ('action = "never"', "never"),
        ('approver = "human"', "prompt"),
        ("signed = true", "prompt"),
        ("not_requester = true", "prompt"),
    ],
)
def test_an_always_allow_rule_gives_way_to_never_and_to_terms(says: str, action: str) -> None:
    rules = policy(f'[[rule]]\nargs = ["make"]\n{says}', allowances=(allowance("make"),))
    assert judged(rules, "make").action == action


def test_an_always_allow_rule_ends_with_its_day_its_workspace_and_its_program() -> None:
    rules = policy("", allowances=(allowance("make"),))
    words = {"argv": ["make"]}
    assert (
        judge(
            rules, "command", words, surroundings=seen(), workspace=WORKSPACE, now=NOW + 10
        ).action
        == "auto"
    )
    assert (
        judge(
            rules, "command", words, surroundings=seen(), workspace=WORKSPACE, now=NOW + 1000
        ).action
        == "prompt"
    )
    assert (
        judge(rules, "command", words, surroundings=seen(), workspace="/elsewhere", now=NOW).action
        == "prompt"
    )
    other = seen("make", at="/opt/bin/make")
    assert (
        judge(rules, "command", words, surroundings=other, workspace=WORKSPACE, now=NOW).action
        == "prompt"
    )


def test_whoever_looks_at_the_surroundings_is_told_which_programs_to_look_for() -> None:
    assert programs_of("command", {"argv": ["sh", "-c", "ls | sudo wc; ls"]}) == (
        "sh",
        "ls",
        "sudo",
        "wc",
    )
    assert programs_of("Bash", {"command": "ls && ./x"}) == ("ls", "./x")
    assert programs_of("read_file", {"path": "x"}) == ()


# --- a project only tightens ----------------------------------------------------------------------


def test_directories_are_absolute_and_the_users_alone() -> None:
    said = 'directories = ["/srv/shared", "~/notes"]'
    assert read_policy(said, source="p", is_project=False).directories == ("/srv/shared", "~/notes")
    (refused,) = read_policy(said, source="p", is_project=True).problems
    assert refused.what == "a project's policy may not say `directories`: only the user's own may"
    for wrong in ('directories = "x"', 'directories = ["shared"]', "directories = [1]"):
        assert len(read_policy(wrong, source="p", is_project=False).problems) == 1, wrong


@pytest.mark.parametrize("says", ['action = "auto"', 'action = "prompt"\neffect = "read_only"'])
def test_a_projects_file_may_not_loosen(says: str) -> None:
    content = read_policy(f'[[rule]]\nargs = ["ls"]\n{says}', source="p", is_project=True)
    assert len(content.problems) == 1
    assert "a project's policy may not say" in content.problems[0].what
