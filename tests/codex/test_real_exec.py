"""Where there is no app-server, `codex exec` does.

Its calls wait at the hook alone, and decisions are told in words.
"""

from tests.codex.scene import Scene, said, shell
from tests.codex.test_real_pause import interrupted, started
from tests.e2e.shell import until
from tests.model.script import ToolUse, Turn

EXEC = ("--option", "way=exec")
MAKES = Turn(calls=(shell("echo hi >> made.txt; echo made", name="call_A"),))
AGAIN = Turn(calls=(shell("echo hi >> made.txt; echo made", name="call_B"),))
DONE = Turn(text="All done.")


# D-R21
def test_a_codex_without_an_app_server_is_run_by_exec_and_a_call_runs_once_when_approved(
    real: Scene,
) -> None:
    program = real.home / "codex"
    true_one = real.shell.environment["ADJOURN_CODEX"]
    program.write_text(
        f'#!/bin/sh\n[ "$1" = app-server ] && {{ echo "unrecognized subcommand" >&2; exit 2; }}\nexec {true_one} "$@"\n'
    )
    program.chmod(0o700)
    real.shell.environment["ADJOURN_CODEX"] = str(program)
    with real.model([MAKES, AGAIN, DONE]) as model:
        real.run()
        assert real.lines() == []
        assert [ask["tool_call_id"] for ask in real.asks()] == ["call_A"]
        real.approve_all()
        done = real.resume()
    assert real.lines() == ["hi"]
    assert done.out == "All done.\n"
    first, second = real.shell.runs(real.task)
    assert first["provider_session_ref"] == second["provider_session_ref"]
    assert "Repeat the identical call" in str(said(model.asked[1])[-1])
    assert real.calls()["call_A"] == "done"


def test_the_reason_of_a_rejection_and_the_answer_to_a_question_are_told(real: Scene) -> None:
    options = [{"label": "SQLite", "description": "small"}]
    asked = {
        "questions": [
            {"id": "db", "header": "Database", "question": "Which database?", "options": options}
        ]
    }
    with real.model(
        [
            MAKES,
            Turn(calls=(ToolUse(name="request_user_input", arguments=asked, id="call_Q"),)),
            DONE,
        ]
    ) as model:
        real.run(options=EXEC)
        real.shell.adjourn("reject", real.asks()[0]["id"], "--reason", "not today")
        real.resume(expect=10)
        assert "TOOL_CALL_REJECTED\\nnot today" in str(said(model.asked[1])[-1])
        real.resume("SQLite")
    assert real.lines() == []
    assert "SQLite" in str(said(model.asked[-1])[-1])


def test_ctrl_c_pauses_and_the_thread_goes_on(real: Scene) -> None:
    slow = Turn(
        calls=(shell("echo one >> made.txt; sleep 60; echo two >> made.txt", name="call_A"),)
    )
    with real.model([slow, DONE]) as model:
        process = started(real, *EXEC)
        until(lambda: real.lines() == ["one"], what="the command runs")
        interrupted(process)
        assert real.shell.end() == {}
        real.resume()
    assert real.lines() == ["one"]
    assert "may have partially run" in str(said(model.asked[-1])[-1])
