"""What the controller promises, over every store."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from adjourn.core.ask import Principal, Reply, Verb, Verdict
from adjourn.core.call import ORIGINAL, Command, canonical, command_of
from adjourn.core.errors import (
    AdjournError,
    AlreadySettled,
    Ambiguous,
    Conflict,
    Misuse,
    MoveRefused,
    NotAllowed,
    NotFound,
    NothingRecorded,
    StaleCheckpoint,
)
from adjourn.core.events import first_broken
from adjourn.core.outcome import Exit
from adjourn.core.resumption import Resumption
from adjourn.core.states import AskState, CallState, TaskState
from adjourn.core.task import OnRejection, RunState
from adjourn.ports.runs import NeverStarted
from adjourn.ports.store import Store
from adjourn.runners.command import CommandRunner
from tests.contract.office import ASKS_10, ASKS_90, DONE, FAILED, INTERRUPTED, ME, YOU, Office
from tests.stateful.world import shim_of
from tests.unit.values import A_DAY


@pytest.fixture
def office(store: Store) -> Office:
    """Return an office with an empty store."""
    return Office(store)


# --- a whole life ------------------------------------------------------------------------------------------------------


def test_a_task_keeps_its_id_through_pauses_of_every_kind(office: Office) -> None:
    """A-R50, A-R55, A-R56, A-R58, A-R61: approval, question, interrupt, completion; one task, four runs."""
    task, ask = office.waiting()
    assert office.reply(ask, Verb.APPROVE).state is TaskState.QUEUED
    asked = office.run(task, ASKS_10, asking=("region",))
    assert office.reply(office.open_ask(asked), Verb.ANSWER, "eu").state is TaskState.QUEUED
    assert office.run(task, INTERRUPTED).state is TaskState.PAUSED
    assert office.controller.resume(task.id, by=ME).state is TaskState.QUEUED
    done = office.run(task)
    assert (done.id, done.state, done.message) == (task.id, TaskState.SUCCEEDED, "all done")
    runs = office.runs(task)
    assert [run.state for run in runs] == [RunState.WAITING, RunState.WAITING, RunState.PAUSED, RunState.SUCCEEDED]
    assert [run.resumed_from for run in runs] == [None, 1, 2, 3]
    assert len({run.checkpoint_id for run in runs}) == 4
    assert {run.session_id for run in runs} == {task.session_id}


def test_there_is_no_limit_to_pauses(office: Office) -> None:
    """A-R50"""
    task = office.start()
    for number in range(40):
        paused = office.run(task, ASKS_10, asking=(f"question {number}",))
        office.reply(office.open_ask(paused), Verb.ANSWER, str(number))
    assert office.task(task.id).runs == 40


def test_a_pause_waits_for_ever(office: Office) -> None:
    """A-R48, B-R25: no timeout."""
    task, ask = office.waiting()
    office.now += 1000 * A_DAY
    office.controller.recover()
    assert office.task(task.id) == task
    assert office.reply(ask, Verb.APPROVE).state is TaskState.QUEUED


def test_whatever_happens_is_written_down_with_who_did_it(office: Office) -> None:
    """A-R84, C-R11: starts, exits, decisions and resumes are audit-logged, in a chain that closes."""
    task, ask = office.waiting()
    office.reply(ask, Verb.APPROVE, by=YOU)
    office.run(task, INTERRUPTED)
    office.controller.resume(task.id, by=YOU)
    told = [(event.kind, event.by) for event in office.events(task)]
    assert told == [
        ("task_created", "uid:1000"),
        ("run_claimed", "adjourn"),
        ("call_executing", "adjourn"),
        ("ask_opened", "adjourn"),
        ("run_waiting", "adjourn"),
        ("ask_approved", "uid:2000"),
        ("task_queued", "uid:2000"),
        ("run_claimed", "adjourn"),
        ("call_executing", "adjourn"),
        ("run_paused", "adjourn"),
        ("task_resumed", "uid:2000"),
    ]
    with office.controller.store.read() as view:
        assert first_broken(view.trail()) is None


# --- approvals ---------------------------------------------------------------------------------------------------------


def test_an_approval_runs_the_same_command_again_with_the_value(office: Office) -> None:
    """C-R4, C-R8: AUTO_APPROVAL carries the chosen value."""
    task, ask = office.waiting()
    office.reply(ask, Verb.APPROVE, "canary")
    command = command_of(office.begin(task).call.body)
    assert command == Command(argv=task.spec.argv, cwd=task.spec.workspace, env={"AUTO_APPROVAL": "canary"})


def test_without_a_value_it_is_approved(office: Office) -> None:
    """C-R8"""
    task, ask = office.waiting()
    office.reply(ask, Verb.APPROVE)
    assert command_of(office.begin(task).call.body).env == {"AUTO_APPROVAL": "approved"}


def test_the_decision_can_be_an_argument_too(office: Office) -> None:
    """C-R9"""
    task, ask = office.waiting(decision_arg=True)
    office.reply(ask, Verb.APPROVE, "canary")
    assert command_of(office.begin(task).call.body).argv == (*task.spec.argv, "--approval-decision=canary")


def test_only_the_run_that_a_decision_started_has_the_decision(office: Office) -> None:
    """Neither the first run nor one after an interrupt: an approval is used once."""
    first = office.begin(office.start())
    assert command_of(first.call.body).env == {}
    task = office.controller.finish(first.run, ASKS_90)
    office.reply(office.open_ask(task), Verb.APPROVE)
    office.run(task, INTERRUPTED)
    office.controller.resume(task.id, by=ME)
    assert command_of(office.begin(task).call.body).env == {}


def test_a_rejection_fails_a_command_with_its_reason(office: Office) -> None:
    """C-R10: in the decision's own transaction, and nothing starts."""
    task, ask = office.waiting()
    failed = office.reply(ask, Verb.REJECT, "no window")
    assert (failed.state, failed.message) == (TaskState.FAILED, "rejected by uid:1000: no window")
    with pytest.raises(MoveRefused):
        office.claim(task)


