"""The one layout of a call, and what stands for it in a list."""

from collections.abc import Callable, Collection, Sequence

from adjourn.core.call import COMMAND, Call, arguments_of, canonical, command_of
from adjourn.core.text.render import Cut, argv_lines, call_lines, clipped, shortened, visible
from adjourn.views.block import Block, Code, Fields, Span, line

GIST = 500  # columns of a call in a list
_SHORT = 8
_INDENT = "    "


def unique_name(find: Callable[[str], Collection[str]], identifier: str) -> str:
    """Return the beginning of an id that names nothing else: 8 characters, or more if need be.

    `find` returns what begins so: `view.tasks_like` or `view.asks_like`.
    """
    for length in (_SHORT, 2 * _SHORT):
        if len(find(identifier[:length])) <= 1:
            return identifier[:length]
    return identifier


def short(identifier: str) -> str:
    """Return the part of an id that is nearly always unique."""
    return identifier[:_SHORT]


def gist(call: Call) -> str:
    """Return what an agent wants to do on one line, with how much of it is left out."""
    arguments = arguments_of(call.body)
    command = arguments.get("command")
    text = command if isinstance(command, str) else canonical(arguments).decode()
    return clipped(f"{visible(call.tool)}: {visible(text)}", columns=GIST)


def unmade_words(count: int) -> str:
    """Say how many approved calls were never made."""
    return f"{count} approved {'call was' if count == 1 else 'calls were'} never made"


def unmade_blocks(calls: Sequence[Call]) -> list[Block]:
    """Lay out the approved calls that were never made, a line for each."""
    return [
        Code(lines=(f"{visible(call.tool_call_id)} {gist(call)}",), indent="  ") for call in calls
    ]


def call_blocks(call: Call, *, cut: Cut) -> list[Block]:
    """Lay out a call, byte for byte, with all that adjourn adds to it."""
    digest = call.digest[:16]
    if call.tool == COMMAND:
        command = command_of(call.body)
        files = command.files
        head = line(f"  {call.tool_call_id} {call.tool}, sha256 {digest}")
        code = argv_lines(command.argv, cut=cut)
        fields = [("in", visible(command.cwd))]
        fields += [
            ("with", f"{visible(name)}={shortened(value, cut=cut)}")
            for name, value in command.env.items()
        ]
    else:
        # Start-up is a hot path: `inbox` and `approve` of a command do without (bench/start.py)
        from adjourn.core.agent.calls import files_of

        files = files_of(call.body)
        head = line(f"  {call.tool_call_id} sha256 {digest}")
        code = call_lines(call.tool, arguments_of(call.body), cut=cut)
        fields = []
    fields += [("file", f"{visible(path)} {visible(seen)}") for path, seen in sorted(files.items())]
    entries = tuple((name, Span(value, "code")) for name, value in fields)
    return [
        head,
        Code(lines=tuple(code), indent=_INDENT),
        Fields(entries=entries, width=4, indent=_INDENT),
    ]
