"""How an explanation reads: for people, and as a document."""

from collections.abc import Iterator

from adjourn.core.policy.judge import Finding, rule_gist, rule_place
from adjourn.core.policy.judgement import Action, Judgement, Never
from adjourn.core.policy.policy import Source
from adjourn.core.policy.rule import Rule
from adjourn.core.text.render import command_line, visible
from adjourn.core.text.when import span
from adjourn.settings.policies import spelled
from adjourn.wiring.policies import Explained

_MEANINGS = {
    Action.AUTO: "it runs by itself",
    Action.PROMPT: "it needs a person's yes; without --pause-on-approval it runs, and the trail says that nobody was asked",
    Action.NEVER: "it waits for somebody who approves it by its name; without --pause-on-approval it is turned down",
}


def as_text(found: Explained) -> str:
    """Tell people what decides, part by part."""
    return "\n".join(_lines(found))


def _lines(found: Explained) -> Iterator[str]:
    explanation = found.explanation
    judgement = explanation.judgement
    yield f"{judgement.action}: {_meaning(judgement)}"
    yield from (f"  {why}" for why in judgement.why)
    yield ""
    yield "what would run"
    for finding in explanation.findings:
        yield f"  {'  ' * finding.depth}{_what(finding, found.tool)}"
        yield from (f"  {'  ' * finding.depth}  {line}" for line in _about(finding))
    others = [
        rule
        for rule in matched(found)
        if f"{rule_place(rule)}: {rule_gist(rule)}" not in judgement.why
    ]
    if others:
        yield from (
            "",
            "other rules that match",
            *(f"  {rule_place(rule)}: {rule_gist(rule)}" for rule in others),
        )
    yield from ("", "terms", *(f"  {line}" for line in _terms(judgement)))
    yield from ("", "files", *(f"  {line}" for line in _files(found)))


def _meaning(judgement: Judgement) -> str:
    is_turned_down = judgement.action is Action.NEVER and judgement.never is Never.REJECT
    return "it is turned down at once" if is_turned_down else _MEANINGS[judgement.action]


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


def _terms(judgement: Judgement) -> Iterator[str]:
    terms = judgement.terms
    yield f"approver  {terms.approver}{', not whoever started it' if terms.not_requester else ''}"
    yield f"signed    {'yes' if terms.signed else 'no'}"
    yield f"effect    {judgement.effect}"
    yield f"expires   {'never' if judgement.expires_after is None else f'after {span(judgement.expires_after)}'}"


def _files(found: Explained) -> Iterator[str]:
    read = {source.path: source for source in found.policy.sources}
    for origin in found.origins:
        if spelled(origin.path) not in read:
            yield f"{'project' if origin.is_project else 'user':<7}  {visible(origin.path)}  is not there"
    for source in found.policy.sources:
        yield f"{source.kind:<7}  {visible(source.path)}  {_count(source)}"


def _count(source: Source) -> str:
    return f"{source.rules:,} {'rule' if source.rules == 1 else 'rules'}"


def matched(found: Explained) -> list[Rule]:
    """Return every rule that matches, whether it decides or not."""
    rules = [
        *found.explanation.tightening,
        *(rule for finding in found.explanation.findings for rule in finding.loosening),
    ]
    return list({id(rule): rule for rule in rules}.values())


# --- for machines ---------------------------------------------------------------------------------


def as_document(found: Explained) -> dict[str, object]:
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
        },
        "expires_after_ms": judgement.expires_after,
        "why": judgement.why,
        "parts": [_part(finding, found.tool) for finding in found.explanation.findings],
        "rules": [_rule(rule, judgement) for rule in matched(found)],
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


def _rule(rule: Rule, judgement: Judgement) -> dict[str, object]:
    gist = rule_gist(rule)
    decides = f"{rule_place(rule)}: {gist}" in judgement.why
    return {"file": visible(rule.source), "line": rule.line, "rule": gist, "decides": decides}
