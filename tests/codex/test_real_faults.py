"""What can go wrong around the real Codex is told in a sentence, and leaves nothing running and nothing done twice."""

import socket
import sys
import time
from functools import partial
from pathlib import Path

import msgspec
import pytest

from tests.codex.scene import SCRIPTING_MODEL, Scene, outputs, patch, said, shell
from tests.codex.test_real_pause import interrupted, started, without_noise
from tests.contract.disks import fill, small_disk
from tests.e2e.shell import until
from tests.model.script import Fault, ToolUse, Turn, Usage
from tests.model.server import Model

MAKES = Turn(
    calls=(shell("echo hi >> made.txt", name="call_A"),), usage=Usage(input=100, output=10)
)
AGAIN = Turn(
    calls=(shell("echo hi >> made.txt", name="call_B"),), usage=Usage(input=200, output=20)
)
DONE = Turn(text="All done.", usage=Usage(input=300, output=30))


def test_an_api_that_is_not_there_pauses_the_run_with_a_reason(real: Scene) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    real.configure(f"http://127.0.0.1:{port}/v1")
    began = time.monotonic()
    done = real.shell.adjourn(
        "run", "--runner", "codex", "--no-pause-on-approval", "do it", expect=10
    )
    assert time.monotonic() - began < 40
    assert "It cannot go on for now: " in done.out
    assert real.shell.json("inbox")["paused"][0]["pause_reason"] == "unavailable"
    assert len(done.err) > 10


def test_an_api_that_fails_pauses_the_task_with_a_reason_and_the_thread_goes_on(
    real: Scene,
) -> None:
    """Part 2 row 30: a key that is refused before the first answer loses nothing, and fails."""
    with real.model([Turn(text="At last.", faults=(Fault(status=401),) * 4)]):
        assert "Failed: " in real.run(expect=1).out
    for fault in (
        Fault(status=500),
        Fault(drop_after=1),
        Fault(garbage="<html>"),
    ):
        with real.model([Turn(text="At last.", faults=(fault,) * 4)]):
            assert "It cannot go on for now: " in real.run().out
    with real.model([Turn(text="At last.")]):
        assert real.resume().out == "At last.\n"
    first, second = real.shell.runs(real.task)
    assert first["provider_session_ref"] == second["provider_session_ref"]


@pytest.mark.parametrize("way", ["app-server", "exec"])
def test_a_call_that_codex_itself_refuses_has_not_run_and_nobody_is_asked_about_it(
    real: Scene, way: str
) -> None:
    """A patch that does not fit, and a terminal, which would let the model type what nobody has seen."""
    real.allow(
        '[[rule]]\ntool = "apply_patch"\naction = "auto"\n[[rule]]\ntool = "shell"\nargs = ["cat"]\naction = "auto"\n'
    )
    (real.work / "made.txt").write_text("one\n")
    unfit = patch("*** Update File: made.txt\n@@\n-two\n+three", name="call_A")
    types = ToolUse(
        name="write_stdin", arguments={"session_id": 1, "chars": "typed\n"}, id="call_C"
    )
    turns = [
        Turn(calls=(unfit,)),
        Turn(calls=(shell("cat", name="call_B", tty=True),)),
        Turn(calls=(types,)),
        DONE,
    ]
    with real.model(turns) as model:
        real.run(expect=0, options=("--option", f"way={way}"))
    assert real.calls() == {"call_A": "failed", "call_B": "failed"}
    told = outputs(model.asked[-1])
    assert "verification failed" in told["call_A"]
    assert "TTY execution is disabled" in told["call_B"]
    assert "Unknown process" in told["call_C"]


