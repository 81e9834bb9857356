"""The real Codex is paused by Ctrl+C at any moment, and goes on in the same thread as if nothing had happened."""

import shutil
import signal
import subprocess
import time
from pathlib import Path

import msgspec

from tests.codex.scene import GATED, Scene, outputs, said, shell
from tests.e2e.shell import until
from tests.model.script import Turn
from tests.programs import Upgradable

DONE = Turn(text="All done.")
SLOW = Turn(text="All done.", delay=3.0)


def started(scene: Scene, *options: str) -> "subprocess.Popen[bytes]":
    """Start Codex on a prompt, gated."""
    return scene.shell.start(
        "run", "--runner", "codex", "--no-pause-on-approval", *options, "do it"
    )


def interrupted(process: "subprocess.Popen[bytes]") -> str:
    """Press Ctrl+C and return what was said before it left."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 10, (out, err)
    return out.decode()


# D-R1, D-R8, D-R59
def test_ctrl_c_during_a_model_call_leaves_the_request_as_it_was(real: Scene) -> None:
    with real.model([SLOW]) as model:
        process = started(real)
        until(
            lambda: len(model.requests) > 0 and model.requests[-1].turn == 0,
            what="the model is asked",
        )
        time.sleep(0.3)
        said_so = interrupted(process)
        assert "adjourn resume" in said_so
        (run,) = real.shell.runs(real.task)
        assert run["state"] == "paused"
        assert run["pause_reason"] == "user_interrupt"
        assert run["resumable"] is True
        assert real.shell.end() == {}
        real.resume()
        before, after = [request.body for request in model.requests if request.turn == 0]
    assert without_noise(after) == without_noise(before)


def test_what_a_command_printed_is_not_told_again_after_a_pause(real: Scene) -> None:
    """Not even where it says of itself what Codex says of a call that was stopped."""
    prints = Turn(calls=(shell("echo merge aborted", name="call_A"),))
    with real.model([prints, SLOW]) as model:
        process = started(real)
        until(
            lambda: model.requests[-1:] != [] and model.requests[-1].turn == 1,
            what="the model is asked again",
        )
        until(real.is_saved, what="the thread is on disk")
        interrupted(process)
        real.resume()
        before, after = [request.body for request in model.requests if request.turn == 1]
    assert without_noise(after) == without_noise(before)


def without_noise(body: dict[str, object]) -> dict[str, object]:
    """Leave out what names the connection and not the conversation."""
    return {key: value for key, value in body.items() if key != "client_metadata"}


# D-R5, D-R11
def test_ctrl_c_during_a_command_ends_it_and_says_that_it_may_have_run_in_part(real: Scene) -> None:
    slow = Turn(
        calls=(
            shell(
                "echo one >> made.txt; echo begun; sleep 60; echo two >> made.txt", name="call_A"
            ),
        )
    )
    with real.model([slow, DONE]) as model:
        process = started(real)
        until(lambda: real.lines() == ["one"], what="the command runs")
        interrupted(process)
        assert real.shell.end() == {}
        assert real.calls()["call_A"] == "failed"
        real.resume()
    assert real.lines() == ["one"]
    assert "may have partially run" in outputs(model.asked[-1])["call_A"]
    assert "aborted" not in str(said(model.asked[-1]))


def test_a_paused_task_moved_to_another_home_goes_on(real: Scene, tmp_path: Path) -> None:
    makes = Turn(calls=(shell("echo hi >> made.txt", name="call_A"),))
    again = Turn(calls=(shell("echo hi >> made.txt", name="call_B"),))
    real.shell.environment["ADJOURN_STORE_KEY"] = "it goes with the store from home to home"
    with real.model([makes, again, DONE]) as model:
        real.run()
        real.approve_all()
        assert "it can be resumed" in real.shown()
        before = said(model.asked[0])
        elsewhere = tmp_path / "elsewhere"
        (elsewhere / ".codex").mkdir(parents=True)
        shutil.copy(real.codex_home / "config.toml", elsewhere / ".codex")
        shutil.rmtree(real.home)
        real.shell.environment["HOME"] = str(elsewhere)
        assert "the copy in the store takes its place" in real.shown()
        without_key = real.shell.adjourn(
            "resume", real.task, expect=5, env={"ADJOURN_STORE_KEY": ""}
        )
        assert "adjourn store adopt" in without_key.err
        real.resume()
    assert real.lines() == ["hi"]
    assert said(model.asked[-1])[: len(before)] == before


def test_a_session_file_that_was_cut_off_or_spoilt_is_put_back(real: Scene) -> None:
    makes = Turn(calls=(shell("echo hi >> made.txt", name="call_A"),))
    with real.model([makes, DONE]) as model:
        real.run()
        (file,) = real.session_files()
        whole = file.read_bytes()
        file.write_bytes(whole[: len(whole) // 2] + b"spoilt")
        assert "its file is damaged, the copy in the store takes its place" in real.shown()
        real.shell.adjourn("reject", real.asks()[0]["id"])
        real.resume()
    assert outputs(model.asked[-1])["call_A"] == "TOOL_CALL_REJECTED"


def test_where_the_session_file_cannot_be_put_back_that_is_said_and_the_task_goes_on_later(
    real: Scene,
) -> None:
    makes, again = (
        Turn(calls=(shell("echo hi >> made.txt", name=name),)) for name in ("call_A", "call_B")
    )
    with real.model([makes, again, DONE]) as model:
        real.run()
        real.approve_all()
        shutil.rmtree(real.codex_home / "sessions")
        (real.codex_home / "sessions").touch()
        why = f"its copy cannot be put there: {real.codex_home / 'sessions'} is not a directory"
        assert why in real.shown()
        assert why in real.resume(expect=6).err
        assert len(model.asked) == 1
        (real.codex_home / "sessions").unlink()
        real.resume()
    assert real.lines() == ["hi"]


def test_a_call_that_codex_closed_itself_is_decided_in_words(
    real: Scene,
) -> None:  # its driver had died, and it stopped by itself
    makes = Turn(calls=(shell("echo hi >> made.txt", name="call_A"),))
    again = Turn(calls=(shell("echo hi >> made.txt", name="call_B"),))
    with real.model([makes, again, DONE]) as model:
        real.run()
        (file,) = real.session_files()
        ordinal = len(file.read_bytes().splitlines())
        closed = {
            "type": "function_call_output",
            "call_id": "call_A",
            "output": "aborted by user after 1.0s",
        }
        with file.open("ab") as more:
            line = {
                "timestamp": "2026-01-01T00:00:00.000Z",
                "ordinal": ordinal,
                "type": "response_item",
                "payload": closed,
            }
            more.write(msgspec.json.encode(line) + b"\n")
        real.approve_all()
        real.resume()
    assert real.lines() == ["hi"]
    assert "aborted" in outputs(model.asked[1])["call_A"]
    assert "Repeat the identical call" in str(said(model.asked[1])[-1])


# D-R19, D-R24, D-R25, D-R54, D-R64
def test_without_the_file_and_without_a_copy_the_task_is_not_resumed(real: Scene) -> None:
    makes = Turn(calls=(shell("echo hi >> made.txt", name="call_A"),))
    with real.model([makes, DONE]) as model:
        real.run()
        for file in real.session_files():
            file.unlink()
        store = real.shell.open_store()
        with store.change() as change:
            change.keep_document(real.task, "session", None)
        store.close()
        real.approve_all()
        refused = real.resume(expect=6)
        (run,) = real.shell.runs(real.task)
        for named in (
            real.task,
            run["run_id"],
            "codex",
            run["provider_session_ref"],
            "no copy",
            f"adjourn restart {real.task}",
        ):
            assert named in refused.err  # D-R53
        assert "it cannot be resumed" in real.shown()
        assert len(model.asked) == 1
        real.shell.adjourn("restart", real.task, expect=10)  # D-R28, D-R31, D-R32, D-R65
        first, second = real.shell.runs(real.task)
        assert first["provider_session_ref"] != second["provider_session_ref"]
        assert first["superseded_by_run_id"] == second["run_id"]
        assert second["restart_of_run_id"] == first["run_id"]


def test_of_two_who_resume_at_once_one_goes_on_and_the_call_runs_once(real: Scene) -> None:
    makes = Turn(calls=(shell("echo hi >> made.txt", name="call_A"),))
    again = Turn(calls=(shell("echo hi >> made.txt", name="call_B"),))
    with real.model([makes, again, DONE]):
        real.run()
        real.approve_all()
        both = [real.shell.start("resume", real.task) for _ in range(2)]
        codes = sorted(process.wait(timeout=60) for process in both)
        for process in both:
            process.communicate()
    assert real.lines() == ["hi"]
    assert codes[0] == 0


# Kill -9 of adjourn while it runs
def test_a_dead_supervisor_costs_nothing_and_the_run_is_taken_over(real: Scene) -> None:
    makes = Turn(calls=(shell("echo hi >> made.txt; sleep 2", name="call_A"),))
    with real.model([makes, DONE]):
        process = started(real)
        until(lambda: real.lines() == ["hi"], what="the command runs")
        process.kill()
        process.communicate()
        real.shell.adjourn("wait", real.task)
    assert real.lines() == ["hi"]
    assert real.calls()["call_A"] == "done"


def test_the_launcher_of_npm_is_seen_through(real: Scene) -> None:
    package = real.home / "node_modules" / "@openai" / "codex"
    vendored = (
        real.home
        / "node_modules"
        / "@openai"
        / "codex-linux-x64"
        / "vendor"
        / "some-triple"
        / "bin"
    )
    (package / "bin").mkdir(parents=True)
    vendored.mkdir(parents=True)
    (package / "package.json").write_text("{}")
    launcher = package / "bin" / "codex.js"
    launcher.write_text("#!/usr/bin/env node\nprocess.exit(9)\n")
    launcher.chmod(0o700)
    (vendored / "codex").symlink_to(real.shell.environment["ADJOURN_CODEX"])
    with real.model([DONE]):
        real.run(expect=0, options=("--option", f"program={launcher}"))


def test_a_program_that_was_upgraded_meanwhile_goes_on_in_the_same_thread(
    real: Scene, tmp_path: Path
) -> None:
    installed = Upgradable("codex", tmp_path)
    real.shell.environment["ADJOURN_CODEX"] = str(installed.path)
    makes, again = (
        Turn(calls=(shell("echo hi >> made.txt", name=name),)) for name in ("call_A", "call_B")
    )
    with real.model([makes, again, DONE]) as model:
        real.run()
        installed.upgrade()
        assert "when the task left" in real.shell.adjourn("show", real.task).out
        real.approve_all()
        real.resume()
    assert real.lines() == ["hi"]
    assert said(model.asked[-1])[: len(said(model.asked[0]))] == said(model.asked[0])


def test_settings_that_name_another_provider_cost_nothing(real: Scene) -> None:
    """D-R19, D-R20, D-R53, D-R64: 6, and the task waits on; with the old settings it goes on."""
    config = real.codex_home / "config.toml"
    with real.model([Turn(calls=(shell("touch made", name="call_A"),)), DONE]):
        real.shell.adjourn(*GATED, "do it", expect=10)
        before = config.read_text()
        config.write_text(before.replace("scripted", "other"))
        refused = real.shell.adjourn("resume", real.task, "--approve-all", expect=6)
        for part in (real.task, "codex", "scripted", "other", f"adjourn restart {real.task}"):
            assert part in refused.err
        assert real.shell.state(real.task) == "waiting"
        assert not (real.work / "made").exists()
        # A worker has nobody to tell before it starts: what it starts pauses
        real.shell.adjourn("approve", real.shell.inbox()[0]["id"])
        real.shell.adjourn("worker", "--once")
        assert real.shell.json("show", real.task)["pause_reason"]["type"] == "unavailable"
        config.write_text(before)
        real.resume()
    assert real.shell.state(real.task) == "succeeded"
    assert (real.work / "made").exists()
