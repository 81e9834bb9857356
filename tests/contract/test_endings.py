"""What the controller promises, over every store.

How tasks begin again, are stopped, die, expire and are forgotten.
"""

from collections.abc import Callable

import pytest

from adjourn.core.ask import Verb, Verdict
from adjourn.core.call import command_of
from adjourn.core.errors import (
    AdjournError,
    AlreadySettled,
    Ambiguous,
    Conflict,
    Misuse,
    MoveRefused,
    NotFound,
    StaleCheckpoint,
)
from adjourn.core.outcome import Exit
from adjourn.core.resumption import Resumption
from adjourn.core.states import CallState, TaskState
from adjourn.core.task import RunState
from adjourn.runners.command import CommandRunner
from adjourn.testing.values import A_DAY
from tests.contract.office import ASKS_10, ASKS_90, DONE, FAILED, INTERRUPTED, ME, YOU, Office
from tests.stateful.world import shim_of

# --- restart --------------------------------------------------------------------------------------


def test_a_restart_keeps_the_history_and_supersedes_the_last_run(office: Office) -> None:
    """D-R28, D-R31, D-R32, D-R40, D-R65: a new session, linked both ways."""
    task = office.run(office.start(), INTERRUPTED)
    restarted = office.controller.tasks.restart(task.id, by=ME, workspace=task.spec.workspace)
    assert restarted.session_id != task.session_id
    office.run(restarted)
    old, new = office.runs(task)
    assert (old.state, old.superseded_by) == (RunState.PAUSED, 2)
    assert (new.restart_of, new.resumed_from, new.session_id) == (1, None, restarted.session_id)


def test_a_restart_withdraws_what_was_asked_and_approved(office: Office) -> None:
    """D-R31"""
    task, ask = office.waiting()
    office.controller.tasks.restart(task.id, by=ME, workspace=task.spec.workspace)
    with pytest.raises(AlreadySettled, match="withdrawn by adjourn"):
        office.reply(ask, Verb.APPROVE)
    assert command_of(office.begin(task).call.body).env == {}


def test_a_restart_may_happen_elsewhere(office: Office) -> None:
    task = office.run(office.start(), FAILED)
    office.controller.tasks.restart(task.id, by=ME, workspace="/elsewhere")
    assert command_of(office.begin(task).call.body).cwd == "/elsewhere"


def test_an_uncertain_call_is_settled_before_a_restart(office: Office) -> None:
    task = office.lost()
    with pytest.raises(Conflict, match="may have run") as refusal:
        office.controller.tasks.restart(task.id, by=ME, workspace="/w")
    assert refusal.value.way_out == f"adjourn show {task.id}"  # which has the three commands


# --- pause and cancel -----------------------------------------------------------------------------


def test_a_running_task_is_told_and_paused_when_its_process_has_left(office: Office) -> None:
    """D-R8, D-R13, D-R39"""
    claimed = office.begin(office.start())
    wished = office.controller.tasks.pause(claimed.task.id, by=ME)
    assert (wished.state, wished.wish) == (TaskState.RUNNING, "pause")
    paused = office.controller.runs.finish(claimed.run, INTERRUPTED)
    assert (paused.state, paused.wish) == (TaskState.PAUSED, None)
    (run,) = office.runs(paused)
    assert (run.state, run.pause_reason, run.paused_at) == (
        RunState.PAUSED,
        "user_interrupt",
        office.now,
    )


@pytest.mark.parametrize("code", [0, 10, 90])
def test_a_task_that_is_told_to_pause_as_it_leaves_with_its_answers_stays_paused(
    office: Office, code: int
) -> None:
    """D-R7: whoever said pause says when it goes on; the answers are not lost."""
    claimed = office.begin(office.start())
    ask = office.ask(claimed.run)
    office.reply(ask, Verb.ANSWER, "eu")
    office.controller.tasks.pause(claimed.task.id, by=ME)
    paused = office.controller.runs.finish(claimed.run, Exit(code=code))
    assert (paused.state, paused.wish, paused.next_call) == (TaskState.PAUSED, None, None)
    assert office.runs(paused)[0].pause_reason == "user_interrupt"
    office.controller.tasks.resume(paused.id, by=ME)
    assert office.ask(office.begin(paused).run).reply == "eu"


