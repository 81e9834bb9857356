"""Every function that runs as the owner, called by every role with what it is not meant for.

Nothing that is decided changes.
"""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors

from adjourn.core.ask import Verb
from adjourn.core.states import TaskState
from adjourn.stores.postgres.batch import SCHEMA
from adjourn.stores.postgres.store import PostgresStore
from tests.contract.office import Office
from tests.shared.conftest import Roles, as_role  # noqa: F401 -- a fixture
from tests.shared.test_roles import offices  # noqa: F401 -- a fixture

pytestmark = pytest.mark.xdist_group("roles")  # they belong to the whole server: one at a time

Login = psycopg.Connection[tuple[Any, ...]]
ROLES = ("agent", "agent of a run", "approver", "worker")
FUNCTIONS = """
SELECT proname, ARRAY(SELECT format_type(kind, NULL) FROM unnest(proargtypes) AS kind) FROM pg_proc
WHERE pronamespace = 'adjourn'::regnamespace AND prosecdef AND has_function_privilege(oid, 'EXECUTE')
    AND proname != 'lock_shared_document' ORDER BY proname
"""
# Rows as they are: what follows differs from them in one value.
ROWS = {
    "write_task": "SELECT no, state, version, slot, next_call, wish, body, engine_task, engine_run, head FROM adjourn.task",
    "write_spec": "SELECT no, body FROM adjourn.task_spec",
    "write_head": "SELECT no, head FROM adjourn.task",
    "write_run": "SELECT no, state, version, supervisor, checkpoint_id, pause_reason, body FROM adjourn.run",
    "write_call": "SELECT no, state, version, digest, claimed_by, approved_by, label, body FROM adjourn.call",
    "write_call_body": "SELECT no, body FROM adjourn.call_body",
    "write_ask": "SELECT no, state, call, expires_at, settled_at, settled_by, level, snoozed_until, given, remind_at, body FROM adjourn.ask",
    "add_call": """
        SELECT no + 500, state, version, digest, claimed_by, approved_by, label, call.body, call_body.body
        FROM adjourn.call JOIN adjourn.call_body USING (no)
    """,
    "add_ask": """
        SELECT no + 500, id || 'x', state, kind, run, created_at, slot, call, expires_at, settled_at, settled_by, level,
            snoozed_until, given, remind_at, approvals, ask.body, ask_body.body FROM adjourn.ask JOIN adjourn.ask_body USING (no)
    """,
    "seal_events": "SELECT (SELECT max(version) FROM adjourn.schema_version), ARRAY[task], ARRAY[body], ARRAY['\\x00'::bytea]"
    " FROM adjourn.event",
}
NAMES = (
    "approved",
    "queued",
    "running",
    "executing",
    "done",
    "canceled",
    "pending",
    "settled",
    "expired",
    "withdrawn",
)
SPELLINGS = (
    "",
    "APPROVED",
    " approved",
    "approved\u200b",
    "\uff41pproved",
    "policy",
    "adjourn",
    "POLICY:",
    "db:other",
    "DB:OTHER",
    "key:x",
)
VALUES: dict[str, tuple[Any, ...]] = {
    "text": (None, *NAMES, *SPELLINGS),
    "bytea": (None, b"", b"\x80", b"x" * 32),
    "integer": (None, -1, 0, 1, 90, SCHEMA),
    "uuid": (None, "00000000-0000-0000-0000-000000000000"),
    "boolean": (None, True, False),
    "double precision": (None, -1, 0, float("nan"), float("inf")),
    "bytea[]": (None, [], [None], [b"\x80"]),
    "text[]": (None, [], [None]),
}
KEPT = {
    "asks": "SELECT id, no >> 20, no, kind, run, created_at, slot, call, expires_at, approvals FROM adjourn.ask",
    "what is asked": "SELECT no, no >> 20, body FROM adjourn.ask_body",
    "decisions": "SELECT no, no >> 20, state, settled_at, settled_by, level, given FROM adjourn.ask",
    "digests": "SELECT no, no >> 20, digest, approved_by FROM adjourn.call",
    "bytes": "SELECT no, no >> 20, body FROM adjourn.call_body",
    "trail": "SELECT no, task, body, seal FROM adjourn.event",
    "families": "SELECT no, no, no FROM adjourn.family",
    "tasks": "SELECT no, no, id, family, pool FROM adjourn.task",
    "policies": "SELECT name, 0, body FROM adjourn.shared_document WHERE name LIKE 'policy:%'",
    "versions": "SELECT version, 0 FROM adjourn.schema_version",
}
"""What no role changes with one call: a key, the task, and the rest. A worker may forget tasks that have ended."""

