"""Agents of others that follow the RFC, resumed by their own checkpoint and flags."""

import json

import pytest

from adjourn.core.errors import Misuse
from adjourn.core.foreign import ForeignPause, read_pause, read_template, resume_argv
from adjourn.core.resumption import Resumption
from tests.e2e.shell import Document, Shell

FLAGS = "./rfc.py -c {checkpoint_id} {flags}"
INPUT = "./rfc.py -c {checkpoint_id} --input={input}"
PAUSE = ForeignPause(checkpoint_id="xyz", pending=("tc_1", "tc_2"))


def begin(shell: Shell, template: str = FLAGS, *options: str, first: str = "xyz") -> Document:
    agent = shell.agent("rfc.py")
    words = ("run", "--output", "json", *options, "--resume-with", template, "--", agent)
    return shell.adjourn(*words, expect=10, env={"FIRST": first}).doc


def starts(shell: Shell) -> list[list[str]]:
    return [json.loads(line) for line in shell.lines("starts")]


def test_an_agent_that_pauses_by_the_rfc_is_resumed_where_it_left(shell: Shell) -> None:
    """A-R44, A-R45, A-R55, A-R58, A-R61: three processes, one task; the ask shows what starts."""
    paused = begin(shell)
    task = paused["task_id"]
    (call,) = paused["pause_reason"]["pending_tool_calls"]
    resumes = ["./rfc.py", "-c", "xyz", "--approve", "tc_1", "--approve", "tc_2"]
    assert call["arguments"]["argv"] == resumes
    again = shell.json("resume", task, "--approve", "tc_1", "--reject", "tc_2", expect=10)
    assert again["task_id"] == task
    assert shell.adjourn("resume", task, "yes, proceed").out.endswith("done\n")
    assert starts(shell) == [
        [],
        ["-c", "xyz", "--approve", "tc_1", "--reject", "tc_2"],
        ["-c", "xyz2", "yes, proceed"],
    ]
    assert len(shell.runs(task)) == 3
    assert shell.adjourn("audit", "verify").code == 0


def test_the_hint_approves_what_is_shown_and_a_restart_begins_anew(shell: Shell) -> None:
    """A-R29, D-R28"""
    paused = begin(shell)
    shell.line(paused["resume_hint"], expect=10)
    assert starts(shell)[1] == ["-c", "xyz", "--approve", "tc_1", "--approve", "tc_2"]
    shell.adjourn("restart", paused["task_id"], expect=10)
    assert starts(shell)[2] == []


def test_an_opaque_input_is_one_word(shell: Shell) -> None:
    """A-R57, A-R58: no shell and no second split; what is not JSON is refused."""
    task = begin(shell, INPUT)["task_id"]
    assert "is not JSON" in shell.adjourn("resume", task, "--input", "{", expect=2).err
    given = '{"any": "thing $(touch x) {flags}"}'
    shell.adjourn("resume", task, "--input", given, expect=10)
    assert starts(shell)[1] == ["-c", "xyz", f"--input={given}"]
    assert not (shell.place / "x").exists()


def test_the_command_that_resumes_is_judged_by_the_policy(shell: Shell) -> None:
    """A-R71: never is never, also for flags that somebody types."""
    config = shell.place / ".config" / "adjourn"
    config.mkdir(parents=True)
    (config / "policy.toml").write_text(
        '[[rule]]\nargs = ["*/rfc.py", "-c", "*", "--reject-all"]\naction = "never"\n'
    )
    task = begin(shell)["task_id"]
    refused = shell.adjourn("resume", task, "--reject-all", expect=None)
    assert refused.code not in {0, 10}
    assert "never" in refused.err
    assert len(starts(shell)) == 1


@pytest.mark.parametrize("checkpoint", ["-x", "a b", "a;b", "x" * 129, "", "../a"])
def test_an_id_that_is_no_plain_word_resumes_nothing(checkpoint: str) -> None:
    """A-R8: then it is as any program that exits 10."""
    assert read_pause(json.dumps({"checkpoint_id": checkpoint})) is None
    reason = {"pending_tool_calls": [{"id": checkpoint}]}
    assert read_pause(json.dumps({"checkpoint_id": "xyz", "pause_reason": reason})) is None


@pytest.mark.parametrize(
    "template", ["./a {flags}", "./a {checkpoint_id}", "'", "", "{checkpoint_id} {flags}"]
)
def test_a_template_that_could_not_work_is_refused(template: str) -> None:
    """A-R58"""
    with pytest.raises(Misuse):
        read_template(template)


def test_words_of_a_resume_become_words_of_the_command() -> None:
    """A-R36 to A-R41, A-R59, A-R63: each its own word, whatever is in it."""
    template = read_template(FLAGS)
    table = [
        (Resumption(reject_all=True), ["--reject-all"]),
        (Resumption(approve=("tc_1",)), ["--approve", "tc_1"]),
        (Resumption(text="a 'b' {input}"), ["a 'b' {input}"]),
    ]
    for said, flags in table:
        assert resume_argv(template, PAUSE, said) == ("./rfc.py", "-c", "xyz", *flags)
    decided = resume_argv(read_template(INPUT), PAUSE, Resumption(approve=("tc_2",)))
    assert json.loads(decided[-1].removeprefix("--input=")) == {
        "tool_decisions": [
            {"tool_call_id": "tc_1", "approved": False},
            {"tool_call_id": "tc_2", "approved": True},
        ]
    }
    with pytest.raises(Misuse, match="no call tc_9 is pending"):
        resume_argv(template, PAUSE, Resumption(approve=("tc_9",)))
