"""Policies as people meet them.

What holds is explained, what is wrong is named with its place, and then nothing runs.
"""

import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.shell import Shell, until

USER = """\
[[rule]]
args = ["ls", "**"]
action = "auto"
effect = "read_only"

[[rule]]
args = ["touch", "**"]
action = "never"
approver = "human"
expires_after = "8h"

[[rule]]
tool = "command"
not_requester = true
"""


def user_policy(shell: Shell, text: str, *, name: str = "policy.toml") -> Path:
    return written(shell.place / ".config" / "adjourn" / name, text)


def project_policy(shell: Shell, text: str, *, name: str = "policy.toml") -> Path:
    (shell.place / ".adjourn").mkdir(mode=0o700, exist_ok=True)
    return written(shell.place / ".adjourn" / name, text)


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def action(shell: Shell, *words: str) -> str:
    found: str = shell.adjourn("policy", "explain", "--output", "json", "--", *words).doc["action"]
    return found


# --- explain --------------------------------------------------------------------------------------


def test_explain_names_the_rule_that_decides_and_what_else_matched(shell: Shell) -> None:
    path = user_policy(shell, USER)
    said = shell.adjourn("policy", "explain", "--", "sh", "-c", "ls | touch x").out
    assert said.startswith("never: it waits for a person who overrides it by its name")
    assert f"  {path}:6: * touch **: never, approver human, expires after 8h\n" in said
    refusing = said.partition("found in any spelling\n")[2].partition("\n\n")[0]
    assert f"  {path}:6: * touch **: never" in refusing
    assert "ls" not in refusing
    assert f"the very words only\n  {path}:1: * ls **: auto, effect read_only\n" in said
    assert "approver  human, not the requester" in said
    assert f"user     {path}  3 rules" in said


def test_explain_says_the_same_to_machines(shell: Shell) -> None:
    path = user_policy(shell, USER)
    found = shell.adjourn(
        "policy", "explain", "--output", "json", "--", "sh", "-c", "ls -l; cat f"
    ).doc
    assert found["action"] == "prompt"
    assert found["terms"] == {
        "approvals": 1,
        "approvers": None,
        "approver": "any",
        "not_requester": True,
        "signed": False,
        "by_name": False,
        "override": False,
    }
    assert [(part["command"], part["is_auto"]) for part in found["parts"]] == [
        ("sh -c 'ls -l; cat f'", False),
        ("ls -l", True),
        ("cat f", False),
    ]
    assert {(rule["line"], rule["decides"]) for rule in found["rules"]} == {(1, False), (12, True)}
    assert found["files"] == [{"path": str(path), "kind": "user", "rules": 3}]


def test_explain_runs_nothing_and_makes_no_store(shell: Shell) -> None:
    shell.adjourn("policy", "explain", "--", "touch", "made")
    assert os.listdir(shell.place) == []


def test_explain_judges_other_tools_and_other_places(shell: Shell) -> None:
    user_policy(shell, '[[rule]]\ntool = "read_*"\nargs = { path = "/srv/*" }\naction = "auto"')
    words = ["--output", "json", "--tool", "read_file", "--args"]
    assert shell.adjourn("policy", "explain", *words, '{"path": "/srv/a"}').doc["action"] == "auto"
    assert shell.adjourn("policy", "explain", *words, '{"path": "/etc"}').doc["action"] == "prompt"
    (shell.place / "other").mkdir()
    written(
        shell.place / "other" / ".adjourn" / "policy.toml",
        '[[rule]]\ntool = "read_*"\naction = "never"',
    )
    assert (
        shell.adjourn(
            "policy", "explain", "--workspace", "other", *words, '{"path": "/srv/a"}'
        ).doc["action"]
        == "never"
    )


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["ls"],
        ["--tool", "x", "--", "ls"],
        ["--args", "{}", "--", "ls"],
        ["--tool", "x", "--args", "[1]"],
        ["--tool", "x", "--args", "{"],
        ["--workspace", "nowhere", "--", "ls"],
    ],
)
def test_words_of_explain_that_do_not_fit_are_refused(shell: Shell, words: list[str]) -> None:
    assert shell.adjourn("policy", "explain", *words, expect=2).err.count("\n") == 2


# --- the project only tightens --------------------------------------------------------------------