@pytest.mark.parametrize("exit_", [ASKS_10, ASKS_90], ids=["10", "90"])
def test_a_task_that_is_told_to_pause_as_it_leaves_to_wait_waits(
    office: Office, exit_: Exit
) -> None:
    """Nothing of it goes on before a person has said something."""
    claimed = office.begin(office.start())
    office.controller.tasks.pause(claimed.task.id, by=ME)
    waiting = office.controller.runs.finish(claimed.run, exit_)
    assert (waiting.state, waiting.wish) == (TaskState.WAITING, None)


@pytest.mark.parametrize("exit_", [INTERRUPTED, ASKS_10, ASKS_90], ids=["interrupted", "10", "90"])
def test_a_running_task_is_canceled_however_its_process_leaves(office: Office, exit_: Exit) -> None:
    claimed = office.begin(office.start())
    office.ask(claimed.run)
    office.controller.tasks.cancel(claimed.task.id, by=ME)
    task = office.controller.runs.finish(claimed.run, exit_)
    assert task.state is TaskState.CANCELED
    assert office.scene(task).open_asks == ()


def test_a_wish_to_cancel_is_not_taken_back_by_a_wish_to_pause(office: Office) -> None:
    claimed = office.begin(office.start())
    office.controller.tasks.cancel(claimed.task.id, by=ME)
    with pytest.raises(Conflict, match="being canceled"):
        office.controller.tasks.pause(claimed.task.id, by=YOU)
    assert office.controller.runs.finish(claimed.run, INTERRUPTED).state is TaskState.CANCELED


def test_a_waiting_task_that_is_canceled_leaves_the_inbox(office: Office) -> None:
    task, ask = office.waiting()
    assert office.controller.tasks.cancel(task.id, by=ME).state is TaskState.CANCELED
    with pytest.raises(AlreadySettled, match="withdrawn"):
        office.reply(ask, Verb.APPROVE)


def test_a_queued_task_can_be_paused_and_goes_on_with_what_was_approved(office: Office) -> None:
    task, ask = office.waiting()
    office.reply(ask, Verb.APPROVE, "canary")
    assert office.controller.tasks.pause(task.id, by=ME).state is TaskState.PAUSED
    office.controller.tasks.resume(task.id, by=ME)
    assert command_of(office.begin(task).call.body).env == {"AUTO_APPROVAL": "canary"}


# --- what dies ------------------------------------------------------------------------------------


def test_a_supervisor_that_died_before_the_gate_opened_costs_nothing(office: Office) -> None:
    task = office.start()
    office.claim(task)
    office.processes.kill("anna-0")
    (recovered,) = office.controller.runs.recover()
    assert (recovered.state, recovered.next_call) == (TaskState.QUEUED, 1)
    assert office.run(task).state is TaskState.SUCCEEDED


def test_a_process_that_outlives_its_supervisor_is_left_alone_and_its_result_counts(
    office: Office,
) -> None:
    claimed = office.begin(office.start())
    office.processes.kill("anna-0")
    assert office.controller.runs.recover() == []
    office.processes.of_run[claimed.run.id].end(DONE)
    (task,) = office.controller.runs.recover()
    assert task.state is TaskState.SUCCEEDED
    assert office.controller.runs.recover() == []


def test_a_run_that_vanished_asks_a_person_and_never_starts_again_by_itself(office: Office) -> None:
    claimed = office.begin(office.start())
    office.processes.kill("anna-0")
    office.processes.of_run[claimed.run.id].vanish()
    (task,) = office.controller.runs.recover()
    assert task.state is TaskState.WAITING
    ask = office.open_ask(task)
    for verb in (Verb.APPROVE, Verb.REJECT, Verb.ANSWER):
        with pytest.raises(Misuse):
            office.reply(ask, verb, "it ran")
    with pytest.raises(Conflict):
        office.controller.tasks.resume(task.id, Resumption(approve_all=True), by=ME)
    with pytest.raises(MoveRefused):
        office.claim(task, supervisor="bela-0")


@pytest.mark.parametrize(
    ("verdict", "state"),
    [
        (Verdict.IT_RAN, TaskState.SUCCEEDED),
        (Verdict.IT_DID_NOT, TaskState.PAUSED),
        (Verdict.RUN_AGAIN, TaskState.QUEUED),
    ],
)
def test_only_a_person_says_what_became_of_it(
    office: Office, verdict: Verdict, state: TaskState
) -> None:
    task = office.lost()
    assert office.controller.tasks.settle(task.id, 1, verdict, by=ME).state is state
    with pytest.raises(Conflict):
        office.controller.tasks.settle(task.id, 1, Verdict.RUN_AGAIN, by=YOU)


