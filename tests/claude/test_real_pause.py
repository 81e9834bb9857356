"""Ctrl+C stops the real Claude Code in good order, leaves nothing running, and a resume goes on in the same session."""

import signal
import statistics
import subprocess
import time

import pytest

from tests.claude.scene import GATED, Scene, bash, blocks, history
from tests.e2e.shell import until
from tests.model.script import ToolUse, Turn
from tests.model.server import Model

DONE = Turn(text="All done.")


def begin(real: Scene, *words: str) -> "subprocess.Popen[bytes]":
    """Start Claude Code in the background."""
    return real.shell.start(*(words or GATED), *(() if words else ("do it",)))


def interrupt(process: "subprocess.Popen[bytes]", *, times: int = 1) -> tuple[int, str, float]:
    """Press Ctrl+C, and return the exit code, what was said, and how long it took."""
    began = time.monotonic()
    for _ in range(times):
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert b"Traceback" not in err
    return process.returncode, (out + err).decode(), time.monotonic() - began


def asked(model: Model, count: int) -> None:
    until(lambda: len(model.asked) >= count, what=f"the model was asked {count} times")


# D-R8, D-R14, D-R17, D-R59
def test_a_pause_while_the_model_thinks_is_resumed_with_an_unbroken_history(real: Scene) -> None:
    """Reading needs nobody.

    Cost and usage are told of each run; what `show` says of the session, its JSON says, too.
    """
    notes = real.work / "notes.txt"
    notes.write_text("remember\n")
    makes = Turn(text="I make it.", calls=(bash("echo hi >> made.txt", name="toolu_A"),))
    reads = Turn(
        text="I read.",
        calls=(ToolUse(name="Read", arguments={"file_path": str(notes)}, id="toolu_B"),),
    )
    with real.model([makes, reads, Turn(text="Slowly.", delay=20.0)]) as model:
        real.run()
        real.approve_all()
        process = begin(real, "resume", real.task)
        asked(model, 3)
        code, said, _ = interrupt(process)
        assert code == 10
        assert f"adjourn resume {real.task}" in said
        assert real.shell.processes() == {}
        run = real.shell.runs(real.task)[-1]
        assert (run["state"], run["pause_reason"], run["resumable"]) == (
            "paused",
            "user_interrupt",
            True,
        )
        assert run["provider_session_ref"] == real.session_files()[0].stem
        _is_told_alike(real)
        model.script = model.script.__class__(turns=(makes, reads, DONE))
        real.resume()
    before, after = blocks(model.asked[2]), blocks(model.asked[-1])
    assert "remember" in before[-1][1]
    assert after[: len(before)] == before
    assert [said.partition(" and")[0] for _, said in after[len(before) :]] == [
        "No response requested.",
        "You were paused",
    ]
    _is_counted(real)


def _is_told_alike(real: Scene) -> None:
    """Compare what a person and a machine are told of a session."""
    document, shown = real.shell.json("show", real.task), real.shell.adjourn("show", real.task).out
    found = document["resumability"]
    assert (found["can_be_resumed"], found["way_out"]) == (True, None)
    assert [look["thing"] for look in found["looks"]] == ["session", "program", "workspace"]
    for look in found["looks"]:
        assert f"{look['thing']:<9}  {look['says']}" in shown
    assert f"all runs together 200 tokens in, 20 out, ${document['usage']['task']['cost']}" in shown


def _is_counted(real: Scene) -> None:
    """Look at the cost and usage of three runs, and of all together."""
    used = [run["usage"] for run in real.shell.runs(real.task)]
    assert [(each["input_tokens"], each["output_tokens"]) for each in used] == [(100, 10)] * 3
    assert all(float(each["cost"]) > 0 for each in used)
    total = real.shell.json("show", real.task)["usage"]["task"]
    assert (total["input_tokens"], total["output_tokens"]) == (300, 30)
    assert float(total["cost"]) == pytest.approx(sum(float(each["cost"]) for each in used))


def test_a_pause_in_the_midst_of_a_tool_kills_it_and_never_says_that_a_person_rejected_it(
    real: Scene,
) -> None:
    """It ignores signals, and has a daemon that does so, too."""
    stubborn = "trap '' INT TERM HUP; (setsid sh -c 'trap \"\" INT TERM; sleep 60' &); echo began >> made.txt; sleep 60; sleep 60"
    with real.model([Turn(text="I wait.", calls=(bash(stubborn, name="toolu_A"),)), DONE]) as model:
        real.run()
        real.approve_all()
        process = begin(real, "resume", real.task)
        until(lambda: real.lines() == ["began"], what="the tool runs")
        code, _, seconds = interrupt(process)
        assert code == 10
        assert seconds < 20
        assert real.shell.processes() == {}
        assert real.shell.runs(real.task)[-1]["resumable"] is True
        real.resume()
    assert real.lines() == ["began"]
    assert b"doesn't want to proceed" not in b"".join(history(model.asked[-1]))


# D-R18, D-R47, D-R53, D-R64
def test_a_pause_before_the_session_is_on_disk_can_only_be_restarted(real: Scene) -> None:
    with real.model([Turn(text="Never.", delay=5.0)]):
        process = begin(real)
        until(lambda: bool(real.shell.json("tasks")["tasks"]), what="there is a task")
        code, said, _ = interrupt(process)
        assert code == 10
        assert f"adjourn restart {real.task}" in said or "adjourn resume" in said
        run = real.shell.runs(real.task)[-1]
        if run["resumable"]:
            pytest.skip("the session was on disk in time")
        refused = real.resume(expect=6)
    for part in (real.task, run["run_id"], "claude", f"adjourn restart {real.task}"):
        assert part in refused.err


def test_two_interrupts_at_once_end_it_at_once(real: Scene) -> None:  # D-R12, D-R13
    with real.model([Turn(text="Never.", delay=20.0)]) as model:
        process = begin(real)
        asked(model, 1)
        code, _, _ = interrupt(process, times=2)
        assert code == 10
        assert real.shell.processes() == {}
        assert real.shell.runs(real.task)[-1]["state"] == "paused"


@pytest.mark.serial
def test_a_pause_takes_less_than_two_seconds(real: Scene) -> None:
    took = []
    with real.model([Turn(text="Slowly.", delay=30.0)]) as model:
        for count in range(1, 4):
            process = begin(real)
            asked(model, count)
            took.append(interrupt(process)[2])
            assert real.shell.processes() == {}
    print("pause:", [f"{seconds:.2f} s" for seconds in took])
    assert statistics.median(took) < 2
