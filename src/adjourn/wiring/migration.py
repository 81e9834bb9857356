"""Moves a store of one machine into a database that machines share, and copies one back."""

import fcntl
import os
import shutil
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from tempfile import mkdtemp

import msgspec

from adjourn.controller.controller import Controller
from adjourn.core.errors import Conflict, Misuse, NotFound, StoreProblem, StoreRefused
from adjourn.core.states import TaskState
from adjourn.core.text.render import command_line
from adjourn.settings.find_store import ADDRESS, URLS, is_shared
from adjourn.stores.copy import Everything
from adjourn.stores.sqlite.directory import DATABASE, FENCED, MOVING
from adjourn.stores.sqlite.store import SqliteStore
from adjourn.system.files import private_directory, sync_directory, write_whole
from adjourn.system.machine import new_id
from adjourn.wiring import living, open_sqlite
from adjourn.wiring.controller import open_controller

MOVED = f"{DATABASE}.moved"
ROLES = ("adjourn_agent", "adjourn_approver", "adjourn_worker", "adjourn_server")
_FILES = (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm")


class _Move(msgspec.Struct, frozen=True):
    """A move that has begun.

    Its id, and the place of the database that the directory is moved into.
    """

    id: str
    target: str


def migrate(source: str, target: str) -> Everything:
    """Move a directory's store into the database of `target`, verify it, and redirect it there.

    Two stores that both know of an approved call would both run it. So the old database is put out
    of everybody's reach before the new one is committed, and `moving.json` says where it is moved
    to. If the move is interrupted, nothing works on the directory until the same command is run
    again, which goes on where the first one stopped.
    """
    if source.startswith(URLS):  # which may hold a password
        raise Misuse(
            "what is moved is a directory",
            way_out="adjourn store backup FILE --store postgresql://…, then --from it",
        )
    source = os.path.abspath(source)
    with _one_mover(source):
        begun = _begun_move(source)
        if begun and is_shared(target) and target not in {begun.target, source}:
            sentence = f"{source} is being moved into another database"
            raise Conflict(
                sentence, way_out=command_line(["adjourn", "store", "migrate", "--from", source])
            )
        move = begun or _Move(id=new_id(), target=target)
        is_fenced = begun is not None and not os.path.lexists(os.path.join(source, DATABASE))
        if not is_fenced:
            _require_movable(source, move.target)
            _settle_the_dead(source)
        return _move(source, move, is_fenced=is_fenced)


def _move(source: str, move: _Move, *, is_fenced: bool) -> Everything:
    """Take the steps of a move that are still to be taken."""
    # Only shared stores need it: its packages are optional
    from adjourn.wiring.shared import open_shared

    content: Everything
    fenced = os.path.join(source, FENCED)
    new = open_shared(move.target)
    if is_fenced and is_shared(source):  # it was committed, and all but the last step was taken
        with new.everything() as content:
            pass
        new.close()
        _lead_to(source, move.target)
        _put_aside(source, fenced)
        return content
    if is_fenced:
        _rename_files(source, fenced)  # the database is there; what belongs to it may not be yet
    old = open_sqlite(fenced, bound_as=source) if is_fenced else open_sqlite(source)
    try:
        with old.everything() as found:
            content = found  # what starts fast does not know its type
            _require_rest(content, source)
            # From here on nobody can use the old store: who waits for its lock finds that it is
            # gone.
            write_whole(os.path.join(source, MOVING), msgspec.json.encode(move))
            _rename_files(source, fenced)
            try:
                new.take_in(content, move=move.id)
            except Conflict:  # nothing of it was committed: the old store counts
                _rename_files(fenced, source, names=reversed(_FILES))
                os.unlink(os.path.join(source, MOVING))
                raise
            _lead_to(source, move.target)
    finally:
        old.close()
        new.close()
    _put_aside(source, fenced)
    return content


def _lead_to(source: str, target: str) -> None:
    """Have a directory name the database of another place from now on.

    We write the address, so it is followed.
    """
    # Only shared stores need it: its packages are optional
    from adjourn.wiring.shared import address_of, trust_address

    address = msgspec.json.encode(address_of(target))
    trust_address(source, address)  # first: nobody finds an address here that is not followed
    write_whole(os.path.join(source, ADDRESS), address)


def _rename_files(source: str, target: str, *, names: Iterable[str] = _FILES) -> None:
    """Move the files of a database from one directory into another.

    The database goes first into the directory that nobody uses, and comes last out of it: there is
    never a database in use whose log is elsewhere.
    """
    private_directory(target)
    for name in names:
        with suppress(FileNotFoundError):
            os.rename(os.path.join(source, name), os.path.join(target, name))
    sync_directory(target)
    sync_directory(source)


def _put_aside(source: str, fenced: str) -> None:
    """Keep the old database under another name, now that the directory leads to the new one."""
    for name in _FILES:
        with suppress(FileNotFoundError):
            os.rename(
                os.path.join(fenced, name), os.path.join(source, name.replace(DATABASE, MOVED))
            )
    with suppress(FileNotFoundError):  # an earlier command got this far
        shutil.rmtree(fenced)
    os.unlink(os.path.join(source, MOVING))
    sync_directory(source)


@contextmanager
def _one_mover(source: str) -> Generator[None, None, None]:
    """Let nobody else move the same directory meanwhile."""
    try:
        fd = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        raise _no_store(source) from None
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sentence = f"somebody else is moving {source}"
            raise Conflict(
                sentence, way_out=command_line(["adjourn", "tasks", "--store", source])
            ) from None
        yield
    finally:
        os.close(fd)


def _begun_move(source: str) -> _Move | None:
    """Return the move of a directory that was interrupted, if there is one."""
    path = os.path.join(source, MOVING)
    try:
        with open(path, "rb") as file:
            move = msgspec.json.decode(file.read(), type=_Move)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise StoreProblem(
            f"{path} cannot be read: {error}", way_out=command_line(["ls", "-l", path])
        ) from error
    if os.lstat(path).st_uid != os.geteuid():
        raise StoreRefused(
            f"{path} is not yours: it is not followed", way_out=command_line(["ls", "-l", path])
        )
    return move


def _require_movable(source: str, target: str) -> None:
    """Refuse a directory that cannot be moved."""
    if not is_shared(target):
        raise Misuse(
            "a store is moved into a database",
            way_out="adjourn store migrate --from DIR --store postgresql://…",
        )
    if is_shared(source):
        raise Conflict(
            f"{source} leads to a database already",
            way_out=command_line(["adjourn", "tasks", "--store", source]),
        )
    if not os.path.lexists(os.path.join(source, DATABASE)):
        raise _no_store(source)
    if living(source):
        way_out = command_line(["adjourn", "worker", "--status", "--store", source])
        raise Conflict(f"somebody works on {source}", way_out=way_out)


def _no_store(source: str) -> NotFound:
    return NotFound(f"there is no store at {source}", way_out="name the directory with --from DIR")


def _settle_the_dead(source: str) -> None:
    """Settle runs whose supervisor is gone, as in a backup that was made while they ran."""
    controller = open_controller(source)
    try:
        controller.runs.recover()
    finally:
        controller.store.close()


def _require_rest(content: Everything, source: str) -> None:
    for kept in content.tasks:
        if kept.task.state is TaskState.RUNNING:
            way_out = command_line(["adjourn", "wait", kept.task.id, "--store", source])
            raise Conflict(f"task {kept.task.id} is running", way_out=way_out)


def make_roles(controller: Controller) -> None:
    """Make the roles of a shared store."""
    # And where there is no PostgreSQL, this is the store
    if isinstance(controller.store, SqliteStore):
        raise Misuse("roles are a database's", way_out="adjourn store roles --store postgresql://…")
    # Only shared stores need it: its packages are optional
    from adjourn.stores.postgres.store import PostgresStore

    assert isinstance(controller.store, PostgresStore)  # noqa: S101 -- there is no third kind
    controller.store.make_roles()


def back_up(controller: Controller, target: str) -> None:
    """Copy the store, as of one moment, into a new file that is a store of one machine."""
    store = controller.store
    if isinstance(store, SqliteStore):
        store.back_up(target)
        return
    from adjourn.stores.postgres.store import PostgresStore  # psycopg is optional

    assert isinstance(store, PostgresStore)  # noqa: S101 -- there is no third kind
    draft = mkdtemp(dir=os.path.dirname(target), prefix=".adjourn-backup-")
    try:
        with store.everything() as content:
            copy = SqliteStore(os.path.join(draft, ".adjourn"))
            try:
                copy.take_in(content)
                copy.back_up(target)
            finally:
                copy.close()
    finally:
        shutil.rmtree(draft, ignore_errors=True)
