"""The one layout of an always-allow rule: exactly what it matches, where and until when."""

from collections.abc import Iterator

import msgspec

from adjourn.core.call import COMMAND, arguments_of
from adjourn.core.policy.commands import words_of
from adjourn.core.policy.policy import Allowance
from adjourn.core.text.render import call_lines, command_line, visible
from adjourn.core.text.when import stamp


def allowance_lines(rule: Allowance, *, now: int) -> Iterator[str]:
    """Say what a rule is: its id, what it matches, where, until when, and who made it."""
    ended = "" if now < rule.until else "  (over: it no longer counts)"
    yield f"rule {rule.id}{ended}"
    yield from (f"  {line}" for line in what_it_matches(rule))
    where = visible(rule.task or rule.workspace or "")
    yield f"  in the {'task' if rule.task else 'workspace'} {where}"
    yield f"  until {stamp(rule.until)}, by {visible(rule.by)} at {stamp(rule.at)}"


def what_it_matches(rule: Allowance) -> Iterator[str]:
    """Say exactly what a rule matches: these words and no others, these programs and no others."""
    tool = tool_of(rule)
    if tool == COMMAND:
        yield f"exactly  {command_line(words_of(COMMAND, arguments_of(rule.call)))}"
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


def tool_of(rule: Allowance) -> str:
    """Return the tool whose calls a rule lets run."""
    return str(msgspec.json.decode(rule.call, type=dict[str, object])["tool"])