def test_the_projects_rules_tighten_the_users(shell: Shell) -> None:
    user_policy(shell, USER)
    assert action(shell, "ls") == "auto"
    project_policy(shell, '[[rule]]\nargs = ["ls", "**"]\naction = "prompt"')
    assert action(shell, "ls") == "prompt"


@pytest.mark.parametrize(
    "says",
    ['[[rule]]\naction = "auto"', '[[rule]]\neffect = "read_only"', '[[notify]]\ncommand = ["x"]'],
)
def test_a_project_that_loosens_is_refused_and_nothing_runs(shell: Shell, says: str) -> None:
    project_policy(shell, says)
    refused = shell.adjourn("run", "--", "touch", "made", expect=2).err
    assert "may not say" in refused
    assert "try: adjourn policy check" in refused
    assert not (shell.place / "made").exists()


def test_when_the_store_is_elsewhere_the_workspaces_own_policy_still_counts(shell: Shell) -> None:
    written(
        shell.place / "work" / ".adjourn" / "policy.toml",
        '[[rule]]\nargs = ["touch", "**"]\naction = "never"',
    )
    inner = shell.place / "work" / "deep" / "er"
    inner.mkdir(parents=True)
    refused = shell.adjourn(
        "run", "--store", str(shell.place / "store"), "--", "touch", "made", expect=1, cwd=inner
    )
    assert "never" in refused.out + refused.err
    assert not (inner / "made").exists()


# --- check ----------------------------------------------------------------------------------------

WRONG = """\
nevr = "pause"
include = "more.toml"

[[rule]]
args = ["l[s", "**", "x"]
actoin = "auto"

[[rule]]
action = "maybe"
signed = "yes"
expires_after = "soon"

[[rule]]
tool = "read_file"
args = ["x"]
action = "prompt"

[[rule]]
args = ["ls"]

[[rule]]
args = []
approver = 3
"""

SAID = [
    (1, 1, "unknown key `nevr`: did you mean `never`?"),
    (2, 11, "`include` must be a list of paths"),
    (5, 11, "the pattern is invalid: the bracket is never closed"),
    (5, 17, "the pattern is invalid: `**` stands alone, as the last word"),
    (6, 1, "unknown key `actoin`: did you mean `action`?"),
    (9, 10, '`action` must be "auto", "prompt" or "never"'),
    (10, 10, "`signed` must be true or false"),
    (11, 17, "`expires_after` must be a time such as"),
    (15, 8, "words are for commands; of the tool read_file give a table"),
    (18, 1, "the rule has no effect"),
    (22, 8, "`args` must be a list of patterns, or a table of them, and not empty"),
    (23, 12, '`approver` must be "any" or "human"'),
]


def test_check_names_line_and_column_of_all_that_is_wrong(shell: Shell) -> None:
    path = user_policy(shell, WRONG)
    found = shell.adjourn("policy", "check", "--output", "json", expect=2).doc
    assert not found["is_fine"]
    places = [(each["line"], each["column"]) for each in found["problems"]]
    assert places == [(line, column) for line, column, _ in SAID]
    assert all(
        said in each["message"] for each, (_, _, said) in zip(found["problems"], SAID, strict=True)
    )
    lines = shell.adjourn("policy", "check", str(path), expect=2).out.splitlines()
    assert [line.split(": ")[0] for line in lines] == [
        f"{path}:{line}:{column}" for line, column, _ in SAID
    ]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[[rule]]\naction = \n", ":2:10: it is not TOML"),
        ('[[rule]]\naction = "auto', ":2:15: it is not TOML"),
        (
            'rule = [{ args = ["[z-a]"], action = "auto" }]',
            ":1:21: the pattern is invalid: the range z-a runs backwards",
        ),
        (
            '[[rule]]\nargs = [\n  "a", # one\n  \'b\\\',\n]\naction = "auto"',
            ":4:5: the pattern is invalid: a backslash at the end",
        ),
        (
            '[[rule]]\naction = "auto"\n[rule.args]\n"a b" = """x[]"""',
            ":4:13: the pattern is invalid: nothing is in the brackets",
        ),
        (
            '[[rule]]\nargs = ["\\u00e9\\\\\\\\[", "x"]\naction = "auto"',
            ":2:20: the pattern is invalid",
        ),
        ('x = """\n[[rule]]\n"""\n[[rule]]\naction = 1', ":5:10: `action` must be"),
        ("[rule]\naction = 1", ":1:1: `rule` must be tables"),
    ],
)
def test_a_place_is_found_in_whatever_way_the_file_is_written(
    shell: Shell, text: str, place: str
) -> None:
    path = user_policy(shell, text)
    assert f"{path}{place}" in shell.adjourn("policy", "check", expect=2).out


