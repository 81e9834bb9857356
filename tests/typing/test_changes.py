"""Both type checkers find a misspelt field, or one of another type, where a record is changed.

Each `ignore` below hides an error that must be there: both complain about a needless one.
"""
# pyright: strict, reportUnnecessaryTypeIgnoreComment=true

from typing import get_type_hints

import msgspec
import pytest

from adjourn.controller.changes import AskChanges, CallChanges, RunChanges, TaskChanges
from adjourn.controller.transaction import Transaction
from adjourn.core.ask import ApprovalAsk, Ask
from adjourn.core.call import Call
from adjourn.core.states import CallMove, TaskState
from adjourn.core.task import Run, Task


def as_the_controller_writes_it(
    tx: Transaction, task: Task, run: Run, call: Call, ask: Ask
) -> None:
    """Change every kind of record, rightly and wrongly."""
    tx.save(task, state=TaskState.QUEUED, next_call=None)
    tx.save(task, stat=TaskState.QUEUED)  # type: ignore[call-arg]  # no such field
    tx.save(task, state="queued")  # type: ignore[arg-type]  # of another type
    tx.save_run(run, exit_code=0)
    tx.save_run(run, exitcode=0)  # type: ignore[call-arg]  # no such field
    tx.save_call(call, claimed_by=None)
    tx.move(call, CallMove.CLAIM, claimed="anna")  # type: ignore[call-arg]  # no such field
    tx.move_call("t", 1, CallMove.CLAIM, claimed_by=1)  # type: ignore[arg-type]  # of another type
    tx.save_ask(ask, snoozed_until=None)
    tx.save_ask(ask, snoozed=None)  # type: ignore[call-arg]  # no such field


@pytest.mark.parametrize(
    ("changes", "record"),
    [(TaskChanges, Task), (RunChanges, Run), (CallChanges, Call), (AskChanges, ApprovalAsk)],
)
def test_what_may_change_is_a_field_of_its_record(
    changes: type, record: type[msgspec.Struct]
) -> None:
    fields = get_type_hints(record)
    assert get_type_hints(changes).items() <= fields.items()
