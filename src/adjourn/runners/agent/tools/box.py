"""All tools of one agent, by name."""

from collections.abc import Sequence

from adjourn.core.transcript import ToolCall
from adjourn.runners.agent.setup import Setup
from adjourn.runners.agent.tools.foreign import Foreign, as_tool
from adjourn.runners.agent.tools.looking import LOOKING
from adjourn.runners.agent.tools.own import ASK, FINISH, RUN_COMMAND
from adjourn.runners.agent.tools.place import OutOfBounds, Place
from adjourn.runners.agent.tools.tool import Arguments, Tool, ToolFailed, require_arguments
from adjourn.runners.agent.tools.writing import WRITING

BUILT_IN = (*LOOKING, RUN_COMMAND, *WRITING)


class Toolbox:
    """The tools that an agent is offered, and where they work."""

    def __init__(self, place: Place, tools: Sequence[Tool]) -> None:
        self.place = place
        self.tools = tuple(tools)
        self._by_name = {tool.name: tool for tool in tools}

    def prepared(self, call: ToolCall) -> tuple[Tool, Arguments]:
        """Return the tool of a call, and its arguments with what a person should see, or say why it cannot be made."""
        tool = self.named(call.name)
        if isinstance(call.arguments, str):
            raise ToolFailed(f"the arguments of {call.name} are not a JSON object")
        require_arguments(tool, call.arguments)
        if tool.prepare is None:
            return tool, call.arguments
        try:
            return tool, tool.prepare(self.place, call.arguments)
        except OutOfBounds as error:
            raise ToolFailed(str(error)) from error

    def named(self, name: str) -> Tool:
        """Return a tool, or say which there are."""
        if name not in self._by_name:
            raise ToolFailed(f"there is no tool {name}; there are {', '.join(self._by_name)}")
        return self._by_name[name]

    def carry_out(self, name: str, arguments: Arguments) -> str:
        """Do what a call says, here and now."""
        tool = self.named(name)
        if tool.act is None:
            raise ToolFailed(f"{name} cannot be carried out here")
        try:
            return tool.act(self.place, arguments)
        except OutOfBounds as error:
            raise ToolFailed(str(error)) from error


def toolbox(
    setup: Setup, foreign: Sequence[Foreign], *, workspace: str, directories: Sequence[str] = (), pauses: bool
) -> Toolbox:
    """Return the tools of an agent in a workspace; a tool of somebody else never takes the place of one of ours."""
    place = Place(workspace=workspace, directories=tuple(directories), limit=setup.output_limit)
    own = [*([FINISH] if pauses else []), *([ASK] if setup.clarify else [])]
    ours = [*BUILT_IN, *own]
    taken = {tool.name for tool in (*BUILT_IN, FINISH, ASK)}
    return Toolbox(place, [*ours, *(as_tool(each, setup) for each in foreign if each.name not in taken)])