def test_calls_of_two_megabytes_are_asked_about_and_made_or_refused_in_time(real: Scene) -> None:
    """A change of files is made.

    A command of that length no kernel takes, which the model reads.
    """
    change, line = (
        "*** Add File: made.txt\n" + "\n".join(["+a line"] * 290_000),
        f": {'x' * 2_000_000}",
    )
    turns = [
        Turn(calls=(call,))
        for n in "AB"
        for call in (patch(change, name=f"patch_{n}"), shell(line, name=f"line_{n}"))
    ]
    with real.model([turns[0], turns[2], turns[1], turns[3], DONE]) as model:
        real.run()
        real.approve_all()
        real.resume(expect=10)
        assert len(real.lines()) == 290_000
        real.approve_all()
        real.resume()
    assert real.calls() == {"patch_A": "done", "line_A": "failed"}
    assert "Argument list too long" in outputs(model.asked[-1])["line_B"]


def test_silence_is_not_waited_for_for_ever(real: Scene) -> None:
    with real.model([Turn(text="At last.", delay=30.0)]):
        done = real.run(options=("--option", "silence=2"))
    assert "said nothing for 2 s" in done.err


def test_a_program_that_is_not_there_is_named(real: Scene) -> None:
    done = real.shell.adjourn(
        "run",
        "--runner",
        "codex",
        "--no-pause-on-approval",
        "--option",
        "program=/no/such/codex",
        "do it",
        expect=1,
    )
    assert "/no/such/codex" in done.err
    assert "@openai/codex" in done.err


@pytest.mark.parametrize("setting", ["this is not TOML", 'approval_policy = "untrusted"'])
def test_settings_that_codex_does_not_take_are_named_as_it_names_them(
    real: Scene, setting: str
) -> None:
    with real.model([DONE]) as model:
        file = real.codex_home / "config.toml"
        file.write_text(f"{setting}\n{file.read_text()}")
        told = real.run(expect=1).err
    assert (
        "config.toml:1:6" if "TOML" in setting else "no longer supported; remove this setting"
    ) in told
    assert "without asking the hook" not in told
    assert model.requests == []


def test_an_option_that_does_not_fit_is_refused_before_anything_is_recorded(real: Scene) -> None:
    unfit = (
        "colour=red",
        "sandbox=none",
        "silence=0",
        "wait=-1",
        "arguments=--last",
        "arguments=-c approval_policy=never",
        "arguments='",
    )
    for option in unfit:
        real.shell.adjourn(
            "run",
            "--runner",
            "codex",
            "--no-pause-on-approval",
            "--option",
            option,
            "do it",
            expect=2,
        )
    assert real.shell.json("tasks")["tasks"] == []


def test_the_tokens_of_a_run_are_its_own_though_codex_counts_on(real: Scene) -> None:
    with real.model([MAKES, AGAIN, DONE]):
        real.run()
        real.approve_all()
        real.resume()
    first, second = (real.report(number) for number in (1, 2))
    assert (first["input_tokens"], first["output_tokens"]) == (100, 10)
    assert (second["input_tokens"], second["output_tokens"]) == (500, 50)


def test_ctrl_c_twice_at_once_leaves_nothing_running(real: Scene) -> None:  # D-R12
    slow = Turn(calls=(shell("trap '' INT TERM; echo one >> made.txt; sleep 60", name="call_A"),))
    with real.model([slow, DONE]):
        process = started(real)
        until(lambda: real.lines() == ["one"], what="the command runs")
        process.send_signal(2)
        interrupted(process)
        assert real.shell.end() == {}


def test_a_driver_that_is_killed_leaves_a_call_that_is_uncertain_and_visible(real: Scene) -> None:
    slow = Turn(calls=(shell("echo one >> made.txt; sleep 60", name="call_A"),))
    with real.model([slow, DONE]) as model:
        process = started(real)
        until(lambda: real.lines() == ["one"], what="the command runs")
        real.kill("driver")
        process.communicate(timeout=30)
        assert process.returncode == 10
        assert real.calls()["call_A"] == "uncertain"
        assert [ask["kind"] for ask in real.asks()] == ["uncertain"]
        real.shell.adjourn("settle", f"{real.task}.call_A", "it-ran")
        real.resume()
        assert real.lines() == ["one"]
        assert "It ran" in str(model.asked[-1].body["input"])


def _was_asked(model: Model, times: int) -> bool:
    return [request.turn for request in model.requests].count(1) == times


