"""The real Claude Code stops at its calls, leaves, and goes on in the same session when they are decided."""

from tests.claude.scene import Scene, bash, history
from tests.model.script import Turn

MAKES = Turn(text="I make it.", calls=(bash("echo hi >> made.txt && echo made", name="toolu_A"),))
DONE = Turn(text="All done.")


def test_a_call_waits_for_a_person_and_runs_once_when_approved(real: Scene) -> None:  # D-R17, D-R22, D-R46, D-R61
    with real.model([MAKES, DONE]) as model:
        real.run()
        assert real.lines() == []
        assert [ask["tool_call_id"] for ask in real.asks()] == ["toolu_A"]
        real.approve_all()
        done = real.resume()
    assert real.lines() == ["hi"]
    assert done.out == "All done.\n"
    first, second = real.shell.runs(real.task)
    assert first["provider"] == second["provider"] == "claude"
    assert first["provider_session_ref"] == second["provider_session_ref"]
    assert second["resumed_from_run_id"] == first["run_id"]
    before, after = (history(request) for request in model.asked)
    assert after[: len(before)] == before
    assert b'"content":"made"' in after[-1]


def test_a_rejected_call_does_not_run_and_the_model_reads_the_reason(real: Scene) -> None:  # A-R47, part 2 row 7
    with real.model([MAKES, DONE]) as model:
        real.run()
        real.shell.adjourn("reject", real.asks()[0]["id"], "--reason", "not today")
        real.resume()
    assert real.lines() == []
    assert b"TOOL_CALL_REJECTED\\nnot today" in history(model.asked[-1])[-1]
