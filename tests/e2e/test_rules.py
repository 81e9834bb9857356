"""Always-allow rules: exactly one call, in one workspace or task, until a day.

Listed, added and revoked by people only.
"""

import re
import threading
from pathlib import Path

import pytest

from adjourn.core.task import Spec
from adjourn.wiring.controller import open_controller
from tests.e2e.shell import Document, Shell
from tests.e2e.test_policy import user_policy, written


def gated(shell: Shell, *words: str, expect: int | None = None, cwd: Path | None = None) -> int:
    return shell.adjourn("run", "--pause-on-approval", "--", *words, expect=expect, cwd=cwd).code


def added(shell: Shell, *words: str) -> Document:
    rule: Document = shell.adjourn("rules", "add", "--output", "json", *words).doc["rule"]
    return rule


def listed(shell: Shell) -> list[Document]:
    rules: list[Document] = shell.adjourn("rules", "list", "--output", "json").doc["rules"]
    return rules


def test_a_rule_lets_exactly_its_command_run_by_itself(shell: Shell) -> None:
    rule = added(shell, "--", "touch", "made")
    assert gated(shell, "touch", "made") == 0
    assert gated(shell, "touch", "made", "other") == 10
    assert gated(shell, "touch", "./made") == 10
    assert rule["arguments"] == {"argv": ["touch", "made"]}
    assert rule["programs"]["touch"].endswith("/touch")


def test_a_rule_holds_in_its_workspace_only(shell: Shell) -> None:
    (shell.place / "other").mkdir()
    added(shell, "--workspace", "other", "--", "ls")
    assert gated(shell, "ls") == 10
    assert gated(shell, "ls", cwd=shell.place / "other") == 0


def test_a_rule_is_made_of_an_ask(shell: Shell) -> None:
    shell.adjourn("run", "--pause-on-approval", "--", "ls", "-l", expect=10)
    (ask,) = shell.inbox()
    added(shell, "--ask", ask["id"])
    assert shell.inbox() == [ask]  # it is for what comes, and decides nothing that is open
    assert gated(shell, "ls", "-l") == 0


def test_a_paused_task_is_not_loosened_by_a_later_rule(shell: Shell) -> None:
    task = paused(shell, "ls")
    added(shell, "--", "ls")
    assert shell.adjourn("resume", task, expect=10).code == 10
    shell.adjourn("restart", task, expect=10)


def paused(shell: Shell, *words: str) -> str:
    task: str = shell.adjourn(
        "run", "--output", "json", "--pause-on-approval", "--", *words, expect=10
    ).doc["task_id"]
    return task


def test_a_rule_for_a_task_holds_in_that_task_only(shell: Shell) -> None:
    task = paused(shell, "ls")
    added(shell, "--task", task, "--", "ls")
    assert gated(shell, "ls") == 10
    shell.adjourn("restart", task)


def test_revoked_and_expired_rules_count_no_more(shell: Shell) -> None:
    rule = added(shell, "--", "ls")
    short = added(shell, "--until", "1s", "--", "pwd")
    assert gated(shell, "ls") == 0
    shell.adjourn("rules", "revoke", rule["id"][:10])
    assert gated(shell, "ls") == 10
    shell.run("sleep", "1.1")
    assert gated(shell, "pwd") == 10
    assert [(each["id"], each["is_in_force"]) for each in listed(shell)] == [(short["id"], False)]
    assert "over: it no longer counts" in shell.adjourn("rules", "list").out


@pytest.mark.parametrize("says", ['approver = "human"', "signed = true", "not_requester = true"])
def test_a_policy_that_says_more_than_prompt_is_stronger_than_a_rule(
    shell: Shell, says: str
) -> None:
    user_policy(shell, f'[[rule]]\nargs = ["ls"]\n{says}')
    assert "yet it stays" in shell.adjourn("rules", "add", "--", "ls").out
    assert gated(shell, "ls") == 10


def test_no_rule_is_added_for_what_a_policy_never_allows(shell: Shell) -> None:
    user_policy(shell, '[[rule]]\nargs = ["ls"]\naction = "never"')
    assert "your policy says never" in shell.adjourn("rules", "add", "--", "ls", expect=5).err
    assert listed(shell) == []
    assert gated(shell, "ls") == 10


def test_a_policy_that_says_prompt_gives_way_to_a_rule(shell: Shell) -> None:
    user_policy(shell, '[[rule]]\nargs = ["ls"]\naction = "prompt"')
    added(shell, "--", "ls")
    assert gated(shell, "ls") == 0


def test_a_rule_ends_when_the_program_is_another(shell: Shell) -> None:
    added(shell, "--", "ls")
    fake = shell.script("touch made", name="ls")
    environment = {"PATH": f"{shell.place}:{shell.environment['PATH']}"}
    assert (
        shell.adjourn("run", "--pause-on-approval", "--", "ls", env=environment, expect=10).code
        == 10
    )
    assert fake
    assert not (shell.place / "made").exists()