NOT_BY_APPROVERS = {
    "runs": "SELECT no, no >> 20, version, supervisor, body FROM adjourn.run",
    "specs": "SELECT no, no, body FROM adjourn.task_spec",
    "messages": "SELECT no, no >> 20, body FROM adjourn.message",
    "outbox": "SELECT notifier, 0, body FROM adjourn.outbox",
    "supervisors": "SELECT name, 0, machine, alive_until FROM adjourn.supervisor",
    "queue": "SELECT task_id, 0, params, state FROM absurd.t_adjourn_default",
    "leases": "SELECT run_id, 0, state, claimed_by, claim_expires_at FROM absurd.r_adjourn_default",
    "what has ended": "SELECT no, no, state, version, next_call, engine_task, engine_run, body FROM adjourn.task"
    " WHERE state IN ('succeeded', 'failed', 'canceled')",
    # Who wishes that it ends writes its version and body.
    "what runs": "SELECT no, no, state, engine_task, engine_run FROM adjourn.task WHERE state = 'running'",
}
NOT_BY_AGENTS = {
    "moves": "SELECT no, no, state, next_call, wish, slot, engine_task, engine_run FROM adjourn.task",
    "documents": "SELECT name, task, body FROM adjourn.document",
    "calls": "SELECT no, no >> 20, state, claimed_by, label, body FROM adjourn.call",
}
OWN = {*NOT_BY_AGENTS}
"""What an agent may change of the task that it runs in; of its moves the guards say more."""

STARTED = {
    "calls that may start": "SELECT no, no >> 20 FROM adjourn.call WHERE state IN ('approved', 'claimed', 'executing', 'done')",
    "asks that are decided": "SELECT no, no >> 20 FROM adjourn.ask WHERE state IN ('approved', 'settled', 'answered')",
}
"""What nothing is added to, either."""

Found = dict[str, dict[Any, tuple[Any, ...]]]


def look(login: Login, queries: dict[str, str]) -> Found:
    return {
        what: {row[0]: row[1:] for row in login.execute(query.encode()).fetchall()}
        for what, query in queries.items()
    }


