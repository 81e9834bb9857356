"""The JSON that machines read, key by key."""

import json
from typing import Any

import pytest

from adjourn.core.agent.calls import Report, SessionCheck, Spent
from adjourn.core.ask import Ask
from adjourn.core.call import AUTO_APPROVAL, Call, Command, command_body
from adjourn.core.documents import (
    Manifest,
    ResumabilityDoc,
    ask_doc,
    encoded,
    manifest_of,
    resumability_doc,
    run_doc,
)
from adjourn.core.scene import Scene
from adjourn.core.states import AskState, CallState, TaskState
from adjourn.core.task import PauseReason, Run, RunState, Task
from adjourn.testing.values import (
    NOON,
    a_call,
    a_run,
    a_spec,
    a_task,
    an_approval,
    an_ask,
    an_uncertain_ask,
    settled,
)

HINT = "adjourn resume cp-1 --approve tc_2"
COMMAND = Command(argv=("./deploy.sh",), cwd="/srv/place", env={AUTO_APPROVAL: "approved"})
ALWAYS = {
    "schema_version",
    "outcome",
    "task_id",
    "run_id",
    "checkpoint_id",
    "session_id",
    "state",
    "asks",
}
PAUSED = ALWAYS | {"pause_reason", "paused_at", "agent_message", "resume_hint"}


def shown(
    state: TaskState,
    *asks: Ask,
    run: Run | None = None,
    calls: tuple[Call, ...] = (),
    **fields: Any,
) -> dict[str, Any]:
    """Return the manifest as a machine reads it."""
    children = fields.pop("waiting_on", ())
    task = a_task(state=state, runs=1 if run else 0, **fields)
    scene = Scene(
        task=task,
        run=run,
        asks=asks,
        calls={call.number: call for call in calls},
        waiting_on=children,
    )
    document: dict[str, Any] = json.loads(encoded(manifest_of(scene, hint=HINT)))
    return document


def paused_run(reason: PauseReason, **fields: Any) -> Run:
    return a_run(
        state=RunState.WAITING, checkpoint_id="cp-1", paused_at=NOON, pause_reason=reason, **fields
    )


def waiting_for_approval() -> dict[str, Any]:
    call = a_call(number=2, body=command_body(COMMAND), state=CallState.PENDING)
    ask = an_approval(call=2, manifest='{"plan": 3}')
    return shown(
        TaskState.WAITING, ask, run=paused_run(PauseReason.TOOL_APPROVAL_REQUIRED), calls=(call,)
    )


def test_a_pause_for_approval_has_the_keys_of_the_contract() -> None:
    """A-R24, A-R28"""
    manifest = waiting_for_approval()
    assert set(manifest) == PAUSED
    assert manifest["outcome"] == "paused"
    assert (manifest["checkpoint_id"], manifest["session_id"]) == ("cp-1", "session-of-task-a")
    assert manifest["resume_hint"] == HINT
    assert manifest["agent_message"] == '{"plan": 3}'
    assert (manifest["schema_version"], manifest["task_id"], manifest["run_id"]) == (
        1,
        "task-a",
        "task-a.1",
    )


def test_a_pause_for_approval_lists_the_calls_that_need_a_decision() -> None:
    """A-R25, A-R26, A-R74: `.pause_reason.pending_tool_calls[].id` are the ids to approve."""
    reason = waiting_for_approval()["pause_reason"]
    assert reason["type"] == "tool_approval_required"
    arguments = {"argv": ["./deploy.sh"], "cwd": "/srv/place", "env": {"AUTO_APPROVAL": "approved"}}
    assert reason["pending_tool_calls"] == [
        {"id": "tc_2", "name": "command", "arguments": arguments}
    ]
    assert reason["questions"] == []


def test_a_pause_tells_when_it_began() -> None:
    """A-R49"""
    assert waiting_for_approval()["paused_at"] == "2023-11-14T22:13:20.000Z"


def test_a_pause_for_input_has_a_type_of_its_own_and_no_pending_calls() -> None:
    """A-R27, A-R74: jq finds an empty list there, not null."""
    ask = an_ask(key="region", choices=("eu", "us"))
    manifest = shown(TaskState.WAITING, ask, run=paused_run(PauseReason.INPUT_REQUIRED))
    assert set(manifest) == PAUSED
    assert manifest["pause_reason"] == {
        "type": "input_required",
        "pending_tool_calls": [],
        "questions": [{"question_id": "region", "text": "Which region?", "choices": ["eu", "us"]}],
    }
    assert manifest["agent_message"] == "Which region?"


