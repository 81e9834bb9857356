"""The one layout of an always-allow rule: what exactly it lets run, where, and until when."""

from collections.abc import Iterator, Sequence

import msgspec

from adjourn.core.call import COMMAND, arguments_of
from adjourn.core.policy.commands import words_of
from adjourn.core.policy.policy import Allowance
from adjourn.core.task import Milliseconds
from adjourn.core.text.render import call_lines, command_line, visible
from adjourn.core.text.when import stamp

_NAMED = 3  # calls that a rule would have matched


def tool_of(rule: Allowance) -> str:
    """Return the tool of the call that a rule lets run."""
    return str(msgspec.json.decode(rule.call, type=dict[str, object])["tool"])


def rule_title(rule: Allowance) -> str:
    """Return a rule's call on one line."""
    tool = tool_of(rule)
    if tool == COMMAND:
        return command_line(words_of(COMMAND, arguments_of(rule.call)))
    return " ".join(call_lines(tool, arguments_of(rule.call)))


def what_it_matches(rule: Allowance) -> Iterator[str]:
    """Say exactly what a rule matches: these words and no others, these programs and no others."""
    tool = tool_of(rule)
    if tool == COMMAND:
        yield f"exactly  {rule_title(rule)}"
    else:
        first, *more = call_lines(tool, arguments_of(rule.call))
        yield f"exactly  {first}"
        yield from (f"         {line}" for line in more)
    yield from (
        f"where    {visible(name)} is {visible(path)}"
        for name, path in sorted(rule.programs.items())
    )
    yield from (
        f"content  {visible(path)} {visible(digest)}" for path, digest in sorted(rule.files.items())
    )
    if by_path := sorted({*rule.programs.values()} - rule.files.keys()):
        paths = ", ".join(map(visible, by_path))
        yield f"by path  {paths}: the rule holds also if the content changes"


def rule_lines(
    rule: Allowance, *, now: Milliseconds, matched: Sequence[str], of: int | None
) -> Iterator[str]:
    """Say all of a rule, with which of so many calls it would have matched."""
    ended = "" if now < rule.until else "  (over: it no longer counts)"
    yield f"rule {rule.id}{ended}"
    yield from (f"  {line}" for line in what_it_matches(rule))
    where = visible(rule.task or rule.workspace or "")
    yield f"  in the {'task' if rule.task else 'workspace'} {where}"
    yield f"  until {stamp(rule.until)}, by {visible(rule.by)} at {stamp(rule.at)}"
    if of is not None:
        some = ", ".join(matched[:_NAMED]) + (", …" if len(matched) > _NAMED else "")
        told = f": {some}" if matched else ""
        yield f"  would have matched {len(matched)} of the last {of} calls{told}"
