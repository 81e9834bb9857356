"""What the methods of the protocol do. The store is opened by the first call that needs it."""

import os
from collections.abc import Callable, Sequence
from functools import cached_property

import msgspec

from adjourn.core.errors import AdjournError, Misuse, NotFound, NothingRecorded
from adjourn.mcp_server.protocol import INVALID_PARAMS, Json, Refused, Request, Waiting
from adjourn.mcp_server.tools import INSTRUCTIONS, TOOLS, Tool, describe_tools

TYPE_CHECKING = False

if TYPE_CHECKING:  # a host waits for the first answer: what runs and decides is loaded after it
    from adjourn.mcp_server.control import Control

_STARTING = frozenset({"run_command_task", "subagent_task", "ask_human"})


class ToolServer:
    """Answers for one principal."""

    def __init__(self, root: str, *, version: str, open_control: "Callable[[], Control]") -> None:
        self._root = root
        self._open_control = open_control
        self.info: Json = {"name": "adjourn", "title": "adjourn", "version": version}
        self.instructions = INSTRUCTIONS

    @cached_property
    def control(self) -> "Control":
        """The tools on an open store."""
        return self._open_control()

    @property
    def has_control(self) -> bool:
        """Whether the store is open."""
        return "control" in self.__dict__

    def tools(self) -> Sequence[Json]:
        """Return the tools with their schemas."""
        return describe_tools()

    def call(self, name: str, arguments: Json, request: Request) -> Json | Waiting:
        """Call a tool. What can be expected to fail is a result that says so, and what helps."""
        tool = TOOLS.get(name)
        if tool is None:
            raise Refused(INVALID_PARAMS, f"there is no tool {name}: {', '.join(TOOLS)}")
        result = self.finish(lambda: self._call(name, tool, arguments, request))
        assert result is not None  # noqa: S101 -- only a wait that is not over returns nothing
        return result

    def _call(self, name: str, tool: Tool, arguments: Json, request: Request) -> Json | Waiting:
        try:
            given = msgspec.convert(arguments, tool.arguments)
        except msgspec.ValidationError as error:
            raise Misuse(
                f"the arguments of {name} do not fit: {error}",
                way_out=f"the schema of {name} says what it takes",
            ) from None
        if name not in _STARTING and not os.path.lexists(self._root):
            raise NotFound(
                f"there is no store at {self._root} yet, and no task",
                way_out="run_command_task or subagent_task starts one",
            )
        return self.control.call(name, given, request)

    def finish(self, act: Callable[[], Json | Waiting | None]) -> Json | Waiting | None:
        """Return what a tool returns as a result of the protocol; a wait stays one."""
        try:
            outcome = act()
        except AdjournError as error:
            return _error_result(error)
        except RecursionError:
            return _error_result(Misuse("the arguments are nested too deeply"))
        if not isinstance(outcome, dict):
            return outcome
        text = msgspec.json.encode(outcome).decode()
        return {"content": [{"type": "text", "text": text}], "structuredContent": outcome}

    def resources(self) -> Sequence[Json]:
        """Return the resources that have a fixed address."""
        from adjourn.mcp_server.resources import LIST  # seldom asked for

        return LIST

    def templates(self) -> Sequence[Json]:
        """Return the patterns of all other addresses."""
        from adjourn.mcp_server.resources import TEMPLATES  # seldom asked for

        return TEMPLATES

    def read(self, uri: str) -> Sequence[Json]:
        """Return the contents of a resource."""
        return self.control.resources.read(uri)


def _error_result(error: AdjournError) -> Json:
    lines = [error.sentence]
    if isinstance(error, NothingRecorded):
        lines += [
            f"{item.ask_id} {item.result}: {item.error.sentence if item.error else ''}"
            for item in error.items
        ]
    if error.way_out:
        lines.append(f"try: {error.way_out}")
    return {
        "content": [{"type": "text", "text": "\n".join(lines)}],
        "isError": True,
        "_meta": {"adjourn/code": error.code},
    }
