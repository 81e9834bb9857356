"""The real Codex stops at its calls, leaves, and goes on in the same thread when they are decided."""

import pytest

from tests.codex.scene import SCRIPTING_MODEL, Scene, outputs, patch, said, script, shell
from tests.model.script import ToolUse, Turn

EXECUTE = ("--option", "on-approve=execute")
MAKES = Turn(text="I make it.", calls=(shell("echo hi >> made.txt; echo made", name="call_A"),))
AGAIN = Turn(calls=(shell("echo hi >> made.txt; echo made", name="call_B"),))
DONE = Turn(text="All done.")


def test_a_call_waits_for_a_person_and_runs_once_when_approved(real: Scene) -> None:  # D-R17, D-R20, D-R21, D-R45, D-R61
    with real.model([MAKES, AGAIN, DONE]) as model:
        real.run()
        assert real.lines() == []
        assert [ask["tool_call_id"] for ask in real.asks()] == ["call_A"]
        real.approve_all()
        done = real.resume()
    assert real.lines() == ["hi"]
    assert done.out == "All done.\n"
    first, second = real.shell.runs(real.task)
    assert first["provider"] == second["provider"] == "codex"
    assert first["provider_session_ref"] == second["provider_session_ref"]
    assert second["resumed_from_run_id"] == first["run_id"]
    before, after, last = (said(request) for request in model.asked)
    assert after[: len(before)] == before
    assert "Repeat the identical call" in outputs(model.asked[1])["call_A"]
    assert "made" in outputs(model.asked[2])["call_B"]
    assert real.calls()["call_A"] == "done"
    assert len(last) == len(after) + 2


def test_an_approval_serves_once_and_the_second_repetition_is_asked_about(real: Scene) -> None:
    twice = Turn(calls=(shell("echo hi >> made.txt; echo made", name="call_C"),))
    with real.model([MAKES, AGAIN, twice, DONE]):
        real.run()
        real.approve_all()
        real.resume(expect=10)
        assert real.lines() == ["hi"]
        assert [ask["tool_call_id"] for ask in real.asks()] == ["call_C"]


def test_a_rejected_call_does_not_run_and_the_model_reads_the_reason(real: Scene) -> None:  # A-R47, part 2 row 7
    with real.model([MAKES, DONE]) as model:
        real.run()
        real.shell.adjourn("reject", real.asks()[0]["id"], "--reason", "not today")
        real.resume()
    assert real.lines() == []
    assert outputs(model.asked[-1])["call_A"] == "TOOL_CALL_REJECTED\nnot today"


def test_an_approved_command_is_executed_and_its_output_handed_in(real: Scene) -> None:
    with real.model([MAKES, DONE]) as model:
        real.run(options=EXECUTE)
        real.approve_all()
        real.resume()
    assert real.lines() == ["hi"]
    assert outputs(model.asked[-1])["call_A"] == "Process exited with code 0\nOutput:\nmade\n"
    assert len(model.asked) == 2


def test_an_executed_command_stays_in_the_sandbox_that_the_model_left_it_in(real: Scene) -> None:
    outside = real.work / ".git" / "hook"  # part of the workspace that the sandbox keeps from being written
    outside.parent.mkdir()
    with real.model([Turn(calls=(shell(f"touch {outside}", name="call_A"),)), DONE]) as model:
        real.run(options=EXECUTE)
        assert 'sandbox: "workspace-write"' in real.shown()
        real.approve_all()
        real.resume()
    assert not outside.exists()
    assert "Read-only file system" in outputs(model.asked[-1])["call_A"]


def test_a_command_that_would_leave_the_sandbox_says_so(real: Scene) -> None:
    outside = real.work / ".git" / "hook"
    outside.parent.mkdir()
    leaves = shell(f"touch {outside}", name="call_A", sandbox_permissions="require_escalated")
    with real.model([Turn(calls=(leaves,)), DONE]):
        real.run(options=EXECUTE)
        assert 'sandbox: "none"' in real.shown()
        assert not outside.exists()
        real.approve_all()
        real.resume()
    assert outside.exists()


