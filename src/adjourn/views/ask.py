"""The one layout of an ask: what would run, on which terms, then the process's own words."""

from collections.abc import Iterable, Iterator
from typing import assert_never

from adjourn.core.agent.calls import files_of
from adjourn.core.ask import (
    LATER,
    NO_REASON,
    ApprovalAsk,
    Approver,
    Ask,
    AskReason,
    QuestionAsk,
    Terms,
    UncertainAsk,
    expiry_of,
)
from adjourn.core.call import COMMAND, Call, arguments_of, command_of, digest_of
from adjourn.core.diffstat import diffstat_lines
from adjourn.core.edit.edit import difference
from adjourn.core.policy.commands import steps_of
from adjourn.core.policy.judgement import SAYS_NEVER
from adjourn.core.policy.locations import uncovered
from adjourn.core.policy.surroundings import unpinned
from adjourn.core.scene import Scene
from adjourn.core.text.render import WHOLE, Cut, prose, visible
from adjourn.core.text.when import ago, span, stamp
from adjourn.views.block import AgentWords, Block, Role, Span, line, lines, state_role
from adjourn.views.call import call_blocks

_INDENT = "  "
_MARGIN = 4  # columns that an agent's words leave free
_MOST_LINES = 40  # of what differs between two calls
_NEVER_COVERED = (
    "files that its program opens itself",
    "directory contents",
    "its environment",
    "the network",
)


def ask_blocks(ask: Ask, scene: Scene, *, now: int, cut: Cut) -> list[Block]:
    """Lay out one ask: what would run, byte for byte, on which terms, and the agent's own words."""
    blocks: list[Block] = [
        line(
            Span(ask.kind, state_role(ask.kind)),
            " ",
            Span(ask.id, "id"),
            f"  {ago(ask.created_at, now=now)}",
        )
    ]
    call = scene.call_of(ask)
    if call is not None:
        blocks += _why_blocks(scene.why.get(ask.id, NO_REASON), cut=cut)
        blocks += call_blocks(call, cut=cut)
    match ask:
        case ApprovalAsk():
            blocks += lines(_details(ask, scene, now=now), indent=_INDENT)
            if ask.replaces:
                blocks += _replaced_blocks(ask, scene, cut=cut)
            if ask.manifest:
                blocks += [line(f"{_INDENT}in its own words:"), _words(ask.manifest, cut)]
        case QuestionAsk():
            # A review is asked by adjourn itself
            blocks.append(
                line(f"{_INDENT}{prose(ask.prompt)}") if ask.review else _words(ask.prompt, cut)
            )
            if ask.choices:
                choices = " | ".join(visible(choice) for choice in ask.choices)
                blocks.append(line(f"{_INDENT}choose: {choices}"))
            blocks += lines(_details(ask, scene, now=now), indent=_INDENT)
            if ask.review and scene.changes:
                blocks += lines(diffstat_lines(scene.changes), indent=_INDENT)
        case UncertainAsk():
            if call is not None:
                blocks.append(line(f"{_INDENT}{prose(ask.prompt)}"))
            blocks += lines(_details(ask, scene, now=now), indent=_INDENT)
        case _:
            assert_never(ask)
    return blocks


def _why_blocks(why: AskReason, *, cut: Cut) -> Iterator[Block]:
    """Lay out why a person is asked: before all else, what a rule says or what the program did."""
    for number, reason in enumerate(why.reasons):
        role: Role = "danger" if not number and reason.startswith(SAYS_NEVER) else "plain"
        yield line(_INDENT, Span(prose(reason), role))
    if why.last_lines:
        yield line(f"{_INDENT}its last lines:")
        yield _words(why.last_lines, cut)


def edit_blocks(call: Call, original: bytes, *, cut: Cut) -> list[Block]:
    """Lay out how a call differs from what was asked for."""
    head = line(f"    edited from sha256 {digest_of(original)[:16]}:")
    changes = difference(call.tool, original, call.body)
    return [head, *difference_blocks(changes, indent="      ", cut=cut)]


def difference_blocks(changes: list[str], *, indent: str, cut: Cut) -> list[Block]:
    """Lay out the lines that two calls differ in, and say how many are left out."""
    shown = changes if cut == WHOLE else changes[:_MOST_LINES]
    blocks: list[Block] = [line(indent, Span(text, _role_of_change(text))) for text in shown]
    if rest := len(changes) - len(shown):
        blocks.append(line(f"{indent}… {rest:,} more lines; {cut.rest}"))
    return blocks


def terms_lines(terms: Terms) -> Iterator[str]:
    """Say what an approval needs to count."""
    needs = [
        words
        for words, is_needed in (
            ("a human", terms.approver is Approver.HUMAN),
            ("somebody else than who started the task", terms.not_requester),
            ("a signature (approve --sign KEY)", terms.signed),
            ("a reason to override your policy (approve --override REASON)", terms.override),
            ("to be named (--approve-all does not cover it)", terms.by_name and not terms.override),
        )
        if is_needed
    ]
    if needs:
        yield f"an approval needs {', '.join(needs)}"


def _words(text: str, cut: Cut) -> AgentWords:
    return AgentWords(text=text, cut=cut, indent=_INDENT, margin=_MARGIN)


def _details(ask: Ask, scene: Scene, *, now: int) -> Iterator[str]:
    """Say all that there is to know of an open ask, a line for each thing."""
    if isinstance(ask, ApprovalAsk) and ask.gate:
        yield "nothing has run yet: it asks whether this command may start"
    if call := scene.call_of(ask):
        yield from _limits_of_approval(call, workspace=scene.task.spec.workspace)
    if isinstance(ask, ApprovalAsk):
        yield from terms_lines(ask.terms)
    if (end := expiry_of(ask)) is not None:
        when = f"in {span(end - now)}" if end > now else "now"
        yield f"expires {when}, at {stamp(end)}: expired is rejected"
    if ask.is_snoozed(now) and ask.snoozed_until is not None:
        yield f"snoozed until {stamp(ask.snoozed_until)}"
    if isinstance(ask, ApprovalAsk) and ask.replaces:
        if ask.prompt.startswith(LATER):
            yield LATER
        yield f"replaces ask {visible(ask.replaces)}, which was withdrawn"


def _limits_of_approval(call: Call, *, workspace: str) -> Iterator[str]:
    """Say what an approval of a call does not hold fast."""
    arguments = arguments_of(call.body)
    files = command_of(call.body).files if call.tool == COMMAND else files_of(call.body)
    if left := unpinned(files):
        yield (
            f"not pinned: {', '.join(map(visible, left))}: checked right before the start, then"
            " opened again by path; who can write there can swap it in between"
        )
    missing = uncovered(call.tool, arguments, workspace=workspace)
    if missing or (files and steps_of(call.tool, arguments)):
        yield f"Not covered by this approval: {', '.join((*missing, *_NEVER_COVERED))}"


def _replaced_blocks(ask: ApprovalAsk, scene: Scene, *, cut: Cut) -> Iterable[Block]:
    """Lay out how the call of an ask differs from the one that was asked about before."""
    old, new = scene.replaced.get(ask.id), scene.calls.get(ask.call)
    if old is None or new is None:
        return []
    if old.tool != new.tool:
        return [line(f"    the tool was {visible(old.tool)}")]
    changes = difference(new.tool, old.body, new.body)
    return difference_blocks(changes, indent="    ", cut=cut) or [
        line("    the call is the same; its terms are stricter")
    ]


def _role_of_change(text: str) -> Role:
    match text[:2]:
        case "+ ":
            return "added"
        case "- ":
            return "removed"
        case _:
            return "plain"
