"""One session in one process of an agent: how it is opened, told something, and ended."""

import glob
import os
import re
import select
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from adjourn.core.errors import AdjournError, CannotResume
from adjourn.runners.acp.options import Setup
from adjourn.runners.acp.protocol import VERSION, Hello, Id, Modes, Opened, is_careless
from adjourn.runners.channel import Channel, Dialect, Message, Refused, Silent, StopRequested
from adjourn.runners.driver import StopRequest, complain
from adjourn.runners.installed import find_program, start_argv

COMPLAINTS = "acp.stderr"
_ANSWER = 120.0  # seconds for what needs no model
_REPLAY = 0.3  # seconds without a word after which a loaded session has told all of its history
_GOODBYE = 2.0
_MINUTE = 60
_NEWEST = 4_000  # characters
_NAMED = re.compile(r"\$\{(\w+)\}")
_T = TypeVar("_T")
_UNKNOWN = {"code": -32601, "message": "adjourn does not offer this"}


def agent_argv(setup: Setup, environment: Mapping[str, str], *, workspace: str) -> list[str]:
    """Return what starts the agent, or raise if its program is not there."""
    path, (name, *words) = environment.get("PATH", os.defpath), setup.agent.command
    program = find_program(name, path=path, workspace=workspace)
    if program is None:
        raise AdjournError(
            f"{name}, the program of {setup.name}, cannot be started: it is not there",
            way_out=f"install {name}, or name its command in [acp.{setup.name}] of the config",
        )
    return [*start_argv(program, path=path, workspace=workspace), *words]


