"""The one layout of a task: how it stands, what it asks, what to do next, and what it is."""

from collections.abc import Container, Sequence

from adjourn.core.agent.calls import Report
from adjourn.core.call import Call
from adjourn.core.scene import Scene
from adjourn.core.states import TaskState
from adjourn.core.text.render import Cut, argv_lines, prose, shortened, visible
from adjourn.core.text.when import stamp
from adjourn.core.trail.events import Event
from adjourn.views.agent import usage_words
from adjourn.views.ask import ask_blocks, edit_blocks
from adjourn.views.block import BLANK, Block, Code, Command, Fields, Line, Span, line, state_role
from adjourn.views.call import call_blocks, unmade_blocks, unmade_words
from adjourn.views.commands import CommandWriter
from adjourn.views.next_step import next_step

_RECENT = 12  # events
_HEADLINES = {
    TaskState.SUCCEEDED: "Completed.",
    TaskState.CANCELED: "Canceled.",
    TaskState.QUEUED: "Queued: it has not started.",
    TaskState.RUNNING: "Running.",
}


def task_blocks(scene: Scene, commands: CommandWriter, *, now: int, cut: Cut) -> list[Block]:
    """Lay out how a task stands, and what to do next."""
    task = scene.task
    blocks: list[Block] = []
    if task.state is TaskState.PAUSED:
        if scene.run and scene.run.message:
            blocks.append(line(f"It cannot go on for now: {prose(scene.run.message)}"))
        before = (Span("Paused.", state_role(task.state)), Span(" "))
        match next_step(scene, commands):
            case [Command(head, command), *rest]:
                return [*blocks, Command(head, command, before), *rest]
            case [Line(spans), *rest]:
                return [*blocks, Line((*before, *spans)), *rest]
            case _:
                return [*blocks, Line(before)]

    headline = Span(_headline(scene), state_role(task.state))
    blocks.append(line(headline, "  (task ", Span(task.id, "id"), ")"))
    blocks += unmade_blocks(scene.unmade_calls)
    if task.state is TaskState.WAITING:
        for ask in scene.open_asks:
            blocks += [BLANK, *ask_blocks(ask, scene, now=now, cut=cut)]
        blocks += [line("waits for task ", Span(child, "id")) for child in scene.waiting_on]
    following = next_step(scene, commands)
    return [*blocks, BLANK, *following] if following else blocks


def _headline(scene: Scene) -> str:
    unmade = unmade_words(len(scene.unmade_calls)) if scene.unmade_calls else ""
    if scene.task.state is TaskState.FAILED:
        why = prose(scene.task.message or "for no known reason")
        return f"Failed: {why}; {unmade}:" if unmade else f"Failed: {why}"
    if scene.task.state is TaskState.SUCCEEDED and unmade:
        return f"Completed; {unmade}:"
    if scene.task.state is not TaskState.WAITING:
        return _HEADLINES[scene.task.state]
    if not (count := len(scene.open_asks)):
        return "Paused: waits for another task."
    return f"Paused: {count} {'thing' if count == 1 else 'things'} to settle"


def work_blocks(scene: Scene, *, cut: Cut) -> list[Block]:
    """Lay out what a task is: its command or prompt, where it runs, and what it used."""
    spec = scene.task.spec
    if spec.prompt is None:
        head, code = "command", argv_lines(spec.argv, cut=cut)
    else:
        head, code = f"prompt for {spec.runner}", [shortened(spec.prompt, cut=cut)]
    blocks: list[Block] = [
        line(head),
        Code(lines=tuple(code), indent="  "),
        Fields(entries=(("in", Span(visible(spec.workspace), "code")),), width=4, indent="  "),
    ]
    if scene.report:
        blocks.append(line(_used(scene.report)))
    if scene.run and scene.run.checkpoint_id:
        blocks.append(line(f"checkpoint {scene.run.checkpoint_id}"))
    if spec.plan:
        blocks.append(line(f"{spec.item} of the plan {visible(spec.plan)}"))
    if spec.parent_run:
        blocks.append(line(f"started by run {spec.parent_run}"))
    return blocks


def _used(report: Report) -> str:
    """Say what the newest run used, and what all did if there were others."""
    overall = report.task or report.spent
    together = f"; all runs together {usage_words(overall)}" if overall != report.spent else ""
    return f"used {usage_words(report.spent)}{together}"


def settled_blocks(scene: Scene, *, cut: Cut) -> list[Block]:
    """Lay out how the asks of the last run were settled: by whom, at which level, as what."""
    blocks: list[Block] = []
    for ask in scene.asks:
        settled = ask.settlement
        if settled is None:
            continue
        level = f" ({settled.level})" if settled.level else ""
        reply = f": {prose(settled.reply)}" if settled.reply else ""
        by = prose(settled.by)
        blocks.append(line(f"  {ask.kind} {ask.id} was {settled.state} by {by}{level}{reply}"))
        call, original = scene.call_of(ask), scene.original_of(ask)
        if call and original:
            blocks += edit_blocks(call, original, cut=cut)
    return [line("settled"), *blocks] if blocks else []


def all_calls(
    calls: Sequence[tuple[Call, bytes | None]], *, not_made: Container[int], cut: Cut
) -> list[Block]:
    """Lay out all calls of a task, each with what it was before somebody edited it."""
    blocks: list[Block] = [line("calls")]
    for call, original in calls:
        blocks += call_blocks(call, cut=cut)
        if original is not None:
            blocks += edit_blocks(call, original, cut=cut)
        fate = "never made, although it was approved" if call.number in not_made else call.state
        blocks.append(Fields(entries=(("is", Span(fate)),), width=4, indent="    "))
    return blocks


def history_blocks(events: Sequence[Event], *, shows_all: bool) -> list[Block]:
    """Lay out what happened to a task, the newest last."""
    shown = events if shows_all else events[-_RECENT:]
    left_out = len(events) - len(shown)
    blocks: list[Block] = [
        line(f"history ({left_out} earlier left out; --full shows all)" if left_out else "history")
    ]
    for event in shown:
        facts = ", ".join(f"{name} {prose(str(fact))}" for name, fact in event.facts.items())
        what = f"{event.kind.replace('_', ' ')}{f'  ({facts})' if facts else ''}"
        blocks.append(line(f"  {stamp(event.at)}  {event.by:<10} {what}"))
    return blocks
