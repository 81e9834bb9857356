"""What is shown of a task that an agent works on: can it be resumed, and what it used."""

from adjourn.core.agent.calls import Spent
from adjourn.core.documents import ResumabilityDoc
from adjourn.core.text.render import prose
from adjourn.views.block import Block, Fields, Span, line


def resumability_blocks(found: ResumabilityDoc) -> list[Block]:
    """Lay out whether an agent can go on where it left, and what prevents it."""
    head = (
        "it can be resumed"
        if found.can_be_resumed
        else f"it cannot be resumed: {found.way_out} starts over"
    )
    entries = tuple(
        (look.thing, Span(f"{'' if look.fine else 'NO: '}{prose(look.says)}"))
        for look in found.looks
    )
    return [line(head), Fields(entries=entries, width=9, gap="  ", indent="  ")]


def usage_words(spent: Spent) -> str:
    """Say what an agent used of its model."""
    cost = f", ${spent.cost}" if spent.cost is not None else ""
    cached = f" ({spent.cached_input_tokens:,} cached)" if spent.cached_input_tokens else ""
    return f"{spent.input_tokens:,} tokens in{cached}, {spent.output_tokens:,} out{cost}"
