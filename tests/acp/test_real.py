"""Real agents, with a model that plays a script: two of them wherever tests run, others where they are installed."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.acp.scene import Scene
from tests.e2e.shell import until
from tests.model.script import ToolUse, Turn
from tests.model.server import Model, playing
from tests.programs import find_program, program

ALWAYS = ("copilot", "opencode")  # in CI: a missing one fails there
MORE = ("qwen",)
WORDS = {"copilot": ["--acp"], "opencode": ["acp"], "qwen": ["--acp"]}
TOOLS = {"copilot": "bash", "opencode": "bash", "qwen": "run_shell_command"}


class Real(Scene):
    """A scene with a real agent, which the user trusts: its probe has a test of its own."""

    def __init__(self, place: Path, name: str, path: str) -> None:
        super().__init__(place)
        self.name = name
        self.gated = ("run", "--runner", f"acp:{name}", "--pause-on-approval")
        command = msgspec.json.encode([path, *WORDS[name]]).decode()
        self.config = self.home / ".config" / "adjourn" / "config.toml"
        self.config.write_text(f"[acp.{name}]\ncommand = {command}\ntrust = true\n")

    def think_with(self, model: Model) -> None:
        """Let the agent use this model, and no network."""
        url = f"{model.url}/v1"
        self.shell.environment |= {
            "COPILOT_PROVIDER_BASE_URL": url,
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_API_KEY": "none",
            "COPILOT_MODEL": "gpt-4.1",
            "COPILOT_OFFLINE": "true",
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": url,
            "OPENAI_MODEL": "scripted",
            "OPENCODE_DISABLE_AUTOUPDATE": "true",
        }
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": url, "apiKey": "none"},
            "models": {"m": {"tool_call": True}},
        }
        opencode = {"model": "x/m", "provider": {"x": provider}}
        qwen = {"security": {"auth": {"selectedType": "openai"}}, "model": {"name": "scripted"}}
        for place, settings in (
            (".config/opencode/opencode.json", opencode),
            (".qwen/settings.json", qwen),
        ):
            path = self.home / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(msgspec.json.encode(settings))

    def call(self, command: str, name: str) -> ToolUse:
        """Return a call of the agent's shell tool."""
        more: dict[str, Any] = {"is_background": False} if self.name == "qwen" else {}
        arguments = {"command": command, "description": "List the files", **more}
        return ToolUse(name=TOOLS[self.name], arguments=arguments, id=name)

    def turn(self, text: str, name: str) -> Turn:
        """Return an answer that wants to write a line."""
        return Turn(text=f"I do {text}.", calls=(self.call(f"echo {text} >> made.txt", name),))


@pytest.fixture(params=[*ALWAYS, *MORE])
def real(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Real]:
    name = str(request.param)
    path = program(name) if name in ALWAYS else find_program(name)
    if path is None:
        pytest.skip(f"{name} is not installed (./dev programs --acp fetches it)")
    scene = Real(tmp_path, name, path)
    yield scene
    assert scene.shell.end() == {}


def test_a_real_agent_makes_what_is_approved_once_and_what_is_rejected_never(real: Real) -> None:
    turns = [real.turn("A", "call_1"), real.turn("A", "call_2"), real.turn("B", "call_3")]
    with playing([*turns, Turn(text="All done."), Turn(text="All done.")]) as model:
        real.think_with(model)
        real.run()
        assert real.lines() == []
        assert real.arguments()["command"] == "echo A >> made.txt"
        real.approve_all()
        real.resume(expect=10)
        assert real.lines() == ["A"]
        real.shell.adjourn("reject", real.asks()[0]["id"], "--reason", "not B, please")
        assert "All done." in real.resume().out
        assert real.lines() == ["A"]
        assert "not B, please" in str(model.requests[-1].body)
    assert list(real.calls().values()) == ["done", "rejected"]


@pytest.mark.parametrize("real", [*ALWAYS, *MORE], indirect=True)
def test_a_real_agent_is_stopped_resumed_and_restarted(real: Real, sweep: str) -> None:
    if sweep == "ci":
        pytest.skip("a few seconds for each agent: --sweep full")
    slow = Turn(calls=(real.call("echo began >> made.txt; sleep 60", "call_1"),))
    ends = [Turn(text="All done.")] * 3
    with playing([slow, *ends]) as model:
        real.think_with(model)
        words = ("run", "--runner", f"acp:{real.name}", "--no-pause-on-approval", "do it")
        process = real.shell.start(*words)
        until(lambda: real.lines() == ["began"], what="the command runs", seconds=60)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 10
        assert real.shell.processes() == {}
        real.resume()
        first, second = real.shell.runs(real.task)
        assert first["provider_session_ref"] == second["provider_session_ref"]
        assert real.lines() == ["began"]
    with playing([Turn(text="All done.")] * 3) as model:
        real.think_with(model)
        real.shell.adjourn("restart", real.task)


def test_a_real_agent_is_seen_to_ask(real: Real, sweep: str) -> None:
    """The probe, with a model that obeys it: each prompt of it is answered with the call that it asks for."""
    if sweep == "ci" and real.name != "opencode":
        pytest.skip("one of them in CI: --sweep full")
    command = "touch /nowhere/probe"
    with playing([Turn(calls=(real.call(command, f"call_{n}"),)) for n in range(9)]) as model:
        real.think_with(model)
        real.config.write_text(real.config.read_text().replace("trust = true", ""))
        probed = real.shell.json("doctor", "--agent", real.name)
    says = {each["check"]: each["says"] for each in probed["findings"]}
    assert says["command"] == "asks"
    assert "asks before it acts" in says["agent"]
