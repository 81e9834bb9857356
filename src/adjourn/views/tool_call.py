"""The layout of an agent's call: shell text, what it writes into files, or a tool's arguments."""

from collections.abc import Mapping, Sequence

from adjourn.core.call import Call, Json, arguments_of
from adjourn.core.policy.commands import SHELL_TOOLS
from adjourn.core.text.render import WHOLE, Cut, call_lines, command_line, visible
from adjourn.views.block import Block, Code, Span, line
from adjourn.views.file_change import Copies, change_of, role_of_line
from adjourn.views.pasted import DIGITS, pasted_line, script_lines

_DIRECTORIES = ("cwd", "workdir")


def tool_blocks(call: Call, *, cut: Cut, copies: Copies, indent: str) -> list[Block]:
    """Lay out a call of an agent's tool.

    For the eye, shell text is what could be pasted, and what a call writes is one difference.
    """
    arguments = arguments_of(call.body)
    head = line(f"  {call.tool_call_id} {visible(call.tool)}, sha256 {call.digest[:DIGITS]}")
    if cut != WHOLE:
        script = _script_of(call.tool, arguments)
        if script is not None:
            shown = Code(lines=tuple(_cut_lines(script, cut)), indent=indent)
            rest = {name: value for name, value in arguments.items() if name != "command"}
            return [head, shown, *_argument_blocks(call.tool, rest, cut=cut, indent=indent)]
        change = change_of(call.tool, arguments, copies)
        if change is not None:
            blocks: list[Block] = [head]
            for file in change.files:
                remark = f" ({file.remark})" if file.remark else ""
                blocks.append(line(indent, Span(visible(file.path), "strong"), visible(remark)))
                blocks += [
                    line(indent, Span(text, role_of_line(text)))
                    for text in _cut_lines(file.lines, cut)
                ]
            return [*blocks, *_argument_blocks(call.tool, change.others, cut=cut, indent=indent)]
    digest = call.digest[: 16 if cut == WHOLE else DIGITS]
    return [
        line(f"  {call.tool_call_id} sha256 {digest}"),
        Code(lines=tuple(call_lines(call.tool, arguments, cut=cut)), indent=indent),
    ]


def _script_of(tool: str, arguments: Mapping[str, Json]) -> list[str] | None:
    """Return what a call gives to a shell as lines that cannot mislead, or None."""
    if tool.casefold() not in SHELL_TOOLS:
        return None
    command = arguments.get("command")
    if isinstance(command, str):
        return script_lines(command)
    words = _plain_words(command)
    shown = pasted_line(words) if words else None
    return [shown] if shown else None


def _plain_words(value: Json) -> list[str] | None:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return None
    words = [each for each in value if isinstance(each, str)]
    return words if words and len(words) == len(value) else None


def _argument_blocks(
    tool: str, arguments: Mapping[str, Json], *, cut: Cut, indent: str
) -> list[Block]:
    """Lay out what else a call says, a line for each thing where that is enough."""
    found: list[str] = []
    rest = dict(arguments)
    for name in _DIRECTORIES:
        place = rest.get(name)
        if isinstance(place, str) and place.startswith("/"):
            found.append(f"in   {visible(place)}")
            del rest[name]
    for name, value in list(rest.items()):
        words = _plain_words(value)
        if words and pasted_line(words):  # unquoted, which a text is not
            found.append(f"{visible(name)}: {command_line(words)}")
            del rest[name]
    found += [text.removeprefix("  ") for text in call_lines(tool, rest, cut=cut)[1:]]
    return [Code(lines=tuple(found), indent=indent)] if found else []


def _cut_lines(lines: Sequence[str], cut: Cut) -> list[str]:
    """Return as many lines as are shown, and how many are not."""
    if len(lines) <= cut.lines:
        return list(lines)
    rest = f"… {len(lines) - cut.lines:,} more lines. The rest: {cut.rest}"
    return [*lines[: cut.lines], rest]
