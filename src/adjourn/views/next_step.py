"""How a task goes on: the exact next command, ready to paste."""

from typing import assert_never

from adjourn.core.ask import (
    RESUME_KEY,
    ApprovalAsk,
    Ask,
    QuestionAsk,
    UncertainAsk,
    Verdict,
    is_review,
)
from adjourn.core.documents import is_resumable
from adjourn.core.scene import Scene
from adjourn.core.states import TaskState
from adjourn.views.block import Block, Command, line
from adjourn.views.commands import CommandWriter


def resume_hint(scene: Scene, commands: CommandWriter) -> str:
    """Return one command that goes on headless, exactly as printed."""
    task, run, asks = scene.task, scene.run, scene.open_asks
    checkpoint = (run.checkpoint_id if run else None) or task.id
    match task.state:
        case TaskState.PAUSED if _can_go_on(scene):
            return commands("-c", checkpoint, *_flags(scene))
        case TaskState.QUEUED:
            return commands("resume", task.id)
        case TaskState.RUNNING:
            return commands("wait", task.id)
        case TaskState.PAUSED | TaskState.FAILED | TaskState.CANCELED | TaskState.SUCCEEDED:
            return commands("restart", task.id)
        case TaskState.WAITING:
            pass

    if any(isinstance(ask, UncertainAsk) for ask in asks):
        return commands("show", task.id)  # what became of it is for a person to say
    if approvals := [ask for ask in asks if isinstance(ask, ApprovalAsk)]:
        # An agent of others names its own calls, which are not ours
        if any(ask.key == RESUME_KEY and not ask.terms.override for ask in approvals):
            return commands("-c", checkpoint, "--approve-all")
        # What the policy never allows is not approved by pasting a hint
        flags = [
            word
            for ask in approvals
            for word in ("--reject" if ask.terms.override else "--approve", ask.tool_call_id)
        ]
        return commands("-c", checkpoint, *flags)
    questions = [ask for ask in asks if isinstance(ask, QuestionAsk)]
    if len(questions) == 1:
        return commands("-c", checkpoint, *_as_argument(_example(questions[0])))
    if questions:
        answers = [
            word for ask in questions for word in ("--answer", f"{ask.name}={_example(ask)}")
        ]
        return commands("-c", checkpoint, *answers)
    return commands("show", *(scene.waiting_on[:1] or [task.id]))


def next_step(scene: Scene, commands: CommandWriter) -> list[Block]:
    """Lay out how to go on, one command for each possibility."""
    task = scene.task
    match task.state:
        case TaskState.WAITING:
            blocks = [block for ask in scene.open_asks for block in _settling(ask, commands)]
            blocks += [
                Command("Look at it:   ", commands("show", child)) for child in scene.waiting_on
            ]
            if blocks and not any(isinstance(ask, UncertainAsk) for ask in scene.open_asks):
                # Once all is settled: with the plan where the task's own work is done
                plan = task.spec.plan if any(map(is_review, scene.open_asks)) else None
                then = ("execute", plan) if plan else ("resume", task.id)
                blocks.append(Command("Then:         ", commands(*then)))
            return blocks
        case TaskState.PAUSED:
            first: Block = (
                Command("Resume with: ", commands("resume", task.id, *_flags(scene)))
                if _can_go_on(scene)
                else line("It cannot be resumed: its agent had saved nothing yet.")
            )
            return [first, Command("Restart with: ", commands("restart", task.id))]
        case TaskState.QUEUED:
            return [Command("Start with:   ", commands("resume", task.id))]
        case TaskState.RUNNING:
            return [Command("Wait with:    ", commands("wait", task.id))]
        case TaskState.FAILED | TaskState.CANCELED:
            return [Command("Restart with: ", commands("restart", task.id))]
        case TaskState.SUCCEEDED:
            return []


def _settling(ask: Ask, commands: CommandWriter) -> list[Block]:
    """Lay out how one ask is settled."""
    match ask:
        case ApprovalAsk() if ask.terms.override:
            overriding = commands("approve", ask.id, "--override", "why it must run")
            return [
                Command("Reject with:  ", commands("reject", ask.id)),
                Command("Or override:  ", overriding),
            ]
        case ApprovalAsk():
            return [
                Command("Approve with: ", commands("approve", ask.id)),
                Command("Reject with:  ", commands("reject", ask.id)),
            ]
        case QuestionAsk():
            answer = commands("answer", ask.id, *_as_argument(_example(ask)))
            return [Command("Answer with:  ", answer)]
        case UncertainAsk():
            call = f"{ask.task_id}.{ask.tool_call_id}"
            return [
                Command("If it ran:     ", commands("settle", call, Verdict.IT_RAN)),
                Command("If it did not: ", commands("settle", call, Verdict.IT_DID_NOT)),
                Command("To run again:  ", commands("settle", call, Verdict.RUN_AGAIN)),
            ]
        case _:
            assert_never(ask)


def _can_go_on(scene: Scene) -> bool:
    """Return whether a paused task has a run to go on from."""
    return scene.run is None or is_resumable(scene.task, scene.run)


def _flags(scene: Scene) -> tuple[str, ...]:
    """Return the options with which a paused task gets past the limit that stopped it."""
    return scene.report.resume_with if scene.report else ()


def _example(ask: QuestionAsk) -> str:
    return ask.choices[0] if ask.choices else "your answer"


def _as_argument(text: str) -> tuple[str, ...]:
    """Keep a text from being taken for an option."""
    return ("--", text) if text.startswith("-") else (text,)
