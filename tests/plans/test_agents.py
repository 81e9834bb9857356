"""Agents in a plan: each runner begins from its prompt, and what a reviewer wants changed reaches the very same session."""

import contextlib
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.agent.desk import desk
from tests.claude.scene import Scene as ClaudeScene
from tests.codex.scene import Scene as CodexScene
from tests.codex.scene import shell as codex_shell
from tests.e2e.shell import Shell
from tests.model.script import ToolUse, Turn
from tests.model.server import Model
from tests.programs import program

TURNS = (Turn(text="First draft."), Turn(text="It is blue now."), Turn(text="Never asked for."))
PLAN = """
[[task]]
id = "write"
runner = "{runner}"
prompt = "Write it."
review = true

[[task]]
id = "after"
command = ["sh", "-c", "echo after >> effects"]
needs = ["write"]
"""

Stage = Callable[[Path], AbstractContextManager[tuple[Shell, Model]]]


@contextlib.contextmanager
def agent(place: Path) -> Iterator[tuple[Shell, Model]]:
    with desk(place, *TURNS) as shell:
        yield shell, shell.model


@contextlib.contextmanager
def claude(place: Path) -> Iterator[tuple[Shell, Model]]:
    scene = ClaudeScene(place, program("claude"))
    with scene.model(TURNS) as model:
        yield scene.shell, model
    assert scene.shell.end() == {}


@contextlib.contextmanager
def codex(place: Path) -> Iterator[tuple[Shell, Model]]:
    scene = CodexScene(place, program("codex"))
    with scene.model(TURNS) as model:
        yield scene.shell, model
    assert scene.shell.end() == {}


@pytest.mark.parametrize("stage", [agent, claude, codex], ids=["agent", "claude", "codex"])
def test_what_is_to_change_is_told_in_the_session_that_was_reviewed(
    stage: Stage, tmp_path: Path
) -> None:
    """D-R14, D-R17, D-R20, D-R58: it starts from the prompt, and is resumed with its session and what is said to it.

    Its record names the provider and the session. The model sees all that was said before, in order, and the wish last; nothing
    is said twice. Interrupt and kill are the shim's: D-R10 to D-R13.
    """
    with stage(tmp_path) as (shell, model):
        (shell.place / "plan.toml").write_text(PLAN.format(runner=stage.__name__))
        shell.adjourn("execute", expect=10)
        (review,) = shell.inbox()
        shell.adjourn("answer", review["id"], "request changes: make it blue")
        shell.adjourn("execute", expect=10)
        last = json.dumps(model.requests[-1].body)
        assert last.index("Write it.") < last.index("First draft.") < last.index("make it blue")
        assert last.count("make it blue") == 1
        one, two = shell.runs(review["task_id"])
        assert (one["provider"], two["resumed_from_run_id"]) == (stage.__name__, one["run_id"])
        assert one["provider_session_ref"] == two["provider_session_ref"]
        (review,) = shell.inbox()
        shell.adjourn("answer", review["id"], "approve")
        shell.adjourn("execute")
        assert shell.lines("effects") == ["after"]
        assert "Never asked for." not in shell.adjourn("logs", review["task_id"]).out


@pytest.mark.parametrize("runner", ["claude", "codex"])
def test_what_is_to_change_is_told_once_however_often_the_task_pauses_over_it(
    tmp_path: Path, runner: str
) -> None:
    """Here at calls that wait for an approval; and once more if a reviewer says it once more."""
    scene = (
        CodexScene(tmp_path, program("codex"))
        if runner == "codex"
        else ClaudeScene(tmp_path, program("claude"))
    )
    wants = [Turn(calls=(_call(runner, name),)) for name in ("call_A", "call_B")]
    with scene.model([TURNS[0], *wants, Turn(text="Blue."), Turn(text="Bluer.")]) as model:
        (scene.work / "plan.toml").write_text(
            f"pause_on_approval = true\n{PLAN.format(runner=runner)}"
        )
        scene.shell.adjourn("execute", expect=10)
        for times, more in enumerate((True, False), start=1):
            scene.shell.adjourn("answer", scene.asks()[0]["id"], "request changes: make it blue")
            scene.shell.adjourn("execute", expect=10)
            while more and scene.asks()[0]["kind"] == "approval":
                scene.approve_all()
                scene.shell.adjourn("execute", expect=10)
            assert json.dumps(model.asked[-1].body).count("make it blue") == times
    assert set(scene.lines()) == {"hi"}
    assert scene.shell.end() == {}


def _call(runner: str, name: str) -> ToolUse:
    line = "echo hi >> made.txt"
    return (
        codex_shell(line, name=name)
        if runner == "codex"
        else ToolUse(name="Bash", arguments={"command": line}, id=name)
    )


def test_settings_of_a_runner_stand_in_the_plan(tmp_path: Path) -> None:
    """What it does not know is told with the line of the task, and nothing starts."""
    with agent(tmp_path) as (shell, model):
        plan = '[[task]]\nid = "a"\nprompt = "Go."\noptions = {{ {0} }}\n'
        (shell.place / "plan.toml").write_text(plan.format("colour = 1"))
        told = shell.adjourn("execute", expect=2).err
        assert f"{shell.place / 'plan.toml'}:1: " in told
        assert "colour" in told
        (shell.place / "plan.toml").write_text(plan.format('model = "openai:another"'))
        shell.adjourn("execute")
        assert model.requests[-1].body["model"] == "another"
