"""Edit, then approve: what runs is what the person made of it, and both versions are kept."""

import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adjourn.core.text.render import MORE_MARK
from tests.e2e.shell import Document, Shell
from tests.e2e.terminal import Terminal

TOOL = '[ -n "$AUTO_APPROVAL" ] || exit 90; echo "$(pwd): $*" >> effects'


def asked(shell: Shell, *words: str) -> Document:
    """Have a command ask for approval of itself."""
    return shell.paused(shell.script(TOOL), *(words or ("apply", "prod")))


def ask_of(manifest: Document) -> str:
    found: str = manifest["asks"][0]["id"]
    return found


def editing(line: str) -> dict[str, str]:
    return {"EDITOR": line}


def kinds(shell: Shell, task: str) -> str:
    return shell.adjourn("show", "--full", task).out


def test_what_the_editor_leaves_is_what_runs(shell: Shell) -> None:
    """`approve --edit`: recorded as an edit, with both versions, and later runs have the edited words."""
    manifest = asked(shell)
    done = shell.adjourn(
        "approve", ask_of(manifest), "--edit", env=editing("sed -i s/prod/staging/")
    )
    assert "staging" in next(row for row in done.out.splitlines() if row.startswith("    $ "))
    shell.adjourn("resume", manifest["task_id"])
    assert shell.lines("effects") == [f"{shell.place}: apply staging"]
    history = kinds(shell, manifest["task_id"])
    assert "call edited" in history
    assert manifest["asks"][0]["digest"] in history
    assert '- "prod"' in history
    assert '+ "staging"' in history
    assert shell.json("show", manifest["task_id"])["asks"] == []
    shell.adjourn("restart", manifest["task_id"], expect=10)
    (again,) = shell.inbox()
    assert (
        shell.json("show", again["task_id"])["pause_reason"]["pending_tool_calls"][0]["arguments"][
            "argv"
        ][2]
        == "staging"
    )


def test_both_digests_are_told_until_the_next_run(shell: Shell) -> None:
    manifest = asked(shell)
    (receipt,) = shell.json("approve", ask_of(manifest), "--set", "argv.2=staging")["asks"]
    (ask,) = shell.json("show", manifest["task_id"])["asks"]
    assert receipt == ask
    assert ask["original_digest"] == manifest["asks"][0]["digest"]
    assert ask["digest"] != ask["original_digest"]


@pytest.mark.parametrize(
    "editor",
    ["true", "false", "sed -i d", "rm", "sed -i /^[^#]/d", "sh -c 'exit 3'", "no-such-editor"],
)
def test_an_editor_that_changes_nothing_or_fails_records_nothing(shell: Shell, editor: str) -> None:
    manifest = asked(shell)
    refused = shell.adjourn("approve", ask_of(manifest), "--edit", env=editing(editor), expect=2)
    assert "nothing is recorded" in refused.err
    assert shell.state(manifest["task_id"]) == "waiting"
    assert "call edited" not in kinds(shell, manifest["task_id"])
    assert list((shell.store / "edits").iterdir()) == []


