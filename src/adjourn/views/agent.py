"""What is said of a task that an agent works on.

Whether it can still be resumed, and what it used.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec

from adjourn.cli.session import Session
from adjourn.core.agent.calls import Spent
from adjourn.core.agent.transcript import (
    Assistant,
    Message,
    Tally,
    ToolCall,
    ToolResult,
    Usage,
    User,
    decoded,
)
from adjourn.core.documents import ResumabilityDoc, resumability_doc
from adjourn.core.errors import Conflict
from adjourn.core.kept_documents import BEGAN
from adjourn.core.task import Task
from adjourn.core.text.render import Cut, agent_words, block, call_lines, prose
from adjourn.views.call import cut_for
from adjourn.views.next_step import command


def resumability_of(session: Session, task: Task) -> ResumabilityDoc | None:
    """Look at all that a resume would need, of an agent whose session lies outside of the store."""
    if not task.spec.is_driven:
        return None
    from adjourn.wiring.runners import looks_at  # seldom needed

    return resumability_doc(
        looks_at(session.controller, task), restart=command(session, "restart", task.id)
    )


def resumability_lines(found: ResumabilityDoc) -> Iterator[str]:
    """Say whether an agent can go on where it left, and what stands in the way."""
    yield (
        "it can be resumed"
        if found.can_be_resumed
        else f"it cannot be resumed: {found.way_out} begins anew"
    )
    yield from (
        f"  {look.thing:<9}  {'' if look.fine else 'NO: '}{prose(look.says)}"
        for look in found.looks
    )


def usage_words(spent: Spent) -> str:
    """Say what an agent used of its model."""
    cost = f", ${spent.cost}" if spent.cost is not None else ""
    return f"{spent.input_tokens:,} tokens in, {spent.output_tokens:,} out{cost}"


_INDENT = "  "


class TranscriptDoc(msgspec.Struct, frozen=True, kw_only=True):
    """The messages of a task, and what they used."""

    schema_version: Literal[1] = 1
    task_id: str
    messages: tuple[Message, ...]
    steps: int
    usage: Usage


def show_transcript(session: Session, task: Task) -> None:
    """Print the conversation of a task."""
    messages = _messages(session, task)
    tally = Tally(messages)
    if session.wants_json:
        doc = TranscriptDoc(
            task_id=task.id, messages=tuple(messages), steps=tally.steps, usage=tally.usage
        )
        session.document(doc)
        return
    cut = cut_for(session, task.id)
    session.say("\n\n".join("\n".join(_lines(session, message, cut)) for message in messages))
    session.say(f"\n{usage_line(tally.usage, steps=tally.steps)}")


def _messages(session: Session, task: Task) -> list[Message]:
    began = session.controller.documents.read(task.id, BEGAN) or 0
    bodies = session.controller.agents.messages(task.id, after=0 if not session.cuts else began)
    if not bodies:
        raise Conflict(f"task {task.id} has no conversation", way_out=f"adjourn logs {task.id}")
    return [decoded(body) for body in bodies]


def _lines(session: Session, message: Message, cut: Cut) -> Iterator[str]:
    match message:
        case User(text=text):
            yield "person"
            yield from _indented(block(text), cut)
        case Assistant():
            yield f"model ({prose(message.model)})" if message.model else "model"
            words = (
                agent_words(message.text, columns=session.columns_for_words - len(_INDENT), cut=cut)
                if message.text
                else []
            )
            yield from (f"{_INDENT}{line}" for line in words)
            for call in message.tool_calls:
                yield from _call(call, cut)
        case ToolResult():
            yield f"result of {prose(message.tool_call_id)} {prose(message.name)}{', failed' if message.failed else ''}"
            yield from _indented(block(message.text), cut)


def _call(call: ToolCall, cut: Cut) -> Iterator[str]:
    arguments = call.arguments if isinstance(call.arguments, dict) else {"not JSON": call.arguments}
    first, *more = call_lines(call.name, arguments, cut=cut)
    yield f"{_INDENT}{prose(call.id)} {first}"
    yield from (f"{_INDENT}{line}" for line in more)


def _indented(words: str, cut: Cut) -> Iterator[str]:
    shown = words[: cut.limit]
    yield from (f"{_INDENT}{line}" for line in shown.split("\n"))
    if len(words) > cut.limit:
        yield f"{_INDENT}… {len(words) - cut.limit} more characters: {cut.rest}"


def usage_line(usage: Usage, *, steps: int) -> str:
    """Say what a conversation used."""
    cost = f", ${usage.cost}" if usage.cost is not None else ""
    return f"{steps} {'step' if steps == 1 else 'steps'}, {usage.input:,} tokens in, {usage.output:,} out{cost}"
