"""What a run's record says over the life of its task, on every store."""

from adjourn.core.ask import Reply, Verb
from adjourn.core.documents import run_doc
from adjourn.core.states import TaskState
from adjourn.core.task import RunState, Task
from tests.contract.office import ASKS_90, FAILED, INTERRUPTED, ME, Office


def states(office: Office, task: Task) -> list[str]:
    return [run.state.value for run in office.runs(task)]


def kin(office: Office, task: Task) -> list[tuple[int | None, int | None, int | None]]:
    return [(run.resumed_from, run.restart_of, run.superseded_by) for run in office.runs(task)]


def restarted(office: Office, task: Task) -> Task:
    return office.controller.tasks.restart(task.id, by=ME, workspace=task.spec.workspace)


def test_a_task_that_is_paused_resumed_waits_goes_on_and_is_restarted_has_its_lineage(
    office: Office,
) -> None:
    """D-R34, D-R40, D-R44: running to paused, paused to running, running to waiting, waiting to running, running to failed."""
    task = office.run(office.start(), INTERRUPTED)
    task = office.run(office.controller.tasks.resume(task.id, by=ME), ASKS_90)
    office.controller.decisions.decide(
        [Reply(ask_id=office.open_ask(task).id, verb=Verb.APPROVE)], by=ME
    )
    task = office.run(office.controller.decisions.find_task(task.id), FAILED)
    task = office.run(restarted(office, task))
    assert states(office, task) == ["paused", "waiting", "failed", "succeeded"]
    assert kin(office, task) == [(None, None, None), (1, None, None), (2, None, 4), (None, 3, None)]


def test_a_paused_run_that_is_restarted_stays_paused_and_is_superseded(office: Office) -> None:
    """D-R32, D-R40, D-R44, D-R65"""
    task = office.run(office.start(), INTERRUPTED)
    task = office.run(restarted(office, task), INTERRUPTED)
    one, two = office.runs(task)
    assert (one.state, one.superseded_by, two.restart_of) == (RunState.PAUSED, 2, 1)
    docs = [run_doc(task, run) for run in (one, two)]
    assert [doc.resumable for doc in docs] == [False, True]
    assert docs[0].superseded_by_run_id == docs[1].run_id


def test_a_resume_is_by_whoever_started_it(office: Office) -> None:
    """D-R20: the runner of a task is part of what it is; a resume has no word for another one."""
    task = office.run(office.start(), INTERRUPTED)
    resumed = office.controller.tasks.resume(task.id, by=ME)
    assert resumed.spec == task.spec
    again = office.run(resumed, INTERRUPTED)
    assert restarted(office, again).spec.runner == task.spec.runner


def test_a_run_that_never_started_is_a_run_of_its_own(office: Office) -> None:
    task = office.start()
    claimed = office.claim(task)
    returned = office.controller.runs.release(
        claimed.run, why="its supervisor died before the gate opened"
    )
    assert returned.state is TaskState.QUEUED
    task = office.run(returned)
    assert states(office, task) == ["failed", "succeeded"]
    assert kin(office, task)[1] == (1, None, None)