def test_a_rejection_lets_an_agent_go_on_where_the_task_says_so(office: Office) -> None:
    task, ask = office.waiting(on_rejection=OnRejection.TELL)
    assert office.reply(ask, Verb.REJECT).state is TaskState.QUEUED
    assert command_of(office.begin(task).call.body).env == {}


def test_a_command_that_does_not_know_the_contract_does_not_loop(office: Office) -> None:
    """C-R23"""
    task, ask = office.waiting()
    office.reply(ask, Verb.APPROVE)
    assert office.run(task, ASKS_90).state is TaskState.FAILED


def test_a_command_with_another_thing_to_approve_asks_again(office: Office) -> None:
    """C-R23, A-R50"""
    task, ask = office.waiting()
    office.reply(ask, Verb.APPROVE)
    again = office.run(task, replace(ASKS_90, output='{"plan": 2}'))
    assert again.state is TaskState.WAITING
    assert office.open_ask(again).manifest == '{"plan": 2}'


def test_a_decision_binds_to_what_was_shown(office: Office) -> None:
    task, ask = office.waiting()
    with pytest.raises(Conflict, match="not the one that was shown"):
        office.controller.decide([Reply(ask_id=ask.id, verb=Verb.APPROVE, digest="00" * 32)], by=ME)
    digest = office.scene(task).calls[ask.call or 0].digest
    office.controller.decide([Reply(ask_id=ask.id, verb=Verb.APPROVE, digest=digest)], by=ME)


@pytest.mark.parametrize("second", [Verb.APPROVE, Verb.REJECT])
@pytest.mark.parametrize("first", [Verb.APPROVE, Verb.REJECT])
def test_the_second_to_decide_is_told_who_when_and_what(office: Office, first: Verb, second: Verb) -> None:
    """C-R14"""
    _, ask = office.waiting()
    office.reply(ask, first, "words")
    with pytest.raises(AlreadySettled, match=rf"{first[:6]}\w* by uid:1000 at 2023-11-14T22:13:20.000Z \(words\)"):
        office.reply(ask, second, by=YOU)


def test_of_several_replies_all_count_or_none(office: Office) -> None:
    task, one = office.waiting()
    _, other = office.waiting()
    replies = [Reply(ask_id=one.id, verb=Verb.APPROVE), Reply(ask_id=other.id, verb=Verb.ANSWER, text="eu")]
    with pytest.raises(NothingRecorded, match="1 of 2 do not fit") as refused:
        office.controller.decide(replies, by=ME)
    assert [(item.ask_id, item.result) for item in refused.value.items] == [(one.id, "would be approved"), (other.id, "refused")]
    assert isinstance(refused.value.items[1].error, Misuse)
    assert refused.value.exit_code == Misuse.exit_code
    assert office.task(task.id) == task


def test_an_edit_changes_the_call_and_the_task_in_one_step(office: Office) -> None:
    """Both versions are kept; whatever follows, the original is never what runs."""
    task, ask = office.waiting(argv=("./deploy.sh", "prod"), decision_arg=True)
    before = office.scene(task).calls[ask.call or 0]
    arguments = canonical({"argv": ["./deploy.sh", "test"], "cwd": "/srv/other"})
    office.controller.decide([Reply(ask_id=ask.id, verb=Verb.APPROVE, text="yes", edited=arguments)], by=ME)
    claimed = office.begin(office.task(task.id))
    assert command_of(claimed.call.body).argv == ("./deploy.sh", "test", "--approval-decision=yes")
    assert command_of(claimed.call.body).cwd == "/srv/other"
    assert office.controller.kept(task.id, f"{ORIGINAL}{before.tool_call_id}") == before.body
    (told,) = [event.facts for event in office.events(task) if event.kind == "call_edited"]
    assert told["was"] == before.digest
    again = office.controller.finish(claimed.run, INTERRUPTED)
    office.controller.resume(again.id, by=ME)
    resumed = office.begin(office.task(task.id))
    assert command_of(resumed.call.body).argv[:2] == ("./deploy.sh", "test")
    assert command_of(resumed.call.body).cwd == "/srv/other"


