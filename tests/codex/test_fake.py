"""What the driver of Codex makes of whatever a Codex says.

A fake says it, so these run everywhere.
"""

import contextlib
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.codex.scene import GATED, Scene
from tests.e2e.shell import until

FAKE = Path(__file__).parent / "fake.py"
MAKES = [{"run": "echo hi >> made.txt", "id": "call_A"}]
AGAIN = [{"run": "echo hi >> made.txt", "id": "call_B"}]
DONE = [{"say": "All done."}]
UNASKED = [{"run": "touch unasked", "id": "call_A", "unasked": True}]
OTHER = {"itemId": "call_A", "command": "/bin/bash -lc 'rm -rf /'", "cwd": "/"}


class FakeScene(Scene):
    """A scene in which a fake plays."""

    def play(self, *turns: list[dict[str, Any]], **more: Any) -> None:
        self.codex_home.mkdir(exist_ok=True)
        (self.codex_home / "fake.json").write_bytes(msgspec.json.encode({"turns": turns, **more}))

    def told(self) -> list[list[dict[str, Any]]]:
        return [
            msgspec.json.decode(line)
            for line in (self.codex_home / "told.jsonl").read_bytes().splitlines()
        ]

    def output(self, call: str) -> str:
        """Return what the model was told last of a call."""
        return str(
            [
                item["output"]
                for item in self.told()[-1]
                if item.get("call_id") == call and "output" in item
            ][-1]
        )


@pytest.fixture
def fake(tmp_path: Path) -> FakeScene:
    program = tmp_path / "codex"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {FAKE} "$@"\n')
    program.chmod(0o700)
    return FakeScene(tmp_path, str(program))


# D-R14, D-R17, D-R36, D-R37
def test_a_call_waits_and_runs_once_when_approved(fake: FakeScene) -> None:
    fake.play(MAKES, AGAIN, DONE)
    fake.run()
    assert fake.lines() == []
    assert fake.shell.runs(fake.task)[0]["resumable"] is True
    fake.approve_all()
    fake.resume()
    assert fake.lines() == ["hi"]
    assert "Repeat the identical call" in str(fake.told()[1])


def test_an_approved_call_that_is_never_made_is_said_aloud_on_every_surface(
    fake: FakeScene,
) -> None:
    """A-R3: text and JSON of `resume`, `show`, `wait` and `tasks`, and the trail."""
    never = "1 approved call was never made"
    fake.play(MAKES, DONE)
    fake.run()
    fake.approve_all()
    ended = fake.resume()
    assert fake.lines() == []
    gist = "call_A shell: echo hi >> made.txt"
    assert f"Completed; {never}:  (task {fake.task})\n  {gist}\n" in ended.out
    shell, task = fake.shell, fake.task
    for words in (("show", task), ("wait", task)):
        assert f"Completed; {never}:" in shell.adjourn(*words).out
        found = shell.json(*words)
        (call,) = found.get("tasks", [found])[0]["calls"]  # `wait` has a list
        assert (call["id"], call["name"], call["fate"]) == ("call_A", "shell", "not_made")
        assert call["arguments"]["command"] == "echo hi >> made.txt"
    assert "is   never made, although it was approved" in shell.adjourn("show", task, "--full").out
    assert never in shell.adjourn("tasks").out
    assert shell.json("tasks")["tasks"][0]["calls_not_made"] == 1
    assert "call not made" in shell.adjourn("show", task).out
    trail = shell.adjourn("audit", "export", task).out
    assert '"kind":"call_not_made"' in trail.replace('": "', '":"')
    shell.adjourn("audit", "verify")
    fake.play(DONE)
    assert never not in shell.adjourn("restart", task).out
    assert shell.json("tasks")["tasks"][0]["calls_not_made"] == 0