@pytest.mark.parametrize(
    ("editor", "named"),
    [
        ("sed -i s/argv/words/", "words"),
        ("sed -i 's/\"apply\"/7/'", "argv"),
        ('sed -i \'s/"apply",//;s/"prod"//;s/".*script.sh",//\'', "argv"),
        ('sed -i s,cwd.*,cwd\\":\\"here\\",', "cwd"),
        ('sed -i s,cwd.*,cwd\\":\\"/no/such/place\\",', "cwd"),
        ("sed -i s/{/[/", "JSON"),
        ("sed -i '$s/}/,\"env\":{}}/'", "env"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused_by_its_key(
    shell: Shell, editor: str, named: str
) -> None:
    manifest = asked(shell)
    refused = shell.adjourn("approve", ask_of(manifest), "--edit", env=editing(editor), expect=2)
    assert named in refused.err
    assert shell.state(manifest["task_id"]) == "waiting"


@pytest.mark.parametrize(
    "words",
    [
        ["--set", "argv.9=x"],
        ["--set", "argv"],
        ["--set", "argv.1=apply"],
        ["--edit", "--set", "argv.1=x"],
        ["--edit"],
    ],
)
def test_words_that_make_no_edit_are_refused(shell: Shell, words: list[str]) -> None:
    manifest = asked(shell)
    environment = {"EDITOR": "", "VISUAL": ""}
    shell.adjourn("approve", ask_of(manifest), *words, env=environment, expect=2)
    assert shell.state(manifest["task_id"]) == "waiting"


def test_only_one_call_is_edited_at_a_time_and_only_a_call(shell: Shell) -> None:
    one, other = asked(shell), asked(shell, "other")
    shell.adjourn("approve", ask_of(one), ask_of(other), "--set", "argv.1=x", expect=2)
    question = shell.paused(shell.script("adjourn ask which? || exit $?", name="ask.sh"))
    shell.adjourn("approve", ask_of(question), "--set", "argv.1=x", expect=2)
    shell.adjourn("reject", ask_of(one))
    shell.adjourn("approve", ask_of(one), "--set", "argv.1=x", expect=4)


def test_the_directory_can_be_edited_too(shell: Shell) -> None:
    (shell.place / "elsewhere").mkdir()
    manifest = asked(shell)
    script = str(shell.place / "script.sh")
    shell.adjourn(
        "approve",
        ask_of(manifest),
        "--set",
        f"argv.0={script}",
        "--set",
        f"cwd={shell.place / 'elsewhere'}",
    )
    shell.adjourn("resume", manifest["task_id"])
    assert (
        shell.place / "elsewhere" / "effects"
    ).read_text() == f"{shell.place / 'elsewhere'}: apply prod\n"


def test_on_a_terminal_the_whole_call_is_shown_and_only_a_yes_counts(shell: Shell) -> None:
    manifest = asked(shell, "apply", "x" * 3000, "\x1b[2Jprod")
    for answer, code, state in (
        (b"\r", 2, "waiting"),
        (b"n\r", 2, "waiting"),
        (b"y\r", 0, "queued"),
    ):
        with Terminal(shell, "approve", ask_of(manifest), "--set", "argv.1=plan") as person:
            person.sees("Approve it so?")
            assert '- "apply"' in person.raw.decode()
            assert '+ "plan"' in person.raw.decode()
            assert "x" * 3000 in person.raw.decode().replace(f"\r\n{MORE_MARK}", "")
            assert b"\x1b[2J" not in person.raw
            person.type(answer)
            assert person.ends() == code
        assert shell.state(manifest["task_id"]) == state


def test_inside_a_run_nobody_edits(shell: Shell) -> None:
    manifest = asked(shell)
    approve = f"adjourn approve {ask_of(manifest)}"
    line = f"{approve} --set argv.1=x; echo $? > code; EDITOR=true {approve} --edit"
    shell.adjourn("run", "--", "sh", "-c", line, expect=1)
    assert shell.lines("code") == ["5"]


def test_a_gated_command_is_looked_at_with_its_new_words(shell: Shell) -> None:
    """The files that the edited command names are part of what is approved.

    A change of one is a new ask.
    """
    for name in ("prod.tf", "test.tf"):
        (shell.place / name).write_text(name)
    script = shell.script('cat "$1" >> effects')
    manifest = shell.json("run", "--pause-on-approval", "--", script, "prod.tf", expect=10)
    done = shell.adjourn("approve", ask_of(manifest), "--set", "argv.1=test.tf")
    assert f"file {shell.place}/test.tf sha256:" in done.out
    assert "prod.tf" not in done.out
    (shell.place / "test.tf").write_text("changed")
    again = shell.json("resume", manifest["task_id"], expect=10)
    assert shell.lines("effects") == []
    assert again["asks"][0]["replaces"] == ask_of(manifest)
    shell.adjourn(
        "resume",
        manifest["task_id"],
        "--approve",
        again["pause_reason"]["pending_tool_calls"][0]["id"],
    )
    assert shell.lines("effects") == ["changed"]


def test_a_program_that_was_not_there_when_it_was_approved_is_a_new_ask(shell: Shell) -> None:
    manifest = shell.json("run", "--pause-on-approval", "--", "./script.sh", expect=10)
    shell.adjourn("approve", ask_of(manifest))
    shell.script("touch started")
    again = shell.json("resume", manifest["task_id"], expect=10)
    assert again["asks"][0]["replaces"] == ask_of(manifest)
    assert not (shell.place / "started").exists()


# --- a process that makes its own calls -----------------------------------------------------------

LIBRARY = """
import adjourn, json, sys
schema = {"properties": {"rows": {"type": "integer", "maximum": 5}}, "additionalProperties": False}
with adjourn.approval("Drop?", tool="drop", arguments={"rows": 3}, schema=schema, editable=%(editable)s) as approved:
    if %(looks)s:
        json.dump([approved, approved.arguments, approved.is_edited], open("made", "w"))
    else:
        json.dump(["original"], open("made", "w"))
"""


def library(shell: Shell, *, editable: bool = True, looks: bool = True) -> Document:
    (shell.place / "drop.py").write_text(LIBRARY % {"editable": editable, "looks": looks})
    return shell.paused(sys.executable, "drop.py")


def test_a_process_gets_the_arguments_that_were_approved(shell: Shell) -> None:
    manifest = library(shell)
    shell.adjourn("approve", ask_of(manifest), "--set", "rows=5", "--value", "carefully")
    shell.adjourn("resume", manifest["task_id"])
    assert json.loads((shell.place / "made").read_text()) == ["carefully", {"rows": 5}, True]


def test_a_process_whose_call_was_not_edited_gets_its_own(shell: Shell) -> None:
    manifest = library(shell)
    shell.adjourn("approve", ask_of(manifest))
    shell.adjourn("resume", manifest["task_id"])
    assert json.loads((shell.place / "made").read_text()) == ["approved", {"rows": 3}, False]


def test_an_edit_that_breaks_the_schema_names_the_key(shell: Shell) -> None:
    manifest = library(shell)
    assert (
        "'rows' must be at most 5"
        in shell.adjourn("approve", ask_of(manifest), "--set", "rows=6", expect=2).err
    )
    refused = shell.adjourn(
        "approve", ask_of(manifest), "--edit", env=editing("sed -i 's/3/3,\"drop\":1/'"), expect=2
    )
    assert "'drop' is not an argument" in refused.err
    assert shell.state(manifest["task_id"]) == "waiting"


def test_a_process_that_takes_no_edits_is_given_none(shell: Shell) -> None:
    manifest = library(shell, editable=False)
    assert (
        "does not say that it takes other arguments"
        in shell.adjourn("approve", ask_of(manifest), "--set", "rows=5", expect=2).err
    )
    shell.adjourn("approve", ask_of(manifest))
    shell.adjourn("resume", manifest["task_id"])
    assert json.loads((shell.place / "made").read_text()) == ["approved", {"rows": 3}, False]


def test_a_process_that_ignores_an_edit_fails_loudly(shell: Shell) -> None:
    manifest = library(shell, looks=False)
    shell.adjourn("approve", ask_of(manifest), "--set", "rows=5")
    shell.json("resume", manifest["task_id"], expect=1)
    assert (
        b"EditIgnored"
        in (shell.store / "runs" / f"{manifest['task_id']}.2" / "stderr").read_bytes()
    )


def test_a_schema_that_its_own_call_breaks_is_refused(shell: Shell) -> None:
    schema = '{"properties": {"a": {"type": "string"}}}'
    script = f'import adjourn\nwith adjourn.approval("?", tool="t", arguments={{"a": 1}}, schema={schema}): pass'
    failed = shell.json("run", "--", sys.executable, "-c", script, expect=1)
    said = (shell.store / "runs" / failed["run_id"] / "stderr").read_text()
    assert "break their schema: 'a' must be string" in said


# --- several at once ------------------------------------------------------------------------------


def test_of_many_all_are_decided_or_none_and_each_has_its_result(shell: Shell) -> None:
    """`approve ASK… | -`: every item that does not fit is told, and nothing is recorded."""
    asks = [ask_of(asked(shell, str(number))) for number in range(4)]
    question = ask_of(shell.paused(shell.script("adjourn ask which? || exit $?", name="ask.sh")))
    shell.adjourn("reject", asks[3], "--reason", "no")
    refused = shell.adjourn("approve", "--output", "json", *asks, question, "nosuch", expect=4).doc
    assert [(item["ask_id"], item["result"]) for item in refused["items"]] == [
        *((ask, "would be approved") for ask in asks[:3]),
        (asks[3], "refused"),
        (question, "refused"),
        ("nosuch", "refused"),
    ]
    assert [item["error"]["code"] for item in refused["items"][3:]] == [
        "already_settled",
        "usage",
        "not_found",
    ]
    text = shell.adjourn("approve", *asks, question, "nosuch", expect=4).err
    assert [line.split()[1].rstrip(":") for line in text.splitlines()[1:7]] == ["would"] * 3 + [
        "refused"
    ] * 3
    assert len(shell.inbox()) == 4
    given = " ".join([asks[0], asks[0][:10], *asks[:3]]).encode()
    recorded = shell.run(
        sys.executable, "-m", "adjourn", "approve", "--output", "json", "-", stdin=given
    ).doc
    assert [ask["id"] for ask in recorded["asks"]] == asks[:3]
    assert {ask["state"] for ask in recorded["asks"]} == {"approved"}


def test_several_questions_take_one_answer(shell: Shell) -> None:
    script = shell.script('adjourn ask "which?" || exit $?')
    asks = [ask_of(shell.paused(script, str(number))) for number in range(2)]
    shell.adjourn("answer", *asks, "nosuch", "this", expect=3)
    assert len(shell.inbox()) == 2
    shell.adjourn("answer", *asks, "this")
    assert shell.inbox() == []


# --- snooze ---------------------------------------------------------------------------------------


def test_a_snoozed_ask_is_out_of_sight_and_can_be_decided(shell: Shell) -> None:
    one, other = asked(shell, "one"), asked(shell, "other")
    shell.adjourn("snooze", ask_of(one), "--for", "1h")
    listed = shell.adjourn("inbox").out
    assert ask_of(one)[:8] not in listed
    assert ask_of(other)[:8] in listed
    assert "1 snoozed: adjourn inbox --snoozed" in listed
    assert ask_of(one)[:8] in shell.adjourn("inbox", "--snoozed").out
    document = shell.json("inbox")
    assert (document["count"], document["snoozed"], [ask["id"] for ask in document["asks"]]) == (
        2,
        1,
        [ask_of(other)],
    )
    assert "snoozed until" in shell.adjourn("show", one["task_id"]).out
    shell.adjourn("snooze", ask_of(one), "--off")
    assert len(shell.inbox()) == 2
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    shell.adjourn("snooze", ask_of(one), ask_of(other), "--until", tomorrow)
    assert shell.inbox() == []
    shell.adjourn("approve", ask_of(one))
    shell.adjourn("snooze", ask_of(one), "--off", expect=4)
    assert "ask snoozed" in kinds(shell, other["task_id"])


def test_a_snooze_ends_by_itself_and_puts_off_no_expiry(shell: Shell) -> None:
    brief, doomed = (
        asked(shell, "one"),
        shell.json("run", "--expires-after", "3s", "--", "sh", "-c", "exit 90", expect=10),
    )
    shell.adjourn("snooze", ask_of(brief), "--for", "1s")
    warned = shell.adjourn("snooze", ask_of(doomed), "--for", "1h").out
    assert "It expires before that" in warned
    shell.run("sleep", "3.2")
    assert [ask["id"] for ask in shell.inbox()] == [ask_of(brief)]
    assert shell.state(doomed["task_id"]) == "failed"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--for", "1h", "--off"],
        ["--for", "x"],
        ["--until", "2020-01-01"],
        ["--until", "soon"],
        ["--until", "9999-12-31"],
    ],
)
def test_a_snooze_that_makes_no_sense_is_refused(shell: Shell, words: list[str]) -> None:
    manifest = asked(shell)
    shell.adjourn("snooze", ask_of(manifest), *words, expect=2)
    assert len(shell.inbox()) == 1
    shell.adjourn("snooze", "nosuch", "--for", "1h", expect=3)


def test_inside_a_run_nobody_snoozes(shell: Shell) -> None:
    manifest = asked(shell)
    shell.adjourn(
        "run", "--", "sh", "-c", f"adjourn snooze {ask_of(manifest)} --for 1h; echo $? > code"
    )
    assert shell.lines("code") == ["5"]


# --- what changed since the pause -----------------------------------------------------------------


def git(shell: Shell, *words: str) -> None:
    shell.run("git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words)


def since(shell: Shell, task: str) -> Document:
    found: Document = shell.json("show", task)["workspace"]
    return found


def test_show_tells_what_changed_in_the_workspace_since_the_pause(shell: Shell) -> None:
    git(shell, "init", "-q", "-b", "main")
    (shell.place / "kept").write_text("as it is")
    git(shell, "add", ".")
    git(shell, "commit", "-qm", "first")
    manifest = asked(shell)
    task = manifest["task_id"]
    then = since(shell, task)
    assert (then["changed"], then["is_whole"], then["head_then"]) == ([], True, then["head_now"])
    assert then["ref_now"] == "refs/heads/main"
    assert "HEAD is where it was" in shell.adjourn("show", task).out
    (shell.place / "new\x1b[2J").write_text("x")
    git(shell, "checkout", "-qb", "other")
    git(shell, "commit", "-q", "--allow-empty", "-m", "second")
    git(shell, "pack-refs", "--all")
    now = since(shell, task)
    assert now["changed"] == ["new\x1b[2J"]
    assert now["head_then"] == then["head_then"] != now["head_now"]
    assert (now["ref_then"], now["ref_now"]) == ("refs/heads/main", "refs/heads/other")
    text = shell.adjourn("show", task).out
    assert (
        f"HEAD was {now['head_then'][:12]} (refs/heads/main), is {now['head_now'][:12]} (refs/heads/other)"
        in text
    )
    assert "changed  new\\u{1b}[2J" in text


def test_a_hostile_repository_runs_nothing_and_holds_nobody_up(shell: Shell) -> None:
    """What a repository configures is not run, a pipe is not waited for, and a link is not followed."""
    git(shell, "init", "-q")
    git(shell, "commit", "-q", "--allow-empty", "-m", "first")
    trap = shell.script("touch trapped", name="trap.sh")
    for key in ("core.fsmonitor", "core.sshCommand", "diff.external", "core.pager"):
        git(shell, "config", key, str(shell.place / trap))
    task = asked(shell)["task_id"]
    head = shell.place / ".git" / "HEAD"
    for spoil in (
        lambda: os.mkfifo(head),
        lambda: head.symlink_to("/etc/passwd"),
        lambda: head.write_text("ref: refs/../../x"),
    ):
        head.unlink(missing_ok=True)
        spoil()
        assert since(shell, task)["head_now"] is None
    assert not Path(shell.place / "trapped").exists()
