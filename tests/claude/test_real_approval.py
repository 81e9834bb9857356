"""The real Claude Code stops at its calls, leaves, and goes on in the same session when they are decided."""

from pathlib import Path

from tests.claude.scene import Scene, bash, history
from tests.model.script import Fault, ToolUse, Turn

MAKES = Turn(text="I make it.", calls=(bash("echo hi >> made.txt && echo made", name="toolu_A"),))
DONE = Turn(text="All done.")
LINES = ("touch here", "echo B >> made.txt", "echo C >> made.txt")


def test_a_call_waits_for_a_person_and_runs_once_when_approved(real: Scene, tmp_path: Path) -> None:
    """D-R17, D-R22, D-R46, D-R61; D-R26, D-R63: in its workspace, from wherever that is said."""
    (tmp_path / "elsewhere").mkdir()
    with real.model([MAKES, DONE]) as model:
        real.run()
        assert real.lines() == []
        assert [ask["tool_call_id"] for ask in real.asks()] == ["toolu_A"]
        real.approve_all()
        done = real.shell.adjourn(
            "resume", "--store", str(real.shell.store), real.task, cwd=tmp_path / "elsewhere"
        )
    assert real.lines() == ["hi"]
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert done.out == "All done.\n"
    first, second = real.shell.runs(real.task)
    assert first["provider"] == second["provider"] == "claude"
    assert first["provider_session_ref"] == second["provider_session_ref"]
    assert second["resumed_from_run_id"] == first["run_id"]
    before, after = (history(request) for request in model.asked)
    assert after[: len(before)] == before
    assert b'"content":"made"' in after[-1]

    # The conversation is read from the session's own file, and from our copy if that is gone
    told = real.shell.json("show", real.task, "--transcript")
    assert [message["role"] for message in told["messages"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    (call,) = told["messages"][1]["tool_calls"]
    assert (call["id"], call["name"]) == ("toolu_A", "Bash")
    assert told["messages"][2]["text"] == "made"
    assert told["usage"]["output"] > 0
    shown = real.shell.adjourn("show", real.task, "--transcript").out
    assert "  agent │ All done.\n" in shown
    for path in real.session_files():
        path.unlink()
    assert "I make it." in real.shell.adjourn("show", real.task, "--transcript").out


def _batch(suffix: str = "") -> tuple[ToolUse, ...]:
    return tuple(
        bash(line, name=f"toolu_{name}{suffix}") for name, line in zip("ABC", LINES, strict=True)
    )


def test_nothing_of_a_batch_runs_before_all_of_it_is_decided_and_then_what_was_approved(
    real: Scene,
) -> None:
    """A-R13, A-R47, part 2 rows 7 and 9, trap 1 and 2.

    It streams slowly, and its first call would pass by itself.
    """
    real.let_pass('args = ["touch", "*"]')
    allowed, _, approved = _batch("2")
    turns = [
        Turn(text="Three.", calls=_batch()),
        Turn(text="Again.", calls=(allowed, approved)),
        DONE,
    ]
    with real.model(turns, between_blocks=0.7) as model:
        real.run()
        assert not (real.work / "here").exists()
        assert real.lines() == []
        assert [ask["tool_call_id"] for ask in real.asks()] == ["toolu_B", "toolu_C"]
        real.resume("--approve", "toolu_C", "--reason", "not today")
    assert (real.work / "here").exists()
    assert real.lines() == ["C"]
    assert b"TOOL_CALL_REJECTED\\nnot today" in b"".join(history(model.asked[1]))
    final = b"".join(history(model.asked[-1]))
    assert all(f'"id":"toolu_{name}"'.encode() in final for name in ("A", "B", "C", "A2", "C2"))


def test_an_approved_call_of_a_batch_that_the_model_does_not_make_again_is_said_aloud(
    real: Scene,
) -> None:
    """A-R3: only the first of a message goes on in the session, the others have to be repeated."""
    first, second = _batch()[1:]
    with real.model([Turn(text="Two.", calls=(first, second)), DONE]):
        real.run()
        ended = real.resume("--approve-all")
    assert real.lines() == ["B"]
    assert "Completed; 1 approved call was never made:" in ended.out
    assert "toolu_C Bash: echo C >> made.txt" in ended.out
    calls = real.shell.json("show", real.task)["calls"]
    assert {call["id"]: call["fate"] for call in calls} == {
        "toolu_B": "done",
        "toolu_C": "not_made",
    }


def test_nothing_of_a_batch_that_does_not_stream_runs_before_all_of_it_is_decided(
    real: Scene,
) -> None:
    """Trap 1: defer is ignored there.

    Trap 2: it is told call by call; a long one in between makes the others come late.
    """
    real.let_pass('args = ["touch", "*"]')
    content = {"file_path": str(real.work / "long.txt"), "content": "x" * 400_000}

    def batch(suffix: str) -> tuple[ToolUse, ...]:
        long = ToolUse(name="Write", arguments=content, id=f"toolu_B{suffix}")
        return (
            bash("touch here", name=f"toolu_A{suffix}"),
            long,
            bash("echo C >> made.txt", name=f"toolu_C{suffix}"),
        )

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


def test_a_text_for_a_session_that_was_done_goes_on_in_it(real: Scene) -> None:
    """A-R40, part 2 row 34."""
    with real.model([DONE, Turn(text="Twice done.")]) as model:
        real.run(expect=0)
        assert real.resume("Do it twice.").out == "Twice done.\n"
        assert any("Do it twice." in str(message) for message in model.asked[-1].body["messages"])
    first, second = real.shell.runs(real.task)
    assert first["provider_session_ref"] == second["provider_session_ref"]
    assert second["resumed_from_run_id"] == first["run_id"]
