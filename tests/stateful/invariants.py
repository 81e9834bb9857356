"""What is true after every step, whatever the steps were."""

from itertools import pairwise

from adjourn.core.ask import Ask, AskKind, QuestionAsk, number_of_call
from adjourn.core.call import Call
from adjourn.core.states import ENDED, AskState, CallState, TaskState
from adjourn.core.task import Run, RunState, Task, run_id
from adjourn.core.trail.events import first_broken
from tests.stateful.world import Rows

UNDER_WAY = {CallState.CLAIMED, CallState.EXECUTING}
LEFT = {RunState.WAITING, RunState.PAUSED}


def check(rows: Rows) -> None:
    """Look at everything."""
    assert first_broken(rows.trail) is None
    assert (
        rows.inbox_size
        == len(rows.inbox)
        == sum(ask.is_open for asks in rows.asks.values() for ask in asks)
    )
    for task in rows.tasks:
        _check_task(task, rows)
        _check_calls(task, rows.calls[task.id], rows.asks[task.id])
        _check_asks(task, rows.asks[task.id])
        _check_runs(task, rows.runs[task.id])


def _check_task(task: Task, rows: Rows) -> None:
    open_asks = [ask for ask in rows.asks[task.id] if ask.is_open]
    states = [call.state for call in rows.calls[task.id]]
    assert not open_asks or task.state in {TaskState.WAITING, TaskState.RUNNING}, (
        "only those who wait or run have open asks"
    )
    assert sum(state in UNDER_WAY for state in states) == (task.state is TaskState.RUNNING), (
        "one call at a time, while it runs"
    )
    assert (task.wish is None) or task.state is TaskState.RUNNING
    assert rows.events[task.id][0].kind == "task_created"
    match task.state:
        case TaskState.QUEUED:
            assert states[(task.next_call or 0) - 1] is CallState.APPROVED, (
                "what is queued has been approved"
            )
        case TaskState.WAITING:
            assert open_asks or _open_children(task, rows), "nobody waits for nothing"
        case TaskState.SUCCEEDED | TaskState.FAILED | TaskState.CANCELED:
            assert not {CallState.PENDING, CallState.APPROVED, CallState.UNCERTAIN} & set(states)
        case TaskState.RUNNING | TaskState.PAUSED:
            assert CallState.PENDING not in states


def _open_children(task: Task, rows: Rows) -> list[str]:
    unfinished = {other.id for other in rows.tasks if other.state not in ENDED}
    return [name for name in rows.left_open[run_id(task.id, task.runs)] if name in unfinished]


def _check_calls(task: Task, calls: list[Call], asks: list[Ask]) -> None:
    assert [call.number for call in calls] == list(range(1, task.calls + 1))
    assert sum(call.state is CallState.APPROVED for call in calls) <= 1
    open_asks = {(ask.kind, number_of_call(ask)) for ask in asks if ask.is_open}
    for call in calls:
        assert ((AskKind.APPROVAL, call.number) in open_asks) == (call.state is CallState.PENDING)
        assert ((AskKind.UNCERTAIN, call.number) in open_asks) == (
            call.state is CallState.UNCERTAIN
        ), "someone can settle it"
        assert (call.claimed_by is not None) or call.state not in UNDER_WAY


def _check_asks(task: Task, asks: list[Ask]) -> None:
    assert [ask.number for ask in asks] == list(range(1, task.asks + 1))
    for ask in asks:
        assert 1 <= ask.run <= task.runs
        assert ask.is_open == (ask.settlement is None) == (ask.state is AskState.PENDING)
        assert not ask.is_open or ask.run == task.runs, "what an earlier run asked is settled"
        assert (ask.kind is AskKind.QUESTION) == (number_of_call(ask) is None)
        choices = ask.choices if isinstance(ask, QuestionAsk) else ()
        assert ask.state is not AskState.ANSWERED or not choices or ask.reply in choices


def _check_runs(task: Task, runs: list[Run]) -> None:
    """A-R53, A-R54, A-R56, D-R40, D-R44"""
    assert [run.number for run in runs] == list(range(1, task.runs + 1))
    assert [run.number for run in runs if run.state is RunState.RUNNING] == (
        [task.runs] if task.state is TaskState.RUNNING else []
    )
    checkpoints = [run.checkpoint_id for run in runs if run.checkpoint_id]
    assert len(set(checkpoints)) == len(checkpoints), "every pause makes a new checkpoint"
    for run in runs:
        assert (run.state in LEFT) == (run.paused_at is not None)
        # One that waits for other tasks only has no reason of its own
        assert (run.pause_reason is not None) == (run.state in LEFT) or (
            run.state is RunState.WAITING and not run.pause_reason
        )
        assert run.checkpoint_id or run.state not in LEFT
    for last, following in pairwise(runs):
        _check_link(last, following)


def _check_link(last: Run, following: Run) -> None:
    if last.session_id == following.session_id:
        assert (last.superseded_by, following.resumed_from, following.restart_of) == (
            None,
            last.number,
            None,
        )
    else:
        assert (last.superseded_by, following.resumed_from, following.restart_of) == (
            following.number,
            None,
            last.number,
        )
