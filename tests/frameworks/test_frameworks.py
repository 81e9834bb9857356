"""Agents of frameworks under adjourn: their pauses are asks of the run, and an approved call has one effect."""

import sys
from pathlib import Path

import pytest

from tests.model.script import ToolUse, Turn
from tests.model.server import Model, playing
from tests.stage import Stage

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
FRAMEWORKS = pytest.mark.parametrize("name", ["langgraph", "openai_agents", "pydantic_ai"])
# The shell's parent is the agent: it is killed after the effect, before it has the result
DEADLY = "echo effect >> made.txt; kill -9 $PPID; sleep 5"


def wants(*commands: str) -> Turn:
    calls = [
        ToolUse(name="run_command", arguments={"command": command}, id=f"call_{number}")
        for number, command in enumerate(commands, start=1)
    ]
    return Turn(calls=tuple(calls))


def words(stage: Stage, model: Model, name: str) -> tuple[str, ...]:
    stage.shell.environment |= {"OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": "none"}
    return ("run", "--", sys.executable, str(EXAMPLES / f"{name}_agent.py"))


@FRAMEWORKS
def test_an_approved_call_has_one_effect_with_two_resumes_a_kill_and_a_third_resume(
    stage: Stage, name: str
) -> None:
    with playing([wants(DEADLY), Turn(text="Done.")]) as model:
        stage.shell.adjourn(*words(stage, model, name), expect=10)
        assert stage.lines() == []
        stage.approve_all()
        both = [stage.shell.start("resume", stage.task) for _ in range(2)]
        for process in both:
            process.communicate(timeout=120)
        assert stage.lines() == ["effect"]
        (ask,) = stage.asks()
        assert ask["kind"] == "uncertain"
        stage.shell.adjourn("settle", ask["id"], "it-ran")
        assert "Done." in stage.resume().out
        assert stage.lines() == ["effect"]
        assert "It ran, as a person says" in str(model.requests[-1].body)
        stage.resume(expect=None)
        assert stage.lines() == ["effect"]


@FRAMEWORKS
def test_of_two_calls_that_are_asked_at_once_the_rejected_one_is_told_why(
    stage: Stage, name: str
) -> None:
    two = wants("echo A >> made.txt; echo out", "echo B >> made.txt")
    with playing([two, Turn(text="Done.")]) as model:
        stage.shell.adjourn(*words(stage, model, name), expect=10)
        first, second = stage.asks()
        stage.shell.adjourn("approve", first["id"])
        stage.shell.adjourn("reject", second["id"], "--reason", "not B")
        assert "Done." in stage.resume().out
        assert stage.lines() == ["A"]
        told = str(model.requests[-1].body)
    assert "not B" in told
    assert "out" in told