class Attack:
    """Calls functions in transactions that it undoes, and notes what they changed that they must not."""

    def __init__(self, login: Login, role: str, tasks: dict[str, int]) -> None:
        self.login = login
        self.tasks = tasks
        self.tried = self.went_through = 0
        self.surprises: dict[str, list[Any]] = {}
        self._kept = dict(KEPT)
        if role != "worker":
            self._kept |= NOT_BY_APPROVERS
        if role.startswith("agent"):
            self._kept |= NOT_BY_AGENTS
        # An agent writes for this one
        self._own = tasks["running"] if role == "agent of a run" else None
        # A worker adds calls and starts them: it has the machine.
        self._started = {
            what: query for what, query in STARTED.items() if role != "worker" or "asks" in what
        }
        self._before = look(login, self._kept | self._started)
        login.commit()

    def numbers(self) -> list[Any]:
        nos = [*self.tasks.values(), 999_999]
        return [None, -1, *nos, *((no << 20) + 1 for no in nos)]

    def values_of(self, kind: str) -> tuple[Any, ...]:
        if kind == "bigint":
            return tuple(self.numbers())
        if kind == "bigint[]":
            return (
                None,
                [],
                [None],
                *([no] for no in self.tasks.values()),
                list(self.tasks.values()),
            )
        return VALUES[kind]

    def rows(self, name: str, kinds: list[str]) -> Iterator[list[Any]]:
        """Yield what a function is called with.

        Rows as they are with one value changed, and the same value everywhere.
        """
        bases = [[None] * len(kinds)]
        if name in ROWS:
            bases += [list(row) for row in self.login.execute(ROWS[name].encode()).fetchall()]
            self.login.commit()
        else:
            bases += [[self.plain(kind, no) for kind in kinds] for no in self.tasks.values()]
        for base in bases:
            yield base
            for place, kind in enumerate(kinds):
                for value in self.values_of(kind):
                    if value != base[place]:
                        yield [*base[:place], value, *base[place + 1 :]]

    @staticmethod
    def plain(kind: str, no: int) -> Any:
        plain: dict[str, Any] = {
            "bigint": no,
            "bigint[]": [no],
            "integer": 1,
            "text": "x",
            "bytea": b"x",
            "boolean": False,
        }
        return plain.get(kind, VALUES.get(kind, (None, None))[1])

    def call(self, name: str, kinds: list[str], row: list[Any]) -> None:
        """Call a function twice, and look at what came of it before the transaction is undone."""
        self.tried += 1
        places = ", ".join(f"%s::{kind}" for kind in kinds)
        statement = f'SELECT adjourn."{name}"({places})'.encode()
        try:
            self.login.execute("SET CONSTRAINTS ALL DEFERRED")
            self.login.execute(statement, row)
            try:
                with self.login.transaction():
                    self.login.execute(statement, row)
            except psycopg.Error:
                pass  # once is enough
            self.login.execute("SET CONSTRAINTS ALL IMMEDIATE")
            self.went_through += 1
            self.surprises |= {f"{name}: {what}": row for what in self.differences()}
        except errors.SyntaxError:
            raise
        except psycopg.Error:
            pass
        finally:
            self.login.rollback()

    def differences(self) -> Iterator[str]:
        ended = {self.tasks["ended"], self.tasks["rejected"]}
        after = look(self.login, self._kept | self._started)
        for what, before in self._before.items():
            for key, row in before.items():
                is_own = self._own is not None and row[0] == self._own and what in OWN
                is_forgotten = row and row[0] in ended and row[0] not in after["tasks"]
                if (
                    after[what].get(key) != row
                    and not is_own
                    and not is_forgotten
                    and what not in STARTED
                ):
                    yield what
            if what in STARTED and after[what].keys() - before.keys():
                yield what


@pytest.mark.parametrize("role", ROLES)
def test_no_function_decides_starts_or_changes_what_its_role_may_not(
    offices: dict[str, Office],  # noqa: F811 -- the fixture
    as_role: Roles,  # noqa: F811 -- the fixture
    role: str,
) -> None:
    """With nulls, with the numbers of other tasks, twice, and with names in other spellings."""
    worker, approver = offices["worker"], offices["approver"]
    ended = worker.run(worker.start())
    rejected = worker.start(pause_on_approval=True)
    approver.reply(worker.open_ask(rejected), Verb.REJECT)
    waiting = worker.start(pause_on_approval=True)
    running = worker.begin(worker.start()).task
    ids = {
        "ended": ended.id,
        "rejected": rejected.id,
        "waiting": waiting.id,
        "running": running.id,
        "queued": worker.start().id,
    }
    store = worker.controller.store
    assert isinstance(store, PostgresStore)
    with psycopg.connect(as_role("hostile", of=role.partition(" ")[0])) as login:
        if role == "agent of a run":
            login.execute(
                "SELECT set_config('adjourn.key', %s, false)", [store.run_key(running.id)]
            )
        numbers = {
            str(task): int(no)
            for task, no in login.execute("SELECT id, no FROM adjourn.task").fetchall()
        }
        login.commit()
        attack = Attack(login, role, {name: numbers[task] for name, task in ids.items()})
        for name, kinds in login.execute(FUNCTIONS.encode()).fetchall():
            for row in list(attack.rows(name, kinds)):
                attack.call(name, kinds, row)
    assert attack.surprises == {}
    assert attack.tried > 500
    assert attack.went_through > 0 or role == "agent"
    assert worker.task(waiting.id).state is TaskState.WAITING
