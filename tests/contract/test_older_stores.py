"""A store that an older adjourn made: what waits there goes on as if nothing had changed."""

import os
from pathlib import Path

import apsw
import pytest

from adjourn.core.ask import ApprovalAsk, Reply, Terms, Verb
from adjourn.core.states import TaskState
from adjourn.core.trail.events import first_broken
from adjourn.stores.sqlite.store import SCHEMA, SqliteStore
from tests.contract.office import ME, Office

# Made by the first version: three tasks, none of them at its end
DUMP = Path(__file__).with_name("store_of_schema_1.sql")
APPROVAL, QUESTION, PAUSED = (f"old{number}aaaaaaaaaaaaaaaaaaaaa" for number in ("00", "06", "11"))


@pytest.fixture
def office(tmp_path: Path) -> Office:
    tmp_path.chmod(0o700)
    database = apsw.Connection(str(tmp_path / "adjourn.db"))
    database.execute(DUMP.read_text())
    database.execute("PRAGMA journal_mode = WAL")
    database.close()
    return Office(SqliteStore(str(tmp_path)))


def test_an_older_store_is_brought_up_to_date_and_keeps_its_trail(office: Office) -> None:
    with office.controller.store.read() as view:
        assert first_broken(view.trail()) is None
        asks = view.open_asks(limit=10)
        assert len(asks) == 2
        approvals = [ask for ask in asks if isinstance(ask, ApprovalAsk)]
        assert [(ask.given, ask.remind_at, ask.terms) for ask in approvals] == [((), None, Terms())]
        assert view.asks_to_remind(now=1 << 60) == []
    store = office.controller.store
    assert isinstance(store, SqliteStore)
    assert apsw.Connection(os.path.join(store.root, "adjourn.db")).pragma("user_version") == SCHEMA


def test_what_waits_there_is_approved_and_starts(office: Office) -> None:
    """A-R80: a checkpoint of an older version loads and resumes."""
    task = office.reply(office.open_ask(office.task(APPROVAL)), Verb.APPROVE)
    assert office.run(task).state is TaskState.SUCCEEDED


def test_what_is_asked_there_is_answered_and_goes_on(office: Office) -> None:
    """A-R80"""
    ask = office.open_ask(office.task(QUESTION))
    office.controller.decisions.decide([Reply(ask_id=ask.id, verb=Verb.ANSWER, text="eu")], by=ME)
    assert office.run(office.task(QUESTION)).state is TaskState.SUCCEEDED


def test_what_was_interrupted_there_is_resumed(office: Office) -> None:
    """A-R80"""
    assert office.run(office.controller.tasks.resume(PAUSED, by=ME)).state is TaskState.SUCCEEDED