def test_a_question_without_a_key_is_called_by_its_id() -> None:
    """Every question can be named."""
    manifest = shown(TaskState.WAITING, an_ask(), run=paused_run(PauseReason.INPUT_REQUIRED))
    assert [question["question_id"] for question in manifest["pause_reason"]["questions"]] == [
        "ask-a"
    ]


def test_a_settled_ask_is_told_but_is_no_reason_to_wait() -> None:
    answered = settled(an_ask("ask-1", key="region"), AskState.ANSWERED, reply="eu")
    manifest = shown(
        TaskState.WAITING,
        answered,
        an_ask("ask-2", number=2),
        run=paused_run(PauseReason.INPUT_REQUIRED),
    )
    assert [question["question_id"] for question in manifest["pause_reason"]["questions"]] == [
        "ask-2"
    ]
    assert [(ask["id"], ask["state"], ask["reply"]) for ask in manifest["asks"]] == [
        ("ask-1", "answered", "eu"),
        ("ask-2", "pending", None),
    ]


def test_an_uncertain_call_is_a_question_and_not_a_call_to_approve() -> None:
    ask = an_uncertain_ask(call=1, prompt="did it run?")
    manifest = shown(
        TaskState.WAITING, ask, run=paused_run(PauseReason.INPUT_REQUIRED), calls=(a_call(),)
    )
    assert manifest["pause_reason"]["pending_tool_calls"] == []
    assert manifest["pause_reason"]["type"] == "input_required"


def test_an_interrupt_is_a_pause_without_asks() -> None:
    """D-R39"""
    run = a_run(
        state=RunState.PAUSED,
        checkpoint_id="cp-1",
        paused_at=NOON,
        pause_reason=PauseReason.USER_INTERRUPT,
    )
    manifest = shown(TaskState.PAUSED, run=run)
    assert set(manifest) == PAUSED
    assert manifest["outcome"] == "paused"
    assert manifest["pause_reason"] == {
        "type": "user_interrupt",
        "pending_tool_calls": [],
        "questions": [],
    }
    assert manifest["agent_message"] is None


def test_a_task_that_was_paused_before_it_ever_ran_has_a_manifest_too() -> None:
    manifest = shown(TaskState.PAUSED)
    assert (manifest["run_id"], manifest["checkpoint_id"]) == (None, None)
    assert manifest["paused_at"] == "2023-11-14T22:13:20.000Z"


def test_a_script_that_waits_for_its_children_names_them() -> None:
    manifest = shown(
        TaskState.WAITING,
        run=paused_run(PauseReason.INPUT_REQUIRED),
        waiting_on=("task-b", "task-c"),
    )
    assert set(manifest) == PAUSED | {"waiting_on"}
    assert manifest["waiting_on"] == ["task-b", "task-c"]


def test_a_completion_has_the_keys_of_the_contract() -> None:
    """A-R30"""
    run = a_run(state=RunState.SUCCEEDED, checkpoint_id="cp-9")
    manifest = shown(TaskState.SUCCEEDED, run=run, message="all done")
    assert set(manifest) == ALWAYS | {"final_message", "steps_taken"}
    assert (manifest["outcome"], manifest["checkpoint_id"], manifest["session_id"]) == (
        "completed",
        "cp-9",
        "session-of-task-a",
    )
    assert (manifest["final_message"], manifest["steps_taken"]) == ("all done", 1)


def test_a_silent_completion_says_so() -> None:
    """A-R30: the key is there even if there is nothing to say."""
    assert shown(TaskState.SUCCEEDED, run=a_run())["final_message"] is None


@pytest.mark.parametrize("state", [TaskState.FAILED, TaskState.CANCELED])
def test_a_failure_says_what_why_and_what_helps(state: TaskState) -> None:
    """A-R22"""
    manifest = shown(state, run=a_run(), message="exit code 3")
    assert set(manifest) == ALWAYS | {"error"}
    assert manifest["outcome"] == state
    assert manifest["error"] == {"code": state, "message": "exit code 3", "way_out": HINT}


@pytest.mark.parametrize("state", [TaskState.QUEUED, TaskState.RUNNING])
def test_a_task_that_has_not_left_yet_says_how_to_go_on(state: TaskState) -> None:
    manifest = shown(state)
    assert set(manifest) == ALWAYS | {"resume_hint"}
    assert manifest["outcome"] == state


@pytest.mark.parametrize("state", TaskState)
def test_every_state_has_one_outcome(state: TaskState) -> None:
    """A-R3, A-R21 to A-R23, A-R52: waiting and paused are the one `paused`."""
    outcomes = {
        TaskState.WAITING: "paused",
        TaskState.PAUSED: "paused",
        TaskState.SUCCEEDED: "completed",
    }
    assert shown(state)["outcome"] == outcomes.get(state, state)