@pytest.mark.parametrize(
    "arguments", [{"argv": [], "cwd": "/"}, {"argv": ["./deploy.sh", "--env", "prod"], "cwd": "/srv/place"}, {"x": 1}]
)
def test_an_edit_that_does_not_fit_changes_nothing(office: Office, arguments: dict[str, Any]) -> None:
    task, ask = office.waiting()
    events = office.events(task)
    with pytest.raises(Misuse):
        office.controller.decide([Reply(ask_id=ask.id, verb=Verb.APPROVE, edited=canonical(arguments))], by=ME)
    assert (office.task(task.id), office.events(task)) == (task, events)


def test_an_edit_of_another_call_than_the_one_shown_is_refused(office: Office) -> None:
    _, ask = office.waiting()
    reply = Reply(ask_id=ask.id, verb=Verb.APPROVE, digest="0" * 64, edited=canonical({"argv": ["x"], "cwd": "/"}), files={})
    with pytest.raises(Conflict, match="not the one that was shown"):
        office.controller.decide([reply], by=ME)


def test_a_snooze_decides_nothing_and_puts_off_nothing(office: Office) -> None:
    task, ask = office.waiting(expires_after=1000)
    (snoozed,) = office.controller.snooze([ask.id, ask.id], until=office.now + 5000, by=ME)
    assert (snoozed.state, snoozed.expires_at) == (ask.state, ask.expires_at)
    assert office.task(task.id) == task
    with pytest.raises(Misuse):
        office.controller.snooze([ask.id], until=office.now, by=ME)
    with pytest.raises(NotAllowed):
        office.controller.snooze([ask.id], until=None, by=Principal(name="uid:1000", inside_run="x.1"))
    office.now += 1001
    office.controller.recover()
    assert office.task(task.id).state is TaskState.FAILED
    with pytest.raises(AlreadySettled):
        office.controller.snooze([ask.id], until=None, by=ME)


def test_the_inbox_waits_for_every_ask_but_a_resume_is_final(office: Office) -> None:
    """A-R47: what a resume does not name is rejected; what one reply does not name stays open."""
    task = office.run(office.start(), ASKS_10, asking=("region", "size"))
    region, _ = office.scene(task).open_asks
    assert office.reply(region, Verb.ANSWER, "eu").state is TaskState.WAITING
    assert office.controller.resume(task.id, Resumption(text="big"), by=ME).state is TaskState.QUEUED


# --- questions ---------------------------------------------------------------------------------------------------------


def test_the_nth_question_of_a_key_gets_the_nth_answer(office: Office) -> None:
    task = office.run(office.start(), ASKS_10, asking=("region", "region"))
    for ask, answer in zip(office.scene(task).open_asks, ("eu", "us"), strict=True):
        office.reply(ask, Verb.ANSWER, answer)
    run = office.begin(task).run
    assert [office.ask(run).reply for _ in range(2)] == ["eu", "us"]
    assert office.ask(run).is_open, "the third is new"


def test_a_question_answered_before_the_process_left_queues_it_at_once(office: Office) -> None:
    run = office.begin(office.start()).run
    office.reply(office.ask(run), Verb.ANSWER, "eu")
    assert office.controller.finish(run, ASKS_10).state is TaskState.QUEUED


def test_an_answer_outlives_a_crash_of_whoever_was_to_read_it(office: Office) -> None:
    task = office.run(office.start(), ASKS_10, asking=("region",))
    office.reply(office.open_ask(task), Verb.ANSWER, "eu")
    office.processes.of_run[office.begin(task).run.id].state = NeverStarted()
    office.processes.kill("anna-0")
    (recovered,) = office.controller.recover()
    assert recovered.state is TaskState.QUEUED
    assert office.ask(office.begin(task, supervisor="bela-0").run).reply == "eu"


def test_a_restart_asks_again(office: Office) -> None:
    """D-R31: nothing of the old session is used."""
    task = office.run(office.start(), ASKS_10, asking=("region",))
    office.reply(office.open_ask(task), Verb.ANSWER, "eu")
    office.run(task, FAILED)
    office.controller.restart(task.id, by=ME, workspace=task.spec.workspace)
    assert office.ask(office.begin(task).run).is_open


def test_only_a_choice_is_an_answer(office: Office) -> None:
    run = office.begin(office.start()).run
    ask = office.ask(run, choices=("eu", "us"))
    with pytest.raises(Misuse, match="takes one of: eu, us"):
        office.reply(ask, Verb.ANSWER, "mars")
    office.reply(ask, Verb.ANSWER, "us")


