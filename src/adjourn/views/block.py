"""Blocks, of which every view is made: text whose parts have roles. No terminal and no HTML.

The text alone carries the meaning; a role only says how a surface may colour it. A surface lays
blocks out itself (a table, a list of fields), or has `wrap` break them into rows.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol

import msgspec

from adjourn.core.task import Task
from adjourn.core.text.render import (
    AGENT_MARK,
    MORE_MARK,
    WHOLE,
    Cut,
    agent_words,
    command_line,
    command_rows,
    fit,
    fitting_rows,
    width,
)

Role = Literal[
    "plain",
    "muted",
    "strong",
    "code",
    "added",
    "removed",
    "danger",
    "agent_words",
    "link",
    # An id of ours: a surface for people may show its beginning
    "id",
    # How something stands; what failed is "danger", what is over is "muted"
    "ready",
    "running",
    "waiting",
    "succeeded",
]

CUSTOMARY_COLUMNS = 80
_UNBOUNDED = 100_000  # columns where there is no terminal: nothing needs to be cut
_CONTROL = r"[\x00-\x1f\x7f-\x9f\u2028\u2029]"
_STATES: dict[str, Role] = {
    "queued": "ready",
    "ready": "ready",
    "question": "ready",
    "running": "running",
    "waiting": "waiting",
    "paused": "waiting",
    "approval": "waiting",
    "succeeded": "succeeded",
    "failed": "danger",
    "blocked": "danger",
    "uncertain": "danger",
    "canceled": "muted",
    "pending": "muted",
}
_SHOWN = 2_000  # characters of a value


class Span(msgspec.Struct, frozen=True):
    """A piece of one line, rendered: text of others has gone through `core.text.render`."""

    text: str
    role: Role = "plain"


class Line(msgspec.Struct, frozen=True):
    """One line. A command that a person pastes may be one that is never broken."""

    spans: tuple[Span, ...] = ()
    may_break: bool = True

    @property
    def text(self) -> str:
        """The line without its roles."""
        return "".join(span.text for span in self.spans)


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Rows below a head. The last column takes the room that is left, at least `least` columns."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    state_column: int | None = None  # its cells are states, and get a state's role
    least: int = 16


class Fields(msgspec.Struct, frozen=True, kw_only=True):
    """Values, each with a name that is padded to `width` and the gap."""

    entries: tuple[tuple[str, Span], ...]
    width: int
    gap: str = " "
    indent: str = ""


class Code(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of a call, byte for byte as the renderer shows them."""

    lines: tuple[str, ...]
    indent: str = ""


class AgentWords(msgspec.Struct, frozen=True, kw_only=True):
    """Words of an agent or a process, as it wrote them. Each row is marked as not ours."""

    text: str
    cut: Cut = WHOLE
    indent: str = ""
    margin: int = 0  # columns that the rows leave free, the indent among them


class CommandBlock(msgspec.Struct, frozen=True):
    """A command that a person may paste; too long for a row, it goes on as a shell reads it."""

    head: str
    command: str
    before: tuple[Span, ...] = ()  # on the same row as its head


Block = Line | Table | Fields | Code | AgentWords | CommandBlock
BLANK = Line()


def line(*parts: str | Span) -> Line:
    """Make a line of texts and spans."""
    return Line(tuple(Span(part) if isinstance(part, str) else part for part in parts))


def lines(texts: Iterable[str], *, indent: str = "", role: Role = "plain") -> list[Block]:
    """Make a line of each text."""
    return [Line((Span(f"{indent}{text}", role),)) for text in texts]


def state_role(word: str) -> Role:
    """Return the role of a state or of an ask's kind."""
    return _STATES.get(word, "plain")


def lay_out(blocks: Iterable[Block], columns: int | None) -> list[Line]:
    """Return the lines of blocks for so many columns, or None where there is no terminal.

    Without a width, an agent's words are broken at 80 columns all the same: others may show
    them in a window that breaks lines by itself. No line holds a control character.
    """
    found: list[Line] = []
    for block in blocks:
        match block:
            case Line():
                found.append(block)
            case Table():
                found += _table_lines(block, columns or _UNBOUNDED)
            case Fields():
                found += [
                    line(f"{block.indent}{name:<{block.width}}{block.gap}", value)
                    for name, value in block.entries
                ]
            case Code():
                found += [line(block.indent, Span(text, "code")) for text in block.lines]
            case AgentWords():
                room = (columns or CUSTOMARY_COLUMNS) - block.margin
                found += [
                    # The last row may be ours, and say how much is left out
                    line(block.indent, Span(row, _role_of_words(row)))
                    for row in agent_words(block.text, columns=room, cut=block.cut)
                ]
            case CommandBlock():
                rows = command_rows(block.head, block.command, columns=columns or _UNBOUNDED)
                found.append(
                    line(*block.before, block.head, Span(rows[0][len(block.head) :], "code"))
                )
                found += [line(Span(row, "code")) for row in rows[1:]]
    return [_harmless(each) for each in found]


