"""What a person should know of an ask beside the call itself: its terms, its files, what it replaces, and how it was settled."""

from collections.abc import Iterator

from adjourn.cli.program import command
from adjourn.cli.session import Session
from adjourn.core.ask import Ask
from adjourn.core.call import COMMAND, Call, arguments_of, command_of, digest_of
from adjourn.core.driving import files_of
from adjourn.core.edit import difference
from adjourn.core.reading import steps_of
from adjourn.core.render import prose, visible
from adjourn.core.scene import Scene
from adjourn.core.surroundings import unpinned
from adjourn.core.terms import Approver, Terms
from adjourn.core.when import span, stamp
from adjourn.core.whereabouts import uncovered

_MOST_LINES = 40


def details(session: Session, ask: Ask, scene: Scene, *, now: int) -> list[str]:
    """Say all that there is to know of an open ask, a line for each thing."""
    lines = [*_start_lines(ask, scene), *terms_lines(ask.terms), *_time_lines(ask, now=now)]
    if ask.replaces:
        from adjourn.controller.restored import LATER  # seldom: most asks replace none

        lines += [LATER] if ask.prompt.startswith(LATER) else []
        lines += [f"replaces ask {visible(ask.replaces)}, which was withdrawn", *_replaced_lines(session, ask, scene)]
    return [f"  {line}" for line in lines]


def _start_lines(ask: Ask, scene: Scene) -> Iterator[str]:
    if ask.gate:
        yield "nothing has run yet: it asks whether this command may start"
    call = scene.calls.get(ask.call or 0)
    if call is None:
        return
    arguments = arguments_of(call.body)
    files = command_of(call.body).files if call.tool == COMMAND else files_of(call.body)
    if left := unpinned(files):
        yield (
            f"not pinned: {', '.join(map(visible, left))}: checked right before the start, then opened again by path;"
            " who can write there can swap it in between"
        )
    missing = uncovered(call.tool, arguments, workspace=scene.task.spec.workspace)
    if missing or (files and steps_of(call.tool, arguments)):
        always = ("files that its program opens itself", "directory contents", "its environment", "the network")
        yield f"Not covered by this approval: {', '.join((*missing, *always))}"


def terms_lines(terms: Terms) -> Iterator[str]:
    """Say what an approval needs to count."""
    needs = [
        words
        for words, is_needed in (
            ("a human", terms.approver is Approver.HUMAN),
            ("somebody else than who started the task", terms.not_requester),
            ("a signature (approve --sign KEY)", terms.signed),
            ("to be named (--approve-all does not cover it)", terms.by_name),
        )
        if is_needed
    ]
    if needs:
        yield f"an approval needs {', '.join(needs)}"


def _time_lines(ask: Ask, *, now: int) -> Iterator[str]:
    if ask.expires_at is not None:
        when = f"in {span(ask.expires_at - now)}" if ask.expires_at > now else "now"
        yield f"expires {when}, at {stamp(ask.expires_at)}: expired is rejected"
    if ask.is_snoozed(now) and ask.snoozed_until is not None:
        yield f"snoozed until {stamp(ask.snoozed_until)}"


def _replaced_lines(session: Session, ask: Ask, scene: Scene) -> list[str]:
    old, new = scene.replaced.get(ask.id), scene.calls.get(ask.call or 0)
    if old is None or new is None:
        return []
    if old.tool != new.tool:
        return [f"  the tool was {visible(old.tool)}"]
    return _limited(session, difference(new.tool, old.body, new.body), new) or ["  the call is the same; its terms are stricter"]


def _limited(session: Session, lines: list[str], call: Call) -> list[str]:
    """Indent lines, and cut them where somebody does not want them all."""
    shown = lines[:_MOST_LINES] if session.cuts else lines
    rest = len(lines) - len(shown)
    more = [f"  … {rest:,} more lines; {command(session, 'show', call.task_id, '--full')}"] if rest else []
    return [f"  {line}" for line in shown] + more


def edit_block(session: Session, call: Call, original: bytes) -> list[str]:
    """Show how a call differs from what was asked for."""
    head = f"    edited from sha256 {digest_of(original)[:16]}:"
    return [head, *(f"    {line}" for line in _limited(session, difference(call.tool, original, call.body), call))]


def settled_block(session: Session, scene: Scene) -> list[str]:
    """Show how the asks of the last run were settled: by whom, how far that is to be trusted, and what was changed."""
    lines: list[str] = []
    for ask in scene.asks:
        if ask.is_open:
            continue
        level = f" ({ask.level})" if ask.level else ""
        said = f": {prose(ask.reply)}" if ask.reply else ""
        lines.append(f"  {ask.kind} {ask.id} was {ask.state} by {prose(ask.settled_by or 'adjourn')}{level}{said}")
        call = scene.calls.get(ask.call or 0)
        original = scene.originals.get(ask.call or 0)
        if call and original:
            lines += edit_block(session, call, original)
    return ["settled", *lines] if lines else []