def test_an_edited_command_is_what_runs(real: Scene) -> None:
    with real.model([MAKES, DONE]) as model:
        real.run(options=EXECUTE)
        real.shell.adjourn("approve", real.asks()[0]["id"], "--set", "command=echo edited >> made.txt")
        real.resume()
    assert real.lines() == ["edited"]
    assert outputs(model.asked[-1])["call_A"].startswith("Process exited with code 0")


def test_an_edited_command_that_the_model_repeats_is_what_runs(real: Scene) -> None:
    edited = Turn(calls=(shell("echo edited >> made.txt", name="call_B"),))
    with real.model([MAKES, edited, DONE]) as model:
        real.run()
        real.shell.adjourn("approve", real.asks()[0]["id"], "--set", "command=echo edited >> made.txt")
        real.resume()
    assert real.lines() == ["edited"]
    assert "echo edited >> made.txt" in outputs(model.asked[1])["call_A"]


def test_a_patch_shows_its_diff_and_is_applied_when_approved(real: Scene) -> None:
    change = "*** Add File: new.txt\n+hello"
    turns = [Turn(calls=(patch(change, name="call_A"),)), Turn(calls=(patch(change, name="call_B"),)), DONE]
    with real.model(turns) as model:
        real.run()
        assert "hello" in real.shown()
        assert not (real.work / "new.txt").exists()
        real.approve_all()
        real.resume()
    assert (real.work / "new.txt").read_text() == "hello\n"
    assert "Success" in outputs(model.asked[-1])["call_B"]


def test_a_question_of_the_model_is_asked_and_its_answer_goes_in_as_codex_writes_it(real: Scene) -> None:  # D-R15
    options = [{"label": "SQLite", "description": "small"}, {"label": "Postgres", "description": "big"}]
    asked = {"questions": [{"id": "db", "header": "Database", "question": "Which database?", "options": options}]}
    with real.model([Turn(calls=(ToolUse(name="request_user_input", arguments=asked, id="call_Q"),)), DONE]) as model:
        real.run()
        assert "Which database?" in real.asks()[0]["prompt"]
        assert "SQLite: small" in real.asks()[0]["prompt"]
        real.resume("--answer", "db=SQLite")
    assert outputs(model.asked[-1])["call_Q"] == '{"answers":{"db":{"answers":["SQLite"]}}}'


def test_a_question_for_whose_answer_the_model_does_not_wait_is_not_lost(real: Scene) -> None:
    asked = {"questions": [{"title": "Which database?", "options": ["SQLite", "Postgres"]}]}
    asks = Turn(calls=(ToolUse(name="request_user_input_async", arguments=asked, id="call_Q"),))
    with real.model([asks, Turn(text="I go on meanwhile."), DONE], model=SCRIPTING_MODEL) as model:
        real.run()
        assert outputs(model.asked[1])["call_Q"] == '{"accepted":true}'
        real.resume("SQLite")
    assert "Answer: SQLite" in str(said(model.asked[-1])[-1])


def test_the_same_question_twice_is_asked_twice(real: Scene) -> None:
    options = [{"label": "SQLite", "description": "small"}]
    asked = {"questions": [{"id": "db", "header": "Database", "question": "Which database?", "options": options}]}
    turns = [Turn(calls=(ToolUse(name="request_user_input", arguments=asked, id=f"call_{n}"),)) for n in "QR"]
    with real.model([*turns, DONE]) as model:
        real.run()
        real.resume("first", expect=10)
        real.resume("second")
    told = outputs(model.asked[-1])
    assert "first" in told["call_Q"]
    assert "second" in told["call_R"]


# --- several at once -------------------------------------------------------------------------------------------------------