def test_a_failed_script_takes_its_questions_with_it(office: Office) -> None:
    """Nobody is asked for what nobody needs."""
    task = office.run(office.start(), FAILED, asking=("region", "size"))
    assert task.state is TaskState.FAILED
    assert "did the script drop exit code 10?" in (task.message or "")
    assert {ask.state for ask in office.scene(task).asks} == {AskState.WITHDRAWN}


@pytest.mark.parametrize("verb", [Verb.APPROVE, Verb.REJECT, Verb.SETTLE])
def test_a_question_takes_an_answer_and_nothing_else(office: Office, verb: Verb) -> None:
    ask = office.ask(office.begin(office.start()).run)
    with pytest.raises(Misuse, match="of the kind question"):
        office.reply(ask, verb, "eu")
    office.reply(ask, Verb.ANSWER, "eu")


# --- who may -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", Verb)
def test_what_runs_under_adjourn_may_ask_and_never_decide(office: Office, verb: Verb) -> None:
    task, ask = office.waiting()
    inside = Principal(name="uid:1000", inside_run=f"{task.id}.1")
    with pytest.raises(NotAllowed):
        office.reply(ask, verb, by=inside)
    with pytest.raises(NotAllowed):
        office.controller.resume(task.id, Resumption(approve_all=True), by=inside)
    with pytest.raises(NotAllowed):
        office.controller.settle(task.id, 1, Verdict.IT_RAN, by=inside)
    assert office.task(task.id) == task


@pytest.mark.parametrize("act", ["pause", "cancel", "restart"])
def test_a_run_may_stop_what_it_started_and_nothing_else(office: Office, act: str) -> None:
    run = office.begin(office.start()).run
    own, foreign = office.start_inside(run), office.start()
    if act == "restart":
        for task in (own, foreign):
            office.controller.cancel(task.id, by=ME)
    options = {"by": Principal(name="uid:1000", inside_run=run.id)} | ({"workspace": "/w"} if act == "restart" else {})
    getattr(office.controller, act)(own.id, **options)
    for task_id in (foreign.id, run.task_id):
        with pytest.raises((NotAllowed, MoveRefused)):
            getattr(office.controller, act)(task_id, **options)


# --- starting ----------------------------------------------------------------------------------------------------------


def test_of_two_who_start_one_gets_it(office: Office) -> None:
    task = office.start()
    office.claim(task)
    with pytest.raises(MoveRefused):
        office.claim(task, supervisor="bela-0")
    assert [run.supervisor for run in office.runs(task)] == ["anna-0"]


@pytest.mark.parametrize("exit_", [DONE, FAILED, INTERRUPTED, ASKS_90], ids=["succeeded", "failed", "paused", "waiting"])
def test_nothing_starts_by_itself(office: Office, exit_: Exit) -> None:
    """A-R60, D-R6, D-R7, D-R30, D-R60: going on takes a person."""
    task = office.run(office.start(), exit_)
    office.controller.recover()
    with pytest.raises(MoveRefused):
        office.claim(task)
    assert len(office.runs(task)) == 1


@pytest.mark.parametrize("exit_", [DONE, FAILED], ids=["succeeded", "failed"])
def test_what_has_ended_cannot_be_resumed(office: Office, exit_: Exit) -> None:
    """A-R60, D-R16: an error, and nothing starts."""
    task = office.run(office.start(), exit_)
    with pytest.raises(Conflict, match="there is nothing to resume") as refusal:
        office.controller.resume(task.id, by=ME)
    assert refusal.value.way_out == f"adjourn restart {task.id}"


def test_what_runs_cannot_be_resumed(office: Office) -> None:
    """A-R60"""
    task = office.start()
    office.begin(task)
    with pytest.raises(Conflict, match="running"):
        office.controller.resume(task.id, by=ME)


def test_a_plain_resume_of_what_waits_changes_nothing(office: Office) -> None:
    task, _ = office.waiting()
    assert office.controller.resume(task.id, by=ME) == task == office.task(task.id)


# --- restart -----------------------------------------------------------------------------------------------------------


def test_a_restart_keeps_the_history_and_supersedes_the_last_run(office: Office) -> None:
    """D-R28, D-R31, D-R32, D-R40, D-R65: a new session, linked both ways."""
    task = office.run(office.start(), INTERRUPTED)
    restarted = office.controller.restart(task.id, by=ME, workspace=task.spec.workspace)
    assert restarted.session_id != task.session_id
    office.run(restarted)
    old, new = office.runs(task)
    assert (old.state, old.superseded_by) == (RunState.PAUSED, 2)
    assert (new.restart_of, new.resumed_from, new.session_id) == (1, None, restarted.session_id)


def test_a_restart_withdraws_what_was_asked_and_approved(office: Office) -> None:
    """D-R31"""
    task, ask = office.waiting()
    office.controller.restart(task.id, by=ME, workspace=task.spec.workspace)
    with pytest.raises(AlreadySettled, match="withdrawn by adjourn"):
        office.reply(ask, Verb.APPROVE)
    assert command_of(office.begin(task).call.body).env == {}