class AgentSession:
    """A session that is open in an agent of its own."""

    def __init__(
        self,
        setup: Setup,
        *,
        workspace: str,
        environment: Mapping[str, str],
        place: str,
        bind: Callable[[], None],
        interrupts: StopRequest,
    ) -> None:
        self._setup = setup
        self._workspace = workspace
        self._interrupts = interrupts
        self._complaints = os.path.join(place, COMPLAINTS)
        self.home = environment.get("HOME", os.path.expanduser("~"))
        own = {
            name: _NAMED.sub(lambda found: environment.get(found[1], ""), value)
            for name, value in setup.agent.env.items()
        }
        # A tmux server that an agent starts leaves its tree: each run has one of its own
        self.channel = Channel(
            agent_argv(setup, environment, workspace=workspace),
            name=setup.name,
            cwd=workspace,
            env={**environment, **own, "TMUX_TMPDIR": place},
            complaints=self._complaints,
            bind=bind,
            interrupts=interrupts,
            dialect=Dialect(header={"jsonrpc": "2.0"}, keeps_noise=True),
        )
        self.id = ""
        self.mode = ""
        self.hello = Hello(protocol_version=0)

    def greet(self) -> str:
        """Say hello, and return the agent's version."""
        capabilities: dict[str, Any] = {
            "fs": {"readTextFile": False, "writeTextFile": False},
            "terminal": False,
            "elicitation": {"form": {}},
        }
        asked: dict[str, Any] = {
            "protocolVersion": VERSION,
            "clientCapabilities": capabilities,
            "clientInfo": {"name": "adjourn", "title": "adjourn", "version": "0"},
        }
        self.hello = self._ask("initialize", asked, Hello)
        if self.hello.protocol_version != VERSION:
            raise AdjournError(
                f"{self._setup.name} speaks version {self.hello.protocol_version} of the protocol,"
                f" and adjourn version {VERSION}",
                way_out="adjourn doctor",
            )
        if self._setup.agent.login:
            self._ask("authenticate", {"methodId": self._setup.agent.login}, dict | None)
        info = self.hello.agent_info
        return info.version if info else ""

    @property
    def can_go_on(self) -> bool:
        """Whether the agent can open a session again in another process."""
        able = self.hello.agent_capabilities
        return able is not None and bool(able.load_session or able.can_resume)

    def open(
        self, ref: str | None, *, is_gated: bool, servers: tuple[dict[str, Any], ...] = ()
    ) -> None:
        """Open the named session, that one and no other, or begin a new one; and set its mode."""
        asked: dict[str, Any] = {"cwd": self._workspace, "mcpServers": servers}
        if ref is None:
            opened = self._ask("session/new", asked, Opened)
            if not opened.session_id:
                raise AdjournError(f"{self._setup.name} opened a session without a name")
            self.id = opened.session_id
        else:
            able = self.hello.agent_capabilities
            method = "session/resume" if able and able.can_resume else "session/load"
            try:
                found = self._ask(method, {**asked, "sessionId": ref}, Opened | None)
            except Refused as refused:
                raise CannotResume(
                    f"{self._setup.name} cannot open session {ref}: {refused.refusal.message}",
                    way_out="adjourn restart",
                ) from refused
            opened = found or Opened()
            if opened.session_id not in {None, ref}:
                raise CannotResume(
                    f"{self._setup.name} opened session {opened.session_id} in the place of {ref}",
                    way_out="adjourn restart",
                )
            self.id = ref
            self._skip_history()
        self._set_mode(opened.modes, is_gated=is_gated)

    def _skip_history(self) -> None:
        """Drop the history that a loaded session sends; some send it after their answer."""
        deadline = time.monotonic() + _ANSWER
        while time.monotonic() < deadline:
            try:
                message = self.channel.next(_REPLAY)
            except Silent:
                return
            if message.id is not None and message.method:
                self.refuse(message.id)

    def _set_mode(self, modes: Modes | None, *, is_gated: bool) -> None:
        """Set the mode in which the agent asks.

        It is not kept with the session, so this is done after each opening.
        """
        name, wanted = self._setup.name, self._setup.agent.mode
        if wanted:
            try:
                self._ask("session/set_mode", {"sessionId": self.id, "modeId": wanted}, dict | None)
            except Refused as refused:
                known = ", ".join(mode.id for mode in (modes or Modes()).available_modes) or "none"
                raise AdjournError(
                    f"{name} has no mode {wanted}: {refused.refusal.message}; it has {known}",
                    way_out="--option mode=NAME",
                ) from refused
        self.mode = wanted or (modes.current_mode_id if modes else "")
        if is_gated:
            self.refuse_careless(self.mode)

    def refuse_careless(self, mode: str) -> None:
        """Raise if the agent asks nobody in that mode."""
        if is_careless(mode):
            raise AdjournError(
                f"{self._setup.name} is in mode {mode}, in which it makes calls without asking",
                way_out="--option mode=NAME, with one in which it asks",
            )

    def begin_turn(self, text: str) -> int:
        """Let the model go on with these words; return the id that the end of the turn has."""
        prompt = [{"type": "text", "text": text}]
        return self.channel.begin("session/prompt", {"sessionId": self.id, "prompt": prompt})

    def answer(self, request: Id, result: Mapping[str, Any]) -> None:
        """Answer a request of the agent."""
        self.channel.send({"id": request, "result": result})

    def refuse(self, request: Id) -> None:
        """Refuse a request that adjourn does not know."""
        self.channel.send({"id": request, "error": _UNKNOWN})

    def cancel(self) -> None:
        """Have the agent end its turn."""
        self.channel.send({"method": "session/cancel", "params": {"sessionId": self.id}})

    def next(self, within: float) -> Message:
        """Return what the agent says next."""
        return self.channel.next(within)

    def close(self) -> None:
        """End an agent whose turn is over: it writes down what it still holds."""
        self.channel.close(within=_GOODBYE)

    def kill(self) -> None:
        """End the agent and all that it started, at once."""
        self.channel.kill()

    @property
    def complaint(self) -> str:
        """The last thing that the agent complained of, if anything."""
        try:
            with open(self._complaints, encoding="utf-8", errors="replace") as file:
                lines = [line.strip() for line in file.read()[-_NEWEST:].splitlines()]
        except FileNotFoundError:
            return ""
        return next((line for line in reversed(lines) if line), "")

    def wait_for_next_minute(self, began: float) -> None:
        """Wait until the minute is over in which a session began; a request to stop ends it."""
        rest = (began // _MINUTE + 1) * _MINUTE - time.time()
        if rest <= 0:
            return
        complain(f"{self._setup.name} erases a session that is loaded too early: {rest:.0f} s.")
        poll = select.poll()
        poll.register(self._interrupts, select.POLLIN)
        if poll.poll(rest * 1000):
            raise StopRequested

    def _ask(self, method: str, params: object, type_: type[_T] | Any) -> Any:
        try:
            answer = self.channel.ask(method, params, within=_ANSWER)
            return msgspec.json.decode(answer, type=type_)
        except msgspec.MsgspecError as error:
            raise AdjournError(
                f"{self._setup.name} answered {method} in a way that cannot be read: {error}"
            ) from error


# --- the file in which an agent keeps a session ---------------------------------------------------


def copy_session(pattern: str, *, home: str, session: str) -> bytes | None:
    """Return the newest file of a session with its place below the home, if it is known."""
    if not pattern or glob.escape(session) != session:
        return None
    found = glob.glob(os.path.join(glob.escape(home), pattern.format(session=session)))
    if not found:
        return None
    newest = max(found, key=os.path.getmtime)
    with open(newest, "rb") as file:
        return os.fsencode(os.path.relpath(newest, home)) + b"\n" + file.read()


def put_session_back(copy: bytes, *, home: str) -> None:
    """Write a session's file again where it is gone, or shorter than the copy of it."""
    place, _, content = copy.partition(b"\n")
    path = os.path.normpath(os.path.join(home, os.fsdecode(place)))
    if not path.startswith(os.path.normpath(home) + "/"):
        return
    try:
        if os.path.getsize(path) >= len(content):
            return
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    draft = f"{path}.adjourn"
    with open(draft, "wb") as file:
        file.write(content)
    os.replace(draft, path)