def test_check_says_how_many_rules_are_fine(shell: Shell) -> None:
    assert shell.adjourn("policy", "check").out.startswith("There is no policy")
    user_policy(shell, USER)
    project_policy(shell, '[[rule]]\naction = "prompt"')
    assert shell.adjourn("policy", "check").out.startswith("4 rules are fine.\n")
    assert shell.adjourn("policy", "check", "--output", "json").doc["is_fine"]


def test_as_many_rules_as_are_allowed_are_taken(shell: Shell) -> None:
    user_policy(shell, '[[rule]]\nargs = ["ls"]\naction = "auto"\n' * 10_000)
    assert shell.adjourn("policy", "check").out.startswith("10,000 rules are fine.")
    assert action(shell, "ls") == "auto"


def test_check_takes_a_file_for_a_projects_where_that_is_meant(shell: Shell) -> None:
    path = written(shell.place / "draft.toml", USER)
    shell.adjourn("policy", "check", str(path))
    shell.adjourn("policy", "check", "--project", str(path), expect=2)
    shell.adjourn("policy", "check", "nowhere.toml", expect=2)


# --- includes -------------------------------------------------------------------------------------


def test_rules_may_be_spread_over_files_that_include_one_another(shell: Shell) -> None:
    user_policy(shell, 'include = ["more/a.toml", "more/b.toml"]')
    user_policy(
        shell, 'include = ["b.toml"]\n[[rule]]\nargs = ["ls"]\naction = "auto"', name="more/a.toml"
    )
    user_policy(shell, '[[rule]]\nargs = ["pwd"]\naction = "never"', name="more/b.toml")
    assert (action(shell, "ls"), action(shell, "pwd")) == ("auto", "never")
    assert shell.adjourn("policy", "check").out.startswith("2 rules are fine.")


def test_includes_that_go_round_in_a_circle_are_refused(shell: Shell) -> None:
    path = user_policy(shell, 'include = ["a.toml"]')
    user_policy(shell, 'include = ["b.toml"]', name="a.toml")
    user_policy(shell, '# round\ninclude = ["./a.toml"]', name="b.toml")
    said = shell.adjourn("run", "--", "touch", "made", expect=2).err
    place = path.parent
    assert (
        f"{place}/b.toml:2:12: the includes form a circle: {place}/a.toml includes {place}/b.toml includes"
        in said
    )
    user_policy(shell, 'include = ["policy.toml"]')
    assert "circle" in shell.adjourn("policy", "check", expect=2).out


@pytest.mark.parametrize(
    "target",
    ["../outside.toml", "/etc/passwd", "link.toml", "nowhere.toml", "dir/../../outside.toml"],
)
def test_a_projects_policy_includes_only_files_beside_it(shell: Shell, target: str) -> None:
    written(shell.place / "outside.toml", '[[rule]]\naction = "prompt"')
    project_policy(shell, f'include = ["{target}"]')
    (shell.project / "link.toml").symlink_to(shell.place / "outside.toml")
    said = shell.adjourn("policy", "check", expect=2).out
    assert f"{shell.project}/policy.toml:1:12: " in said


# --- a hostile repository -------------------------------------------------------------------------


def as_a_fifo(path: Path) -> None:
    os.mkfifo(path)


def as_a_directory(path: Path) -> None:
    path.mkdir()


