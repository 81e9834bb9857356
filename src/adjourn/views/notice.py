"""Which events are told to others, and the document that tells them."""

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from adjourn.core.agent.calls import files_of
from adjourn.core.ask import Ask, AskKind, Verdict
from adjourn.core.call import COMMAND, Call, arguments_of, command_of
from adjourn.core.documents import Manifest, manifest_of
from adjourn.core.policy.locations import links_in
from adjourn.core.scene import Scene
from adjourn.core.states import TaskState
from adjourn.core.text.render import (
    Cut,
    agent_words,
    argv_lines,
    call_lines,
    prose,
    title,
    visible,
    wrap,
)
from adjourn.core.text.when import stamp
from adjourn.core.trail.events import Event, Happened

_TITLE = 200
_SHOWN = 2_000
_COLUMNS = 80
_GO_ON = "Go on with: "  # no line of others begins so: each has a mark or an indent


class Occasion(StrEnum):
    """What a person or a program may want to be told of."""

    PAUSE = "pause"
    DECISION = "decision"
    COMPLETION = "completion"
    FAILURE = "failure"
    UNCERTAIN = "uncertain"


OCCASIONS = {
    "run_waiting": Occasion.PAUSE,
    "run_paused": Occasion.PAUSE,
    "task_paused": Occasion.PAUSE,
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
    return OCCASIONS.get(event.kind)


def notice_of(happened: Happened, scene: Scene, *, ask: Ask | None, hint: str) -> Notice:
    """Make the copy that leaves the store.

    What must not leave it is to be taken out here, and nowhere else.
    """
    event = happened.event
    occasion = occasion_of(event) or Occasion.PAUSE
    manifest = manifest_of(scene, hint=hint)
    return Notice(
        **msgspec.structs.asdict(manifest),
        id=happened.id,
        event=occasion,
        kind=event.kind,
        at=stamp(event.at),
        by=event.by,
        ask_id=ask.id if ask else None,
        text=_text(_lines(occasion, event, scene, ask=ask, hint=hint)),
    )


# --- the text for people: all of it has gone through the renderer ---------------------------------


def _lines(
    occasion: Occasion, event: Event, scene: Scene, *, ask: Ask | None, hint: str
) -> Iterator[str]:
    yield f"{_headline(occasion, event, scene, ask=ask)}  (task {scene.task.id})"
    yield f"  {title(scene.task.spec, columns=_TITLE)}"
    if not _still_stands(occasion, event, scene):
        yield f"It went on since then: it is {scene.task.state}."
        return
    if occasion in {Occasion.PAUSE, Occasion.UNCERTAIN}:
        for open_ask in scene.open_asks:
            yield from _asked(open_ask, scene.calls.get(open_ask.call or 0))
        yield from (f"waits for task {child}" for child in scene.waiting_on)
    if occasion is Occasion.COMPLETION and scene.task.message:
        yield from agent_words(scene.task.message, cut=_cut(scene))
    if occasion in {Occasion.PAUSE, Occasion.UNCERTAIN, Occasion.FAILURE}:
        yield f"{_GO_ON}{hint}"


def _text(lines: Iterator[str]) -> str:
    """Break long lines as for a terminal, but for the command, which a person pastes."""
    return "\n".join(
        line if line.startswith(_GO_ON) else wrap(line, columns=_COLUMNS) for line in lines
    )


def _headline(occasion: Occasion, event: Event, scene: Scene, *, ask: Ask | None) -> str:
    match occasion:
        case Occasion.PAUSE:
            return "Paused"
        case Occasion.UNCERTAIN:
            return "Uncertain: nobody knows whether it ran"
        case Occasion.COMPLETION:
            return "Completed"
        case Occasion.DECISION:
            return _decision(event, ask)
        case Occasion.FAILURE:
            return _failure(event, scene)


def _decision(event: Event, ask: Ask | None) -> str:
    word = event.kind.removeprefix("ask_").capitalize()
    reply = f": {prose(ask.reply)}" if ask and ask.reply else ""
    return f"{word} by {prose(event.by)}{reply}"


def _failure(event: Event, scene: Scene) -> str:
    word = "Canceled" if event.kind.endswith("canceled") else "Failed"
    is_why = scene.task.message and _still_stands(Occasion.FAILURE, event, scene)
    return f"{word}: {prose(scene.task.message or '')}" if is_why else word


_STANDS = {
    Occasion.PAUSE: {TaskState.WAITING, TaskState.PAUSED},
    Occasion.UNCERTAIN: {TaskState.WAITING},
    Occasion.COMPLETION: {TaskState.SUCCEEDED},
    Occasion.FAILURE: {TaskState.FAILED, TaskState.CANCELED},
    Occasion.DECISION: set(TaskState),
}


def _still_stands(occasion: Occasion, event: Event, scene: Scene) -> bool:
    """Say whether the task is where the event left it."""
    return scene.task.state in _STANDS[occasion] and event.facts.get("run") in {
        None,
        scene.task.runs,
    }


def _asked(ask: Ask, call: Call | None) -> Iterator[str]:
    yield f"{ask.kind} {ask.id}"
    cut = Cut(limit=_SHOWN, rest=f"adjourn show {ask.task_id} --full")
    if call and ask.kind is not AskKind.QUESTION:
        yield from (f"  {line}" for line in _call(call, cut))
    words = ask.manifest if ask.kind is AskKind.APPROVAL else ask.prompt
    yield from (f"  {line}" for line in agent_words(words or "", cut=cut) if words)
    if ask.choices:
        yield f"  choose: {' | '.join(visible(choice) for choice in ask.choices)}"


def _call(call: Call, cut: Cut) -> Iterator[str]:
    if call.tool != COMMAND:
        yield from call_lines(call.tool, arguments_of(call.body), cut=cut)
        links = links_in(files_of(call.body))
        yield from (
            f"file {visible(path)} {visible(found)}" for path, found in sorted(links.items())
        )
        return
    command = command_of(call.body)
    yield from argv_lines(command.argv, cut=cut)
    yield f"in   {visible(command.cwd)}"
    yield from (f"with {visible(name)}={visible(value)}" for name, value in command.env.items())


def _cut(scene: Scene) -> Cut:
    return Cut(limit=_SHOWN, rest=f"adjourn logs {scene.task.id}")
