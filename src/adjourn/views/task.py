"""How a task stands, what it asks, and what to do next, as a person reads it."""

from collections.abc import Iterator

from adjourn.cli.session import Session
from adjourn.core.agent.calls import files_of
from adjourn.core.ask import Approver, Ask, AskKind, Terms
from adjourn.core.call import COMMAND, Call, arguments_of, command_of, digest_of
from adjourn.core.edit.edit import difference
from adjourn.core.policy.commands import steps_of
from adjourn.core.policy.locations import uncovered
from adjourn.core.policy.surroundings import unpinned
from adjourn.core.scene import Scene
from adjourn.core.states import TaskState
from adjourn.core.text.render import agent_words, prose, visible
from adjourn.core.text.when import ago, span, stamp
from adjourn.views.call import call_block, coloured, cut_for
from adjourn.views.next_step import command, next_step


def what_is_asked(session: Session, ask: Ask, scene: Scene, *, now: int) -> list[str]:
    """Show one ask whole: what would run, byte for byte, on which terms, then the process's own words."""
    # only where an ask is shown whole
    from adjourn.core.diffstat import diffstat_lines

    call = scene.calls.get(ask.call or 0)
    kind = coloured(session, ask.kind, ask.kind)
    lines = [f"{kind} {ask.id}  {ago(ask.created_at, now=now)}"]
    if ask.kind is AskKind.QUESTION:
        lines += _question_lines(session, ask)
    elif call is not None:
        lines += call_block(session, call)
        if ask.kind is AskKind.UNCERTAIN:
            lines.append(f"  {prose(ask.prompt)}")
    lines += details(session, ask, scene, now=now)
    if ask.review and scene.changes:
        lines += [f"  {line}" for line in diffstat_lines(scene.changes)]
    if ask.manifest:
        lines += [
            "  in its own words:",
            *(
                f"  {line}"
                for line in agent_words(
                    ask.manifest,
                    columns=session.columns_for_words - 4,
                    cut=cut_for(session, ask.task_id),
                )
            ),
        ]
    return lines


def _question_lines(session: Session, ask: Ask) -> list[str]:
    words = [prose(ask.prompt)]  # a review is asked by adjourn itself
    if not ask.review:
        words = agent_words(
            ask.prompt, columns=session.columns_for_words - 4, cut=cut_for(session, ask.task_id)
        )
    choices = (
        [f"  choose: {' | '.join(visible(choice) for choice in ask.choices)}"]
        if ask.choices
        else []
    )
    return [f"  {line}" for line in words] + choices


def standing(session: Session, scene: Scene, *, now: int) -> str:
    """Say how a task stands, and what to do next."""
    task = scene.task
    if task.state is TaskState.PAUSED:
        why = (
            [f"It cannot go on for now: {prose(scene.run.message)}"]
            if scene.run and scene.run.message
            else []
        )
        return "\n".join(
            [
                *why,
                f"{coloured(session, 'Paused.', task.state)} "
                + "\n".join(next_step(session, scene)),
            ]
        )
    lines = [f"{coloured(session, _headline(scene), task.state)}  (task {task.id})"]
    if task.state is TaskState.WAITING:
        for ask in scene.open_asks:
            lines += ["", *what_is_asked(session, ask, scene, now=now)]
        lines += [f"waits for task {child}" for child in scene.waiting_on]
    lines += ["", *next_step(session, scene)]
    return "\n".join(lines).rstrip()


_HEADLINES = {
    TaskState.SUCCEEDED: "Completed.",
    TaskState.CANCELED: "Canceled.",
    TaskState.QUEUED: "Queued: it has not started.",
    TaskState.RUNNING: "Running.",
}


def _headline(scene: Scene) -> str:
    if scene.task.state is TaskState.FAILED:
        return f"Failed: {prose(scene.task.message or 'for no known reason')}"
    if scene.task.state is not TaskState.WAITING:
        return _HEADLINES[scene.task.state]
    count = len(scene.open_asks)
    return (
        f"Paused: {count} {'thing' if count == 1 else 'things'} to settle"
        if count
        else "Paused: waits for another task."
    )


_MOST_LINES = 40


def details(session: Session, ask: Ask, scene: Scene, *, now: int) -> list[str]:
    """Say all that there is to know of an open ask, a line for each thing."""
    lines = [*_start_lines(ask, scene), *terms_lines(ask.terms), *_time_lines(ask, now=now)]
    if ask.replaces:
        from adjourn.controller.restored import LATER  # seldom: most asks replace none

        lines += [LATER] if ask.prompt.startswith(LATER) else []
        lines += [
            f"replaces ask {visible(ask.replaces)}, which was withdrawn",
            *_replaced_lines(session, ask, scene),
        ]
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
        always = (
            "files that its program opens itself",
            "directory contents",
            "its environment",
            "the network",
        )
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
    return _limited(session, difference(new.tool, old.body, new.body), new) or [
        "  the call is the same; its terms are stricter"
    ]


def _limited(session: Session, lines: list[str], call: Call) -> list[str]:
    """Indent lines, and cut them where somebody does not want them all."""
    shown = lines[:_MOST_LINES] if session.cuts else lines
    rest = len(lines) - len(shown)
    more = (
        [f"  … {rest:,} more lines; {command(session, 'show', call.task_id, '--full')}"]
        if rest
        else []
    )
    return [f"  {line}" for line in shown] + more


def edit_block(session: Session, call: Call, original: bytes) -> list[str]:
    """Show how a call differs from what was asked for."""
    head = f"    edited from sha256 {digest_of(original)[:16]}:"
    return [
        head,
        *(
            f"    {line}"
            for line in _limited(session, difference(call.tool, original, call.body), call)
        ),
    ]


def settled_block(session: Session, scene: Scene) -> list[str]:
    """Show how the asks of the last run were settled.

    By whom, how far that is to be trusted, and what was changed.
    """
    lines: list[str] = []
    for ask in scene.asks:
        if ask.is_open:
            continue
        level = f" ({ask.level})" if ask.level else ""
        said = f": {prose(ask.reply)}" if ask.reply else ""
        lines.append(
            f"  {ask.kind} {ask.id} was {ask.state} by {prose(ask.settled_by or 'adjourn')}{level}{said}"
        )
        call = scene.calls.get(ask.call or 0)
        original = scene.originals.get(ask.call or 0)
        if call and original:
            lines += edit_block(session, call, original)
    return ["settled", *lines] if lines else []
