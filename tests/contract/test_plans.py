"""What the controller promises of plans and reviews, on every store."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from adjourn.controller.runs import Claimed
from adjourn.core.ask import AskKind, QuestionAsk, Reply, Verb, number_of_call
from adjourn.core.clarification import Response, replies_to
from adjourn.core.errors import Conflict, Misuse, WorkspaceBusy
from adjourn.core.plan.plan import Item, Plan, Progress
from adjourn.core.states import AskState, TaskState
from adjourn.core.task import RunState, Spec, Task
from adjourn.system.machine import new_id
from adjourn.testing.open_stores import Open
from adjourn.testing.values import a_spec
from tests.contract.office import ASKS_90, DONE, FAILED, ME, YOU, Office

PATH = "/srv/place/plan.toml"


def item(name: str = "build", **words: object) -> Spec:
    return a_spec(plan=PATH, item=name, **words)


def begin(
    office: Office, name: str = "build", *, instead_of: str | None = None, **words: object
) -> Task:
    return office.controller.plans.begin_item(
        item(name, **words), words="as they are", by=ME, instead_of=instead_of
    )


def progress(office: Office, *names: str) -> Progress:
    plan = Plan(
        path=PATH,
        workspace="/srv/place",
        items=tuple(Item(id=name, line=1, runner="command") for name in names),
    )
    return office.controller.plans.progress(plan)


def review(office: Office, task: Task) -> QuestionAsk:
    with office.controller.store.read() as view:
        (ask,) = view.open_asks_of(task.id)
    assert isinstance(ask, QuestionAsk)
    return ask


def say(office: Office, task: Task, text: str) -> Task:
    office.controller.decisions.decide(
        [Reply(ask_id=review(office, task).id, verb=Verb.ANSWER, text=text)], by=YOU
    )
    return office.controller.decisions.find_task(task.id)


# --- items ----------------------------------------------------------------------------------------


def test_an_item_is_begun_once_however_often_it_is_begun(office: Office) -> None:
    """D-R48: the same task comes back, whatever its words are by then."""
    task = begin(office)
    assert begin(office) == task
    assert begin(office, argv=("other",)).id == task.id
    assert begin(office, "test").id != task.id


def test_an_item_that_came_to_nothing_is_begun_again_only_by_name(office: Office) -> None:
    """D-R30"""
    task = office.run(begin(office), FAILED)
    assert begin(office).id == task.id
    again = begin(office, argv=("better",), instead_of=task.id)
    assert again.id != task.id
    assert begin(office, argv=("better",)).id == again.id
    assert office.controller.decisions.find_task(task.id).state is TaskState.FAILED


def test_the_trail_says_which_plan_a_task_belongs_to(office: Office) -> None:
    task = begin(office)
    with office.controller.store.read() as view:
        created = view.events(task.id)[0]
    assert (created.kind, created.facts["plan"], created.facts["item"]) == (
        "task_created",
        PATH,
        "build",
    )


def test_of_a_plan_one_task_runs_at_a_time_in_a_workspace(office: Office) -> None:
    """D-R5, D-R6, D-R51, D-R52: whoever tries to start the second is told which one runs.

    Who would have run it at once has begun nothing; one that is queued stays so.
    """
    first = office.begin(begin(office))
    with pytest.raises(WorkspaceBusy, match=first.task.id):
        office.controller.plans.begin_item(item("test"), words="", by=ME, supervisor="bert-0")
    with office.controller.store.read() as view:
        assert view.tasks(states=(TaskState.QUEUED,), limit=9) == []
    second = begin(office, "test")
    assert second.state is TaskState.QUEUED
    with pytest.raises(WorkspaceBusy, match=first.task.id):
        office.claim(second)
    elsewhere = begin(office, "docs", workspace="/srv/elsewhere")
    assert office.claim(elsewhere).task.state is TaskState.RUNNING
    assert office.claim(office.start()).task.state is TaskState.RUNNING
    office.controller.runs.finish(first.run, DONE)
    assert office.claim(second).task.state is TaskState.RUNNING


def test_of_many_who_start_tasks_of_one_workspace_at_once_one_does(open_store: Open) -> None:
    """D-R51, D-R52: over and over, each with a store of its own."""
    offices = [Office(open_store(), new_id=new_id) for _ in range(4)]
    for number in range(20):
        tasks = [begin(offices[0], f"r{number}-{at}") for at in range(4)]
        with ThreadPoolExecutor(4) as pool:
            tried = list(pool.map(_claimed, offices, tasks))
        (winner,) = [claimed for claimed in tried if claimed]
        offices[0].controller.runs.release(winner.run, why="enough")
        for task in tasks:
            offices[0].controller.tasks.cancel(task.id, by=ME)


def test_of_many_who_begin_an_item_at_once_all_get_the_same_task(open_store: Open) -> None:
    """Over and over, each with a store of its own."""
    offices = [Office(open_store(), new_id=new_id) for _ in range(4)]
    for number in range(20):
        with ThreadPoolExecutor(4) as pool:
            begun = set(pool.map(lambda office, name=f"r{number}": begin(office, name).id, offices))
        assert len(begun) == 1


def _claimed(office: Office, task: Task) -> Claimed | None:
    try:
        return office.claim(task)
    except Conflict:
        return None


def test_a_decision_counts_also_while_another_task_of_the_plan_runs(office: Office) -> None:
    """D-R52: it is recorded, and its task is queued until the other has left."""
    waiting = office.run(begin(office), ASKS_90)
    office.begin(begin(office, "test"))
    with office.controller.store.read() as view:
        (ask,) = view.open_asks_of(waiting.id)
    office.controller.decisions.decide([Reply(ask_id=ask.id, verb=Verb.APPROVE)], by=ME)
    resumed = office.controller.tasks.resume(waiting.id, by=ME, supervisor="bert-0")
    assert resumed.state is TaskState.QUEUED


def test_a_plan_begins_anew_only_when_all_of_it_has_ended(office: Office) -> None:
    task = begin(office)
    with pytest.raises(Conflict, match="build is queued"):
        office.controller.plans.start_plan_over(PATH, by=ME)
    office.run(task)
    office.controller.plans.start_plan_over(PATH, by=ME)
    assert begin(office).id != task.id
    assert office.controller.decisions.find_task(task.id).state is TaskState.SUCCEEDED


def test_what_a_plan_has_done_it_knows_also_when_the_task_is_forgotten(office: Office) -> None:
    task = office.run(begin(office))
    office.controller.tasks.forget(task.id, by=ME)
    (stand,) = progress(office, "build").stands
    assert (stand.state, stand.task) == ("succeeded", None)


def test_how_an_item_came_to_nothing_is_not_forgotten(office: Office) -> None:
    """Else it would look as if it had never begun, or were done."""
    task = office.run(begin(office), FAILED)
    with pytest.raises(Conflict, match=f"build of plan {PATH}"):
        office.controller.tasks.forget(task.id, by=ME)
    again = begin(office, argv=("better",), instead_of=task.id)
    office.controller.tasks.forget(task.id, by=ME)
    assert begin(office, argv=("better",)).id == again.id


def test_a_plan_that_nobody_has_begun_is_ready(office: Office) -> None:
    found = progress(office, "build", "test")
    assert [stand.state for stand in found.stands] == ["ready", "ready"]


# --- reviews --------------------------------------------------------------------------------------


def test_work_that_is_to_be_reviewed_waits_when_it_is_done(office: Office) -> None:
    task = office.run(begin(office, review=True))
    assert task.state is TaskState.WAITING
    ask = review(office, task)
    about = number_of_call(ask)
    assert (ask.kind, ask.key, ask.review, about) == (AskKind.QUESTION, "review", True, None)
    assert progress(office, "build").stands[0].in_review


def test_work_that_failed_is_not_reviewed(office: Office) -> None:
    assert office.run(begin(office, review=True), FAILED).state is TaskState.FAILED


@pytest.mark.parametrize("text", ["approve", "approve and stop"])
def test_approved_work_has_succeeded_and_so_has_its_run(office: Office, text: str) -> None:
    task = say(office, office.run(begin(office, review=True)), text)
    assert (task.state, task.message) == (TaskState.SUCCEEDED, "all done")
    with office.controller.store.read() as view:
        run = view.run(task.id, 1)
    assert (run.state, run.pause_reason, run.paused_at) == (RunState.SUCCEEDED, None, None)


def test_work_that_is_to_change_goes_on_in_its_session_with_the_feedback(office: Office) -> None:
    """A new run that is resumed from the one that was reviewed; it is reviewed again."""
    task = say(office, office.run(begin(office, review=True)), "request changes: make it blue")
    assert task.state is TaskState.QUEUED
    run = office.begin(task).run
    assert (run.resumed_from, office.controller.asks.feedback(run)) == (1, ["make it blue"])
    again = office.controller.runs.finish(run, DONE)
    assert again.state is TaskState.WAITING
    assert say(office, again, "approve").state is TaskState.SUCCEEDED


def test_feedback_is_for_the_session_that_was_reviewed(office: Office) -> None:
    """D-R31: a restart begins with nothing."""
    task = say(office, office.run(begin(office, review=True)), "request changes: make it blue")
    office.controller.tasks.cancel(task.id, by=ME)
    run = office.begin(
        office.controller.tasks.restart(task.id, by=ME, workspace=task.spec.workspace)
    ).run
    assert office.controller.asks.feedback(run) == []


def test_rejected_work_has_failed(office: Office) -> None:
    task = say(office, office.run(begin(office, review=True)), "reject: too slow")
    assert (task.state, task.message) == (TaskState.FAILED, f"rejected by {YOU.name}: too slow")


def test_a_review_that_nobody_gives_in_time_is_a_rejection(office: Office) -> None:
    task = office.run(begin(office, review=True, expires_after=1000))
    office.now += 2000
    office.controller.runs.recover()
    failed = office.controller.decisions.find_task(task.id)
    assert (failed.state, failed.message) == (TaskState.FAILED, "nobody settled it in time")


@pytest.mark.parametrize(
    "text", ["yes", "request changes", "request changes: TEXT"[:16], "approve: it"]
)
def test_what_is_no_review_is_refused_and_leaves_the_work_waiting(
    office: Office, text: str
) -> None:
    task = office.run(begin(office, review=True))
    with pytest.raises(Misuse, match="takes one of: approve, approve and stop"):
        say(office, task, text)
    assert office.controller.decisions.find_task(task.id).state is TaskState.WAITING


def test_no_file_reviews(office: Office) -> None:
    """Response files carry answers, never decisions.

    What a process writes cannot approve its own work.
    """
    task = office.run(begin(office, review=True))
    response = Response(agent_id=task.id, answers=(("review", "approve"),), resume_signal=True)
    with pytest.raises(Misuse, match="no question is called review"):
        replies_to(response, [review(office, task)])


def test_a_question_of_a_process_that_is_called_review_is_no_review(office: Office) -> None:
    run = office.begin(begin(office)).run
    ask = office.ask(run, "review", choices=("approve", "nothing"))
    task = office.controller.runs.finish(run, DONE)
    assert not ask.review
    office.controller.decisions.decide(
        [Reply(ask_id=ask.id, verb=Verb.ANSWER, text="nothing")], by=ME
    )
    assert office.controller.decisions.find_task(task.id).state is TaskState.QUEUED


def test_a_command_that_was_approved_needs_a_new_approval_to_change_its_work(
    office: Office,
) -> None:
    """An approval is used once.

    What is to change is for a person to start, and is asked about again.
    """
    task = begin(office, review=True, pause_on_approval=True)
    with office.controller.store.read() as view:
        (ask,) = view.open_asks_of(task.id)
    office.controller.decisions.decide([Reply(ask_id=ask.id, verb=Verb.APPROVE)], by=ME)
    changed = say(
        office, office.run(office.controller.decisions.find_task(task.id)), "request changes: again"
    )
    assert changed.state is TaskState.PAUSED
    held = office.controller.tasks.resume(task.id, by=ME)
    assert held.state is TaskState.WAITING
    asked = office.open_approval(held)
    assert (asked.kind, asked.gate) == (AskKind.APPROVAL, True)
    office.controller.decisions.decide([Reply(ask_id=asked.id, verb=Verb.APPROVE)], by=ME)
    run = office.begin(office.controller.decisions.find_task(task.id)).run
    assert office.controller.asks.feedback(run) == ["again"]


def test_cancelled_work_is_not_reviewed(office: Office) -> None:
    task = begin(office, review=True)
    run = office.begin(task).run
    office.controller.tasks.cancel(task.id, by=ME)
    assert office.controller.runs.finish(run, DONE).state is TaskState.CANCELED
    waiting = office.run(begin(office, "test", review=True))
    ask = review(office, waiting)
    assert office.controller.tasks.cancel(waiting.id, by=ME).state is TaskState.CANCELED
    with office.controller.store.read() as view:
        assert view.ask(ask.id).state is AskState.WITHDRAWN