def test_to_run_it_again_keeps_the_call_and_its_approval(office: Office) -> None:
    """The idempotency key is the same on every attempt."""
    task, ask = office.waiting()
    office.reply(ask, Verb.APPROVE, "canary")
    first = office.begin(task)
    office.controller.runs.lose(first.run)
    office.controller.tasks.settle(task.id, first.call.number, Verdict.RUN_AGAIN, by=ME)
    second = office.begin(task)
    assert (second.call.id, second.call.body) == (first.call.id, first.call.body)
    assert office.controller.runs.finish(second.run, ASKS_90).state is TaskState.FAILED, (
        "it was approved, and asks again: C-R23"
    )


def test_what_never_started_is_no_question(office: Office) -> None:
    claimed = office.claim(office.start())
    office.controller.runs.execute(claimed.run, shim=shim_of(claimed.run.id))
    task = office.controller.runs.release(claimed.run, why="the gate stayed shut")
    assert task.state is TaskState.QUEUED
    with office.controller.store.read() as view:
        assert view.call(task.id, 1).state is CallState.APPROVED


@pytest.mark.parametrize("late", ["execute", "finish", "release", "lose", "ask"])
def test_a_run_that_has_ended_takes_nothing_more(office: Office, late: str) -> None:
    claimed = office.begin(office.start())
    task = office.controller.runs.finish(claimed.run, DONE)
    acts: dict[str, Callable[[], object]] = {
        "execute": lambda: office.controller.runs.execute(
            claimed.run, shim=shim_of(claimed.run.id)
        ),
        "finish": lambda: office.controller.runs.finish(claimed.run, ASKS_90),
        "release": lambda: office.controller.runs.release(claimed.run, why="late"),
        "lose": lambda: office.controller.runs.lose(claimed.run),
        "ask": lambda: office.ask(claimed.run),
    }
    with pytest.raises(Conflict, match="has ended"):
        acts[late]()
    assert office.task(task.id) == task


def test_one_run_that_cannot_be_settled_does_not_keep_the_others_from_it(office: Office) -> None:
    first, second = (office.begin(office.start(runner=name)) for name in ("gone", "command"))
    office.context.find_runner = _runner
    office.processes.kill("anna-0")
    for claimed in (first, second):
        office.processes.of_run[claimed.run.id].end(DONE)
    assert [task.id for task in office.controller.runs.recover()] == [second.task.id]
    assert office.task(first.task.id).state is TaskState.RUNNING


def _runner(name: str) -> CommandRunner:
    if name == "gone":
        raise Misuse("no runner gone")
    return CommandRunner()


def test_a_run_whose_supervisor_is_gone_is_adopted_by_one(office: Office) -> None:
    claimed = office.begin(office.start())
    office.processes.kill("anna-0")
    (orphan,) = office.controller.runs.orphans()
    adopted = office.controller.runs.adopt(orphan, supervisor="bela-0")
    assert (adopted.id, adopted.supervisor) == (claimed.run.id, "bela-0")
    with pytest.raises(Conflict, match="taken over by somebody else"):
        office.controller.runs.adopt(orphan, supervisor="cleo-0")
    assert office.controller.runs.orphans() == []
    assert office.controller.runs.finish(adopted, DONE).state is TaskState.SUCCEEDED


def test_a_start_that_fails_is_tried_three_times_and_no_more(office: Office) -> None:
    """C-R12: only starts that provably did not happen are tried again."""
    task = office.start()
    for expected in (TaskState.QUEUED, TaskState.QUEUED, TaskState.FAILED):
        run = office.claim(task).run
        assert office.controller.runs.fail_to_start(run, why="no room").state is expected
    assert "in 3 tries: no room" in (office.task(task.id).message or "")


def test_a_start_that_succeeds_begins_the_count_again(office: Office) -> None:
    task = office.start()
    office.controller.runs.fail_to_start(office.claim(task).run, why="no room")
    waiting = office.run(task, ASKS_90)
    assert waiting.tries == 0


def test_nobody_gives_up_a_task_that_somebody_else_has_started_meanwhile(office: Office) -> None:
    task = office.start()
    office.begin(task)
    with pytest.raises(MoveRefused):
        office.controller.tasks.give_up(task.id, why="its workspace is gone")


def test_a_queued_task_that_can_never_start_is_given_up(office: Office) -> None:
    task = office.controller.tasks.give_up(office.start().id, why="its workspace is gone")
    assert (task.state, task.message) == (TaskState.FAILED, "its workspace is gone")
    with pytest.raises(MoveRefused):
        office.claim(task)