def test_a_restart_may_happen_elsewhere(office: Office) -> None:
    task = office.run(office.start(), FAILED)
    office.controller.restart(task.id, by=ME, workspace="/elsewhere")
    assert command_of(office.begin(task).call.body).cwd == "/elsewhere"


def test_an_uncertain_call_is_settled_before_a_restart(office: Office) -> None:
    task = office.lost()
    with pytest.raises(Conflict, match="may have run") as refusal:
        office.controller.restart(task.id, by=ME, workspace="/w")
    assert "adjourn settle" in refusal.value.way_out


# --- pause and cancel --------------------------------------------------------------------------------------------------


def test_a_running_task_is_told_and_paused_when_its_process_has_left(office: Office) -> None:
    """D-R8, D-R13, D-R39"""
    claimed = office.begin(office.start())
    wished = office.controller.pause(claimed.task.id, by=ME)
    assert (wished.state, wished.wish) == (TaskState.RUNNING, "pause")
    paused = office.controller.finish(claimed.run, INTERRUPTED)
    assert (paused.state, paused.wish) == (TaskState.PAUSED, None)
    (run,) = office.runs(paused)
    assert (run.state, run.pause_reason, run.paused_at) == (RunState.PAUSED, "user_interrupt", office.now)


@pytest.mark.parametrize("code", [0, 10, 90])
def test_a_task_that_is_told_to_pause_as_it_leaves_with_its_answers_stays_paused(office: Office, code: int) -> None:
    """D-R7: whoever said pause says when it goes on; the answers are not lost."""
    claimed = office.begin(office.start())
    ask = office.ask(claimed.run)
    office.reply(ask, Verb.ANSWER, "eu")
    office.controller.pause(claimed.task.id, by=ME)
    paused = office.controller.finish(claimed.run, Exit(code=code))
    assert (paused.state, paused.wish, paused.next_call) == (TaskState.PAUSED, None, None)
    assert office.runs(paused)[0].pause_reason == "user_interrupt"
    office.controller.resume(paused.id, by=ME)
    assert office.ask(office.begin(paused).run).reply == "eu"


@pytest.mark.parametrize("exit_", [ASKS_10, ASKS_90], ids=["10", "90"])
def test_a_task_that_is_told_to_pause_as_it_leaves_to_wait_waits(office: Office, exit_: Exit) -> None:
    """Nothing of it goes on before a person has said something."""
    claimed = office.begin(office.start())
    office.controller.pause(claimed.task.id, by=ME)
    waiting = office.controller.finish(claimed.run, exit_)
    assert (waiting.state, waiting.wish) == (TaskState.WAITING, None)


@pytest.mark.parametrize("exit_", [INTERRUPTED, ASKS_10, ASKS_90], ids=["interrupted", "10", "90"])
def test_a_running_task_is_canceled_however_its_process_leaves(office: Office, exit_: Exit) -> None:
    claimed = office.begin(office.start())
    office.ask(claimed.run)
    office.controller.cancel(claimed.task.id, by=ME)
    task = office.controller.finish(claimed.run, exit_)
    assert task.state is TaskState.CANCELED
    assert office.scene(task).open_asks == ()


def test_a_wish_to_cancel_is_not_taken_back_by_a_wish_to_pause(office: Office) -> None:
    claimed = office.begin(office.start())
    office.controller.cancel(claimed.task.id, by=ME)
    with pytest.raises(Conflict, match="being canceled"):
        office.controller.pause(claimed.task.id, by=YOU)
    assert office.controller.finish(claimed.run, INTERRUPTED).state is TaskState.CANCELED


def test_a_waiting_task_that_is_canceled_leaves_the_inbox(office: Office) -> None:
    task, ask = office.waiting()
    assert office.controller.cancel(task.id, by=ME).state is TaskState.CANCELED
    with pytest.raises(AlreadySettled, match="withdrawn"):
        office.reply(ask, Verb.APPROVE)


def test_a_queued_task_can_be_paused_and_goes_on_with_what_was_approved(office: Office) -> None:
    task, ask = office.waiting()
    office.reply(ask, Verb.APPROVE, "canary")
    assert office.controller.pause(task.id, by=ME).state is TaskState.PAUSED
    office.controller.resume(task.id, by=ME)
    assert command_of(office.begin(task).call.body).env == {"AUTO_APPROVAL": "canary"}


# --- what dies ---------------------------------------------------------------------------------------------------------


def test_a_supervisor_that_died_before_the_gate_opened_costs_nothing(office: Office) -> None:
    task = office.start()
    office.claim(task)
    office.processes.kill("anna-0")
    (recovered,) = office.controller.recover()
    assert (recovered.state, recovered.next_call) == (TaskState.QUEUED, 1)
    assert office.run(task).state is TaskState.SUCCEEDED