def test_a_plan_says_aloud_that_an_approved_call_was_never_made(fake: FakeScene) -> None:
    """A-R3: as every other surface."""
    fake.play(MAKES, DONE)
    options = '{ on-approve = "repeat" }'
    plan = f'[[task]]\nid = "make"\nrunner = "codex"\nprompt = "do it"\noptions = {options}\n'
    (fake.shell.place / "plan.toml").write_text(plan)
    fake.shell.adjourn("execute", expect=10)
    fake.approve_all()
    fake.shell.adjourn("resume", "make")
    told = "Completed; 1 approved call was never made:\n  call_A shell: echo hi >> made.txt\n"
    assert told in fake.shell.adjourn("plan", "show").out
    assert told in fake.shell.adjourn("execute").out
    shown = fake.shell.adjourn("plan", "show", "--output", "json").doc
    assert shown["tasks"][0]["calls_not_made"] == 1


def test_an_approved_command_is_executed_and_cannot_be_lost(fake: FakeScene) -> None:
    """A-R43: unless the task was told otherwise."""
    fake.gated = GATED
    fake.play([{"run": "echo hi >> made.txt; echo out", "id": "call_A"}], DONE)
    fake.run()
    fake.approve_all()
    fake.resume()
    assert fake.lines() == ["hi"]
    assert fake.output("call_A") == "Process exited with code 0\nOutput:\nout\n"


def test_verbose_tells_of_steps_and_calls_as_they_happen(fake: FakeScene) -> None:
    """A-R32."""
    fake.play(MAKES, AGAIN, DONE)
    told = fake.run(options=("--verbose",)).err
    assert "adjourn: step 1" in told
    assert "adjourn: call call_A waits for a person: shell: echo hi >> made.txt" in told
    fake.approve_all()
    assert "adjourn: call call_A is done" in fake.resume("--verbose").err


def test_a_rejection_is_the_output_of_the_call(fake: FakeScene) -> None:
    fake.play(MAKES, DONE)
    fake.run()
    fake.shell.adjourn("reject", fake.asks()[0]["id"], "--reason", "no")
    fake.resume()
    assert fake.lines() == []
    assert fake.output("call_A") == "TOOL_CALL_REJECTED\nno"


def test_a_question_is_asked_and_answered(fake: FakeScene) -> None:
    fake.play(
        [{"ask": [{"id": "db", "question": "Which?", "options": None}], "id": "call_Q"}], DONE
    )
    fake.run()
    fake.resume("SQLite")
    assert fake.output("call_Q") == '{"answers":{"db":{"answers":["SQLite"]}}}'


# D-R24, D-R25
def test_another_thread_in_the_place_of_the_named_one_is_refused(fake: FakeScene) -> None:
    fake.play(MAKES, DONE)
    fake.run()
    fake.approve_all()
    fake.play(MAKES, DONE, opens="01a1e2ed-bb69-7b21-b740-fb01ae121ed9")
    done = fake.resume(expect=1)
    assert "in the place of" in done.err
    assert fake.lines() == []


# D-R25, D-R30, D-R54
def test_a_thread_that_codex_does_not_find_is_not_begun_anew(fake: FakeScene) -> None:
    fake.play(MAKES, DONE)
    fake.run()
    fake.approve_all()
    fake.play(MAKES, DONE, refuses=["thread/resume"])
    done = fake.resume(expect=1)
    assert "cannot resume thread" in done.err
    assert "adjourn restart" in done.err


def test_doctor_says_what_is_installed_and_what_it_can_do(fake: FakeScene) -> None:
    says = {each["check"]: each["says"] for each in fake.shell.json("doctor")["findings"]}
    assert says["codex"].startswith("Codex 0.166.0: it has an app-server")
    for program, words in (("/no/such/codex", "is not there"), ("/bin/true", "it must be Codex")):
        fake.shell.environment["ADJOURN_CODEX"] = program
        says = {
            each["check"]: each["says"]
            for each in fake.shell.adjourn("doctor", "--output", "json", expect=None).doc[
                "findings"
            ]
        }
        assert words in says["codex"]