# D-R17
def test_whoever_is_killed_between_two_calls_the_thread_goes_on_as_if_nothing_had_happened(
    real: Scene,
) -> None:
    with real.model([MAKES, Turn(text="All done.", delay=6.0)]) as model:
        process = started(real)
        for times, victim in enumerate(("program", "driver"), start=1):
            until(partial(_was_asked, model, times), what="the model is asked")
            until(real.is_saved, what="the thread is on disk")
            real.kill(victim)
            out, err = process.communicate(timeout=30)
            assert process.returncode == 10, (out, err)
            assert b"It cannot go on for now: " in out
            assert b"signal 9" in out
            assert real.shell.end() == {}
            process = real.shell.start("resume", real.task)
        assert process.communicate(timeout=60)[0] == b"All done.\n"
        first, *others = [
            without_noise(request.body) for request in model.requests if request.turn == 1
        ]
    assert others == [first, first]
    assert real.lines() == ["hi"]


_DIES = """#!{python}
import os, subprocess, sys
words = ["{codex}", *sys.argv[1:]]
if sys.argv[1] != "app-server":
    os.execv(words[0], words)
codex = subprocess.Popen(words, stdin=subprocess.PIPE)
for line in sys.stdin.buffer:
    if b'"turn/start"' in line and os.path.exists("{mark}"):
        os.unlink("{mark}")
        codex.kill()
        os.kill(os.getpid(), 9)
    codex.stdin.write(line)
    codex.stdin.flush()
"""


def test_an_answer_is_told_in_the_next_run_where_codex_dies_before_it_has_heard_it(
    real: Scene,
) -> None:
    program, mark = real.home / "codex", real.home / "dies"
    codex = real.shell.environment["ADJOURN_CODEX"]
    program.write_text(_DIES.format(python=sys.executable, codex=codex, mark=mark))
    program.chmod(0o700)
    real.shell.environment["ADJOURN_CODEX"] = str(program)
    asked = {"questions": [{"title": "Which database?", "options": ["SQLite", "Postgres"]}]}
    asks = Turn(calls=(ToolUse(name="request_user_input_async", arguments=asked, id="call_Q"),))
    with real.model([asks, Turn(text="I go on meanwhile."), DONE], model=SCRIPTING_MODEL) as model:
        real.run()
        mark.touch()
        assert "by signal 9" in real.resume("SQLite", expect=10).out
        real.resume()
    assert "Answer: SQLite" in str(said(model.asked[-1])[-1])


def test_a_full_disk_under_the_store_costs_the_run_and_not_the_thread(
    real: Scene, tmp_path: Path
) -> None:
    """Nothing runs that cannot be written down; with room again, the thread goes on."""
    with small_disk(tmp_path / "disk", kilobytes=4_000) as disk:
        real.shell.store = disk / "store"
        real.shell.environment["ADJOURN_STORE"] = str(real.shell.store)
        with real.model([msgspec.structs.replace(MAKES, delay=2.0), AGAIN, DONE]) as model:
            process = started(real)
            until(lambda: len(model.requests) == 1 and real.is_saved(), what="the model is asked")
            filler = fill(disk)
            _, err = process.communicate(timeout=60)
            assert process.returncode == 1
            filler.unlink()
            assert f"/store is full: free some space; task {real.task} is kept" in err.decode()
            assert f"  try: adjourn show {real.task}" in err.decode()
            assert real.lines() == []
            assert (
                "It cannot go on for now: the store could not be written to while it ran"
                in real.shown()
            )
            real.resume()
        assert real.lines() == ["hi"]


def test_a_thread_name_that_is_none_is_never_handed_to_codex(tmp_path: Path) -> None:
    from adjourn.core.errors import CannotResume
    from adjourn.runners.codex.program import require_thread

    for name in (
        "--last",
        "-c",
        "",
        "my thread",
        "01A1E2ED-BB69-7B21-B740-FB01AE121ED9",
        str(tmp_path),
        "../x",
    ):
        with pytest.raises(CannotResume):
            require_thread(name)
    require_thread("01a1e2ed-bb69-7b21-b740-fb01ae121ed9")
