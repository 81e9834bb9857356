"""What is said of a task that an agent works on: whether it can still be resumed, and what it used."""

from collections.abc import Iterator

from adjourn.cli.program import command
from adjourn.cli.session import Session
from adjourn.core.driving import Spent
from adjourn.core.manifest import ResumabilityDoc, resumability_doc
from adjourn.core.render import prose
from adjourn.core.task import Task


def resumability_of(session: Session, task: Task) -> ResumabilityDoc | None:
    """Look at all that a resume would need, of an agent whose session lies outside of the store."""
    if not task.spec.is_driven:
        return None
    from adjourn.wiring.resuming import looks_at  # seldom needed

    return resumability_doc(looks_at(session.controller, task), restart=command(session, "restart", task.id))


def resumability_lines(found: ResumabilityDoc) -> Iterator[str]:
    """Say whether an agent can go on where it left, and what stands in the way."""
    yield "it can be resumed" if found.can_be_resumed else f"it cannot be resumed: {found.way_out} begins anew"
    yield from (f"  {look.thing:<9}  {'' if look.fine else 'NO: '}{prose(look.says)}" for look in found.looks)


def usage_words(spent: Spent) -> str:
    """Say what an agent used of its model."""
    cost = f", ${spent.cost}" if spent.cost is not None else ""
    return f"{spent.input_tokens:,} tokens in, {spent.output_tokens:,} out{cost}"
