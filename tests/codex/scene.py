"""A person's shell in which Codex works.

An empty home, a dummy key, and a model that plays a script.
"""

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tests.e2e.shell import Document
from tests.model.script import ToolUse, Turn
from tests.model.server import Model, Request, playing
from tests.stage import Stage

GATED = ("run", "--runner", "codex", "--pause-on-approval")
# Most tests are about calls that the model makes itself; by default adjourn executes them
REPEATS = (*GATED, "--option", "on-approve=repeat")
SERVER = Path(__file__).parent / "mcp_server.py"
# One calls tools, the other writes scripts that do
PLAIN_MODEL, SCRIPTING_MODEL = "gpt-5.5", "gpt-6-sol"

_CONFIG = """
model = "{model}"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "{url}"
env_key = "DUMMY_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""


def shell(command: str, *, name: str | None = None, **more: object) -> ToolUse:
    """Return a call of the shell."""
    return ToolUse(name="exec_command", arguments={"cmd": command, **more}, id=name)


def patch(text: str, *, name: str | None = None) -> ToolUse:
    """Return a call that changes files."""
    return ToolUse(
        name="apply_patch", arguments=f"*** Begin Patch\n{text}\n*** End Patch\n", id=name
    )


def script(text: str, *, name: str | None = None) -> ToolUse:
    """Return a script that makes calls of its own."""
    return ToolUse(name="exec", arguments=text, id=name)


def tool(name: str, text: str, *, name_of_call: str | None = None) -> ToolUse:
    """Return a call of the MCP server of tests."""
    return ToolUse(name=f"mcp__traces__{name}", arguments={"x": text}, id=name_of_call)


def traces(scene: "Scene", *, approves: bool = False) -> str:
    """Return the settings of an MCP server that leaves traces.

    Codex asks about its tools, or approves them all by itself.
    """
    mode = (
        'default_tools_approval_mode = "approve"\n[mcp_servers.traces.tools.look]\napproval_mode = "approve"'
        if approves
        else ""
    )
    trace = scene.work / "trace.txt"
    return f'[mcp_servers.traces]\ncommand = "{sys.executable}"\nargs = ["{SERVER}", "{trace}"]\n{mode}\n'


def install_plugin(scene: "Scene") -> None:
    """Have Codex install a plugin that brings the MCP server of tests, from a marketplace on disk."""
    market, codex = scene.home / "market", scene.shell.environment["ADJOURN_CODEX"]
    plugin = market / "plugins" / "tracer"
    server = {"command": sys.executable, "args": [str(SERVER), str(scene.work / "trace.txt")]}
    offered = {
        "name": "tracer",
        "source": {"source": "local", "path": "./plugins/tracer"},
        "category": "Productivity",
    }
    policy = {"installation": "AVAILABLE", "authentication": "ON_INSTALL"}
    files = {
        market / ".agents/plugins/marketplace.json": {
            "name": "local",
            "plugins": [offered | {"policy": policy}],
        },
        plugin / ".codex-plugin/plugin.json": {
            "name": "tracer",
            "version": "1.0.0",
            "mcpServers": "./.mcp.json",
        },
        plugin / ".mcp.json": {"mcpServers": {"traces": server}},
    }
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.encode(content))
    for words in (("marketplace", "add", str(market)), ("add", "tracer@local")):
        argv = [codex, "plugin", *words]
        subprocess.run(
            argv,
            env=scene.shell.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=60,
        )


class Scene(Stage):
    """A workspace, a home, a Codex, and the model that it talks to."""

    gated: tuple[str, ...] = REPEATS
    driver, program = " _drive codex", " app-server "

    def __init__(self, place: Path, program: str) -> None:
        super().__init__(place)
        self.shell.environment |= {
            "ADJOURN_CODEX": program,
            "DUMMY_KEY": "dummy",
            "ADJOURN_STORE": str(self.shell.store),
        }
        for name in ("CODEX_HOME", "OPENAI_API_KEY", "CODEX_API_KEY"):
            self.shell.environment.pop(name, None)

    @contextlib.contextmanager
    def model(
        self, turns: Sequence[Turn], *, model: str = PLAIN_MODEL, more: str = ""
    ) -> Iterator[Model]:
        """Let a model play these turns."""
        with playing(turns) as playing_model:
            self.configure(playing_model.openai, model=model, more=more)
            yield playing_model

    def configure(self, url: str, *, model: str = PLAIN_MODEL, more: str = "") -> None:
        """Write what Codex reads of its user's settings."""
        self.codex_home.mkdir(exist_ok=True)
        (self.codex_home / "config.toml").write_text(_CONFIG.format(url=url, model=model) + more)

    def allow(self, rules: str) -> None:
        """Write a user's own policy."""
        place = Path(self.shell.environment["XDG_CONFIG_HOME"]) / "adjourn"
        place.mkdir(parents=True, exist_ok=True)
        (place / "policy.toml").write_text(rules)

    @property
    def codex_home(self) -> Path:
        """Where Codex keeps its sessions."""
        return self.home / ".codex"

    def session_files(self) -> list[Path]:
        """Return the files of Codex's threads."""
        return sorted(self.codex_home.glob("sessions/*/*/*/*.jsonl"))

    def report(self, run: int) -> Document:
        """Return what a run of the newest task said of itself."""
        store = self.shell.open_store()
        with contextlib.closing(store), store.read() as view:
            return msgspec.json.decode(
                view.document(self.task, f"report:{run}") or b"{}", type=Document
            )

    def shims(self) -> list[Path]:
        """Return the traces of all runs that ever got a process."""
        return list(self.shell.store.glob("runs/*/shim.json"))


def said(request: Request) -> list[Document]:
    """Return the items of a request's conversation, in order."""
    items: list[Document] = request.body["input"]
    return items


def outputs(request: Request) -> dict[str, str]:
    """Return what the model was told of its calls, by their names."""
    return {
        item["call_id"]: _text(item["output"])
        for item in said(request)
        if item.get("type", "").endswith("_call_output")
    }


def _text(output: str | list[Document]) -> str:
    return (
        output if isinstance(output, str) else "".join(str(part.get("text", "")) for part in output)
    )