def test_a_process_that_outlives_its_supervisor_is_left_alone_and_its_result_counts(office: Office) -> None:
    claimed = office.begin(office.start())
    office.processes.kill("anna-0")
    assert office.controller.recover() == []
    office.processes.of_run[claimed.run.id].end(DONE)
    (task,) = office.controller.recover()
    assert task.state is TaskState.SUCCEEDED
    assert office.controller.recover() == []


def test_a_run_that_vanished_asks_a_person_and_never_starts_again_by_itself(office: Office) -> None:
    claimed = office.begin(office.start())
    office.processes.kill("anna-0")
    office.processes.of_run[claimed.run.id].vanish()
    (task,) = office.controller.recover()
    assert task.state is TaskState.WAITING
    ask = office.open_ask(task)
    for verb in (Verb.APPROVE, Verb.REJECT, Verb.ANSWER):
        with pytest.raises(Misuse):
            office.reply(ask, verb, "it ran")
    with pytest.raises(Conflict):
        office.controller.resume(task.id, Resumption(approve_all=True), by=ME)
    with pytest.raises(MoveRefused):
        office.claim(task, supervisor="bela-0")


@pytest.mark.parametrize(
    ("verdict", "state"),
    [(Verdict.IT_RAN, TaskState.SUCCEEDED), (Verdict.IT_DID_NOT, TaskState.PAUSED), (Verdict.RUN_AGAIN, TaskState.QUEUED)],
)
def test_only_a_person_says_what_became_of_it(office: Office, verdict: Verdict, state: TaskState) -> None:
    task = office.lost()
    assert office.controller.settle(task.id, 1, verdict, by=ME).state is state
    with pytest.raises(Conflict):
        office.controller.settle(task.id, 1, Verdict.RUN_AGAIN, by=YOU)


def test_to_run_it_again_keeps_the_call_and_its_approval(office: Office) -> None:
    """The idempotency key is the same on every attempt."""
    task, ask = office.waiting()
    office.reply(ask, Verb.APPROVE, "canary")
    first = office.begin(task)
    office.controller.lose(first.run)
    office.controller.settle(task.id, first.call.number, Verdict.RUN_AGAIN, by=ME)
    second = office.begin(task)
    assert (second.call.id, second.call.body) == (first.call.id, first.call.body)
    assert office.controller.finish(second.run, ASKS_90).state is TaskState.FAILED, "it was approved, and asks again: C-R23"


def test_what_never_started_is_no_question(office: Office) -> None:
    claimed = office.claim(office.start())
    office.controller.execute(claimed.run, shim=shim_of(claimed.run.id))
    task = office.controller.release(claimed.run, why="the gate stayed shut")
    assert task.state is TaskState.QUEUED
    with office.controller.store.read() as view:
        assert view.call(task.id, 1).state is CallState.APPROVED


@pytest.mark.parametrize("late", ["execute", "finish", "release", "lose", "ask"])
def test_a_run_that_has_ended_takes_nothing_more(office: Office, late: str) -> None:
    claimed = office.begin(office.start())
    task = office.controller.finish(claimed.run, DONE)
    acts: dict[str, Callable[[], object]] = {
        "execute": lambda: office.controller.execute(claimed.run, shim=shim_of(claimed.run.id)),
        "finish": lambda: office.controller.finish(claimed.run, ASKS_90),
        "release": lambda: office.controller.release(claimed.run, why="late"),
        "lose": lambda: office.controller.lose(claimed.run),
        "ask": lambda: office.ask(claimed.run),
    }
    with pytest.raises(Conflict, match="has ended"):
        acts[late]()
    assert office.task(task.id) == task


def test_one_run_that_cannot_be_settled_does_not_keep_the_others_from_it(office: Office) -> None:
    first, second = (office.begin(office.start(runner=name)) for name in ("gone", "command"))
    office.controller._find_runner = _runner
    office.processes.kill("anna-0")
    for claimed in (first, second):
        office.processes.of_run[claimed.run.id].end(DONE)
    assert [task.id for task in office.controller.recover()] == [second.task.id]
    assert office.task(first.task.id).state is TaskState.RUNNING


def _runner(name: str) -> CommandRunner:
    if name == "gone":
        raise Misuse("no runner gone")
    return CommandRunner()


def test_a_run_whose_supervisor_is_gone_is_adopted_by_one(office: Office) -> None:
    claimed = office.begin(office.start())
    office.processes.kill("anna-0")
    (orphan,) = office.controller.orphans()
    adopted = office.controller.adopt(orphan, supervisor="bela-0")
    assert (adopted.id, adopted.supervisor) == (claimed.run.id, "bela-0")
    with pytest.raises(Conflict, match="taken over by somebody else"):
        office.controller.adopt(orphan, supervisor="cleo-0")
    assert office.controller.orphans() == []
    assert office.controller.finish(adopted, DONE).state is TaskState.SUCCEEDED


