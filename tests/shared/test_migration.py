"""A store of one machine becomes a shared one, and a shared one is copied back.

Number by number, or not at all.
"""

from pathlib import Path

import pytest

from adjourn.core.ask import Verb
from adjourn.core.errors import Conflict, StoreProblem
from adjourn.core.kept_documents import SAVED
from adjourn.core.states import TaskState
from adjourn.core.trail.events import first_broken
from adjourn.stores.postgres.store import PostgresStore
from adjourn.stores.sqlite.store import SqliteStore
from tests.contract.office import ASKS_10, ME, Office
from tests.e2e.shell import Shell, until
from tests.postgres import Server
from tests.shared.desk import desk


def lively(office: Office) -> None:
    """Leave a bit of everything."""
    office.waiting()
    task, ask = office.waiting()
    office.reply(ask, Verb.APPROVE, "eu")
    office.run(office.start(), asking=("region",))
    parent = office.begin(office.start())
    office.start_inside(parent.run)
    office.controller.runs.finish(parent.run, ASKS_10)
    gone = office.run(office.start())
    office.controller.tasks.forget(gone.id, by=ME)
    office.controller.documents.keep(task.id, SAVED, b"\x00\xff")
    office.lost()


def test_whatever_a_store_keeps_is_the_same_in_the_database_and_back_again(
    database: str, tmp_path: Path
) -> None:
    old, shared, back = (
        SqliteStore(str(tmp_path / "a")),
        PostgresStore(database),
        SqliteStore(str(tmp_path / "b")),
    )
    lively(desk(old))
    with old.everything() as content:
        shared.take_in(content)
        shared.take_in(content)  # a second time finds the very same, and changes nothing
    with shared.everything() as copied:
        back.take_in(copied)
    with back.everything() as returned:
        assert returned == copied == content
    with shared.read() as view:
        assert first_broken(view.trail()) is None
    _goes_on(shared)
    _goes_on(back)
    for store in (old, shared, back):
        store.close()


def _goes_on(store: PostgresStore | SqliteStore) -> None:
    """What was queued can be run, and what waits can be decided."""
    office = desk(store)
    task = store.next_queued("default", supervisor="anna-0", fits=lambda _: True)
    assert task is not None
    assert office.run(task).state is TaskState.SUCCEEDED
    with store.read() as view:
        asks = [ask for ask in view.open_asks(limit=9) if ask.kind == "approval"]
    assert office.reply(asks[0], Verb.APPROVE).state is TaskState.QUEUED
    office.start()


def test_a_database_that_keeps_something_else_is_left_alone(database: str, tmp_path: Path) -> None:
    old, shared = SqliteStore(str(tmp_path / "a")), PostgresStore(database)
    lively(desk(old))
    task = desk(shared).start()
    with old.everything() as content, pytest.raises(Conflict, match="keeps something else"):
        shared.take_in(content)
    with shared.read() as view:
        assert [each.id for each in view.tasks(limit=9)] == [task.id]
    old.close()
    shared.close()


