"""Times are those of the database's clock: no login decides late by writing an earlier time."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors

from adjourn.core.ask import Verb
from adjourn.core.states import AskState, TaskState
from adjourn.core.trail.events import Event
from adjourn.stores.postgres.batch import SCHEMA
from adjourn.stores.shapes import event_body
from tests.contract.office import Office
from tests.shared.conftest import Roles, as_role  # noqa: F401 -- a fixture
from tests.shared.test_roles import offices  # noqa: F401 -- a fixture

pytestmark = pytest.mark.xdist_group("roles")  # they belong to the whole server: one at a time

Login = psycopg.Connection[tuple[object, ...]]
HOUR = 3_600_000
SETTLE = """
SELECT adjourn.write_ask(no, %(state)s, call, expires_at, %(settled_at)s, %(by)s, NULL, NULL, given, remind_at, body)
FROM adjourn.ask WHERE id = %(ask)s
"""
APPROVE = """
SELECT adjourn.write_call(call.no, 'approved', call.version + 1, digest, NULL, %(by)s, label, call.body)
FROM adjourn.call JOIN adjourn.ask ON call.no = ((ask.no >> 20) << 20) + ask.call WHERE ask.id = %(ask)s
"""
TELL = f"""
SELECT adjourn.seal_events({SCHEMA}, ARRAY[no >> 20], ARRAY[%(event)s::bytea], ARRAY['\\x00'::bytea])
FROM adjourn.ask WHERE id = %(ask)s
"""  # noqa: S608 -- a number of ours


@pytest.fixture
def anna(as_role: Roles) -> Iterator[Login]:  # noqa: F811 -- the fixture
    with psycopg.connect(as_role("anna", of="approver"), autocommit=True) as login:
        yield login


def move_deadline(database: str, ask: str, after: int) -> int:
    """Have an ask end in so many milliseconds from now, and return the time."""
    with psycopg.connect(database, autocommit=True) as owner:
        ((now,),) = owner.execute(
            "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
        ).fetchall()
        owner.execute("UPDATE adjourn.ask SET expires_at = %s WHERE id = %s", [now + after, ask])
    return int(now)


def settle(
    login: Login, task: str, ask: str, state: str, *, at: int, told_at: int | None = None
) -> None:
    """Settle an ask with everything that belongs to it."""
    by = f"db:{login.info.user}"
    told = Event(
        task_id=task,
        kind=f"ask_{state}",
        by=by,
        at=at if told_at is None else told_at,
        facts={"ask": ask},
    )
    values = {"state": state, "settled_at": at, "by": by, "ask": ask, "event": event_body(told)}
    with login.transaction():
        for statement in (SETTLE, *((APPROVE,) if state == "approved" else ()), TELL):
            login.execute(statement.encode(), values)


@pytest.mark.parametrize("state", ["approved", "rejected"])
def test_nobody_decides_after_the_deadline_by_writing_an_earlier_time(
    offices: dict[str, Office],  # noqa: F811 -- the fixture
    database: str,
    anna: Login,
    state: str,
) -> None:
    worker = offices["worker"]
    task = worker.start(pause_on_approval=True)
    ask = worker.open_ask(task)
    now = move_deadline(database, ask.id, -2 * 60_000)
    for at in (now, now - 3 * 60_000, 1, ask.created_at):
        with pytest.raises(errors.InsufficientPrivilege):
            settle(anna, task.id, ask.id, state, at=at)
    now = move_deadline(database, ask.id, HOUR)
    settle(anna, task.id, ask.id, state, at=now)  # the same statements in time
    assert worker.scene_of(task.id).asks[-1].state.value == state


@pytest.mark.parametrize("role", ["approver", "worker"])
def test_nobody_answers_after_the_deadline(
    offices: dict[str, Office],  # noqa: F811 -- the fixture
    database: str,
    role: str,
) -> None:
    worker = offices["worker"]
    run = worker.begin(worker.start()).run
    ask = worker.ask(run)
    office = offices[role]
    move_deadline(database, ask.id, -2 * 60_000)
    with pytest.raises(Exception, match="expired"):
        office.reply(ask, Verb.ANSWER, "eu")
    move_deadline(database, ask.id, HOUR)
    office.reply(ask, Verb.ANSWER, "eu")


def test_a_decision_has_the_time_at_which_it_was_made(
    offices: dict[str, Office],  # noqa: F811 -- the fixture
    database: str,
    anna: Login,
) -> None:
    """In its row and in the trail: neither an earlier time nor a later one."""
    worker = offices["worker"]
    task = worker.start(pause_on_approval=True)
    ask = worker.open_ask(task)
    now = move_deadline(database, ask.id, HOUR)
    for at, told_at in (
        (now - HOUR, now),
        (now + HOUR, now),
        (now, now - HOUR),
        (now, now + HOUR),
        (1, 1),
        (now, 1),
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            settle(anna, task.id, ask.id, "approved", at=at, told_at=told_at)
    assert worker.task(task.id).state is TaskState.WAITING


@pytest.mark.parametrize("role", ["approver", "worker"])
def test_nobody_has_an_ask_expire_before_its_time(
    offices: dict[str, Office],  # noqa: F811 -- the fixture
    as_role: Roles,  # noqa: F811 -- the fixture
    database: str,
    role: str,
) -> None:
    worker, office = offices["worker"], offices[role]
    task = worker.start(pause_on_approval=True)
    ask = worker.open_ask(task)
    for after in (HOUR, None):
        if after:
            move_deadline(database, ask.id, after)
        with (
            psycopg.connect(as_role(f"early_{after or 0}", of=role), autocommit=True) as login,
            pytest.raises(errors.InsufficientPrivilege),
        ):
            settle(login, task.id, ask.id, "expired", at=office.now)
    move_deadline(database, ask.id, -2 * 60_000)
    office.controller.runs.recover()
    assert worker.scene_of(task.id).asks[-1].state is AskState.EXPIRED