def test_a_thread_that_somebody_else_has_open_can_be_resumed_when_they_have_left(
    fake: FakeScene,
) -> None:
    fake.play(MAKES, AGAIN, DONE)
    fake.run()
    fake.approve_all()
    fake.play(
        MAKES,
        AGAIN,
        DONE,
        refuses=["thread/resume"],
        refusal="thread x already has an active writer",
    )
    assert "another process has Codex thread" in fake.resume(expect=10).out
    fake.play(MAKES, AGAIN, DONE)
    fake.resume()
    assert fake.lines() == ["hi"]


@pytest.mark.parametrize("ref", ["--last", "my thread", "01a1e2ed-bb69-7b21-b740-fb01ae121ed9"])
def test_a_ref_that_is_not_the_one_that_was_kept_is_refused(fake: FakeScene, ref: str) -> None:
    fake.play(MAKES, DONE)
    fake.run()
    fake.approve_all()
    store = fake.shell.open_store()
    with contextlib.closing(store), store.change() as change:
        run = change.run(fake.task, 1)
        change.save_run(run, msgspec.structs.replace(run, session_ref=ref, version=run.version + 1))
    assert "adjourn restart" in fake.resume(expect=6).err
    assert fake.lines() == []


def test_what_became_of_the_program_since_the_pause_is_said_before_anything_starts(
    fake: FakeScene,
) -> None:
    fake.play(MAKES, AGAIN, DONE)
    fake.run()
    fake.approve_all()
    program = Path(fake.shell.environment["ADJOURN_CODEX"])
    away = program.rename(program.with_name("away"))
    assert f"the program {program} is not there" in fake.shown()
    refused = fake.resume(expect=6).err
    assert f"the program {program} is not there" in refused
    assert f"adjourn restart {fake.task}" in refused
    away.rename(program)
    fake.play(MAKES, AGAIN, DONE, version="0.130.0")
    assert "Codex 0.130.0 is too old" in fake.resume(expect=6).err
    assert len(fake.shell.runs(fake.task)) == 1
    fake.play(MAKES, AGAIN, DONE, version="0.200.0")
    assert (
        f"{program}; it was 0.166.0 when the task left; its version is checked when it starts"
        in fake.shown()
    )
    fake.resume()
    assert fake.lines() == ["hi"]


# D-R19, D-R26, D-R27
def test_a_resume_works_in_its_workspace_wherever_it_is_said_and_not_without_it(
    fake: FakeScene,
) -> None:
    fake.play(MAKES, AGAIN, [{"run": "pwd >> where.txt", "id": "call_C"}], DONE)
    fake.run()
    fake.approve_all()
    task = fake.task
    store = fake.shell.environment["ADJOURN_STORE"]
    away = fake.work.rename(fake.home / "away")
    # A file goes with its workspace
    fake.shell.environment["ADJOURN_STORE"] = store.replace(f"{fake.work}/", f"{away}/")
    refused = fake.shell.adjourn("resume", task, expect=6, cwd=fake.home).err
    assert f"{fake.work} is not there any more" in refused
    away.rename(fake.work)
    fake.shell.environment["ADJOURN_STORE"] = store
    fake.shell.adjourn("resume", fake.task, expect=10, cwd=fake.home)
    assert fake.lines() == ["hi"]
    assert f'cwd: "{fake.work}"' in fake.shown()