def test_a_directory_that_was_moved_leads_to_the_database(database: str, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.environment["XDG_STATE_HOME"] = str(tmp_path / ".state")
    manifest = shell.paused("sh", "-c", '[ "$AUTO_APPROVAL" ] || exit 90; echo done')
    said = shell.adjourn("store", "migrate", "--from", ".adjourn", "--store", database).out
    assert "Moved 1 task, 1 ask," in said
    assert shell.inbox()[0]["task_id"] == manifest["task_id"]
    shell.adjourn("approve", shell.inbox()[0]["id"])
    assert shell.adjourn("resume", manifest["task_id"]).out.startswith("done")
    assert shell.json("tasks", env={"ADJOURN_STORE": database})["tasks"][0]["state"] == "succeeded"
    shell.adjourn("store", "migrate", "--from", ".adjourn", "--store", database, expect=4)
    shell.adjourn("store", "migrate")
    assert shell.adjourn("store", "backup", "copy.db").out.startswith("Backed up")
    restored = tmp_path / "restored" / ".adjourn"
    restored.mkdir(parents=True)
    (tmp_path / "copy.db").rename(restored / "adjourn.db")
    (restored / "adjourn.db").chmod(0o600)
    assert (
        shell.json("tasks", "--store", str(restored))["tasks"][0]["task_id"] == manifest["task_id"]
    )
    assert shell.end() == {}


def test_a_decision_that_comes_while_its_store_is_moved_is_not_acknowledged(
    database: str, tmp_path: Path
) -> None:
    """It was about to write into a file that is put aside, where nobody would ever see it."""
    shell = Shell(tmp_path)
    shell.environment["XDG_STATE_HOME"] = str(tmp_path / ".state")
    shell.paused("sh", "-c", "exit 90")
    late = SqliteStore(str(shell.store))
    shell.adjourn("store", "migrate", "--from", ".adjourn", "--store", database)
    with late.read() as view:
        (ask,) = view.open_asks(limit=2)
    with pytest.raises(StoreProblem, match="moved or replaced"):
        desk(late).reply(ask, Verb.APPROVE)
    assert shell.inbox()[0]["state"] == "pending"
    late.close()


@pytest.mark.parametrize("mode", [0o644, 0o620, 0o602])
def test_a_directory_does_not_lead_to_a_database_that_others_could_have_named(
    database: str, tmp_path: Path, mode: int
) -> None:
    """A repository must not bring an address along.

    Whoever owns that database could have approved anything.
    """
    shell = Shell(tmp_path)
    shell.store.mkdir(mode=0o700)
    address = shell.store / "database.json"
    address.write_text(f'{{"url": "{database}"}}')
    address.chmod(mode)
    assert "is not yours alone" in shell.adjourn("tasks", expect=5).err
    assert "is not yours alone" in shell.adjourn("run", "--", "true", expect=5).err
    address.chmod(0o600)
    assert "was not written here by you" in shell.adjourn("run", "--", "true", expect=5).err
    shell.adjourn("store", "adopt", "--yes")
    shell.adjourn("run", "--", "true")
    assert shell.end() == {}


def test_what_ran_when_a_backup_was_made_is_uncertain_where_it_is_restored(
    database: str, postgres: Server, tmp_path: Path
) -> None:
    """Nobody there saw its end, and it must not keep all the others from being restored."""
    shell = Shell(tmp_path)
    shell.share(database)
    task = shell.detached("sleep", "60")
    until(lambda: shell.state(task) == "running", what="it runs")
    restored = tmp_path / "restored"
    restored.mkdir(mode=0o700)
    shell.adjourn("store", "backup", str(restored / "adjourn.db"))
    with postgres.empty_database() as second:
        shell.adjourn("store", "migrate", "--from", str(restored), "--store", second, expect=5)
        shell.adjourn("store", "adopt", "--yes", "--store", str(restored))
        shell.adjourn("store", "migrate", "--from", str(restored), "--store", second)
        assert shell.json("inbox", "--store", second)["asks"][0]["kind"] == "uncertain"
    assert shell.state(task) == "running", (
        "whoever looks at a copy leaves alone what the store itself runs"
    )
    shell.adjourn("cancel", task)
    until(lambda: shell.state(task) == "canceled", what="it was canceled")
    assert shell.end() == {}


def test_a_store_that_somebody_works_on_is_not_moved(database: str, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.environment["XDG_STATE_HOME"] = str(tmp_path / ".state")
    task = shell.detached("sleep", "60")
    error = shell.adjourn(
        "store", "migrate", "--from", ".adjourn", "--store", database, expect=4
    ).err
    assert "somebody works on" in error
    shell.adjourn("cancel", task)
    until(lambda: shell.state(task) == "canceled", what="it was canceled")
    assert shell.end() == {}
