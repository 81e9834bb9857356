"""The one layout of an agent's conversation."""

from collections.abc import Iterable

from adjourn.core.agent.transcript import (
    Assistant,
    Message,
    Summary,
    Tally,
    ToolCall,
    ToolResult,
    User,
)
from adjourn.core.text.render import Cut, block, call_lines, prose
from adjourn.views.block import BLANK, AgentWords, Block, Code, Span, line

_INDENT = "  "


def transcript_blocks(messages: Iterable[Message], tally: Tally, *, cut: Cut) -> list[Block]:
    """Lay out the messages, and what they used."""
    blocks: list[Block] = []
    for message in messages:
        blocks += [*_message_blocks(message, cut), BLANK]
    usage, steps = tally.usage, tally.steps
    cost = f", ${usage.cost}" if usage.cost is not None else ""
    count = f"{steps} {'step' if steps == 1 else 'steps'}"
    return [*blocks, line(f"{count}, {usage.input:,} tokens in, {usage.output:,} out{cost}")]


def _message_blocks(message: Message, cut: Cut) -> list[Block]:
    match message:
        case User(text=text):
            return [line("person"), *_text_blocks(text, cut)]
        case Assistant():
            head = f"model ({prose(message.model)})" if message.model else "model"
            blocks: list[Block] = [line(head)]
            if message.text:
                blocks.append(
                    AgentWords(text=message.text, cut=cut, indent=_INDENT, margin=len(_INDENT))
                )
            return [*blocks, *(_call_block(call, cut) for call in message.tool_calls)]
        case ToolResult():
            failed = ", failed" if message.failed else ""
            head = f"result of {prose(message.tool_call_id)} {prose(message.name)}{failed}"
            return [line(head), *_text_blocks(message.text, cut)]
        case Summary():
            head = (
                f"summary, which the model gets in the place of the first {message.covers} messages"
            )
            return [line(head), *_text_blocks(message.text, cut)]


def _call_block(call: ToolCall, cut: Cut) -> Code:
    arguments = call.arguments if isinstance(call.arguments, dict) else {"not JSON": call.arguments}
    first, *more = call_lines(call.name, arguments, cut=cut)
    return Code(lines=(f"{prose(call.id)} {first}", *more), indent=_INDENT)


def _text_blocks(text: str, cut: Cut) -> list[Block]:
    words = block(text)
    rows: list[Block] = [
        line(_INDENT, Span(row, "agent_words")) for row in words[: cut.limit].split("\n")
    ]
    if len(words) > cut.limit:
        rows.append(line(f"{_INDENT}… {len(words) - cut.limit} more characters: {cut.rest}"))
    return rows
