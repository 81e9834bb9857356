"""A login approves and then loses its role: what it approved and what has not started yet starts no more."""

from pathlib import Path

import pytest

from adjourn.core.ask import Proposal, Verb
from adjourn.core.states import CallState
from adjourn.stores.postgres.store import PostgresStore
from adjourn.wiring import new_id
from adjourn.wiring.shared import DatabaseAuthoriser
from tests.contract.office import ASKS_10, Office
from tests.postgres import Server
from tests.shared.conftest import Roles, as_role  # noqa: F401 -- a fixture
from tests.shared.test_logins import ASKS_90, shell_of
from tests.shared.test_roles import offices  # noqa: F401 -- a fixture

pytestmark = pytest.mark.xdist_group("roles")  # they belong to the whole server: one at a time


def test_an_approval_of_a_login_that_lost_its_role_starts_nothing(
    as_role: Roles,  # noqa: F811 -- the fixture
    postgres: Server,
    tmp_path: Path,
) -> None:
    ci, anna, bert = (
        shell_of(tmp_path / name, as_role(name, of=role))
        for name, role in (("ci", "worker"), ("anna", "approver"), ("bert", "approver"))
    )
    manifest = ci.paused("sh", "-c", ASKS_90)
    anna.adjourn("approve", manifest["asks"][0]["id"])
    postgres.do(f"REVOKE adjourn_approver FROM {anna.me.removeprefix('db:')}")
    again = ci.adjourn("resume", manifest["task_id"], "--output", "json", expect=10).doc
    assert ci.lines("effects") == []
    (ask,) = again["asks"]
    assert ask["id"] != manifest["asks"][0]["id"]
    assert f"{anna.me} may not approve any more" in str(ask)
    bert.adjourn("approve", ask["id"])
    ci.adjourn("resume", manifest["task_id"])
    assert ci.lines("effects") == ["deployed"]


def test_a_process_is_handed_no_call_whose_approver_lost_its_role(
    offices: dict[str, Office],  # noqa: F811 -- the fixture
    as_role: Roles,  # noqa: F811 -- the fixture
    postgres: Server,
    tmp_path: Path,
) -> None:
    worker, approver = offices["worker"], offices["approver"]
    store = PostgresStore(as_role("bot", of="agent"))
    worker_store = worker.controller.store
    assert isinstance(worker_store, PostgresStore)
    agent = Office(store, new_id=new_id, authoriser=DatabaseAuthoriser(str(tmp_path), store))
    deploy = Proposal(prompt="Deploy?", tool="deploy", body=b'{"arguments":{}}', key="deploy")
    run = worker.begin(worker.start()).run
    store.key = worker_store.run_key(run.task_id)
    ask, _ = agent.controller.propose(run.id, deploy)
    worker.controller.finish(run, ASKS_10)
    approver.reply(ask, Verb.APPROVE)
    postgres.do(f"REVOKE adjourn_approver FROM {approver.me.name.removeprefix('db:')}")
    again = worker.begin(worker.task(run.task_id)).run
    asked, call = agent.controller.propose(again.id, deploy)
    assert (asked.is_open, call.state) == (True, CallState.PENDING)
    assert asked.id != ask.id
    store.close()