def as_a_link_outside(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def as_a_link_to_nothing(path: Path) -> None:
    path.symlink_to("nothing")


def as_50_megabytes(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(50_000_000)


def as_other_bytes(path: Path) -> None:
    path.write_bytes(b'# a\nx = "\xff"')


def as_deep_nesting(path: Path) -> None:
    path.write_text("x = " + "[" * 50_000)


def as_too_many_rules(path: Path) -> None:
    path.write_text('[[rule]]\nargs = ["a"]\naction = "prompt"\n' * 100_000)


def as_one_rule_too_many(path: Path) -> None:
    path.write_text('[[rule]]\naction = "never"\n' * 10_001)


def as_ten_thousand_wrong_rules(path: Path) -> None:
    path.write_text('[[rule]]\naction = "x"\n' * 10_000)


def as_a_key_of_many_parts(path: Path) -> None:
    path.write_text("a" + ".a" * 400_000 + " = 1")


def as_a_table_of_many_parts(path: Path) -> None:
    path.write_text("x = 1\n[a" + ".a" * 400_000 + "]\n")


def as_nul_bytes(path: Path) -> None:
    path.write_bytes(b"\0" * 100)


def as_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


HOSTILE = [
    as_a_fifo,
    as_a_directory,
    as_a_link_outside,
    as_a_link_to_nothing,
    as_50_megabytes,
    as_other_bytes,
    as_deep_nesting,
    as_too_many_rules,
    as_one_rule_too_many,
    as_ten_thousand_wrong_rules,
    as_a_key_of_many_parts,
    as_a_table_of_many_parts,
    as_nul_bytes,
    as_a_device,
]


@pytest.mark.parametrize("is_project", [True, False], ids=["project", "user"])
@pytest.mark.parametrize("make", HOSTILE)
def test_a_policy_that_is_no_policy_ends_in_one_sentence_and_nothing_runs(
    shell: Shell,
    make: Callable[[Path], None],
    is_project: bool,  # noqa: FBT001 -- pytest's parameter
) -> None:
    path = shell.place / (".adjourn" if is_project else ".config/adjourn") / "policy.toml"
    path.parent.mkdir(parents=True, mode=0o700)
    make(path)
    for words in (
        ["run", "--", "touch", "made"],
        ["run", "--pause-on-approval", "--", "touch", "made"],
    ):
        said = shell.adjourn(*words, expect=2).err
        assert str(path) in said.splitlines()[0]
        assert len(said.splitlines()) == 2
    assert shell.adjourn("policy", "explain", "--", "ls", expect=2).err.count("\n") == 2
    assert not (shell.place / "made").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_policy_that_cannot_be_read_stops_everything(shell: Shell) -> None:
    project_policy(shell, USER).chmod(0)
    assert "Permission denied" in shell.adjourn("run", "--", "ls", expect=2).err


def test_a_users_policy_that_others_can_write_is_not_followed(shell: Shell) -> None:
    user_policy(shell, USER).chmod(0o666)
    assert "can be written by others" in shell.adjourn("run", "--", "ls", expect=2).err


def test_a_directory_of_policies_behind_a_link_is_refused(shell: Shell) -> None:
    written(shell.place / "elsewhere" / "policy.toml", '[[rule]]\naction = "prompt"')
    (shell.place / "work").mkdir()
    (shell.place / "work" / ".adjourn").symlink_to(shell.place / "elsewhere")
    said = shell.adjourn(
        "run", "--store", str(shell.place / "store"), "--", "ls", expect=2, cwd=shell.place / "work"
    ).err
    assert "is a symbolic link" in said


def test_a_repository_brings_no_rules_of_its_own_in_other_files(shell: Shell) -> None:
    shell.adjourn("run", "--", "true")
    for name in ("config.toml", "rules.toml", ".env"):
        project_policy(
            shell, '[[rule]]\naction = "auto"\n[[allow]]\nid = "x"\nXDG_CONFIG_HOME=.', name=name
        )
        written(shell.place / name, "XDG_CONFIG_HOME=/nowhere")
    assert action(shell, "ls") == "prompt"
    environment = {"XDG_CONFIG_HOME": ".adjourn"}
    written(shell.project / "adjourn" / "policy.toml", '[[rule]]\naction = "auto"')
    assert (
        shell.adjourn("policy", "explain", "--output", "json", "--", "ls", env=environment).doc[
            "action"
        ]
        == "prompt"
    )


@pytest.mark.parametrize("by", ["path", "link"])
def test_a_fake_program_of_a_repository_does_not_run_by_itself(shell: Shell, by: str) -> None:
    user_policy(shell, USER.replace("not_requester = true", 'approver = "any"'))
    fake = Path(shell.script("touch made", name="ls")).name
    (shell.place / "elsewhere").mkdir()
    (shell.place / "elsewhere" / "work").symlink_to(shell.place)
    place = shell.place if by == "path" else shell.place / "elsewhere" / "work"
    environment = {"PATH": f"{place}{os.pathsep}{shell.environment['PATH']}"}
    for words in ([fake], ["sh", "-c", fake], ["sh", "-c", f"true && {fake}"], ["nohup", fake]):
        shell.adjourn("run", "--pause-on-approval", "--", *words, env=environment, expect=10)
    assert not (shell.place / "made").exists()
    shell.adjourn("run", "--pause-on-approval", "--", "ls")


def test_a_fake_program_behind_a_wrapper_ends_an_always_allow_rule(shell: Shell) -> None:
    shell.adjourn("rules", "add", "--", "timeout", "-k", "1", "5", "ls")
    shell.adjourn("run", "--pause-on-approval", "--", "timeout", "-k", "1", "5", "ls")
    shell.script("touch made", name="ls")
    environment = {"PATH": f"{shell.place}{os.pathsep}{shell.environment['PATH']}"}
    shell.adjourn(
        "run",
        "--pause-on-approval",
        "--",
        "timeout",
        "-k",
        "1",
        "5",
        "ls",
        env=environment,
        expect=10,
    )
    assert not (shell.place / "made").exists()


def test_a_place_whose_name_is_not_utf8_has_policies_like_any_other(shell: Shell) -> None:
    place = os.fsencode(shell.place) + b"/\xff\xe2\x80\xae"
    os.makedirs(place + b"/.adjourn", mode=0o700)
    with open(place + b"/.adjourn/policy.toml", "w", encoding="utf-8") as file:
        file.write('[[rule]]\nargs = ["touch", "**"]\naction = "never"')
    here = os.fsdecode(place)
    assert (
        shell.adjourn(
            "policy", "explain", "--output", "json", "--", "touch", b"\xff", cwd=here
        ).doc["action"]
        == "never"
    )
    shell.adjourn("policy", "explain", "--", "touch", b"\xff", cwd=here)
    shell.adjourn("policy", "check", "--output", "json", cwd=here)
    store = ["--store", str(shell.store)]  # SQLite wants a path that is UTF-8
    shell.adjourn("run", *store, "--", "touch", "made", cwd=here, expect=1)
    shell.adjourn("run", *store, "--pause-on-approval", "--", "touch", "made", cwd=here, expect=10)
    assert not os.path.exists(place + b"/made")


# --- the verdict at the gate ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flag", "codes"), [([], (0, 0, 1)), (["--pause-on-approval"], (0, 10, 10))]
)
def test_auto_prompt_and_never_decide_what_a_run_does(
    shell: Shell, flag: list[str], codes: tuple[int, ...]
) -> None:
    # A-R69, A-R70, A-R71, A-R78, A-R79; the same file holds for every surface: A-R72
    user_policy(shell, USER.replace("not_requester = true", 'approver = "any"'))
    ran = [
        shell.adjourn("run", *flag, "--", *words, expect=None).code
        for words in (["ls"], ["pwd"], ["touch", "made"])
    ]
    assert tuple(ran) == codes
    assert not (shell.place / "made").exists()


def test_never_may_mean_turned_down_at_once(shell: Shell) -> None:  # A-R71
    user_policy(shell, 'never = "reject"\n' + USER)
    shell.adjourn("run", "--pause-on-approval", "--", "touch", "made", expect=1)
    assert (
        "it is turned down at once" in shell.adjourn("policy", "explain", "--", "touch", "made").out
    )


def test_files_of_policies_are_private_to_nobody_but_rules_are(shell: Shell) -> None:
    shell.adjourn("rules", "add", "--", "ls")
    rules = shell.place / ".config" / "adjourn" / "rules.toml"
    assert stat.S_IMODE(rules.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("effect", "state"), [('effect = "idempotent"', "queued"), ('approver = "any"', "waiting")]
)
def test_a_command_whose_second_run_does_no_harm_is_run_again_when_it_was_lost(
    shell: Shell, effect: str, state: str
) -> None:
    user_policy(shell, f'[[rule]]\nargs = ["sleep", "**"]\naction = "auto"\n{effect}')
    task = shell.detached("sleep", "60")
    shim, supervisor = shell.shim(f"{task}.1"), shell.supervisor(f"{task}.1")
    for pid in (supervisor, shim):
        os.kill(pid, signal.SIGKILL)
    until(lambda: shell.state(task) == state, what=f"it is {state}")
    shell.adjourn("cancel", task, expect=None)
