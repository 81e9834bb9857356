"""Which events are told to others, and the document that tells them."""

from enum import StrEnum

import msgspec

from adjourn.core.ask import ApprovalAsk, Ask, Verdict
from adjourn.core.documents import Manifest, manifest_of
from adjourn.core.scene import Scene
from adjourn.core.states import TaskState
from adjourn.core.task import Milliseconds
from adjourn.core.text.render import Cut, prose, title
from adjourn.core.text.when import stamp
from adjourn.core.trail.events import Event, Happened
from adjourn.views.block import (
    CUSTOMARY_COLUMNS,
    AgentWords,
    Block,
    CommandWriter,
    Line,
    Span,
    cut_of,
    line,
    to_text,
)
from adjourn.views.call import unmade_blocks, unmade_words
from adjourn.views.task import ask_blocks, resume_hint

SAMPLE = "test"  # the task of a notice that is about none
_TITLE = 200
_SHOWN = 2_000


class Occasion(StrEnum):
    """What a person or a program may want to be notified about."""

    PAUSE = "pause"
    DECISION = "decision"
    COMPLETION = "completion"
    FAILURE = "failure"
    UNCERTAIN = "uncertain"
    REMINDER = "reminder"


OCCASIONS = {
    "run_waiting": Occasion.PAUSE,
    "run_paused": Occasion.PAUSE,
    "task_paused": Occasion.PAUSE,
    "approval_given": Occasion.DECISION,
    "ask_reminded": Occasion.REMINDER,
    "ask_approved": Occasion.DECISION,
    "ask_rejected": Occasion.DECISION,
    "ask_answered": Occasion.DECISION,
    "ask_settled": Occasion.DECISION,
    "ask_expired": Occasion.DECISION,
    "run_completed": Occasion.COMPLETION,
    "run_failed": Occasion.FAILURE,
    "run_canceled": Occasion.FAILURE,
    "task_failed": Occasion.FAILURE,
    "task_refused": Occasion.FAILURE,
    "task_canceled": Occasion.FAILURE,
    "run_lost": Occasion.UNCERTAIN,
}


class Notice(Manifest, frozen=True, kw_only=True, omit_defaults=True):
    """What a notifier is told.

    How a task stands as this is sent, and the event that it is sent for.
    """

    id: str
    event: Occasion
    kind: str
    at: str
    by: str
    ask_id: str | None
    text: str


def occasion_of(event: Event) -> Occasion | None:
    """Return what an event is to those who are told, or None if it is nothing to them."""
    if event.kind == "call_settled" and event.facts.get("verdict") == Verdict.IT_RAN:
        return Occasion.COMPLETION
    if event.kind == "approval_given" and event.facts.get("number") == event.facts.get("needed"):
        return None  # it settled its ask, which is told
    return OCCASIONS.get(event.kind)


def notice_of(
    happened: Happened, scene: Scene, *, ask: Ask | None, commands: CommandWriter, now: Milliseconds
) -> Notice:
    """Make the document that leaves the store; secrets are taken out of it by the caller."""
    event = happened.event
    occasion = occasion_of(event) or Occasion.PAUSE
    hint = resume_hint(scene, commands)
    blocks = notice_blocks(event, scene, ask=ask, commands=commands, now=now)
    return Notice(
        **msgspec.structs.asdict(manifest_of(scene, hint=hint)),
        id=happened.id,
        event=occasion,
        kind=event.kind,
        at=stamp(event.at),
        by=event.by,
        ask_id=ask.id if ask else None,
        text=to_text(blocks, CUSTOMARY_COLUMNS),
    )


def sample_notice(notice_id: str, *, now: Milliseconds) -> Notice:
    """Make a notice of no task, by which somebody finds out whether a notifier works."""
    return Notice(
        outcome="completed",
        task_id=SAMPLE,
        run_id=None,
        checkpoint_id=None,
        session_id=SAMPLE,
        state=TaskState.SUCCEEDED,
        id=notice_id,
        event=Occasion.COMPLETION,
        kind="notify_test",
        at=stamp(now),
        by="adjourn",
        ask_id=None,
        text="This is a test by `adjourn notify --test`. No task has changed.",
    )


def notice_blocks(
    event: Event, scene: Scene, *, ask: Ask | None, commands: CommandWriter, now: Milliseconds
) -> list[Block]:
    """Lay out what happened, and what is asked if the task still stands where the event left it."""
    occasion = occasion_of(event) or Occasion.PAUSE
    task = scene.task
    still_stands = task.state in _STANDS[occasion] and event.facts.get("run") in {None, task.runs}
    head = "Paused"
    match occasion:
        case Occasion.PAUSE:
            pass
        case Occasion.UNCERTAIN:
            head = "Uncertain: nobody knows whether it ran"
        case Occasion.COMPLETION:
            head = "Completed"
        case Occasion.DECISION:
            reply = f": {prose(ask.reply)}" if ask and ask.reply else ""
            head = f"{event.kind.removeprefix('ask_').capitalize()} by {prose(event.by)}{reply}"
            if event.kind == "approval_given":
                person = prose(str(event.facts.get("person")))
                head = f"Approved by {person} ({prose(event.by)})"
                if isinstance(ask, ApprovalAsk) and ask.count_words:
                    head += f": {ask.count_words}"
        case Occasion.REMINDER:
            head = "Reminder: this still waits"
        case Occasion.FAILURE:
            head = "Canceled" if event.kind.endswith("canceled") else "Failed"
            if task.message and still_stands:
                head = f"{head}: {prose(task.message)}"

    is_end = occasion in {Occasion.COMPLETION, Occasion.FAILURE} and still_stands
    ended_with_unmade = is_end and bool(scene.unmade_calls)
    if ended_with_unmade:
        head = f"{head}; {unmade_words(len(scene.unmade_calls))}:"
    blocks: list[Block] = [
        line(f"{head}  (task {task.id})"),
        line(f"  {title(task.spec, columns=_TITLE)}"),
    ]
    blocks += unmade_blocks(scene.unmade_calls) if ended_with_unmade else []
    if not still_stands:
        return [*blocks, line(f"It went on since then: it is {task.state}.")]
    if occasion in {Occasion.PAUSE, Occasion.UNCERTAIN, Occasion.REMINDER}:
        cut = cut_of(task.id, commands)
        for open_ask in scene.open_asks:
            blocks += ask_blocks(open_ask, scene, now=now, cut=cut)
        blocks += [line(f"waits for task {child}") for child in scene.waiting_on]
    if occasion is Occasion.COMPLETION and task.message:
        rest = Cut(limit=_SHOWN, rest=commands("logs", task.id))
        blocks.append(AgentWords(text=task.message, cut=rest))
    if occasion in {Occasion.PAUSE, Occasion.UNCERTAIN, Occasion.FAILURE, Occasion.REMINDER}:
        hint = Span(resume_hint(scene, commands), "code")
        # A person pastes it, so it stays on one line
        blocks.append(Line((Span("Go on with: "), hint), may_break=False))
    return blocks


_STANDS = {
    Occasion.PAUSE: {TaskState.WAITING, TaskState.PAUSED},
    Occasion.UNCERTAIN: {TaskState.WAITING},
    Occasion.REMINDER: {TaskState.WAITING, TaskState.RUNNING},
    Occasion.COMPLETION: {TaskState.SUCCEEDED},
    Occasion.FAILURE: {TaskState.FAILED, TaskState.CANCELED},
    Occasion.DECISION: set(TaskState),
}
