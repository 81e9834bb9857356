"""The one layout of a policy's explanation: how the rules judge a call, and why."""

from collections.abc import Iterator

import msgspec

from adjourn.core.policy.judge import Explanation, Finding, rule_gist, rule_place
from adjourn.core.policy.judgement import Action, Judgement, Never
from adjourn.core.policy.policy import Origin, Policy
from adjourn.core.policy.rule import Rule
from adjourn.core.text.render import command_line, spelled, visible
from adjourn.core.text.when import span
from adjourn.views.block import BLANK, Block, Code, Fields, Span, line, lines

_MEANINGS = {
    Action.AUTO: "it runs without asking",
    Action.PROMPT: (
        "it needs a person's yes; without --pause-on-approval it runs, and the trail says that"
        " nobody was asked"
    ),
    Action.NEVER: (
        "it waits for a person who overrides it by its name (approve --override REASON);"
        " without --pause-on-approval it is turned down"
    ),
}


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """A judgement with all that led to it, and the files that could have."""

    tool: str
    explanation: Explanation
    policy: Policy
    origins: tuple[Origin, ...]


def explanation_blocks(found: Explained) -> list[Block]:
    """Lay out what decides, part by part."""
    explanation, judgement = found.explanation, found.explanation.judgement
    is_turned_down = judgement.action is Action.NEVER and judgement.never is Never.REJECT
    meaning = "it is turned down at once" if is_turned_down else _MEANINGS[judgement.action]
    blocks: list[Block] = [line(f"{judgement.action}: {meaning}")]
    blocks += lines(judgement.why, indent="  ")

    blocks += [BLANK, line("what would run")]
    for finding in explanation.findings:
        indent = "  " * (finding.depth + 1)
        blocks.append(Code(lines=(_what(finding, found.tool),), indent=indent))
        blocks += lines(_about(finding), indent=f"{indent}  ")

    refusing = {id(rule) for rule in explanation.tightening}
    for title, is_refusing in (
        ("rules that refuse or ask: found in any spelling", True),
        ("rules that let pass: the very words only", False),
    ):
        matching = [
            f"{rule_place(rule)}: {rule_gist(rule)}"
            for rule in matched(found)
            if (id(rule) in refusing) is is_refusing
        ]
        blocks += [BLANK, line(title), *lines(matching or ["none matches"], indent="  ")]

    terms = judgement.terms
    expires = judgement.expires_after
    entries = {
        "approver": f"{terms.approver}{', not the requester' if terms.not_requester else ''}",
        "signed": "yes" if terms.signed else "no",
        **_counting(judgement),
        "effect": judgement.effect,
        "expires": "never" if expires is None else f"after {span(expires)}",
    }
    fields = tuple((name, Span(value)) for name, value in entries.items())
    width = max(8, *map(len, entries))
    blocks += [BLANK, line("terms"), Fields(entries=fields, width=width, gap="  ", indent="  ")]
    return [*blocks, BLANK, line("files"), *lines(_files(found), indent="  ")]


def _counting(judgement: Judgement) -> dict[str, str]:
    """Say how many must approve, who may, and who is reminded, where a rule says so."""
    terms, found = judgement.terms, dict[str, str]()
    if terms.people is not None:
        names = ", ".join(person.name for person in terms.people) or "nobody of your config"
        found["approvals"] = f"{terms.approvals}, by: {names}"
        if len(terms.people) < terms.approvals:
            found["approvals"] += " (too few: nobody can approve it)"
    if judgement.remind_after is not None:
        also = f", also to {', '.join(judgement.escalate_to)}" if judgement.escalate_to else ""
        found["reminds"] = f"after {span(judgement.remind_after)}{also}"
    return found


def _what(finding: Finding, tool: str) -> str:
    words = finding.step.words if finding.step else ()
    return command_line(words) if words else visible(tool)


def _about(finding: Finding) -> Iterator[str]:
    autos = [rule for rule in finding.loosening if rule.action is Action.AUTO]
    yield from finding.doubts
    if finding.step and finding.step.is_shell:
        if not finding.doubts:
            yield "a shell: what counts is what it runs"
    elif autos:
        yield from (f"auto by {rule_place(rule)}: {rule_gist(rule)}" for rule in autos)
    elif not finding.doubts:
        yield "no rule lets it run by itself"


def _files(found: Explained) -> Iterator[str]:
    read = {source.path for source in found.policy.sources}
    for origin in found.origins:
        if spelled(origin.path) not in read:
            kind = "project" if origin.is_project else "user"
            yield f"{kind:<7}  {visible(origin.path)}  is not there"
    for source in found.policy.sources:
        count = f"{source.rules:,} {'rule' if source.rules == 1 else 'rules'}"
        yield f"{source.kind:<7}  {visible(source.path)}  {count}"


def matched(found: Explained) -> list[Rule]:
    """Return every rule that matches, whether it decides or not."""
    rules = [
        *found.explanation.tightening,
        *(rule for finding in found.explanation.findings for rule in finding.loosening),
    ]
    return list({id(rule): rule for rule in rules}.values())


# --- for machines ---------------------------------------------------------------------------------


def explanation_document(found: Explained) -> dict[str, object]:
    """Return the same for machines."""
    judgement = found.explanation.judgement
    allowance = found.explanation.allowance
    return {
        "schema_version": 1,
        "action": judgement.action,
        "never": judgement.never,
        "effect": judgement.effect,
        "terms": {
            "approver": judgement.terms.approver,
            "not_requester": judgement.terms.not_requester,
            "signed": judgement.terms.signed,
            "by_name": judgement.terms.by_name,
            "override": judgement.terms.override,
            "approvals": judgement.terms.approvals,
            "approvers": None
            if judgement.terms.people is None
            else [person.name for person in judgement.terms.people],
        },
        "expires_after_ms": judgement.expires_after,
        "remind_after_ms": judgement.remind_after,
        "escalate_to": judgement.escalate_to,
        "why": judgement.why,
        "parts": [_part(finding, found.tool) for finding in found.explanation.findings],
        "rules": [_rule(rule, found) for rule in matched(found)],
        "always_allow": allowance.id if allowance else None,
        "files": found.policy.sources,
    }


def _part(finding: Finding, tool: str) -> dict[str, object]:
    return {
        "command": _what(finding, tool),
        "depth": finding.depth,
        "is_auto": finding.is_auto,
        "effect": finding.effect,
        "doubts": finding.doubts,
        "rules": [rule_place(rule) for rule in finding.loosening],
    }


def _rule(rule: Rule, found: Explained) -> dict[str, object]:
    gist = rule_gist(rule)
    is_refusing = any(rule is each for each in found.explanation.tightening)
    return {
        "file": visible(rule.source),
        "line": rule.line,
        "rule": gist,
        "decides": f"{rule_place(rule)}: {gist}" in found.explanation.judgement.why,
        "matched": "in any spelling" if is_refusing else "word by word",
    }
