"""The one layout of a call, and what stands for it in a list."""

from collections.abc import Callable, Collection, Sequence

from adjourn.core.call import COMMAND, Call, arguments_of, canonical, command_of
from adjourn.core.text.render import (
    WHOLE,
    Cut,
    argv_lines,
    call_lines,
    clipped,
    command_line,
    shortened,
    visible,
)
from adjourn.views.block import Block, Code, Fields, Span, line

GIST = 500  # columns of a call in a list
_SHORT = 8
_INDENT = "    "
_DIGITS = 8  # of a digest, for the eye
_MOST_FILES = 6
_LONGEST_LINE = 150  # two rows of a customary terminal


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
    """Lay out a call with all that adjourn adds to it.

    Whole, word by word and with whole digests. For the eye, a command is one line that could be
    pasted, wherever that line cannot mislead, and digests have 8 digits.
    """
    is_whole = cut == WHOLE
    digest = call.digest[: 16 if is_whole else _DIGITS]
    if call.tool == COMMAND:
        command = command_of(call.body)
        files = command.files
        head = line(f"  {call.tool_call_id} {call.tool}, sha256 {digest}")
        shown = None if is_whole else pasted_line(command.argv)
        code = [shown] if shown else argv_lines(command.argv, cut=cut)
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
    named = sorted(files.items())
    fields += [
        ("file", f"{visible(path)} {visible(seen if is_whole else _short_digest(seen))}")
        for path, seen in (named if is_whole else named[:_MOST_FILES])
    ]
    entries = tuple((name, Span(value, "code")) for name, value in fields)
    blocks: list[Block] = [
        head,
        Code(lines=tuple(code), indent=_INDENT),
        Fields(entries=entries, width=4, indent=_INDENT),
    ]
    if not is_whole and len(named) > _MOST_FILES:
        blocks.append(line(f"{_INDENT}… {len(named) - _MOST_FILES} more files; {cut.rest}"))
    return blocks


def pasted_line(argv: Sequence[str]) -> str | None:
    """Return a command as one line that could be pasted, or None where it could mislead.

    It misleads where a shell would need more than plain quotes, where something looks like nothing
    or like something else, and where it is too long to be read at once.
    """
    text = command_line(argv)
    is_plain = all(word.isascii() and word.isprintable() and word.strip() == word for word in argv)
    is_readable = is_plain and all(argv) and len(text) <= _LONGEST_LINE and "  " not in text
    return f"$ {text}" if is_readable else None


def _short_digest(seen: str) -> str:
    """Return a digest with 8 digits, and what is said about it; anything else as it is."""
    head, colon, rest = seen.partition("sha256:")
    if not colon or head:
        return seen
    digits, blank, remark = rest.partition(" ")
    return f"{colon}{digits[:_DIGITS]}{blank}{remark}"