def test_a_first_run_that_is_stopped_before_its_thread_is_there_can_only_be_restarted(
    fake: FakeScene,
) -> None:
    """D-R13, D-R18, D-R47, D-R53: with the app-server up, and no thread yet."""
    fake.play(DONE, slow={"thread/start": 60})
    process = fake.shell.start(
        "run", "--runner", "codex", "--no-pause-on-approval", "--output", "json", "do it"
    )
    until(
        lambda: any("app-server" in words for words in fake.shell.processes().values()),
        what="the app-server is there",
    )
    process.send_signal(2)
    out, _ = process.communicate(timeout=30)
    manifest = msgspec.json.decode(out)
    assert manifest["resumable"] is False
    assert manifest["resume_hint"].startswith("adjourn restart ")
    (run,) = fake.shell.runs(fake.task)
    assert run["state"] == "paused"
    assert run["resumable"] is False
    assert "provider_session_ref" not in run
    refused = fake.resume(expect=6).err
    for named in (
        fake.task,
        run["run_id"],
        "codex",
        "no session",
        "not saved yet",
        f"adjourn restart {fake.task}",
    ):
        assert named in refused
    assert (
        f"Paused. It cannot be resumed: its agent had saved nothing yet.\nRestart with: adjourn restart {fake.task}"
        in fake.shown()
    )
    assert "\nit cannot be resumed" in fake.shown()
    fake.play(DONE)
    assert fake.shell.adjourn("restart", fake.task).out == "All done.\n"


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ({"version": "0.130.0"}, "too old"),
        ({"trust": "modified"}, "does not take the hook"),
        ({"refuses": ["thread/start"]}, "refused thread/start"),
        ({"refuses": ["turn/start"]}, "refused turn/start"),
        ({"refuses": ["hooks/list"]}, "refused hooks/list"),
    ],
)
def test_a_codex_that_does_not_fit_is_refused_and_nothing_runs(
    fake: FakeScene, says: dict[str, Any], words: str
) -> None:
    fake.play(MAKES, DONE, **says)
    done = fake.run(expect=1)
    assert words in done.err
    assert fake.lines() == []


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"raw": "no JSON"}, "no message"),
        ({"raw": '{"method": "item/completed", "params": {"threadId": "%"}}'}, ""),
        ({"raw": "[]"}, "no message"),
        ({"die": 3}, "left before its turn ended"),
    ],
)
def test_what_makes_no_sense_ends_the_run_with_a_reason(
    fake: FakeScene, step: dict[str, Any], words: str
) -> None:
    fake.play([step], DONE)
    done = fake.run(expect=0 if not words else 1, options=("--option", "silence=2"))
    assert words in done.err


def test_a_context_that_is_full_is_a_limit_and_loses_no_work(fake: FakeScene) -> None:
    fake.play([{"fail": "contextWindowExceeded"}], DONE)
    assert "It cannot go on for now: too long, or too much" in fake.run().out
    assert fake.shell.json("show", fake.task)["pause_reason"]["type"] == "limit_reached"
    assert fake.resume().out == "All done.\n"


@pytest.mark.parametrize(
    ("trouble", "words"), [(20, "times in a row: Reconnecting"), (0, "said nothing for 2 s")]
)
def test_where_codex_gets_no_further_it_pauses_with_or_without_the_flag(
    fake: FakeScene, trouble: int, words: str
) -> None:
    fake.play([{"trouble": trouble}, {"wait": 30}], DONE)
    patience = ("--option", "silence=2")
    ungated = ("run", "--runner", "codex", "--no-pause-on-approval", *patience, "do it")
    assert words in fake.shell.adjourn(*ungated, expect=10).err
    assert fake.shell.json("show", fake.task)["pause_reason"]["type"] == "unavailable"
    paused = fake.run(options=patience).out
    assert "It cannot go on for now: Codex " in paused
    assert words in paused
    assert fake.resume().out == "All done.\n"