def wrap(blocks: Iterable[Block], columns: int | None) -> list[Line]:
    """Return rows of which none is wider than that, each row that continues another with a mark.

    A terminal that breaks a line itself would begin a row with whatever text is at that place. Text
    of others that is long enough could so put a row on the screen that looks like ours.
    """
    rows: list[Line] = []
    for each in lay_out(blocks, columns):
        text = each.text
        if columns is None or not each.may_break or width(text) <= columns:
            rows.append(each)
            continue
        end = 0
        for row in fitting_rows(text, columns):
            start, end = end, end + len(row)
            mark = (Span(MORE_MARK),) if start else ()
            rows.append(Line((*mark, *_part(each.spans, start, end))))
    return rows


def to_text(blocks: Iterable[Block], columns: int | None = None) -> str:
    """Return blocks as plain text, broken into rows that fit."""
    return "\n".join(row.text for row in wrap(blocks, columns))


def change_text(blocks: Iterable[Line], change: Callable[[str], str]) -> list[Line]:
    """Return lines with the text of each span changed, and the roles as they were."""
    return [
        Line(tuple(Span(change(span.text), span.role) for span in each.spans), each.may_break)
        for each in blocks
    ]


def _table_lines(table: Table, columns: int) -> list[Line]:
    widths = [max(map(width, column)) for column in zip(table.head, *table.rows, strict=True)]
    room = max(columns - sum(widths[:-1]) - 2 * len(widths), table.least)
    widths[-1] = min(widths[-1], room)
    found: list[Line] = []
    for number, row in enumerate((table.head, *table.rows)):
        spans: list[Span] = []
        for at, (cell, room) in enumerate(zip(row, widths, strict=True)):
            is_state = number > 0 and at == table.state_column
            spans.append(Span(fit(cell, columns=room), state_role(cell) if is_state else "plain"))
            spans.append(Span("  "))
        while spans and not spans[-1].text.strip():
            spans.pop()
        if spans:
            spans[-1] = Span(spans[-1].text.rstrip(), spans[-1].role)
        found.append(Line(tuple(spans)))
    return found


def _role_of_words(row: str) -> Role:
    return "agent_words" if row.startswith(AGENT_MARK) else "plain"


def _harmless(each: Line) -> Line:
    """Spell out a control character that a view let through: none of them may reach a screen."""
    if each.text.isprintable():
        return each
    (clean,) = change_text(
        [each], lambda text: re.sub(_CONTROL, lambda found: f"\\u{{{ord(found[0]):x}}}", text)
    )
    return clean


def _part(spans: Iterable[Span], start: int, end: int) -> Iterable[Span]:
    """Yield what a row has of a line's spans."""
    at = 0
    for span in spans:
        text = span.text[max(start - at, 0) : max(end - at, 0)]
        if text:
            yield Span(text, span.role)
        at += len(span.text)


class Id(str):
    """An id among the arguments of a command; a person needs only its beginning."""

    __slots__ = ()


class CommandWriter(Protocol):
    """Writes what a person does next; a surface without a shell has its own."""

    def __call__(self, *words: str) -> str:
        """Return the verb and its arguments as this surface writes them."""
        ...


class Commands:
    """Writes command lines of a program, for a store if it has to be named."""

    def __init__(
        self, program: str, store: str | None, *, shorten: Callable[[str], str] = str
    ) -> None:
        self._program = program
        self._shorten = shorten
        self._store = ["--store", store] if store else []

    def __call__(self, *words: str) -> str:
        """Return a command line, ready to paste."""
        words = tuple(self._shorten(word) if isinstance(word, Id) else word for word in words)
        end = words.index("--") if "--" in words else len(words)
        return command_line([self._program, *words[:end], *self._store, *words[end:]])


def cut_of(task_id: str, commands: CommandWriter, *, shows_all: bool = False) -> Cut:
    """Return how much of a value is shown, with the command that shows the rest."""
    if shows_all:
        return WHOLE
    return Cut(limit=_SHOWN, rest=commands("show", Id(task_id), "--full"))


def unattended_block(tasks: Sequence[Task], commands: CommandWriter) -> Line:
    """Name queued tasks that nobody is about to start, oldest last, and what starts one."""
    first = tasks[-1]
    others = f" (and {len(tasks) - 1} more)" if len(tasks) > 1 else ""
    start = Span(commands("resume", Id(first.id)), "code")
    name = Span(first.id, "id")
    return line("Task ", name, f"{others} is queued, and no worker is alive to start it: ", start)
