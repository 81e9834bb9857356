"""How tables and calls look to a person on a terminal."""

from collections.abc import Sequence

from adjourn.cli.session import Session
from adjourn.core.call import COMMAND, Call, arguments_of, canonical, command_of
from adjourn.core.text.render import (
    WHOLE,
    Cut,
    argv_lines,
    call_lines,
    clipped,
    fit,
    shortened,
    visible,
    width,
)
from adjourn.views.next_step import command

SHORT = 8
GIST = 500
_COLOURS = {
    "queued": 36,
    "running": 34,
    "waiting": 33,
    "paused": 33,
    "succeeded": 32,
    "failed": 31,
    "canceled": 90,
    "ready": 36,
    "pending": 90,
    "blocked": 31,
    "uncertain": 31,
    "approval": 33,
    "question": 36,
}


def coloured(session: Session, text: str, word: str) -> str:
    """Colour a text for a state or a kind, where colour helps."""
    return (
        f"\x1b[{_COLOURS[word]}m{text}\x1b[0m" if session.has_colour and word in _COLOURS else text
    )


def table(
    session: Session,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    colour_by: int | None = None,
    least: int = 16,
) -> str:
    """Align columns; the last takes what room is left, and so many columns at least."""
    widths = [max(width(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    widths[-1] = min(widths[-1], max(session.columns - sum(widths[:-1]) - 2 * len(widths), least))
    lines = [_cells(head, widths), *(_cells(row, widths) for row in rows)]
    if colour_by is not None:
        for row, line in zip(rows, lines[1:], strict=True):
            line[colour_by] = coloured(session, line[colour_by], row[colour_by])
    return "\n".join("  ".join(line).rstrip() for line in lines)


def _cells(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [fit(cell, columns=columns) for cell, columns in zip(row, widths, strict=True)]


def short(identifier: str) -> str:
    """Return the part of an id that is nearly always unique."""
    return identifier[:SHORT]


def gist(call: Call) -> str:
    """Return what an agent wants to do on one line, and say how much of it is left out."""
    arguments = arguments_of(call.body)
    command = arguments.get("command")
    words = command if isinstance(command, str) else canonical(arguments).decode()
    return clipped(f"{visible(call.tool)}: {visible(words)}", columns=GIST)


def call_block(session: Session, call: Call) -> list[str]:
    """Show a call: one word of the command line per line, and all that adjourn adds."""
    if call.tool != COMMAND:
        return _tool_block(session, call)
    whole = command_of(call.body)
    cut = cut_for(session, call.task_id)
    lines = [f"  {call.tool_call_id} {call.tool}, sha256 {call.digest[:16]}"]
    lines += [f"    {line}" for line in argv_lines(whole.argv, cut=cut)]
    lines.append(f"    in   {visible(whole.cwd)}")
    lines += [
        f"    with {visible(name)}={shortened(value, cut=cut)}" for name, value in whole.env.items()
    ]
    lines += [
        f"    file {visible(path)} {visible(found)}" for path, found in sorted(whole.files.items())
    ]
    return lines


def _tool_block(session: Session, call: Call) -> list[str]:
    """Show a call of a process's own tool, argument by argument."""
    from adjourn.core.agent.calls import files_of  # a listing shows no call whole

    lines = call_lines(call.tool, arguments_of(call.body), cut=cut_for(session, call.task_id))
    lines += [
        f"file {visible(path)} {visible(found)}"
        for path, found in sorted(files_of(call.body).items())
    ]
    return [f"  {call.tool_call_id} sha256 {call.digest[:16]}", *(f"    {line}" for line in lines)]


def cut_for(session: Session, task_id: str) -> Cut:
    """Say how much of a value is shown, and how to see the rest."""
    return (
        Cut(limit=2_000, rest=command(session, "show", task_id, "--full"))
        if session.cuts
        else WHOLE
    )
