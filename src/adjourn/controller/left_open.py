"""What an agent is told about what it left open when its run ended."""

import msgspec

from adjourn.controller.transaction import (
    LEFT,
    Transaction,
    call_asked_about,
    children_left_open,
)
from adjourn.core.ask import DIGEST_KEY, Ask, QuestionAsk, is_review
from adjourn.core.call import Call
from adjourn.core.clarification import Checkpoint, read_checkpoint, resume_prompt
from adjourn.core.kept_documents import CHECKPOINT, CLARIFICATION, FOLLOW_UPS, UNTOLD
from adjourn.core.resumption import TASKS_ENDED, FollowUp
from adjourn.core.states import ENDED, AskState, TaskState
from adjourn.core.task import Run, Task
from adjourn.core.text.render import title
from adjourn.ports.store import Turn

_COLUMNS = 120


def tell_what_was_left_open(tx: Transaction, task: Task, run: Run, *, after: str) -> None:
    """Have a new run of an agent told what came of all that its tools left open.

    What they asked, as the prompt with which an agent resumes; and the tasks that they started. A
    task that is not done yet stays open in the new run.
    """
    ended: list[Task] = []
    for child in children_left_open(tx.rows, after):
        if child.state in ENDED:
            ended.append(child)
        else:
            key = f"{LEFT}{child.id}"
            tx.rows.add_turn(Turn(run_id=run.id, key=key, thing=child.id, left_open=True))
    if ended:
        add_follow_up(tx, task, "\n".join([TASKS_ENDED, "", *map(_how_it_ended, ended)]))

    asks = [tx.rows.ask(ask_id) for ask_id in UNTOLD.read(tx.rows, task.id) or ()]
    if not asks:
        return
    UNTOLD.drop(tx.rows, task.id)
    replies = [_how_it_was_settled(ask, call_asked_about(tx.rows, ask)) for ask in asks]
    # The checkpoint may be of an earlier clarification, which has nothing to do with these
    clarification = CLARIFICATION.read(tx.rows, task.id)
    is_newest = clarification and any(ask.id in clarification.asks for ask in asks)
    kept = CHECKPOINT.read(tx.rows, task.id) if is_newest else None
    try:
        checkpoint = read_checkpoint(kept) if kept else Checkpoint(agent_id=task.id)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        checkpoint = Checkpoint(agent_id=task.id)
    add_follow_up(tx, task, resume_prompt(checkpoint, "\n".join(replies)))


def add_follow_up(tx: Transaction, task: Task, text: str) -> None:
    """Add to what an agent that had left is told when it goes on, behind the reviews so far."""
    from adjourn.core.review import feedback_of  # seldom needed, and resuming is a hot path

    wishes = [
        ask
        for ask in (tx.rows.asks(task.id) if task.spec.review else ())
        if is_review(ask) and ask.state is AskState.ANSWERED and feedback_of(ask.reply)
    ]
    earlier = FOLLOW_UPS.read(tx.rows, task.id) or []
    FOLLOW_UPS.keep(tx.rows, task.id, [*earlier, FollowUp(text=text, reviews=len(wishes))])


def _how_it_was_settled(ask: Ask, call: Call | None) -> str:
    """Return one line of what a person replied to a tool of the agent."""
    if isinstance(ask, QuestionAsk):
        # A key that was not given is a digest, which says nothing to an agent
        name = f"{ask.key} ({ask.prompt})" if _is_named(ask) else ask.prompt
        if ask.answer is None:
            return f"- {name}: nobody answered; ask again if you still need to know"
        return f"- {name}: {ask.answer}"
    what = f"{call.tool} ({ask.prompt})" if call else ask.prompt
    reason = f": {ask.reply}" if ask.reply and ask.state is AskState.REJECTED else ""
    if ask.state is AskState.APPROVED:
        return f"- {what}: approved; start the program that asked again, and it makes this call"
    return f"- {what}: {ask.state}{reason}"


def _is_named(ask: QuestionAsk) -> bool:
    return ask.key is not None and not ask.key.startswith(DIGEST_KEY)


def _how_it_ended(child: Task) -> str:
    ending = "has completed" if child.state is TaskState.SUCCEEDED else f"has {child.state}"
    if child.state is TaskState.CANCELED:
        ending = "was canceled"
    words = f": {child.message}" if child.message else ""
    what = title(child.spec, columns=_COLUMNS)
    return f"- task {child.id} ({what}), which was not done when you left, {ending}{words}"