@pytest.mark.parametrize("victim", ["program", "driver"])
# D-R17
def test_whoever_is_killed_between_two_calls_the_thread_goes_on(
    fake: FakeScene, victim: str
) -> None:
    """Whether somebody is at hand or not: nothing starts again by itself."""
    fake.play([{"wait": 60}], DONE)
    process = fake.shell.start("run", "--runner", "codex", "--no-pause-on-approval", "do it")
    until(lambda: bool(fake.session_files()) and fake.is_saved(), what="the thread is on disk")
    fake.kill(victim)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 10
    by = {
        "program": "Codex left before its turn ended, by signal 9",
        "driver": "the process that drives it was ended by signal 9",
    }
    assert (
        f"It cannot go on for now: {by[victim]}\nPaused. Resume with: adjourn resume {fake.task}".encode()
        in out
    )
    (run,) = fake.shell.runs(fake.task)
    assert (run["state"], run["resumable"]) == ("paused", True)
    assert fake.shell.processes() == {}
    assert fake.resume().out == "All done.\n"
    assert [item["content"][0]["text"] for item in fake.told()[-1]] == ["do it"]


def test_a_run_that_is_paused_after_the_last_words_is_done_and_the_model_is_not_asked_again(
    fake: FakeScene,
) -> None:
    fake.play([{"write": "All done.", "wait": 60}], [{"say": "Anything else?"}])
    process = fake.shell.start("run", "--runner", "codex", "--no-pause-on-approval", "do it")
    until(
        lambda: any("All done." in file.read_text() for file in fake.session_files()),
        what="the last words are written",
    )
    process.send_signal(2)
    process.communicate(timeout=30)
    assert fake.resume().out == "All done.\n"
    assert len(fake.told()) == 1


@pytest.mark.parametrize(
    "method",
    ["item/permissions/requestApproval", "applyPatchApproval", "item/tool/call", "no/such"],
)
def test_a_request_that_nobody_knows_is_refused_and_codex_goes_on(
    fake: FakeScene, method: str
) -> None:
    fake.play([{"request": method}], DONE)
    assert fake.run(expect=0).out == "All done.\n"


def test_what_codex_did_without_asking_ends_the_run(fake: FakeScene) -> None:
    fake.play(UNASKED, DONE)
    assert "had not asked for" in fake.run(expect=1).err


def test_a_call_of_another_thread_is_refused(fake: FakeScene) -> None:
    fake.play(
        [
            {
                "run": "touch made.txt",
                "id": "call_A",
                "thread": "01a1e2ed-bb69-7b21-b740-fb01ae121ed9",
            }
        ],
        DONE,
    )
    fake.run(expect=0)
    assert not (fake.work / "made.txt").exists()


def test_a_second_request_for_more_than_was_let_through_is_refused(fake: FakeScene) -> None:
    fake.allow('[[rule]]\nargs = ["touch", "**"]\naction = "auto"\n')
    fake.play([{"run": "touch made.txt", "id": "call_A", "asks": OTHER}], DONE)
    fake.run(expect=0)
    assert not (fake.work / "made.txt").exists()
    assert fake.output("call_A") == "rejected by user"


def test_a_second_request_for_what_was_let_through_is_granted(fake: FakeScene) -> None:
    fake.allow('[[rule]]\nargs = ["touch", "**"]\naction = "auto"\n')
    same = {"itemId": "call_A", "command": "/bin/bash -lc 'touch made.txt'", "cwd": str(fake.work)}
    fake.play([{"run": "touch made.txt", "id": "call_A", "asks": same}], DONE)
    fake.run(expect=0)
    assert (fake.work / "made.txt").exists()


def test_a_call_of_two_megabytes_is_held_shown_rejected_and_never_executed_in_one_word(
    fake: FakeScene,
) -> None:
    fake.play([{"run": f"true {'x' * 2_000_000}; echo hi >> made.txt", "id": "call_A"}], DONE)
    fake.run()
    assert len(fake.shown()) > 2_000_000
    fake.shell.adjourn("reject", fake.asks()[0]["id"])
    fake.resume()
    assert fake.lines() == []
    assert fake.output("call_A") == "TOOL_CALL_REJECTED"
    fake.run(options=("--option", "on-approve=execute"))
    fake.approve_all()
    fake.resume()
    assert "Repeat the identical call" in fake.output("call_A")