def test_the_manifest_is_indented_and_reads_back_as_itself() -> None:
    """A-R31"""
    import msgspec

    scene = Scene(
        task=a_task(state=TaskState.WAITING),
        run=paused_run(PauseReason.INPUT_REQUIRED),
        asks=(an_ask(),),
        calls={},
    )
    manifest = manifest_of(scene, hint=HINT)
    assert msgspec.json.decode(encoded(manifest), type=Manifest) == manifest
    assert encoded(manifest).startswith('{\n  "schema_version": 1,\n  "outcome": "paused",')


def test_an_ask_tells_all_there_is_to_know_of_it() -> None:
    """C-R3: who settled it, when, and with which value."""
    call = a_call(number=2)
    document = json.loads(
        encoded(ask_doc(settled(an_approval(call=2), AskState.APPROVED, reply="canary"), call))
    )
    assert document == {
        "id": "ask-a",
        "task_id": "task-a",
        "run_id": "task-a.1",
        "kind": "approval",
        "state": "approved",
        "why": [],
        "last_lines": None,
        "prompt": "run again?",
        "choices": [],
        "key": None,
        "tool_call_id": "tc_2",
        "digest": call.digest,
        "manifest": None,
        "created_at": "2023-11-14T22:13:20.000Z",
        "settled_at": "2023-11-14T22:13:20.000Z",
        "settled_by": "uid:1000",
        "reply": "canary",
        "level": None,
        "gate": False,
        "terms": {
            "approver": "any",
            "not_requester": False,
            "signed": False,
            "by_name": False,
            "override": False,
            "approvals": 1,
            "approvers": None,
        },
        "replaces": None,
        "expires_at": None,
        "snoozed_until": None,
        "original_digest": None,
        "approvals": None,
        "remind_at": None,
    }


# --- the run record -------------------------------------------------------------------------------

REQUIRED = {
    "run_id",
    "task_id",
    "state",
    "provider",
    "resumable",
    "repo_root",
    "created_at",
    "updated_at",
}
OPTIONAL = {
    "provider_session_ref",
    "paused_at",
    "pause_reason",
    "resumed_from_run_id",
    "restart_of_run_id",
    "superseded_by_run_id",
}


def recorded(run: Run, task: Task | None = None) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(encoded(run_doc(task or a_task(), run)))
    return document


def test_a_run_record_has_exactly_the_required_keys_when_the_rest_is_empty() -> None:
    """D-R33, D-R37, D-R38, D-R41, D-R42: what is empty is left out, and `resumable` never is."""
    assert recorded(a_run()) == {
        "run_id": "task-a.1",
        "task_id": "task-a",
        "state": "running",
        "provider": "command",
        "resumable": False,
        "repo_root": "/srv/place",
        "created_at": "2023-11-14T22:13:20.000Z",
        "updated_at": "2023-11-14T22:13:20.000Z",
    }


def test_what_runs_used_is_added_up_and_a_cost_that_nobody_knows_stays_unknown() -> None:
    one, two = (
        Spent(input_tokens=100, output_tokens=10, cost="0.000600"),
        Spent(input_tokens=5, output_tokens=1, cost="0.1"),
    )
    assert one.plus(two).plus(Spent()) == Spent(input_tokens=105, output_tokens=11, cost="0.100600")
    killed = Report(input_tokens=1, output_tokens=1)
    assert one.plus(killed.spent) == Spent(input_tokens=101, output_tokens=11, cost=None)
    assert json.loads(encoded(run_doc(a_task(), a_run(), report=killed)))["usage"]["cost"] is None


def test_a_session_can_be_resumed_when_nothing_stands_in_the_way() -> None:
    fine, broken = (
        SessionCheck(thing="program", fine=True, says="2.1"),
        SessionCheck(thing="session", fine=False, says="it is gone"),
    )
    assert resumability_doc([], restart="r") is None
    assert resumability_doc([fine], restart="r") == ResumabilityDoc(
        can_be_resumed=True, looks=(fine,), way_out=None
    )
    assert resumability_doc([fine, broken], restart="r") == ResumabilityDoc(
        can_be_resumed=False, looks=(fine, broken), way_out="r"
    )