def test_a_start_that_fails_is_tried_three_times_and_no_more(office: Office) -> None:
    """C-R12: only starts that provably did not happen are tried again."""
    task = office.start()
    for expected in (TaskState.QUEUED, TaskState.QUEUED, TaskState.FAILED):
        run = office.claim(task).run
        assert office.controller.fail_to_start(run, why="no room").state is expected
    assert "in 3 tries: no room" in (office.task(task.id).message or "")


def test_a_start_that_succeeds_begins_the_count_again(office: Office) -> None:
    task = office.start()
    office.controller.fail_to_start(office.claim(task).run, why="no room")
    waiting = office.run(task, ASKS_90)
    assert waiting.tries == 0


def test_nobody_gives_up_a_task_that_somebody_else_has_started_meanwhile(office: Office) -> None:
    task = office.start()
    office.begin(task)
    with pytest.raises(MoveRefused):
        office.controller.give_up(task.id, why="its workspace is gone")


def test_a_queued_task_that_can_never_start_is_given_up(office: Office) -> None:
    task = office.controller.give_up(office.start().id, why="its workspace is gone")
    assert (task.state, task.message) == (TaskState.FAILED, "its workspace is gone")
    with pytest.raises(MoveRefused):
        office.claim(task)


# --- expiry ------------------------------------------------------------------------------------------------------------


def test_an_ask_expires_only_if_that_was_asked_for(office: Office) -> None:
    """A-R48, C-R3: no expiry by itself, and at its time an expired one is a rejection, never an approval."""
    lasting, _ = office.waiting()
    passing, ask = office.waiting(expires_after=1000)
    office.now += 999
    assert office.controller.recover() == []
    office.now += 1
    (failed,) = office.controller.recover()
    assert (failed.id, failed.state, failed.message) == (passing.id, TaskState.FAILED, "nobody settled it in time")
    assert office.task(lasting.id).state is TaskState.WAITING
    with pytest.raises(AlreadySettled, match="expired"):
        office.reply(ask, Verb.APPROVE)


def test_an_uncertain_call_never_expires(office: Office) -> None:
    claimed = office.begin(office.start(expires_after=1000))
    task = office.controller.lose(claimed.run)
    office.now += 1000 * A_DAY
    assert office.controller.recover() == []
    assert office.task(task.id).state is TaskState.WAITING


def test_a_question_that_expires_while_its_process_runs_is_a_rejection_too(office: Office) -> None:
    """Silence is never consent, and the script is not run again for nothing."""
    run = office.begin(office.start(expires_after=1000)).run
    office.ask(run)
    office.now += 1000
    office.controller.recover()
    assert office.controller.finish(run, ASKS_10).state is TaskState.FAILED


def test_what_expired_while_the_clock_was_wrong_stays_expired(office: Office) -> None:
    task, _ = office.waiting(expires_after=1000)
    office.now += A_DAY
    office.controller.recover()
    office.now -= 2 * A_DAY
    assert office.controller.recover() == []
    assert office.task(task.id).state is TaskState.FAILED


# --- families ----------------------------------------------------------------------------------------------------------


def test_a_script_that_leaves_because_its_child_waits_is_waiting_on_that_child(office: Office) -> None:
    run = office.begin(office.start()).run
    child = office.start_inside(run)
    parent = office.controller.finish(run, ASKS_10)
    assert parent.state is TaskState.WAITING
    assert office.scene(parent).asks == ()
    assert office.scene(parent).waiting_on == (child.id,)


@pytest.mark.parametrize("exit_", [DONE, FAILED], ids=["succeeded", "failed"])
def test_a_parent_is_queued_when_its_child_has_ended(office: Office, exit_: Exit) -> None:
    run = office.begin(office.start()).run
    child = office.start_inside(run)
    office.controller.finish(run, ASKS_10)
    office.run(child, exit_)
    assert office.task(run.task_id).state is TaskState.QUEUED
    again = office.begin(office.task(run.task_id)).run
    assert office.start_inside(again).id == child.id, "the same start finds the same task"


@pytest.mark.parametrize("way", ["cancel", "reject", "settle"])
def test_a_parent_hears_of_every_end_of_its_child(office: Office, way: str) -> None:
    run = office.begin(office.start()).run
    child = office.start_inside(run)
    office.controller.finish(run, ASKS_10)
    match way:
        case "cancel":
            office.controller.cancel(child.id, by=ME)
        case "reject":
            office.reply(office.open_ask(office.run(child, ASKS_90)), Verb.REJECT)
        case _:
            office.controller.lose(office.begin(child).run)
            office.controller.settle(child.id, 1, Verdict.IT_RAN, by=ME)
    assert office.task(run.task_id).state is TaskState.QUEUED


