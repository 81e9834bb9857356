"""A login approves and then loses its role.

What it approved and what has not started yet starts no more.
"""

import contextlib
from pathlib import Path

import pytest

from adjourn.controller.transaction import POLICY, Transaction
from adjourn.core.ask import Proposal, Verb
from adjourn.core.errors import StoreRefused
from adjourn.core.states import AskMove, AskState, CallState
from adjourn.stores.postgres.store import PostgresStore
from adjourn.system.machine import new_id
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
    worker_store = worker.controller.store
    assert isinstance(worker_store, PostgresStore)
    deploy = Proposal(prompt="Deploy?", tool="deploy", body=b'{"arguments":{}}', key="deploy")
    with contextlib.closing(PostgresStore(as_role("bot", of="agent"))) as store:
        agent = Office(store, new_id=new_id, authoriser=DatabaseAuthoriser(str(tmp_path), store))
        agent.now = store.now()
        run = worker.begin(worker.start()).run
        store.key = worker_store.run_key(run.task_id)
        ask, _ = agent.controller.asks.propose(run.id, deploy)
        worker.controller.runs.finish(run, ASKS_10)
        approver.reply(ask, Verb.APPROVE)
        postgres.do(f"REVOKE adjourn_approver FROM {approver.me.name.removeprefix('db:')}")
        again = worker.begin(worker.task(run.task_id)).run
        asked, call = agent.controller.asks.propose(again.id, deploy)
        assert (asked.is_open, call.state) == (True, CallState.PENDING)
        assert asked.id != ask.id


def test_an_agent_takes_back_no_approval_of_a_call_that_it_keeps(
    offices: dict[str, Office],  # noqa: F811 -- the fixture
) -> None:
    worker, agent, approver = offices["worker"], offices["agent"], offices["approver"]
    deploy = Proposal(prompt="Deploy?", tool="deploy", body=b'{"arguments":{}}', key="deploy")
    run = worker.begin(worker.start()).run
    ask, _ = agent.controller.asks.propose(run.id, deploy)
    worker.controller.runs.finish(run, ASKS_10)
    approver.reply(ask, Verb.APPROVE)
    again = worker.begin(worker.task(run.task_id)).run
    _take_back_refused(agent, ask.id)
    approved, call = agent.controller.asks.propose(again.id, deploy)
    assert (approved.state, call.state) == (AskState.APPROVED, CallState.EXECUTING)
    _take_back_refused(agent, ask.id)


def _take_back_refused(agent: Office, ask_id: str) -> None:
    with pytest.raises(StoreRefused, match="may not take back the approval of a call"):
        _take_back(agent, ask_id)


def _take_back(agent: Office, ask_id: str) -> None:
    with agent.controller.store.change() as rows:
        tx = Transaction(rows, now=agent.now, new_id=new_id)
        tx.settle_ask(rows.ask(ask_id), AskMove.WITHDRAW, text="no", by=POLICY)
