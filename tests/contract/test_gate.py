"""What stands between an approval and a start.

Files, policies, the bytes themselves, and that an approval serves once.
"""

import random
from collections.abc import Callable
from itertools import count

import msgspec
import pytest

from adjourn.controller.runs import Claimed
from adjourn.core.ask import ApprovalAsk, Reply, Verb
from adjourn.core.call import Command, command_body, command_of
from adjourn.core.errors import AdjournError, AlreadySettled, Conflict
from adjourn.core.policy.policy import NO_POLICY
from adjourn.core.resumption import Resumption
from adjourn.core.states import AskState, CallState, TaskState
from adjourn.core.task import Task
from adjourn.stores.postgres.ask_rows import PostgresRows
from adjourn.stores.sqlite.database import SqliteRows
from tests.contract.office import ASKS_90, INTERRUPTED, ME, Office
from tests.unit.policies import policy as policy_of

NEVER = '[[rule]]\naction = "never"'
IDEMPOTENT = '[[rule]]\nargs = ["**"]\neffect = "idempotent"'


def gated(office: Office, **words: object) -> tuple[Task, ApprovalAsk]:
    """Return a task whose command waits to be let through, and what is asked."""
    office.disk.files = {"/bin/deploy": "sha256:1"}
    task = office.start(pause_on_approval=True, **words)
    return task, office.open_approval(task)


def approved(office: Office) -> Task:
    _, ask = gated(office)
    return office.reply(ask, Verb.APPROVE)


def test_a_gate_asks_before_there_is_any_process(office: Office) -> None:
    """A-R13: nothing runs before the pause."""
    task, ask = gated(office)
    assert task.state is TaskState.WAITING
    assert ask.gate
    (run,) = office.runs(task)
    assert (run.shim, run.exit_code, bool(run.checkpoint_id)) == (None, None, True)


def test_an_approval_starts_the_very_bytes_that_were_shown(office: Office) -> None:
    task, ask = gated(office)
    shown = office.scene(task).calls[ask.call].body
    claimed = office.begin(office.reply(ask, Verb.APPROVE))
    assert claimed.call.body == shown


def _changed_file(office: Office, _task: Task) -> None:
    office.disk.files = {"/bin/deploy": "sha256:2"}


def _new_file(office: Office, _task: Task) -> None:
    office.disk.files = {"/bin/deploy": "sha256:1", "/etc/plan": "sha256:3"}


def _file_gone(office: Office, _task: Task) -> None:
    office.disk.files = {}


def _stricter_policy(office: Office, _task: Task) -> None:
    office.rules.policy = policy_of('[[rule]]\napprover = "human"')


def _never(office: Office, _task: Task) -> None:
    office.rules.policy = policy_of(NEVER)


def _rejecting_policy(office: Office, _task: Task) -> None:
    office.rules.policy = policy_of('never = "reject"\n' + NEVER)


def _other_bytes(office: Office, task: Task) -> None:
    """Change the stored bytes behind the controller's back, as no one may."""
    with office.controller.store.change() as tx:
        call = tx.call(task.id, task.next_call or 0)
        body = command_body(Command(argv=("evil",), cwd="/"))
        if isinstance(tx, SqliteRows | PostgresRows):
            tx._execute("update_call_body", tx._key(task.id, call.number), body)
        else:
            tx.save_call(call, msgspec.structs.replace(call, body=body, version=call.version + 1))


CHANGES: list[Callable[[Office, Task], None]] = [
    _changed_file,
    _new_file,
    _file_gone,
    _stricter_policy,
    _never,
    _rejecting_policy,
    _other_bytes,
]


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_is_bound_and_changes_between_decision_and_start_does_not_start(
    office: Office, change: Callable[[Office, Task], None]
) -> None:
    task = approved(office)
    change(office, task)
    try:
        claimed: object = office.controller.runs.claim(task.id, supervisor="anna-0")
    except AdjournError:
        claimed = None
    assert not isinstance(claimed, Claimed)
    assert office.task(task.id).state is not TaskState.RUNNING
    with office.controller.store.read() as view:
        assert not [
            call
            for call in view.calls(task.id)
            if call.state in {CallState.CLAIMED, CallState.EXECUTING}
        ]
        assert not view.calls_in(task.id, CallState.APPROVED)


def test_bytes_that_were_changed_in_the_store_are_noticed(office: Office) -> None:
    task = approved(office)
    _other_bytes(office, task)
    assert isinstance(office.controller.runs.claim(task.id, supervisor="anna-0"), Task)
    ask = office.open_approval(task)
    assert "changed in the store" in ask.prompt
    assert command_of(office.scene(task).calls[ask.call].body).argv == task.spec.argv


def test_what_replaces_an_ask_names_it_and_the_old_one_names_what_came(office: Office) -> None:
    task, old = gated(office)
    task = office.reply(old, Verb.APPROVE)
    _changed_file(office, task)
    office.controller.runs.claim(task.id, supervisor="anna-0")
    new = office.open_approval(task)
    assert new.replaces == old.id
    assert "/bin/deploy was sha256:1 and is sha256:2" in new.prompt
    with office.controller.store.read() as view:
        assert view.ask(old.id).state is AskState.WITHDRAWN
    with pytest.raises(AlreadySettled, match=new.id):
        office.reply(old, Verb.APPROVE)


