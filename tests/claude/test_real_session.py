"""The session of the real Claude Code.

Found again, kept in the store, resumed elsewhere, and never guessed.
"""

import os
import signal
import time
from functools import partial
from pathlib import Path

from tests.claude.scene import Scene, bash, blocks, history
from tests.e2e.shell import until
from tests.model.script import ToolUse, Turn
from tests.model.server import Model
from tests.programs import Upgradable

MAKES = Turn(text="I make it.", calls=(bash("echo hi >> made.txt && echo made", name="toolu_A"),))
DONE = Turn(text="All done.")


def test_a_session_whose_file_is_lost_goes_on_from_the_copy_in_the_store(
    real: Scene, tmp_path: Path
) -> None:
    """At first it is cut off.

    Then the person works from another home, in which Claude Code has never been.
    """
    twice = Turn(
        text="Once more.", calls=(bash("echo hi >> made.txt && echo made", name="toolu_B"),)
    )
    with real.model([MAKES, twice, DONE]) as model:
        real.run()
        (file,) = real.session_files()
        file.write_bytes(file.read_bytes()[:300])
        real.approve_all()
        real.resume(expect=10)
        (tmp_path / "elsewhere").mkdir()
        real.shell.environment["HOME"] = str(tmp_path / "elsewhere")
        real.approve_all()
        real.resume()
    assert real.lines() == ["hi", "hi"]
    first, second, third = (blocks(request) for request in model.asked)
    assert (second[: len(first)], third[: len(second)]) == (first, second)


# D-R28, D-R31, D-R32, D-R65
def test_a_restart_begins_a_new_session_and_keeps_the_old_run(real: Scene) -> None:
    again = Turn(text="Anew.")
    with real.model([MAKES, DONE]) as model:
        real.run()
        model.script = model.script.__class__(turns=(again,))
        real.shell.adjourn("restart", real.task)
    old, new = real.shell.runs(real.task)
    assert old["superseded_by_run_id"] == new["run_id"]
    assert new["restart_of_run_id"] == old["run_id"]
    assert new["provider_session_ref"] != old["provider_session_ref"]
    assert len(blocks(model.asked[-1])) == len(blocks(model.asked[0]))
    assert real.asks() == []


def test_two_resumes_at_once_run_an_approved_call_once(real: Scene) -> None:  # trap 5
    with real.model([MAKES, DONE]):
        real.run()
        real.approve_all()
        racers = [real.shell.start("resume", real.task) for _ in range(2)]
        codes = sorted(racer.wait(60) for racer in racers)
        for racer in racers:
            racer.communicate()
    assert codes[0] == 0
    assert real.lines() == ["hi"]
    assert real.calls() == {"toolu_A": "done"}


# Trap 6
def test_a_call_whose_session_died_is_uncertain_and_does_not_run_again(real: Scene) -> None:
    slow = Turn(text="I wait.", calls=(bash("echo began >> made.txt; sleep 20", name="toolu_A"),))
    with real.model([slow, DONE]) as model:
        real.run()
        real.approve_all()
        process = real.shell.start("resume", real.task)
        until(lambda: real.lines() == ["began"], what="the tool runs")
        for pid, words in real.shell.processes().items():
            if "--resume=" in words:
                os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=60)
        assert process.returncode == 10
        assert real.shell.processes() == {}
        assert real.calls() == {"toolu_A": "uncertain"}
        assert [ask["kind"] for ask in real.asks()] == ["uncertain"]
        real.shell.adjourn("settle", f"{real.task}.toolu_A", "it-ran")
        real.resume()
    assert real.lines() == ["began"]
    assert b"says that it ran" in history(model.asked[-1])[-1]


def _was_asked(model: Model, times: int) -> bool:
    return [request.turn for request in model.requests].count(1) == times


# D-R17
def test_whoever_is_killed_between_two_calls_the_session_goes_on_with_all_that_was_said(
    real: Scene,
) -> None:
    with real.model([MAKES, Turn(text="All done.", delay=8.0)]) as model:
        process = real.shell.start("run", "--runner", "claude", "--no-pause-on-approval", "do it")
        for times, victim in enumerate(("program", "driver"), start=1):
            until(partial(_was_asked, model, times), what="the model is asked")
            until(real.is_saved, what="the session is on disk")
            time.sleep(0.5)  # what a call gave is on disk a third of a second after it was told
            real.kill(victim)
            out, err = process.communicate(timeout=60)
            assert process.returncode == 10, (out, err)
            assert b"It cannot go on for now: " in out
            assert b"signal 9" in out
            assert real.shell.processes() == {}
            process = real.shell.start("resume", real.task)
        assert process.communicate(timeout=60)[0].endswith(b"All done.\n")
        first, *others = [blocks(request) for request in model.requests if request.turn == 1]
    assert all(other[: len(first)] == first for other in others)
    assert real.lines() == ["hi"]


def test_a_deferred_call_of_two_megabytes_is_held_and_runs_when_it_is_made_again(
    real: Scene,
) -> None:
    content = "x" * 2_000_000
    write = {"file_path": str(real.work / "large.txt"), "content": content}
    first = Turn(text="I write.", calls=(bash_write(write, name="toolu_A"),))
    again = Turn(text="Again.", calls=(bash_write(write, name="toolu_B"),))
    with real.model([first, again, DONE]):
        real.run()
        assert not (real.work / "large.txt").exists()
        real.approve_all()
        real.resume()
    assert (real.work / "large.txt").stat().st_size == 2_000_000


def test_what_a_model_has_said_names_no_file_that_claude_code_reads_unasked(real: Scene) -> None:
    """A call that is too large to be deferred is resumed by words of ours, and these tell of the calls that were held."""
    (real.home / "secret.txt").write_text("nobody's business\n")
    mention = f" @{real.home}/secret.txt "
    large = bash_write(
        {"file_path": str(real.work / "large.txt"), "content": "x" * 1_000_000}, name="toolu_A"
    )
    with real.model(
        [Turn(text="I write.", calls=(large, bash(f"true{mention}", name="toolu_B"))), DONE]
    ) as model:
        real.run()
        real.approve_all()
        real.resume()
    heard = b"".join(history(model.asked[-1]))
    assert b"u0040" + f"{real.home}/secret.txt".encode() in heard  # it is told of the call
    assert b"nobody's business" not in heard


def bash_write(arguments: dict[str, str], *, name: str) -> ToolUse:
    return ToolUse(name="Write", arguments=arguments, id=name)


def test_a_program_that_was_upgraded_meanwhile_goes_on_in_the_same_session(
    real: Scene, tmp_path: Path
) -> None:
    installed = Upgradable("claude", tmp_path)
    real.shell.environment["ADJOURN_CLAUDE"] = str(installed.path)
    with real.model([MAKES, DONE]) as model:
        real.run()
        installed.upgrade()
        assert "when the task left" in real.shell.adjourn("show", real.task).out
        real.approve_all()
        real.resume()
    assert real.lines() == ["hi"]
    first, second = (blocks(request) for request in model.asked)
    assert second[: len(first)] == first