def test_of_a_batch_nothing_runs_before_the_last_decision(real: Scene) -> None:
    calls = tuple(shell(f"echo {n} >> made.txt", name=f"call_{n}") for n in range(3))
    again = tuple(shell(f"echo {n} >> made.txt", name=f"again_{n}") for n in (0, 2))
    with real.model([Turn(calls=calls), Turn(calls=again), DONE]) as model:
        real.run()
        asks = {ask["tool_call_id"]: ask["id"] for ask in real.asks()}
        assert sorted(asks) == ["call_0", "call_1", "call_2"]
        real.shell.adjourn("approve", asks["call_0"], asks["call_2"])
        real.shell.adjourn("reject", asks["call_1"])
        assert real.lines() == []
        real.resume()
    assert sorted(real.lines()) == ["0", "2"]
    assert outputs(model.asked[1])["call_1"] == "TOOL_CALL_REJECTED"


def test_an_approval_is_kept_while_another_call_is_asked_about(real: Scene) -> None:
    first = shell("echo 1 >> made.txt", name="call_1")
    both = (shell("echo 1 >> made.txt", name="call_2"), shell("echo 2 >> made.txt", name="call_3"))
    again = (shell("echo 1 >> made.txt", name="call_4"), shell("echo 2 >> made.txt", name="call_5"))
    with real.model([Turn(calls=(first,)), Turn(calls=both), Turn(calls=again), DONE]):
        real.run()
        real.approve_all()
        real.resume(expect=10)
        assert real.lines() == []
        assert [ask["tool_call_id"] for ask in real.asks()] == ["call_3"]
        real.approve_all()
        real.resume()
    assert sorted(real.lines()) == ["1", "2"]


# --- scripts that make calls of their own ----------------------------------------------------------------------------------

SCRIPT = """
const one = await tools.exec_command({cmd: "./record.sh one"});
text("first done");
const two = await tools.exec_command({cmd: "./record.sh two"});
text("second done");
"""


@pytest.mark.parametrize("options", [(), EXECUTE])
def test_a_script_stops_at_the_call_and_the_approver_sees_what_it_has_run(real: Scene, options: tuple[str, ...]) -> None:
    real.shell.script('echo "$1" >> made.txt; echo "recorded $1"', name="record.sh")
    real.allow('[[rule]]\ntool = "shell"\nargs = ["./record.sh", "one"]\naction = "auto"\n')
    again = Turn(calls=(script('text((await tools.exec_command({cmd: "./record.sh two"})).output);', name="call_T"),))
    turns = [Turn(calls=(script(SCRIPT, name="call_S"),)), *([] if options else [again]), DONE]
    with real.model(turns, model=SCRIPTING_MODEL) as model:
        real.run(options=options)
        assert real.lines() == ["one"]
        assert len(real.asks()) == 1
        assert "has already run `./record.sh one` (exit code 0)" in real.shown()
        real.approve_all()
        real.resume()
    assert real.lines() == ["one", "two"]
    told = outputs(model.asked[1])["call_S"]
    assert "Script stopped before its end" in told
    assert "Ran before: `./record.sh one` (exit code 0)\nrecorded one" in told
    assert "recorded two" in outputs(model.asked[-1])["call_S" if options else "call_T"]


def test_several_calls_of_one_script_are_asked_about_together(real: Scene) -> None:
    both = 'await Promise.all([1, 2].map(n => tools.exec_command({cmd: `echo ${n} >> made.txt`}))); text("end");'
    again = [script(f'await tools.exec_command({{cmd: "echo {n} >> made.txt"}});', name=f"call_{n}") for n in (1, 2)]
    turns = [Turn(calls=(script(both, name="call_S"),)), Turn(calls=(again[0],)), Turn(calls=(again[1],)), DONE]
    with real.model(turns, model=SCRIPTING_MODEL):
        real.run()
        assert len(real.asks()) == 2
        assert real.lines() == []
        real.approve_all()
        real.resume()
    assert sorted(real.lines()) == ["1", "2"]
    assert sorted(real.calls().values()) == ["done"] * 4


def test_a_patch_is_applied_without_the_model_when_that_is_wanted(real: Scene) -> None:
    with real.model([Turn(calls=(patch("*** Add File: new.txt\n+hello", name="call_A"),)), DONE]) as model:
        real.run(options=EXECUTE)
        real.approve_all()
        real.resume()
    assert (real.work / "new.txt").read_text() == "hello\n"
    assert "Success" in outputs(model.asked[-1])["call_A"]
