"""One Codex thread in one app-server: how it is opened, told something, and ended."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import msgspec

from adjourn.core.agent.calls import CallResult, cut
from adjourn.core.errors import AdjournError, CannotResume
from adjourn.runners.channel import Gone, Message, Refused
from adjourn.runners.codex import hook, program
from adjourn.runners.codex.hook import WaitingHooks
from adjourn.runners.codex.hook_probe import rehearse
from adjourn.runners.codex.launch import Launch
from adjourn.runners.codex.protocol import Reply, Unanswerable
from adjourn.runners.hook import Answer

_ANSWER = 60.0  # seconds for what needs no model
_GOODBYE = 2.0
_FOR_EVER = 1_000_000.0
_T = TypeVar("_T")
_ASKS = "prompt"
_KEY = "apiKey"
_IN_USE = "already has an active writer"
_PROVIDER = "model provider"


class _Thread(msgspec.Struct):
    id: str
    path: str | None = None


class _Opened(msgspec.Struct):
    thread: _Thread
    sandbox: dict[str, Any] = {}


class _Server(msgspec.Struct):
    tools: dict[str, Any] | None = None


class _Plugin(msgspec.Struct):
    enabled: bool | None = None


class _Config(msgspec.Struct):
    mcp_servers: dict[str, _Server] | None = None
    plugins: dict[str, _Plugin] | None = None

    @property
    def has_plugins(self) -> bool:
        """Whether there are plugins, which may bring MCP servers of their own."""
        return any(plugin.enabled is not False for plugin in (self.plugins or {}).values())


class _Settings(msgspec.Struct):
    config: _Config

    @property
    def asking(self) -> dict[str, Any]:
        """What makes Codex ask about each tool of each MCP server, whatever its settings say."""
        servers = self.config.mcp_servers or {}
        asks: dict[str, Any] = {
            f"mcp_servers.{name}.default_tools_approval_mode": _ASKS for name in servers
        }
        tools = {
            name: {tool: {"approval_mode": _ASKS} for tool in server.tools or ()}
            for name, server in servers.items()
        }
        return asks | {f"mcp_servers.{name}.tools": each for name, each in tools.items() if each}


class _AccountAnswer(msgspec.Struct):
    type: str


class _Accounts(msgspec.Struct):
    account: _AccountAnswer | None = None


class _Hello(msgspec.Struct, rename="camel"):
    user_agent: str = ""


class _Executed(msgspec.Struct, rename="camel"):
    exit_code: int
    stdout: str = ""
    stderr: str = ""


class _Called(msgspec.Struct, rename="camel"):
    content: list[Any]
    is_error: bool | None = False


class _Running(msgspec.Struct):
    name: str
    tools: dict[str, Any] = {}


class _Servers(msgspec.Struct):
    data: tuple[_Running, ...] = ()


class NoAppServer(Exception):
    """Codex has no app-server, or it does not start."""


class InUse(CannotResume):
    """Somebody else works in the thread."""

    code = "codex_in_use"


class OtherProvider(CannotResume):
    """Codex's settings lack the provider of models that the thread was made with."""

    code = "codex_other_provider"


