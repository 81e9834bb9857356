"""The real Claude Code stops at its calls, leaves, and goes on in the same session when they are decided."""

import pytest

from tests.claude.scene import Scene, bash, history
from tests.model.script import Fault, ToolUse, Turn

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


def _made(*names: str) -> tuple[ToolUse, ...]:
    return tuple(bash(f"echo {name} >> made.txt", name=f"toolu_{name}") for name in names)


def _again(*names: str) -> tuple[ToolUse, ...]:
    return tuple(bash(f"echo {name} >> made.txt", name=f"toolu_{name}2") for name in names)


@pytest.mark.parametrize("between_blocks", [0.0, 0.7])
def test_nothing_of_a_batch_runs_before_all_of_it_is_decided(real: Scene, between_blocks: float) -> None:  # A-R13, trap 1 and 2
    turns = [Turn(text="Three.", calls=_made("A", "B", "C")), Turn(text="The others.", calls=_again("B", "C")), DONE]
    with real.model(turns, between_blocks=between_blocks) as model:
        real.run()
        assert real.lines() == []
        assert [ask["tool_call_id"] for ask in real.asks()] == ["toolu_A", "toolu_B", "toolu_C"]
        real.approve_all()
        real.resume()
    assert real.lines() == ["A", "B", "C"]
    assert real.calls() == dict.fromkeys(("toolu_A", "toolu_B", "toolu_C"), "done")
    final = b"".join(history(model.asked[-1]))
    assert all(f'"id":"toolu_{name}"'.encode() in final for name in ("A", "B", "C", "B2", "C2"))


def test_nothing_of_a_batch_that_does_not_stream_runs_before_all_of_it_is_decided(real: Scene) -> None:
    """Trap 1: defer is ignored there. Trap 2: it is told call by call; a long one in between makes the others come late."""
    real.let_pass('args = ["touch", "*"]')
    content = {"file_path": str(real.work / "long.txt"), "content": "x" * 400_000}

    def batch(suffix: str) -> tuple[ToolUse, ...]:
        long = ToolUse(name="Write", arguments=content, id=f"toolu_B{suffix}")
        return bash("touch here", name=f"toolu_A{suffix}"), long, bash("echo C >> made.txt", name=f"toolu_C{suffix}")

    first = Turn(text="Three.", calls=batch(""), faults=(Fault(status=404),))
    with real.model([first, Turn(text="Again.", calls=batch("2")), DONE]):
        real.run()
        assert not (real.work / "here").exists()
        assert [ask["tool_call_id"] for ask in real.asks()] == ["toolu_B", "toolu_C"]
        real.approve_all()
        real.resume()
    assert real.lines() == ["C"]
    assert (real.work / "here").exists()
    assert (real.work / "long.txt").stat().st_size == 400_000


def test_of_a_batch_only_what_was_approved_runs(real: Scene) -> None:
    turns = [Turn(text="Three.", calls=_made("A", "B", "C")), Turn(text="Others.", calls=_again("B", "C")), DONE]
    with real.model(turns) as model:
        real.run()
        real.resume("--approve", "toolu_C", "--reason", "no")
    assert real.lines() == ["C"]
    assert history(model.asked[-1])[-1].count(b"TOOL_CALL_REJECTED") == 1


def test_an_approved_call_that_is_made_twice_is_asked_about_again(real: Scene) -> None:  # single use
    turns = [Turn(text="Once.", calls=_made("A")), Turn(text="Twice.", calls=_again("A")), DONE]
    with real.model(turns):
        real.run()
        real.approve_all()
        real.resume(expect=10)
        assert real.lines() == ["A"]
        assert [ask["tool_call_id"] for ask in real.asks()] == ["toolu_A2"]
        real.resume("--reject-all")
    assert real.lines() == ["A"]
