"""What the controller promises, over every store.

How tasks begin, what people decide, and who may.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from adjourn.core.ask import Principal, Reply, Verb, Verdict, expiry_of
from adjourn.core.call import Command, canonical, command_of
from adjourn.core.errors import (
    AlreadySettled,
    Conflict,
    Misuse,
    MoveRefused,
    NotAllowed,
    NothingRecorded,
)
from adjourn.core.kept_documents import ORIGINAL
from adjourn.core.outcome import Exit
from adjourn.core.resumption import Resumption
from adjourn.core.states import AskState, TaskState
from adjourn.core.task import OnRejection, RunState
from adjourn.core.trail.events import first_broken
from adjourn.ports.world import NeverStarted
from adjourn.testing.values import A_DAY
from tests.contract.office import ASKS_10, ASKS_90, DONE, FAILED, INTERRUPTED, ME, YOU, Office

# --- a whole life ---------------------------------------------------------------------------------


def test_a_task_keeps_its_id_through_pauses_of_every_kind(office: Office) -> None:
    """A-R50, A-R55, A-R56, A-R58, A-R61.

    Approval, question, interrupt, completion; one task, four runs.
    """
    task, ask = office.waiting()
    assert office.reply(ask, Verb.APPROVE).state is TaskState.QUEUED
    asked = office.run(task, ASKS_10, asking=("region",))
    assert office.reply(office.open_ask(asked), Verb.ANSWER, "eu").state is TaskState.QUEUED
    assert office.run(task, INTERRUPTED).state is TaskState.PAUSED
    assert office.controller.tasks.resume(task.id, by=ME).state is TaskState.QUEUED
    done = office.run(task)
    assert (done.id, done.state, done.message) == (task.id, TaskState.SUCCEEDED, "all done")
    runs = office.runs(task)
    assert [run.state for run in runs] == [
        RunState.WAITING,
        RunState.WAITING,
        RunState.PAUSED,
        RunState.SUCCEEDED,
    ]
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
    office.controller.runs.recover()
    assert office.task(task.id) == task
    assert office.reply(ask, Verb.APPROVE).state is TaskState.QUEUED


def test_whatever_happens_is_written_down_with_who_did_it(office: Office) -> None:
    """A-R84, C-R11: starts, exits, decisions and resumes are audit-logged, in a chain that closes."""
    task, ask = office.waiting()
    office.reply(ask, Verb.APPROVE, by=YOU)
    office.run(task, INTERRUPTED)
    office.controller.tasks.resume(task.id, by=YOU)
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


# --- approvals ------------------------------------------------------------------------------------


def test_an_approval_runs_the_same_command_again_with_the_value(office: Office) -> None:
    """C-R4, C-R8: AUTO_APPROVAL carries the chosen value."""
    task, ask = office.waiting()
    office.reply(ask, Verb.APPROVE, "canary")
    command = command_of(office.begin(task).call.body)
    assert command == Command(
        argv=task.spec.argv, cwd=task.spec.workspace, env={"AUTO_APPROVAL": "canary"}
    )


def test_without_a_value_it_is_approved(office: Office) -> None:
    """C-R8"""
    task, ask = office.waiting()
    office.reply(ask, Verb.APPROVE)
    assert command_of(office.begin(task).call.body).env == {"AUTO_APPROVAL": "approved"}


def test_the_decision_can_be_an_argument_too(office: Office) -> None:
    """C-R9"""
    task, ask = office.waiting(decision_arg=True)
    office.reply(ask, Verb.APPROVE, "canary")
    assert command_of(office.begin(task).call.body).argv == (
        *task.spec.argv,
        "--approval-decision=canary",
    )


def test_only_the_run_that_a_decision_started_has_the_decision(office: Office) -> None:
    """Neither the first run nor one after an interrupt: an approval is used once."""
    first = office.begin(office.start())
    assert command_of(first.call.body).env == {}
    task = office.controller.runs.finish(first.run, ASKS_90)
    office.reply(office.open_ask(task), Verb.APPROVE)
    office.run(task, INTERRUPTED)
    office.controller.tasks.resume(task.id, by=ME)
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
    assert office.open_approval(again).manifest == '{"plan": 2}'


def test_a_decision_binds_to_what_was_shown(office: Office) -> None:
    task, ask = office.waiting()
    with pytest.raises(Conflict, match="not the one that was shown"):
        office.controller.decisions.decide(
            [Reply(ask_id=ask.id, verb=Verb.APPROVE, digest="00" * 32)], by=ME
        )
    digest = office.scene(task).calls[ask.call].digest
    office.controller.decisions.decide(
        [Reply(ask_id=ask.id, verb=Verb.APPROVE, digest=digest)], by=ME
    )


@pytest.mark.parametrize("second", [Verb.APPROVE, Verb.REJECT])
@pytest.mark.parametrize("first", [Verb.APPROVE, Verb.REJECT])
def test_the_second_to_decide_is_told_who_when_and_what(
    office: Office, first: Verb, second: Verb
) -> None:
    """C-R14"""
    _, ask = office.waiting()
    office.reply(ask, first, "words")
    with pytest.raises(
        AlreadySettled, match=rf"{first[:6]}\w* by uid:1000 at 2023-11-14T22:13:20.000Z \(words\)"
    ):
        office.reply(ask, second, by=YOU)


def test_of_several_replies_all_count_or_none(office: Office) -> None:
    task, one = office.waiting()
    _, other = office.waiting()
    replies = [
        Reply(ask_id=one.id, verb=Verb.APPROVE),
        Reply(ask_id=other.id, verb=Verb.ANSWER, text="eu"),
    ]
    with pytest.raises(NothingRecorded, match="1 of 2 do not fit") as refused:
        office.controller.decisions.decide(replies, by=ME)
    assert [(item.ask_id, item.result) for item in refused.value.items] == [
        (one.id, "would be approved"),
        (other.id, "refused"),
    ]
    assert isinstance(refused.value.items[1].error, Misuse)
    assert refused.value.exit_code == Misuse.exit_code
    assert office.task(task.id) == task


def test_an_edit_changes_the_call_and_the_task_in_one_step(office: Office) -> None:
    """Both versions are kept; whatever follows, the original is never what runs."""
    task, ask = office.waiting(argv=("./deploy.sh", "prod"), decision_arg=True)
    before = office.scene(task).calls[ask.call]
    arguments = canonical({"argv": ["./deploy.sh", "test"], "cwd": "/srv/other"})
    office.controller.decisions.decide(
        [Reply(ask_id=ask.id, verb=Verb.APPROVE, text="yes", edited=arguments)], by=ME
    )
    claimed = office.begin(office.task(task.id))
    assert command_of(claimed.call.body).argv == ("./deploy.sh", "test", "--approval-decision=yes")
    assert command_of(claimed.call.body).cwd == "/srv/other"
    assert (
        office.controller.documents.read(task.id, ORIGINAL.of(before.tool_call_id)) == before.body
    )
    (told,) = [event.facts for event in office.events(task) if event.kind == "call_edited"]
    assert told["was"] == before.digest
    again = office.controller.runs.finish(claimed.run, INTERRUPTED)
    office.controller.tasks.resume(again.id, by=ME)
    resumed = office.begin(office.task(task.id))
    assert command_of(resumed.call.body).argv[:2] == ("./deploy.sh", "test")
    assert command_of(resumed.call.body).cwd == "/srv/other"


@pytest.mark.parametrize(
    "arguments",
    [
        {"argv": [], "cwd": "/"},
        {"argv": ["./deploy.sh", "--env", "prod"], "cwd": "/srv/place"},
        {"x": 1},
    ],
)
def test_an_edit_that_does_not_fit_changes_nothing(
    office: Office, arguments: dict[str, Any]
) -> None:
    task, ask = office.waiting()
    events = office.events(task)
    with pytest.raises(Misuse):
        office.controller.decisions.decide(
            [Reply(ask_id=ask.id, verb=Verb.APPROVE, edited=canonical(arguments))], by=ME
        )
    assert (office.task(task.id), office.events(task)) == (task, events)


def test_an_edit_of_another_call_than_the_one_shown_is_refused(office: Office) -> None:
    _, ask = office.waiting()
    reply = Reply(
        ask_id=ask.id,
        verb=Verb.APPROVE,
        digest="0" * 64,
        edited=canonical({"argv": ["x"], "cwd": "/"}),
        files={},
    )
    with pytest.raises(Conflict, match="not the one that was shown"):
        office.controller.decisions.decide([reply], by=ME)


def test_a_snooze_decides_nothing_and_puts_off_nothing(office: Office) -> None:
    task, ask = office.waiting(expires_after=1000)
    (snoozed,) = office.controller.decisions.snooze(
        [ask.id, ask.id], until=office.now + 5000, by=ME
    )
    assert (snoozed.state, expiry_of(snoozed)) == (ask.state, ask.expires_at)
    assert office.task(task.id) == task
    with pytest.raises(Misuse):
        office.controller.decisions.snooze([ask.id], until=office.now, by=ME)
    with pytest.raises(NotAllowed):
        office.controller.decisions.snooze(
            [ask.id], until=None, by=Principal(name="uid:1000", inside_run="x.1")
        )
    office.now += 1001
    office.controller.runs.recover()
    assert office.task(task.id).state is TaskState.FAILED
    with pytest.raises(AlreadySettled):
        office.controller.decisions.snooze([ask.id], until=None, by=ME)


def test_the_inbox_waits_for_every_ask_but_a_resume_is_final(office: Office) -> None:
    """A-R47: what a resume does not name is rejected; what one reply does not name stays open."""
    task = office.run(office.start(), ASKS_10, asking=("region", "size"))
    region, _ = office.scene(task).open_asks
    assert office.reply(region, Verb.ANSWER, "eu").state is TaskState.WAITING
    assert (
        office.controller.tasks.resume(task.id, Resumption(text="big"), by=ME).state
        is TaskState.QUEUED
    )


# --- questions ------------------------------------------------------------------------------------


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
    assert office.controller.runs.finish(run, ASKS_10).state is TaskState.QUEUED


def test_an_answer_outlives_a_crash_of_whoever_was_to_read_it(office: Office) -> None:
    task = office.run(office.start(), ASKS_10, asking=("region",))
    office.reply(office.open_ask(task), Verb.ANSWER, "eu")
    office.processes.of_run[office.begin(task).run.id].state = NeverStarted()
    office.processes.kill("anna-0")
    (recovered,) = office.controller.runs.recover()
    assert recovered.state is TaskState.QUEUED
    assert office.ask(office.begin(task, supervisor="bela-0").run).reply == "eu"


def test_a_restart_asks_again(office: Office) -> None:
    """D-R31: nothing of the old session is used."""
    task = office.run(office.start(), ASKS_10, asking=("region",))
    office.reply(office.open_ask(task), Verb.ANSWER, "eu")
    office.run(task, FAILED)
    office.controller.tasks.restart(task.id, by=ME, workspace=task.spec.workspace)
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
    with pytest.raises(Misuse, match="is a question: use `answer`"):
        office.reply(ask, verb, "eu")
    office.reply(ask, Verb.ANSWER, "eu")


# --- who may --------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", Verb)
def test_what_runs_under_adjourn_may_ask_and_never_decide(office: Office, verb: Verb) -> None:
    task, ask = office.waiting()
    inside = Principal(name="uid:1000", inside_run=f"{task.id}.1")
    with pytest.raises(NotAllowed):
        office.reply(ask, verb, by=inside)
    with pytest.raises(NotAllowed):
        office.controller.tasks.resume(task.id, Resumption(approve_all=True), by=inside)
    with pytest.raises(NotAllowed):
        office.controller.tasks.settle(task.id, 1, Verdict.IT_RAN, by=inside)
    assert office.task(task.id) == task


@pytest.mark.parametrize("act", ["pause", "cancel", "restart"])
def test_a_run_may_stop_what_it_started_and_nothing_else(office: Office, act: str) -> None:
    run = office.begin(office.start()).run
    own, foreign = office.start_inside(run), office.start()
    if act == "restart":
        for task in (own, foreign):
            office.controller.tasks.cancel(task.id, by=ME)
    options = {"by": Principal(name="uid:1000", inside_run=run.id)} | (
        {"workspace": "/w"} if act == "restart" else {}
    )
    getattr(office.controller.tasks, act)(own.id, **options)
    for task_id in (foreign.id, run.task_id):
        with pytest.raises((NotAllowed, MoveRefused)):
            getattr(office.controller.tasks, act)(task_id, **options)


# --- starting -------------------------------------------------------------------------------------


def test_of_two_who_start_one_gets_it(office: Office) -> None:
    task = office.start()
    office.claim(task)
    with pytest.raises(MoveRefused):
        office.claim(task, supervisor="bela-0")
    assert [run.supervisor for run in office.runs(task)] == ["anna-0"]


@pytest.mark.parametrize(
    "exit_", [DONE, FAILED, INTERRUPTED, ASKS_90], ids=["succeeded", "failed", "paused", "waiting"]
)
def test_nothing_starts_by_itself(office: Office, exit_: Exit) -> None:
    """A-R60, D-R6, D-R7, D-R30, D-R60: going on takes a person."""
    task = office.run(office.start(), exit_)
    office.controller.runs.recover()
    with pytest.raises(MoveRefused):
        office.claim(task)
    assert len(office.runs(task)) == 1


@pytest.mark.parametrize("exit_", [DONE, FAILED], ids=["succeeded", "failed"])
def test_what_has_ended_cannot_be_resumed(office: Office, exit_: Exit) -> None:
    """A-R60, D-R16: an error, and nothing starts."""
    task = office.run(office.start(), exit_)
    with pytest.raises(Conflict, match="there is nothing to resume") as refusal:
        office.controller.tasks.resume(task.id, by=ME)
    assert refusal.value.way_out == f"adjourn restart {task.id}"


def test_what_runs_cannot_be_resumed(office: Office) -> None:
    """A-R60"""
    task = office.start()
    office.begin(task)
    with pytest.raises(Conflict, match="running"):
        office.controller.tasks.resume(task.id, by=ME)


def test_a_plain_resume_of_what_waits_changes_nothing(office: Office) -> None:
    task, _ = office.waiting()
    assert office.controller.tasks.resume(task.id, by=ME) == task == office.task(task.id)