class Thread:
    """A thread that is open in an app-server of its own."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._setup = launch.setup
        self._workspace = launch.workspace
        self._hook = launch.hook
        self.binary = launch.binary
        if program.has_rules(launch.setup, launch.workspace, launch.environment):
            # What a rule of Codex allows it does not ask about: the hook alone holds it
            rehearse(launch)
        self._hooks = WaitingHooks(launch.place, seal=launch.seal)
        self._channel = launch.start("app-server", *launch.settings, hooks=self._hooks)
        self.id = ""
        self.path = ""
        self.version = ""
        self._sandbox: dict[str, Any] = {}
        self._asking: dict[str, Any] = {}

    def open(self, thread: str | None) -> None:
        """Open the named thread, that one and no other, or begin a new one."""
        try:
            self._greet()
        except Gone:
            raise NoAppServer from None
        if thread is None:
            self._open("thread/start", self._settings())
        else:
            self._resume(thread)

    def _greet(self) -> None:
        client = {"name": "adjourn", "title": "adjourn", "version": "0"}
        hello = self._ask("initialize", {"clientInfo": client, "capabilities": {}}, _Hello)
        found = program.version_in(hello.user_agent)
        program.refuse_too_old(found)
        self.version = ".".join(map(str, found))
        self._channel.send({"method": "initialized"})
        if not self._ask("hooks/list", {"cwds": [self._workspace]}, hook.Listed).holds(self._hook):
            why = f"Codex {self.version} does not take the hook at which its calls wait"
            raise AdjournError(
                ": ".join(filter(None, [why, self._launch.complaint])), way_out=hook.SWITCHED_OFF
            )
        settings = self._ask("config/read", {"cwd": self._workspace}, _Settings)
        self._asking = settings.asking
        if settings.config.has_plugins or self._has_apps():
            self._rehearse()

    def _has_apps(self) -> bool:
        """Say whether the account may bring tools; one that does not tell may."""
        try:
            account = self._ask("account/read", {}, _Accounts).account
        except AdjournError:
            return True
        return account is not None and account.type != _KEY

    def _rehearse(self) -> None:
        """Have another Codex show that it asks the hook.

        Tools of plugins and apps cannot be made to ask in another way.
        """
        self._hooks.close()  # it asks in the same place
        try:
            rehearse(self._launch)
        finally:
            self._hooks.open()

    def _resume(self, thread: str) -> None:
        program.require_thread(thread)
        try:
            self._open("thread/resume", {"threadId": thread, **self._settings()})
        except Refused as refused:
            raise _not_resumed(thread, refused) from refused
        if self.id != thread:
            raise CannotResume(
                f"Codex opened thread {self.id} in the place of {thread}", way_out="adjourn restart"
            )

    def _settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "cwd": self._workspace,
            "approvalPolicy": "untrusted",
            "sandbox": self._setup.sandbox.value,
        }
        settings |= {"config": self._asking} if self._asking else {}
        return settings | ({"model": self._setup.model} if self._setup.model else {})

    def _open(self, method: str, params: dict[str, Any]) -> None:
        opened = self._ask(method, params, _Opened)
        self.id, self.path, self._sandbox = (
            opened.thread.id,
            opened.thread.path or "",
            opened.sandbox,
        )

    def tell_outputs(self, outputs: Sequence[Mapping[str, Any]]) -> None:
        """Write outputs of open calls into the thread, as if the calls had ended so."""
        if outputs:
            self._ask("thread/inject_items", {"threadId": self.id, "items": outputs}, dict)

    def begin_turn(self, text: str | None) -> None:
        """Let the model go on, with words of a person or without."""
        words = [{"type": "text", "text": text}] if text else []
        self._ask("turn/start", {"threadId": self.id, "input": words}, dict)

    def execute(self, argv: Sequence[str], *, cwd: str, is_sandboxed: bool) -> CallResult:
        """Run one command as Codex would have run it, and return what it gave back."""
        sandbox = self._sandbox if is_sandboxed else {"type": "dangerFullAccess"}
        params = {"command": argv, "cwd": cwd, "sandboxPolicy": sandbox, "disableTimeout": True}
        done = self._ask("command/exec", params, _Executed, within=_FOR_EVER)
        output, left_out = cut(done.stdout + done.stderr)
        return CallResult(
            ok=done.exit_code == 0, output=output, exit_code=done.exit_code, left_out=left_out
        )

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> CallResult:
        """Call a tool of an MCP server as Codex would have, and return its result."""
        server, tool = self._tools[name]
        params = {"threadId": self.id, "server": server, "tool": tool, "arguments": arguments}
        called = self._ask("mcpServer/tool/call", params, _Called, within=_FOR_EVER)
        output, left_out = cut(msgspec.json.encode(called.content).decode())
        return CallResult(ok=not called.is_error, output=output, left_out=left_out)

    def has_tool(self, name: str) -> bool:
        """Say whether exactly one tool of the MCP servers is meant by a name."""
        return name in self._tools

    @cached_property
    def _tools(self) -> dict[str, tuple[str, str]]:
        running = self._ask("mcpServerStatus/list", {"threadId": self.id}, _Servers).data
        named = [
            (f"mcp__{server.name}__{tool}", (server.name, tool))
            for server in running
            for tool in server.tools
        ]
        names = [name for name, _ in named]
        return {name: tool for name, tool in named if names.count(name) == 1}

    def next(self, within: float) -> Message:
        """Return what Codex says next."""
        return self._channel.next(within)

    def answer(self, reply: Reply) -> None:
        """Answer a request of Codex, or a hook of it."""
        match reply:
            case str(name), Answer() as answer:
                self._hooks.answer(name, answer)
            case request, Unanswerable() as refusal:
                self._channel.send({"id": request, "error": refusal})
            case request, result:
                self._channel.send({"id": request, "result": result})

    def close(self) -> None:
        """End an app-server whose thread is at rest: it writes down what it still holds."""
        self._channel.close(within=_GOODBYE)
        self._hooks.close()

    def kill(self) -> int:
        """End the app-server and all that it started, and leave the thread as it is on disk."""
        code = self._channel.kill()
        # Not before: a hook that nobody answers is a no, of which the model would hear
        self._hooks.close()
        return code

    def _ask(self, method: str, params: object, type_: type[_T], *, within: float = _ANSWER) -> _T:
        try:
            return msgspec.json.decode(self._channel.ask(method, params, within=within), type=type_)
        except msgspec.MsgspecError as error:
            raise AdjournError(
                f"Codex answered {method} in a way that cannot be read: {error}"
            ) from error


def _not_resumed(thread: str, refused: Refused) -> CannotResume:
    if _IN_USE in refused.refusal.message:
        return InUse(
            f"another process has Codex thread {thread} open", way_out="end it, and resume again"
        )
    kind = OtherProvider if _PROVIDER in refused.refusal.message else CannotResume
    return kind(
        f"Codex cannot resume thread {thread}: {refused.refusal.message}", way_out="adjourn restart"
    )