def test_a_parent_that_went_on_meanwhile_is_still_woken_by_the_child_of_its_first_run(office: Office) -> None:
    run = office.begin(office.start()).run
    child = office.start_inside(run, leaves=False)
    ask = office.ask(run)
    office.controller.finish(run, ASKS_10)
    parent = office.reply(ask, Verb.ANSWER, "eu")
    second = office.begin(parent).run
    assert office.start_inside(second).id == child.id
    assert office.controller.finish(second, ASKS_10).state is TaskState.WAITING
    office.run(child)
    assert office.task(parent.id).state is TaskState.QUEUED


def test_a_parent_waits_for_the_last_of_its_children(office: Office) -> None:
    run = office.begin(office.start()).run
    one, other = office.start_inside(run), office.start_inside(run)
    assert one.id != other.id, "the second start of a key is a second task"
    office.controller.finish(run, ASKS_10)
    office.run(one)
    assert office.task(run.task_id).state is TaskState.WAITING
    office.run(other)
    assert office.task(run.task_id).state is TaskState.QUEUED


def test_a_child_can_end_when_its_parent_was_pruned(office: Office) -> None:
    run = office.begin(office.start()).run
    child = office.start_inside(run)
    office.controller.finish(run, FAILED)
    office.controller.forget(run.task_id, by=ME)
    assert office.run(child).state is TaskState.SUCCEEDED
    office.controller.forget(child.id, by=ME)


def test_a_child_that_its_parent_still_needs_is_not_pruned(office: Office) -> None:
    run = office.begin(office.start()).run
    child = office.start_inside(run)
    office.ask(run)
    office.controller.finish(run, ASKS_10)
    office.run(child)
    with pytest.raises(Conflict, match="still needs it"):
        office.controller.forget(child.id, by=ME)
    assert office.scene_of(run.task_id).waiting_on == ()


# --- finding and forgetting --------------------------------------------------------------------------------------------


def test_a_task_is_found_by_id_checkpoint_run_call_or_any_unique_prefix(office: Office) -> None:
    """A-R5"""
    task, ask = office.waiting()
    (run,) = office.runs(task)
    for name in (task.id, task.id[:8], run.checkpoint_id or "", (run.checkpoint_id or "")[:8], run.id, f"{task.id}.tc_1"):
        assert office.controller.find(name) == task
    assert office.controller.find_ask(ask.id[:8]) == ask


@pytest.mark.parametrize("name", ["", ".", "nobody", "../../x", "--help", "-", "\x1b[31m", "\udcff", "a" * 100_000])
def test_what_nobody_is_called_is_not_found_and_shown_safely(office: Office, name: str) -> None:
    office.waiting()
    for find in (office.controller.find, office.controller.find_ask):
        with pytest.raises(NotFound) as refusal:
            find(name)
        assert refusal.value.sentence.isprintable()


def test_a_prefix_of_several_names_them(office: Office) -> None:
    tasks = [office.start() for _ in range(40)]
    letters = [task.id[0] for task in tasks]
    shared = next(letter for letter in letters if letters.count(letter) > 1)
    with pytest.raises(Ambiguous, match=f"several tasks begin with {shared}"):
        office.controller.find(shared)


def test_an_older_checkpoint_is_refused_and_names_the_newest(office: Office) -> None:
    task, ask = office.waiting()
    office.reply(ask, Verb.APPROVE)
    office.run(task, INTERRUPTED)
    old, new = office.runs(task)
    office.controller.require_newest(new.checkpoint_id or "", office.task(task.id))
    with pytest.raises(StaleCheckpoint) as refusal:
        office.controller.require_newest(old.checkpoint_id or "", office.task(task.id))
    assert refusal.value.way_out == f"adjourn resume {new.checkpoint_id}"


@pytest.mark.parametrize("exit_", [ASKS_90, INTERRUPTED], ids=["waiting", "paused"])
def test_only_what_has_ended_is_pruned(office: Office, exit_: Exit) -> None:
    task = office.run(office.start(), exit_)
    with pytest.raises(Conflict, match="only ended tasks are pruned"):
        office.controller.forget(task.id, by=ME)
    office.controller.cancel(task.id, by=ME)
    office.controller.forget(task.id, by=ME)
    with pytest.raises(NotFound):
        office.controller.find(task.id)


def test_every_refusal_says_what_helps(office: Office) -> None:
    task, ask = office.waiting()
    office.reply(ask, Verb.APPROVE)
    acts: list[Callable[[], object]] = [
        lambda: office.reply(ask, Verb.APPROVE),
        lambda: office.controller.find("nobody"),
        lambda: office.controller.forget(task.id, by=ME),
        lambda: office.controller.settle(task.id, 1, Verdict.IT_RAN, by=ME),
        lambda: office.controller.resume(task.id, Resumption(approve_all=True), by=ME),
    ]
    for act in acts:
        with pytest.raises(AdjournError) as refusal:
            act()
        assert refusal.value.way_out.startswith("adjourn ")
