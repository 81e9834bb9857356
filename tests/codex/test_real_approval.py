"""The real Codex stops at its calls, leaves, and goes on in the same thread when they are decided."""

from tests.codex.scene import Scene, outputs, said, shell
from tests.model.script import Turn

MAKES = Turn(text="I make it.", calls=(shell("echo hi >> made.txt; echo made", name="call_A"),))
AGAIN = Turn(calls=(shell("echo hi >> made.txt; echo made", name="call_B"),))
DONE = Turn(text="All done.")


def test_a_call_waits_for_a_person_and_runs_once_when_approved(real: Scene) -> None:  # D-R17, D-R21, D-R45, D-R61
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
