"""Blocks of a view as HTML elements: text is escaped here, once, and views hold none."""

from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

from adjourn.core.text.render import AGENT_MARK, agent_words
from adjourn.views.block import (
    AgentWords,
    Block,
    Code,
    CommandBlock,
    Fields,
    Line,
    Span,
    Table,
    lay_out,
    line,
    state_role,
)

_UNBROKEN = 1_000_000  # columns: a browser breaks the rows itself, inside of their element


def to_html(blocks: Iterable[Block]) -> Markup:
    """Return the elements of blocks.

    What a browser breaks is indented further than what begins a row, so that text of others cannot
    begin a row that looks like ours.
    """
    return Markup("\n").join(_element(block) for block in blocks)


def _element(block: Block) -> Markup:
    match block:
        case Line() if not block.spans:
            return Markup('<p class="blank"></p>')
        case Line():
            return Markup('<p class="row">{}</p>').format(_spans(block))
        case Table():
            return _table(block)
        case Fields():
            entries = [
                Markup("<div><dt>{}</dt> <dd>{}</dd></div>").format(
                    _spans(line(name)), _spans(line(value))
                )
                for name, value in block.entries
            ]
            return Markup("<dl>{}</dl>").format(Markup("").join(entries)) if entries else Markup("")
        case Code():
            rows = [
                Markup('<span class="row">{}\n</span>').format(_spans(line(text)))
                for text in block.lines
            ]
            return Markup('<pre class="code">{}</pre>').format(Markup("").join(rows))
        case AgentWords():
            return _words(block)
        case CommandBlock():
            command = line(*block.before, block.head, Span(block.command, "code"))
            return Markup('<p class="row">{}</p>').format(_spans(command))


def _words(block: AgentWords) -> Markup:
    rows: list[Markup] = []
    for row in agent_words(block.text, columns=_UNBROKEN, cut=block.cut):
        # The last row may be ours, and say how much is left out
        if row.startswith(AGENT_MARK):
            mark = Markup('<span class="mark">{}</span>').format(AGENT_MARK)
            text = _spans(line(Span(row.removeprefix(AGENT_MARK), "agent_words")))
            rows.append(Markup('<p class="row">{}{}</p>').format(mark, text))
        else:
            rows.append(Markup('<p class="row ours">{}</p>').format(_spans(line(row))))
    return Markup('<blockquote class="agent">{}</blockquote>').format(Markup("").join(rows))


def _table(table: Table) -> Markup:
    head = Markup("").join(
        Markup('<th scope="col">{}</th>').format(_spans(line(cell))) for cell in table.head
    )
    rows = [
        Markup("<tr>{}</tr>").format(
            Markup("").join(_cell(table, at, cell) for at, cell in enumerate(row))
        )
        for row in table.rows
    ]
    return Markup(
        '<div class="wide" tabindex="0" role="region" aria-label="Table"><table>'
        "<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>"
    ).format(head, Markup("").join(rows))


def _cell(table: Table, at: int, cell: str) -> Markup:
    role = state_role(cell) if at == table.state_column else "plain"
    return Markup("<td>{}</td>").format(_spans(line(Span(cell, role))))


def _spans(row: Line) -> Markup:
    """Return the spans of a line; a control character that a view let through is spelled out."""
    shown: Sequence[Line] = lay_out([row], None)
    return Markup("").join(
        escape(span.text)
        if span.role == "plain"
        else Markup('<span class="is-{}">{}</span>').format(span.role, span.text)
        for each in shown
        for span in each.spans
    )