# --- expiry ---------------------------------------------------------------------------------------


def test_an_ask_expires_only_if_that_was_asked_for(office: Office) -> None:
    """A-R48, C-R3: no expiry by itself, and at its time an expired one is a rejection, never an approval."""
    lasting, _ = office.waiting()
    passing, ask = office.waiting(expires_after=1000)
    office.now += 999
    assert office.controller.runs.recover() == []
    office.now += 1
    (failed,) = office.controller.runs.recover()
    assert (failed.id, failed.state, failed.message) == (
        passing.id,
        TaskState.FAILED,
        "nobody settled it in time",
    )
    assert office.task(lasting.id).state is TaskState.WAITING
    with pytest.raises(AlreadySettled, match="expired"):
        office.reply(ask, Verb.APPROVE)


def test_an_uncertain_call_never_expires(office: Office) -> None:
    claimed = office.begin(office.start(expires_after=1000))
    task = office.controller.runs.lose(claimed.run)
    office.now += 1000 * A_DAY
    assert office.controller.runs.recover() == []
    assert office.task(task.id).state is TaskState.WAITING


def test_a_question_that_expires_while_its_process_runs_is_a_rejection_too(office: Office) -> None:
    """Silence is never consent, and the script is not run again for nothing."""
    run = office.begin(office.start(expires_after=1000)).run
    office.ask(run)
    office.now += 1000
    office.controller.runs.recover()
    assert office.controller.runs.finish(run, ASKS_10).state is TaskState.FAILED


def test_what_expired_while_the_clock_was_wrong_stays_expired(office: Office) -> None:
    task, _ = office.waiting(expires_after=1000)
    office.now += A_DAY
    office.controller.runs.recover()
    office.now -= 2 * A_DAY
    assert office.controller.runs.recover() == []
    assert office.task(task.id).state is TaskState.FAILED


# --- families -------------------------------------------------------------------------------------


def test_a_script_that_leaves_because_its_child_waits_is_waiting_on_that_child(
    office: Office,
) -> None:
    run = office.begin(office.start()).run
    child = office.start_inside(run)
    parent = office.controller.runs.finish(run, ASKS_10)
    assert parent.state is TaskState.WAITING
    assert office.scene(parent).asks == ()
    assert office.scene(parent).waiting_on == (child.id,)


@pytest.mark.parametrize("exit_", [DONE, FAILED], ids=["succeeded", "failed"])
def test_a_parent_is_queued_when_its_child_has_ended(office: Office, exit_: Exit) -> None:
    run = office.begin(office.start()).run
    child = office.start_inside(run)
    office.controller.runs.finish(run, ASKS_10)
    office.run(child, exit_)
    assert office.task(run.task_id).state is TaskState.QUEUED
    again = office.begin(office.task(run.task_id)).run
    assert office.start_inside(again).id == child.id, "the same start finds the same task"


@pytest.mark.parametrize("way", ["cancel", "reject", "settle"])
def test_a_parent_hears_of_every_end_of_its_child(office: Office, way: str) -> None:
    run = office.begin(office.start()).run
    child = office.start_inside(run)
    office.controller.runs.finish(run, ASKS_10)
    match way:
        case "cancel":
            office.controller.tasks.cancel(child.id, by=ME)
        case "reject":
            office.reply(office.open_ask(office.run(child, ASKS_90)), Verb.REJECT)
        case _:
            office.controller.runs.lose(office.begin(child).run)
            office.controller.tasks.settle(child.id, 1, Verdict.IT_RAN, by=ME)
    assert office.task(run.task_id).state is TaskState.QUEUED


def test_a_parent_that_went_on_meanwhile_is_still_woken_by_the_child_of_its_first_run(
    office: Office,
) -> None:
    run = office.begin(office.start()).run
    child = office.start_inside(run, leaves=False)
    ask = office.ask(run)
    office.controller.runs.finish(run, ASKS_10)
    parent = office.reply(ask, Verb.ANSWER, "eu")
    second = office.begin(parent).run
    assert office.start_inside(second).id == child.id
    assert office.controller.runs.finish(second, ASKS_10).state is TaskState.WAITING
    office.run(child)
    assert office.task(parent.id).state is TaskState.QUEUED


