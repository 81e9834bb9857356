"""How a task stands, what it asks, and what to do next, as a person reads it."""

from adjourn.cli.hint import next_step
from adjourn.cli.present import call_block, coloured, cut_for
from adjourn.cli.session import Session
from adjourn.core.ask import Ask, AskKind
from adjourn.core.render import agent_words, prose, visible
from adjourn.core.scene import Scene
from adjourn.core.states import TaskState
from adjourn.core.when import ago


def what_is_asked(session: Session, ask: Ask, scene: Scene, *, now: int) -> list[str]:
    """Show one ask whole: what would run, byte for byte, on which terms, then the process's own words."""
    from adjourn.cli.details import details  # only where an ask is shown whole
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
                for line in agent_words(ask.manifest, columns=session.columns_for_words - 4, cut=cut_for(session, ask.task_id))
            ),
        ]
    return lines


def _question_lines(session: Session, ask: Ask) -> list[str]:
    words = [prose(ask.prompt)]  # a review is asked by adjourn itself
    if not ask.review:
        words = agent_words(ask.prompt, columns=session.columns_for_words - 4, cut=cut_for(session, ask.task_id))
    choices = [f"  choose: {' | '.join(visible(choice) for choice in ask.choices)}"] if ask.choices else []
    return [f"  {line}" for line in words] + choices


def standing(session: Session, scene: Scene, *, now: int) -> str:
    """Say how a task stands, and what to do next."""
    task = scene.task
    if task.state is TaskState.PAUSED:
        why = [f"It cannot go on for now: {prose(scene.run.message)}"] if scene.run and scene.run.message else []
        return "\n".join([*why, f"{coloured(session, 'Paused.', task.state)} " + "\n".join(next_step(session, scene))])
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
    return f"Paused: {count} {'thing' if count == 1 else 'things'} to settle" if count else "Paused: waits for another task."
