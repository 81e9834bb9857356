"""All tools of one agent, by name."""

from collections.abc import Sequence

from adjourn.core.agent.transcript import ToolCall
from adjourn.runners.agent.options import AgentSetup
from adjourn.runners.agent.tools.bounds import OutOfBounds, PathBounds
from adjourn.runners.agent.tools.plugins import as_tool
from adjourn.runners.agent.tools.read import LOOKING
from adjourn.runners.agent.tools.tool import (
    Arguments,
    ForeignTool,
    Tool,
    ToolFailed,
    require_arguments,
    schema,
    text,
)
from adjourn.runners.agent.tools.write import WRITING

FINISH = Tool(
    name="finish",
    description="Say that the work is done. Call it alone, when nothing is left to do.",
    schema=schema(["message"], message=text("what was done, for the person who asked")),
    read_only=True,
)
ASK = Tool(
    name="ask",
    description="Ask a person a question, when you cannot go on without the answer.",
    schema=schema(
        ["question"],
        question=text("the question"),
        choices={
            "type": "array",
            "items": {"type": "string"},
            "description": "the answers to choose from, if any",
        },
    ),
    read_only=True,
)
RUN_COMMAND = Tool(
    name="run_command",
    description=(
        "Run a command line with /bin/sh in the workspace. Its input is empty; output and "
        "exit code come back."
    ),
    schema=schema(
        ["command"],
        command=text("the command line"),
        timeout={
            "type": "number",
            "minimum": 0.1,
            "description": "seconds after which it is stopped",
        },
    ),
)
OWN = frozenset({FINISH.name, ASK.name})


BUILT_IN = (*LOOKING, RUN_COMMAND, *WRITING)


class Toolbox:
    """The tools that an agent is offered, and where they work."""

    def __init__(self, place: PathBounds, tools: Sequence[Tool]) -> None:
        self.place = place
        self.tools = tuple(tools)
        self._by_name = {tool.name: tool for tool in tools}

    def prepared(self, call: ToolCall) -> tuple[Tool, Arguments]:
        """Return the tool of a call, and its arguments with what a person should see, or raise."""
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
    setup: AgentSetup,
    foreign: Sequence[ForeignTool],
    *,
    workspace: str,
    directories: Sequence[str] = (),
    pauses: bool,
) -> Toolbox:
    """Return the tools of an agent in a workspace.

    A tool of somebody else never takes the place of one of ours.
    """
    place = PathBounds(
        workspace=workspace, directories=tuple(directories), limit=setup.output_limit
    )
    own = [*([FINISH] if pauses else []), *([ASK] if setup.clarify else [])]
    ours = [*BUILT_IN, *own]
    taken = {tool.name for tool in (*BUILT_IN, FINISH, ASK)}
    return Toolbox(
        place, [*ours, *(as_tool(each, setup) for each in foreign if each.name not in taken)]
    )