def test_a_listing_says_what_a_rule_matches_and_would_have_matched(shell: Shell) -> None:
    for words in (["ls"], ["pwd"], ["ls"]):
        shell.adjourn("run", "--", *words)
    rule = added(shell, "--", "ls")
    assert rule["matched"]["of"] == 3
    assert len(rule["matched"]["calls"]) == 2
    said = shell.adjourn("rules", "list").out
    assert re.search(r"exactly  ls\n  where    ls is /\S+/ls\n", said)
    assert f"in the workspace {shell.place}\n" in said
    assert "would have matched 2 of the last 3 calls: " in said


def test_only_the_last_hundred_calls_are_looked_at(shell: Shell) -> None:
    controller = open_controller(str(shell.store))
    for _ in range(103):
        controller.tasks.start(
            Spec(runner="command", argv=("ls",), workspace=str(shell.place)),
            by=controller.decisions.principal(),
        )
    controller.store.close()
    matched = added(shell, "--", "ls")["matched"]
    assert (len(matched["calls"]), matched["of"]) == (100, 100)


@pytest.mark.parametrize("words", [["add", "--", "ls"], ["revoke", "x"]])
def test_inside_a_run_nobody_makes_or_revokes_rules(shell: Shell, words: list[str]) -> None:
    attempt = f"adjourn rules {' '.join(words)}; echo $? >>{shell.place}/codes"
    script = shell.script(f"{attempt}\ncd / && {attempt}")
    shell.adjourn("run", "--", script)
    assert shell.lines("codes") == ["5", "5"]
    assert listed(shell) == []


@pytest.mark.parametrize(
    "words",
    [
        ["add"],
        ["add", "ls"],
        ["add", "--ask", "x", "--", "ls"],
        ["add", "--workspace", ".", "--task", "x", "--", "ls"],
        ["add", "--workspace", "nowhere", "--", "ls"],
        ["add", "--until", "never", "--", "ls"],
        ["add", "--until", "0s", "--", "ls"],
        ["add", "--until", "900d", "--", "ls"],
        ["add", "--", "no-such-program"],
        ["add", "--", "sh", "-c", "ls > x"],
        ["revoke"],
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(shell: Shell, words: list[str]) -> None:
    assert len(shell.adjourn("rules", *words, expect=2).err.splitlines()) == 2
    assert not (shell.place / ".config" / "adjourn" / "rules.toml").exists()


def test_what_is_not_there_is_not_found(shell: Shell) -> None:
    shell.adjourn("run", "--", "true")
    for words in (
        ["revoke", "nothing"],
        ["add", "--ask", "nothing"],
        ["add", "--task", "nothing", "--", "ls"],
    ):
        shell.adjourn("rules", *words, expect=3)


def test_a_tools_own_question_is_never_answered_by_a_rule(shell: Shell) -> None:
    asking = shell.script('[ "$AUTO_APPROVAL" ] || exit 90')
    shell.adjourn("run", "--", asking, expect=10)
    (ask,) = shell.inbox()
    assert (
        "which no rule answers" in shell.adjourn("rules", "add", "--ask", ask["id"], expect=2).err
    )
    added(shell, "--", asking)
    shell.adjourn("run", "--pause-on-approval", "--", asking, expect=10)


def test_of_many_who_add_rules_at_once_none_is_lost(shell: Shell) -> None:
    several = [
        threading.Thread(target=added, args=(shell, "--", "echo", str(number)))
        for number in range(8)
    ]
    for thread in several:
        thread.start()
    for thread in several:
        thread.join()
    assert sorted(rule["arguments"]["argv"][1] for rule in listed(shell)) == [
        str(number) for number in range(8)
    ]


def test_words_of_any_bytes_come_back_exactly(shell: Shell) -> None:
    words = [b"echo", b"\xff\x7f\x1b'\"\\ \n\t{}=#", "\u202e😀".encode()]
    shell.adjourn("rules", "add", "--", *words)
    assert shell.adjourn("run", "--pause-on-approval", "--", *words).code == 0
    assert (
        shell.adjourn(
            "run", "--pause-on-approval", "--", words[0], words[1] + b"x", words[2], expect=10
        ).code
        == 10
    )


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "[[allow]]",
        '[[allow]]\nid = "x"',
        "[[rule]]",
        '[[allow]]\nid="a"\ntool="x"\nargv=["ls"]\nuntil="soon"\nby="x"\nat="x"',
    ],
)
def test_a_broken_file_of_rules_stops_everything(shell: Shell, text: str) -> None:
    written(shell.place / ".config" / "adjourn" / "rules.toml", text)
    assert "rules.toml" in shell.adjourn("run", "--", "touch", "made", expect=2).err
    shell.adjourn("rules", "list", expect=2)
    shell.adjourn("rules", "add", "--", "ls", expect=2)
    shell.adjourn("policy", "check", expect=2)
    assert not (shell.place / "made").exists()
