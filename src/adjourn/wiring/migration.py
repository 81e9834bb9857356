"""Moves a store of one machine into a database that machines share, and copies one back."""

import os
import shutil
from contextlib import suppress
from tempfile import mkdtemp

import msgspec

from adjourn.controller.whole import Controller
from adjourn.core.errors import Conflict, Misuse, NotFound
from adjourn.core.states import TaskState
from adjourn.files import sync_directory, write_whole
from adjourn.ports.store import Store
from adjourn.stores.everything import Everything
from adjourn.stores.sqlite.place import DATABASE
from adjourn.stores.sqlite.store import SqliteStore
from adjourn.wiring import ADDRESS, URLS, is_shared, living, open_sqlite

MOVED = f"{DATABASE}.moved"
ROLES = ("adjourn_agent", "adjourn_approver", "adjourn_worker")


def migrate(source: str, target: str) -> Everything:
    """Move all that a directory keeps into the database of `target`, verify it, and have the directory lead there.

    The old database is put aside: two stores that both know of an approved call would both run it.
    """
    source = _movable(source, target)
    from adjourn.wiring.shared import address_of, open_shared, trust_address

    _settle_the_dead(source)
    old, new = open_sqlite(source), open_shared(target)
    try:
        with old.everything() as found:
            content: Everything = found  # what starts fast does not know its type
            _require_rest(content, source)
            new.take_in(content)
            write_whole(os.path.join(source, ADDRESS), msgspec.json.encode(address_of(target)))
            trust_address(source)
            _put_aside(source)
    finally:
        old.close()
        new.close()
    return content


def _put_aside(source: str) -> None:
    for companion in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.rename(os.path.join(source, DATABASE + companion), os.path.join(source, MOVED + companion))
    sync_directory(source)


def _movable(directory: str, target: str) -> str:
    """Return the whole path of a directory that can be moved, or refuse it."""
    if directory.startswith(URLS):  # which may hold a password
        raise Misuse("what is moved is a directory", way_out="adjourn store backup FILE --store postgresql://…, then --from it")
    source = os.path.abspath(directory)
    if not is_shared(target):
        raise Misuse("a store is moved into a database", way_out="adjourn store migrate --from DIR --store postgresql://…")
    if is_shared(source):
        raise Conflict(f"{source} leads to a database already", way_out="adjourn tasks")
    if not os.path.lexists(os.path.join(source, DATABASE)):
        raise NotFound(f"there is no store at {source}", way_out="name the directory with --from DIR")
    if living(source):
        raise Conflict(f"somebody works on {source}", way_out=f"adjourn worker --status --store {source}")
    return source


def _settle_the_dead(source: str) -> None:
    """Have the store know what became of runs whose supervisor is gone, as in a backup that was made while they ran."""
    from adjourn.wiring.controller import open_controller

    controller = open_controller(source)
    try:
        controller.recover()
    finally:
        controller.store.close()


def _require_rest(content: Everything, source: str) -> None:
    for kept in content.tasks:
        if kept.task.state is TaskState.RUNNING:
            raise Conflict(f"task {kept.task.id} is running", way_out=f"adjourn wait {kept.task.id} --store {source}")


def make_roles(controller: Controller) -> None:
    """Make the roles of a shared store."""
    if isinstance(controller.store, SqliteStore):  # and where there is no PostgreSQL, this is the store
        raise Misuse("roles are a database's", way_out="adjourn store roles --store postgresql://…")
    from adjourn.stores.postgres.store import PostgresStore

    assert isinstance(controller.store, PostgresStore)  # noqa: S101 -- there is no third kind
    controller.store.make_roles()


def back_up_shared(store: Store, target: str) -> None:
    """Copy a database, as of one moment, into a new file that is a store of one machine."""
    from adjourn.stores.postgres.store import PostgresStore

    assert isinstance(store, PostgresStore)  # noqa: S101 -- there is no third kind
    draft = mkdtemp(dir=os.path.dirname(target), prefix=".adjourn-backup-")
    try:
        with store.everything() as content:
            _fill(draft, target, content)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _fill(draft: str, target: str, content: Everything) -> None:
    copy = SqliteStore(os.path.join(draft, ".adjourn"))
    try:
        copy.take_in(content)
        copy.back_up(target)
    finally:
        copy.close()
