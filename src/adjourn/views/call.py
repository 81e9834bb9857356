"""The one layout of a call, and what stands for it in a list."""

from collections.abc import Callable, Collection, Sequence

from adjourn.core.call import COMMAND, Call, arguments_of, canonical, command_of
from adjourn.core.text.render import (
    WHOLE,
    Cut,
    argv_lines,
    clipped,
    shortened,
    visible,
)
from adjourn.views.block import Block, Code, Fields, Span, line

TYPE_CHECKING = False

if TYPE_CHECKING:  # start-up is a hot path
    from adjourn.views.file_change import Copies

GIST = 500  # columns of a call in a list
_SHORT = 8
_INDENT = "    "
_MOST_FILES = 6


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


def call_blocks(call: Call, *, cut: Cut, copies: "Copies | None" = None) -> list[Block]:
    """Lay out a call with all that adjourn adds to it.

    Whole, word by word and with whole digests. For the eye, a command is one line that could be
    pasted, wherever that line cannot mislead, what a call writes into files is a difference to the
    `copies` that are kept with its ask, and digests have 8 digits.
    """
    # Start-up is a hot path: `inbox` does without (bench/start.py)
    from adjourn.views.pasted import DIGITS, pasted_line

    is_whole = cut == WHOLE
    digest = call.digest[: 16 if is_whole else DIGITS]
    fields: list[tuple[str, str]] = []
    if call.tool == COMMAND:
        command = command_of(call.body)
        files = command.files
        blocks: list[Block] = [line(f"  {call.tool_call_id} {call.tool}, sha256 {digest}")]
        shown = None if is_whole else pasted_line(command.argv)
        code = [shown] if shown else argv_lines(command.argv, cut=cut)
        blocks.append(Code(lines=tuple(code), indent=_INDENT))
        fields.append(("in", visible(command.cwd)))
        fields += [
            ("with", f"{visible(name)}={shortened(value, cut=cut)}")
            for name, value in command.env.items()
        ]
    else:
        # Start-up is a hot path: `inbox` and `approve` of a command do without (bench/start.py)
        from adjourn.core.agent.calls import files_of
        from adjourn.views.tool_call import tool_blocks

        files = files_of(call.body)
        blocks = tool_blocks(call, cut=cut, copies=copies or {}, indent=_INDENT)
    named = sorted(files.items())
    fields += [
        (
            "file",
            f"{visible(path)} {visible(seen if is_whole else _short_digest(seen, digits=DIGITS))}",
        )
        for path, seen in (named if is_whole else named[:_MOST_FILES])
    ]
    entries = tuple((name, Span(value, "code")) for name, value in fields)
    blocks.append(Fields(entries=entries, width=4, indent=_INDENT))
    if not is_whole and len(named) > _MOST_FILES:
        count = len(named) - _MOST_FILES
        blocks.append(line(f"{_INDENT}… {count} more files. The rest: {cut.rest}"))
    return blocks


def _short_digest(seen: str, *, digits: int) -> str:
    """Return a digest with so many digits; anything else as it is."""
    head, colon, rest = seen.partition("sha256:")
    if not colon or head:
        return seen
    return f"{colon}{rest.partition(' ')[0][:digits]}"