def test_a_run_record_names_its_pause_and_its_kin() -> None:
    """D-R39, D-R40, D-R42"""
    run = a_run(
        number=3,
        state=RunState.PAUSED,
        paused_at=NOON,
        pause_reason=PauseReason.USER_INTERRUPT,
        resumed_from=2,
        restart_of=1,
        superseded_by=4,
    )
    record = recorded(run)
    assert set(record) - REQUIRED == OPTIONAL - {"provider_session_ref"}
    assert (record["paused_at"], record["pause_reason"]) == (
        "2023-11-14T22:13:20.000Z",
        "user_interrupt",
    )
    kin = ("resumed_from_run_id", "restart_of_run_id", "superseded_by_run_id")
    assert [record[name] for name in kin] == ["task-a.2", "task-a.1", "task-a.4"]


@pytest.mark.parametrize("state", RunState)
def test_a_run_is_in_one_of_six_states(state: RunState) -> None:
    """D-R34"""
    assert set(RunState) == {"running", "waiting", "paused", "succeeded", "failed", "canceled"}
    assert recorded(a_run(state=state))["state"] == state


@pytest.mark.parametrize("state", [RunState.PAUSED, RunState.WAITING])
def test_the_last_run_of_a_task_that_left_can_be_resumed(state: RunState) -> None:
    """D-R37, D-R49"""
    assert recorded(a_run(state=state), a_task(state=TaskState(state), runs=1))["resumable"] is True


@pytest.mark.parametrize(
    ("run", "task"),
    [
        (a_run(), a_task(state=TaskState.RUNNING, runs=1)),
        (a_run(state=RunState.SUCCEEDED), a_task(state=TaskState.SUCCEEDED, runs=1)),
        (a_run(state=RunState.FAILED), a_task(state=TaskState.FAILED, runs=1)),
        (a_run(state=RunState.PAUSED), a_task(state=TaskState.WAITING, runs=2)),
        (a_run(state=RunState.PAUSED), a_task(state=TaskState.CANCELED, runs=1)),
        (a_run(state=RunState.WAITING), a_task(state=TaskState.FAILED, runs=1)),
        (a_run(state=RunState.PAUSED, superseded_by=2), a_task(state=TaskState.RUNNING, runs=2)),
        (
            a_run(state=RunState.PAUSED),
            a_task(state=TaskState.PAUSED, runs=1, session_id="another, since a restart"),
        ),
    ],
    ids=[
        "running",
        "succeeded",
        "failed",
        "gone on from",
        "canceled",
        "rejected",
        "superseded",
        "restarted",
    ],
)
def test_no_other_run_can_be_resumed(run: Run, task: Task) -> None:
    """D-R37, D-R49"""
    assert recorded(run, task)["resumable"] is False


def test_a_run_record_tells_how_the_process_ended() -> None:
    record = recorded(
        a_run(state=RunState.FAILED, exit_code=3, message="exit code 3", checkpoint_id="cp-1")
    )
    assert (record["exit_code"], record["message"], record["checkpoint_id"]) == (
        3,
        "exit code 3",
        "cp-1",
    )
    assert recorded(a_run(state=RunState.FAILED, signal=9))["signal"] == 9
    assert recorded(a_run(exit_code=0))["exit_code"] == 0, "0 is something to say"


@pytest.mark.parametrize("runner", ["codex", "claude", "agent", "command"])
def test_the_provider_of_a_run_is_its_runner(runner: str) -> None:
    """D-R35, D-R36: with the name that the provider gave to its session, if it gave one."""
    task = a_task(spec=a_spec(runner=runner))
    assert recorded(a_run(), task)["provider"] == runner
    assert recorded(a_run(session_ref="5f0c"), task)["provider_session_ref"] == "5f0c"


def test_the_keys_of_a_run_record_come_in_the_order_of_the_contract() -> None:
    """D-R42: those of the struct in its order; what adjourn adds comes after them."""
    struct = (
        *(
            "run_id",
            "task_id",
            "state",
            "provider",
            "provider_session_ref",
            "resumable",
            "repo_root",
            "created_at",
            "updated_at",
        ),
        *(
            "paused_at",
            "pause_reason",
            "resumed_from_run_id",
            "restart_of_run_id",
            "superseded_by_run_id",
        ),
    )
    whole = a_run(
        number=3,
        session_ref="5f0c",
        paused_at=NOON,
        pause_reason=PauseReason.USER_INTERRUPT,
        exit_code=1,
        resumed_from=2,
        restart_of=1,
        superseded_by=4,
    )
    assert tuple(recorded(whole))[: len(struct)] == struct
    assert set(struct) == REQUIRED | OPTIONAL


def test_the_workspace_of_a_run_is_that_of_its_task() -> None:
    """D-R41"""
    assert (
        recorded(a_run(), a_task(spec=a_spec(workspace="/elsewhere")))["repo_root"] == "/elsewhere"
    )