def test_a_thousand_replays_start_nothing_a_second_time(office: Office) -> None:
    """Whatever is said again, in whatever order, an approval serves once."""
    task, ask = gated(office)
    office.run(office.reply(ask, Verb.APPROVE))
    chance, starts = random.Random(1), 0
    digest = office.scene(task).calls[1].digest if 1 in office.scene(task).calls else None
    replays: list[Callable[[], object]] = [
        lambda: office.reply(ask, Verb.APPROVE),
        lambda: office.reply(ask, Verb.REJECT),
        lambda: office.controller.decisions.decide(
            [Reply(ask_id=ask.id, verb=Verb.APPROVE, digest=digest)] * 2, by=ME
        ),
        lambda: office.controller.tasks.resume(task.id, Resumption(approve_all=True), by=ME),
        lambda: office.controller.tasks.resume(
            task.id, Resumption(approve=("tc_1",)), by=ME, supervisor="bela-0"
        ),
        lambda: office.controller.tasks.resume(task.id, by=ME),
        lambda: office.controller.runs.claim(task.id, supervisor="bela-0"),
        office.controller.runs.recover,
    ]
    for _ in range(1_000):
        try:
            starts += isinstance(chance.choice(replays)(), Claimed)
        except AdjournError:
            continue
    assert starts == 0
    assert office.task(task.id).state is TaskState.SUCCEEDED
    with office.controller.store.read() as view:
        assert [call.state for call in view.calls(task.id)] == [CallState.DONE]


def test_approve_all_does_not_cover_an_ask_that_came_in_the_meantime(office: Office) -> None:
    """Whoever names a checkpoint decides what that one asked, and nothing else."""
    task, first = gated(office)
    seen = office.runs(task)[-1].checkpoint_id or ""
    office.reply(first, Verb.APPROVE)
    _changed_file(office, task)
    office.controller.runs.claim(task.id, supervisor="anna-0")
    with pytest.raises(Conflict, match="not the newest"):
        office.controller.tasks.resume(task.id, Resumption(approve_all=True), by=ME, named=seen)
    assert office.open_ask(task).id != first.id


@pytest.mark.parametrize("effect", ["read_only", "idempotent"])
def test_a_lost_command_that_does_no_harm_twice_is_run_again(office: Office, effect: str) -> None:
    office.rules.policy = policy_of(f'[[rule]]\nargs = ["**"]\neffect = "{effect}"')
    claimed = office.begin(office.start())
    assert office.controller.runs.lose(claimed.run).state is TaskState.QUEUED


def test_a_lost_command_of_unknown_effect_is_a_persons_question(office: Office) -> None:
    office.rules.policy = policy_of('[[rule]]\naction = "prompt"')
    claimed = office.begin(office.start())
    assert office.controller.runs.lose(claimed.run).state is TaskState.WAITING


def test_a_command_that_is_lost_again_and_again_is_a_persons_question_in_the_end(
    office: Office,
) -> None:
    """C-R12: three tries."""
    office.rules.policy = policy_of(IDEMPOTENT)
    task = office.start()
    lost = next(
        number
        for number in count(1)
        if office.controller.runs.lose(office.begin(task).run).state is TaskState.WAITING
    )
    assert lost == 3


def test_a_policy_that_was_weakened_does_not_make_a_lost_command_run_again(office: Office) -> None:
    claimed = office.begin(office.start())
    office.rules.policy = policy_of(IDEMPOTENT)
    assert office.controller.runs.lose(claimed.run).state is TaskState.WAITING


def test_an_unspent_approval_survives_a_pause_in_the_queue(office: Office) -> None:
    task = approved(office)
    office.controller.tasks.pause(task.id, by=ME)
    assert office.controller.tasks.resume(task.id, by=ME).state is TaskState.QUEUED
    office.run(task)
    with office.controller.store.read() as view:
        assert [call.state for call in view.calls(task.id)] == [CallState.DONE]


def test_a_spent_approval_is_not_used_twice(office: Office) -> None:
    task = approved(office)
    paused = office.controller.runs.finish(office.begin(task).run, INTERRUPTED)
    assert paused.state is TaskState.PAUSED
    again = office.controller.tasks.resume(task.id, by=ME)
    assert again.state is TaskState.WAITING
    assert office.open_approval(again).gate


def test_a_restart_without_a_gate_heeds_a_policy_that_forbids_now(office: Office) -> None:
    task = office.run(office.start())
    office.rules.policy = policy_of(NEVER)
    again = office.controller.tasks.restart(
        task.id, by=ME, workspace=task.spec.workspace, supervisor="anna-0"
    )
    assert again.state is TaskState.FAILED
    assert "never allows" in (again.message or "")


def test_a_tools_own_ask_expires_as_the_policy_says(office: Office) -> None:
    """Part 2 row 6, C-R11: whichever is shorter, the task's span or the policy's."""
    office.rules.policy = policy_of('[[rule]]\nexpires_after = "1m"')
    task = office.run(office.start(expires_after=3_600_000), ASKS_90)
    assert office.open_approval(task).expires_at == office.now + 60_000


def test_a_task_keeps_the_policy_that_it_began_under(office: Office) -> None:
    office.rules.policy = policy_of('[[rule]]\nargs = ["**"]\naction = "auto"')
    task = office.start(pause_on_approval=True)
    assert task.state is TaskState.QUEUED
    office.rules.policy = NO_POLICY
    assert isinstance(office.controller.runs.claim(task.id, supervisor="anna-0"), Task)
    assert office.open_approval(task).gate
