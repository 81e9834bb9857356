"""What agents call needs a reason to start, too.

Beside the built-in agent, and where Claude Code and Codex are answered.
"""

import msgspec
import pytest

from adjourn.core.ask import Verb
from adjourn.core.call import Call
from adjourn.core.errors import AlreadyDone
from adjourn.core.states import AskState, CallState, TaskState
from adjourn.core.task import Run, Task
from adjourn.ports.world import StartMark
from adjourn.testing.values import settled
from tests.contract.conftest import office, open_store, store
from tests.contract.office import Office
from tests.contract.test_driving import begun, wanted
from tests.stateful.world import Process, shim_of

__all__ = ["office", "open_store", "store"]

Proposed = tuple[Task, Run, Call]


@pytest.fixture(params=["agent", "claude", "codex"])
def runner(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def proposed(office: Office, runner: str, *, asks: bool = True) -> Proposed:
    """Return a call of an agent that waits for a person, or was let through because nobody wants to be asked."""
    task, run = begun(office, asks=asks, runner=runner)
    (held,) = office.controller.agents.propose_batch(run.id, [wanted()])
    assert held.call is not None
    return task, run, held.call


def let_go(office: Office, run: Run, call: Call, runner: str) -> Call | None:
    """Have a call start, by the way of its runner; None if it does not."""
    if runner != "agent":
        return office.controller.agents.hand_out(run.id, call)
    claimed = office.controller.agents.claim_call(run, call)
    return (
        office.controller.agents.execute_call(run, claimed, shim=shim_of(run.id))
        if claimed
        else None
    )


def forged(office: Office, call: Call, **changes: object) -> Call:
    """Write over a call past the controller."""
    with office.controller.store.change() as tx:
        current = tx.call(call.task_id, call.number)
        new = msgspec.structs.replace(current, version=current.version + 1, **changes)
        tx.save_call(current, new)
    return new


def asked_why(office: Office, task: Task) -> str:
    with office.controller.store.read() as view:
        return " ".join(ask.prompt for ask in view.open_asks_of(task.id))


def test_a_call_without_its_ask_does_not_start(office: Office, runner: str) -> None:
    task, run, call = proposed(office, runner)
    call = forged(office, call, state=CallState.APPROVED, ask=None)
    assert let_go(office, run, call, runner) is None
    assert "the audit trail has no such call" in asked_why(office, task)


def test_an_approval_of_which_the_trail_does_not_tell_starts_nothing(
    office: Office, runner: str
) -> None:
    task, run, call = proposed(office, runner)
    with office.controller.store.change() as tx:
        ask = tx.open_asks_of(task.id)[0]
        approved = settled(ask, AskState.APPROVED, by="uid:1000", at=1, level="L0")
        tx.save_ask(ask, approved)
    call = forged(office, call, state=CallState.APPROVED)
    assert let_go(office, run, call, runner) is None
    assert "the audit trail has no approval of it" in asked_why(office, task)


def test_an_approval_that_is_told_starts_it_once(office: Office, runner: str) -> None:
    task, run, call = proposed(office, runner)
    office.reply(office.open_ask(task), Verb.APPROVE)
    with office.controller.store.read() as view:
        call = view.call(task.id, call.number)
    assert let_go(office, run, call, runner) is not None
    call = forged(office, call, state=CallState.APPROVED, claimed_by=None, shim=None)
    assert let_go(office, run, call, runner) is None
    assert "it was started before" in asked_why(office, task)


def test_what_changed_between_claim_and_start_does_not_start(office: Office) -> None:
    task, run, call = proposed(office, "agent")
    office.reply(office.open_ask(task), Verb.APPROVE)
    with office.controller.store.read() as view:
        approved = view.call(task.id, call.number)
    claimed = office.controller.agents.claim_call(run, approved)
    assert claimed is not None
    forged(office, claimed, ask=None)
    assert office.controller.agents.execute_call(run, claimed, shim=shim_of(run.id)) is None
    assert "the audit trail has no such call" in asked_why(office, task)


def test_a_call_that_this_machine_has_marked_as_started_is_uncertain(
    office: Office, runner: str
) -> None:
    """The store was set back, and does not tell of the start; the mark beside it does."""
    task, run, call = proposed(office, runner)
    office.reply(office.open_ask(task), Verb.APPROVE)
    with office.controller.store.read() as view:
        call = view.call(task.id, call.number)
    place = f"{call.id}.1" if runner == "agent" else f"{task.id}.7"
    office.processes.marks[call.id] = StartMark(place=place, digest=call.digest[:16])
    lost = office.processes.of_run[place] = Process(run, call)
    lost.open_gate()
    lost.vanish()
    if runner == "agent":
        assert let_go(office, run, call, runner) is None
    else:
        with pytest.raises(AlreadyDone):
            let_go(office, run, call, runner)
    with office.controller.store.read() as view:
        assert view.call(task.id, call.number).state is CallState.UNCERTAIN


def test_a_command_without_its_ask_does_not_start(office: Office) -> None:
    task = office.start(pause_on_approval=True)
    with office.controller.store.read() as view:
        call = view.call(task.id, 1)
    forged(office, call, state=CallState.APPROVED, ask=None)
    with office.controller.store.change() as tx:
        current = tx.task(task.id)
        queued = {"state": TaskState.QUEUED, "next_call": 1, "version": current.version + 1}
        tx.save_task(current, msgspec.structs.replace(current, **queued))
    stopped = office.controller.runs.claim(task.id, supervisor="anna-0")
    assert isinstance(stopped, Task)
    assert stopped.state is TaskState.WAITING
    assert "the audit trail has no such call" in asked_why(office, task)


def test_a_command_that_changed_after_its_claim_does_not_start(office: Office) -> None:
    task = office.start(pause_on_approval=True)
    office.reply(office.open_ask(task), Verb.APPROVE)
    claimed = office.claim(office.task(task.id))
    forged(office, claimed.call, ask=None)
    stopped = office.controller.runs.execute(claimed.run, shim=shim_of(claimed.run.id))
    assert isinstance(stopped, Task)
    assert stopped.state is TaskState.WAITING
    assert "the audit trail has no such call" in asked_why(office, task)