def test_a_parent_waits_for_the_last_of_its_children(office: Office) -> None:
    run = office.begin(office.start()).run
    one, other = office.start_inside(run), office.start_inside(run)
    assert one.id != other.id, "the second start of a key is a second task"
    office.controller.runs.finish(run, ASKS_10)
    office.run(one)
    assert office.task(run.task_id).state is TaskState.WAITING
    office.run(other)
    assert office.task(run.task_id).state is TaskState.QUEUED


def test_a_child_can_end_when_its_parent_was_pruned(office: Office) -> None:
    run = office.begin(office.start()).run
    child = office.start_inside(run)
    office.controller.runs.finish(run, FAILED)
    office.controller.tasks.forget(run.task_id, by=ME)
    assert office.run(child).state is TaskState.SUCCEEDED
    office.controller.tasks.forget(child.id, by=ME)


def test_a_child_that_its_parent_still_needs_is_not_pruned(office: Office) -> None:
    run = office.begin(office.start()).run
    child = office.start_inside(run)
    office.ask(run)
    office.controller.runs.finish(run, ASKS_10)
    office.run(child)
    with pytest.raises(Conflict, match="still needs it"):
        office.controller.tasks.forget(child.id, by=ME)
    assert office.scene_of(run.task_id).waiting_on == ()


# --- finding and forgetting -----------------------------------------------------------------------


def test_a_task_is_found_by_id_checkpoint_run_call_or_any_unique_prefix(office: Office) -> None:
    """A-R5"""
    task, ask = office.waiting()
    (run,) = office.runs(task)
    for name in (
        task.id,
        task.id[:8],
        run.checkpoint_id or "",
        (run.checkpoint_id or "")[:8],
        run.id,
        f"{task.id}.tc_1",
    ):
        assert office.controller.decisions.find_task(name) == task
    assert office.controller.decisions.find_ask(ask.id[:8]) == ask


@pytest.mark.parametrize(
    "name", ["", ".", "nobody", "../../x", "--help", "-", "\x1b[31m", "\udcff", "a" * 100_000]
)
def test_what_nobody_is_called_is_not_found_and_shown_safely(office: Office, name: str) -> None:
    office.waiting()
    for find in (office.controller.decisions.find_task, office.controller.decisions.find_ask):
        with pytest.raises(NotFound) as refusal:
            find(name)
        assert refusal.value.sentence.isprintable()


def test_a_prefix_of_several_names_them(office: Office) -> None:
    tasks = [office.start() for _ in range(40)]
    letters = [task.id[0] for task in tasks]
    shared = next(letter for letter in letters if letters.count(letter) > 1)
    with pytest.raises(Ambiguous, match=f"several tasks begin with {shared}"):
        office.controller.decisions.find_task(shared)


def test_an_older_checkpoint_is_refused_and_names_the_newest(office: Office) -> None:
    task, ask = office.waiting()
    office.reply(ask, Verb.APPROVE)
    office.run(task, INTERRUPTED)
    old, new = office.runs(task)
    office.controller.tasks.require_newest(new.checkpoint_id or "", office.task(task.id))
    with pytest.raises(StaleCheckpoint) as refusal:
        office.controller.tasks.require_newest(old.checkpoint_id or "", office.task(task.id))
    assert refusal.value.way_out == f"adjourn resume {new.checkpoint_id}"


@pytest.mark.parametrize("exit_", [ASKS_90, INTERRUPTED], ids=["waiting", "paused"])
def test_only_what_has_ended_is_pruned(office: Office, exit_: Exit) -> None:
    task = office.run(office.start(), exit_)
    with pytest.raises(Conflict, match="only ended tasks are pruned"):
        office.controller.tasks.forget(task.id, by=ME)
    office.controller.tasks.cancel(task.id, by=ME)
    office.controller.tasks.forget(task.id, by=ME)
    with pytest.raises(NotFound):
        office.controller.decisions.find_task(task.id)


def test_every_refusal_says_what_helps(office: Office) -> None:
    task, ask = office.waiting()
    office.reply(ask, Verb.APPROVE)
    acts: list[Callable[[], object]] = [
        lambda: office.reply(ask, Verb.APPROVE),
        lambda: office.controller.decisions.find_task("nobody"),
        lambda: office.controller.tasks.forget(task.id, by=ME),
        lambda: office.controller.tasks.settle(task.id, 1, Verdict.IT_RAN, by=ME),
        lambda: office.controller.tasks.resume(task.id, Resumption(approve_all=True), by=ME),
    ]
    for act in acts:
        with pytest.raises(AdjournError) as refusal:
            act()
        assert refusal.value.way_out.startswith("adjourn ")
