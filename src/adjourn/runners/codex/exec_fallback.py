"""The other way in, where there is no app-server.

`codex exec`, whose calls wait at the hook alone.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from adjourn.core.errors import AdjournError, CannotResume
from adjourn.runners.channel import Channel, Gone, Message
from adjourn.runners.codex import program
from adjourn.runners.codex.conversation import CodexConversation, Event, TurnEnded
from adjourn.runners.codex.hook import WaitingHooks
from adjourn.runners.codex.hook_probe import rehearse
from adjourn.runners.codex.launch import Launch
from adjourn.runners.codex.protocol import (
    SHELL_TOOL,
    Reply,
    ThreadItem,
    WantedCall,
    shell_arguments,
)
from adjourn.runners.codex.session import path_of
from adjourn.runners.codex.usage import CodexUsage
from adjourn.runners.hook import Answer

_BEGINS = 30.0  # seconds until a thread has its name, and then its file
_LOOK = 0.05
_CONTINUE = "Continue."


class _Started(msgspec.Struct):
    thread_id: str


class ExecThread:
    """A thread that each turn opens in a process of its own."""

    def __init__(self, launch: Launch, *, prompt: str) -> None:
        self._launch = launch
        self._prompt = prompt
        self._home = program.home(launch.environment)
        rehearse(launch)
        self._hooks = WaitingHooks(launch.place, seal=launch.seal)
        self._turn: Channel | None = None
        self._told: list[str] = []
        self.id, self.path, self.version = "", "", ""

    def open(self, thread: str | None) -> None:
        """Name the thread that turns will be part of, or begin a new one."""
        if thread is None:
            self._begin(self._prompt)
            return
        program.require_thread(thread)
        self.id, self.path = thread, path_of(self._home, thread) or ""

    def _begin(self, text: str) -> None:
        setup = self._launch.setup
        words = [
            "exec",
            "--json",
            "--skip-git-repo-check",
            "-s",
            setup.sandbox.value,
            "-C",
            self._launch.workspace,
        ]
        words += [*(("-m", setup.model) if setup.model else ()), *self._launch.settings]
        words += ["resume", self.id] if self.id else []
        self._turn = self._launch.start(*words, "--", text, hooks=self._hooks, is_spoken_to=False)
        self._require_name(
            msgspec.json.decode(self._until("thread.started").params, type=_Started).thread_id
        )

    def _until(self, method: str) -> Message:
        while True:
            message = self.next(_BEGINS)
            if message.method == method:
                return message

    def _require_name(self, name: str) -> None:
        if self.id and self.id != name:
            raise CannotResume(
                f"Codex opened thread {name} in the place of {self.id}", way_out="adjourn restart"
            )
        self.id = name
        deadline = time.monotonic() + _BEGINS
        while not self.path and time.monotonic() < deadline:
            self.path = path_of(self._home, name) or ""
            time.sleep(0 if self.path else _LOOK)

    def tell_outputs(self, outputs: Sequence[Mapping[str, Any]]) -> None:
        """Keep what came of open calls for the next turn's words: Codex closes them by itself."""
        self._told = [f"Your call {each['call_id']}: {each['output']}" for each in outputs]

    def begin_turn(self, text: str | None) -> None:
        """Let the model go on, unless it does already."""
        if self._turn is None:
            self._begin("\n\n".join([*self._told, *([text] if text else [])]) or _CONTINUE)

    def next(self, within: float) -> Message:
        """Return what Codex says next."""
        if self._turn is None:
            raise Gone
        return self._turn.next(within)

    def answer(self, reply: Reply) -> None:
        """Answer a hook: nothing else asks."""
        match reply:
            case str(name), Answer() as answer:
                self._hooks.answer(name, answer)
            case _:
                raise AdjournError(
                    "codex exec asked for something that only an app-server asks for"
                )

    def close(self) -> None:
        """End what is at rest: it leaves by itself."""
        self.kill()

    def kill(self) -> int:
        """End Codex and all that it started, and leave the thread as it is on disk."""
        code = self._turn.kill() if self._turn else 0
        self._hooks.close()
        return code


class _Ended(msgspec.Struct):
    """An item as `codex exec` reports it; its name holds within this process only."""

    id: str
    type: str
    text: str = ""
    command: str = ""
    aggregated_output: str | None = None
    exit_code: int | None = None
    status: str = ""
    server: str | None = None
    tool: str | None = None
    result: Any = None
    error: Any = None


_TYPES = {
    "agent_message": "agentMessage",
    "command_execution": "commandExecution",
    "file_change": "fileChange",
    "mcp_tool_call": "mcpToolCall",
}


class ExecConversation(CodexConversation):
    """What is said in one turn of `codex exec`."""

    # It never asks them otherwise, and answers them itself, with nothing
    hears_questions_at_hooks = True

    def _take_notice(self, method: str, params: dict[str, Any] | None) -> Event | None:
        said = params or {}
        match method:
            case "item.completed":
                return self._take_item(msgspec.convert(said["item"], _Ended))
            case "turn.completed":
                self.usage = msgspec.convert(
                    {_camel(key): value for key, value in said["usage"].items()}, CodexUsage
                )
                return TurnEnded(status="completed")
            case "turn.failed":
                return TurnEnded(status="failed", error=str(said["error"].get("message")))
            case "error":
                self._take_trouble(str(said.get("message")))
            case _:
                return None
        return None

    def _take_item(self, ended: _Ended) -> Event | None:
        kind = _TYPES.get(ended.type)
        if kind is None:
            return None
        item = ThreadItem(
            id=self._call_of(ended) or ended.id,
            type=kind,
            status=ended.status or "completed",
            text=ended.text,
            command=ended.command or None,
            aggregated_output=ended.aggregated_output,
            exit_code=ended.exit_code,
            server=ended.server,
            tool=ended.tool,
            result=ended.result,
            error=ended.error,
        )
        return self._take_ended(item)

    def _call_of(self, ended: _Ended) -> str | None:
        """Return the call that an item is of.

        It tells what it did, and not which call wanted it.
        """
        found = next((item for item, wanted in self._let.items() if _is_of(wanted, ended)), None)
        if found:
            del self._let[found]
        return found


def _is_of(wanted: WantedCall, ended: _Ended) -> bool:
    match ended.type:
        case "command_execution":
            return (
                wanted.tool == SHELL_TOOL
                and shell_arguments(ended.command)["command"] == wanted.arguments["command"]
            )
        case "file_change":
            return wanted.applies_patch
        case _:
            return wanted.tool == f"mcp__{ended.server}__{ended.tool}"


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)
