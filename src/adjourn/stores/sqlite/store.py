"""The SQLite store: one file, one writer at a time, each commit on disk before it returns."""

import fcntl
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import apsw
import msgspec

from adjourn.core.errors import (
    AdjournError,
    StoreDamaged,
    StoreNotBound,
    StoreOlder,
    StoreProblem,
    StoreRefused,
    UnreadableRow,
)
from adjourn.core.task import Task
from adjourn.core.text.render import command_line
from adjourn.core.trail.events import GENESIS
from adjourn.stores.rows import oldest_fitting
from adjourn.stores.sqlite import directory
from adjourn.stores.sqlite.binding import IDENTITY, Binding, Home, Mark, identity_in
from adjourn.stores.sqlite.database import SqliteConnection, SqliteRows
from adjourn.stores.sqlite.database_file import DatabaseFile
from adjourn.stores.sqlite.directory import OpenFiles
from adjourn.system.files import disk_full, private_directory

if TYPE_CHECKING:
    import socket
    from threading import Event

SCHEMA = 6
_OURS = 0x61646A6E  # "adjn"
_PAGE = 8192
_CHECKPOINT_PAGES = 64  # a short write-ahead log: each process that opens the store reads all of it
_CACHE = -8192  # 8 MB: a worker keeps it for as long as it lives
_FLOOD = 1_000  # datagrams that are dropped at once
_BETWEEN_LOOKS = 0.5  # seconds, of somebody who waits for another writer
# 64 MB, and only as far as used: a large decision must not spill into the log twice
_SPILL_PAGES = 8192


_SYNCHRONOUS = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}


class DatabaseSettings(msgspec.Struct, frozen=True):
    """How a database is kept."""

    version: str
    journal: str
    synchronous: str
    damage: str


class SocketListener:
    """A socket in the store that gets a datagram after each commit.

    It is there before its owner reads the store, so nothing is missed between reading and waiting.
    A datagram is a reason to read the store again and nothing more: its content is ignored.
    """

    def __init__(self, directory: str) -> None:
        self.trouble: str | None = None
        self._folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._name = f"{os.getpid()}-{os.urandom(4).hex()}"
        self._socket = _datagram_socket()
        try:
            self._socket.bind(_address(self._folder, self._name))
            os.chmod(self._name, 0o600, dir_fd=self._folder)
        except OSError as error:
            # No /proc, or a file system without sockets: the caller must check without being woken.
            self.trouble = f"no socket can be made in {directory}: {error.strerror}"

    def fileno(self) -> int:
        return self._socket.fileno()

    def drain(self) -> None:
        try:
            for _ in range(_FLOOD):  # of more than that some stay for the next time
                self._socket.recv(64)
        except BlockingIOError:
            return

    def close(self) -> None:
        self._socket.close()
        with suppress(OSError):
            os.unlink(self._name, dir_fd=self._folder)
        os.close(self._folder)


class SqliteStore:
    """Keeps tasks in a directory of its own.

    With a home it changes only what is bound to this machine and user.

    While a store is moved into a database, its files lie in another directory: it is `bound_as` the
    first one.
    """

    def __init__(self, root: str, *, home: Home | None = None, bound_as: str | None = None) -> None:
        self.root = root
        # Prints that another writer has blocked us for long
        self.say: Callable[[str, str], None] = _warn
        self._home = home
        self._binding = Binding(bound_as or root, home) if home else None
        with _translated(root), _on_disk(root):
            path = directory.prepare(root)
            if os.stat(path).st_blksize < directory.SMALLEST_BLOCK:
                directory.leave_at_fault(root)  # a full disk may end the process without an error
            self._lock = os.open(
                os.path.join(root, directory.LOCK), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
            )
            self._db = SqliteConnection(path)
            if _known_version(self._db, path) < SCHEMA:
                with self._turn():
                    _migrate(self._db, path, self._binding)
            # A backup comes back in another mode; for all others the first is no work.
            self._db.do(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; "
                "PRAGMA wal_autocheckpoint = 0; "
                f"PRAGMA cache_size = {_CACHE}; PRAGMA cache_spill = {_SPILL_PAGES}"
            )
            self._files = OpenFiles(path)
            self._file = DatabaseFile(self._lock, self._files)
            if not self._file.seems_known():
                with self._turn():
                    self._begin_whole()
                    self._db.do("ROLLBACK")
        self._rows = SqliteRows(self._db)

    @property
    def unreadable(self) -> dict[str, UnreadableRow]:
        return self._rows.unreadable

    @contextmanager
    def read(self) -> Generator[SqliteRows, None, None]:
        with _translated(self.root):
            self._db.do("BEGIN")
            try:
                yield self._rows
            finally:
                self._roll_back()  # unless SQLite has done so, because of what the view ran into

    @contextmanager
    def change(self) -> Generator[SqliteRows, None, None]:
        with _translated(self.root), self._turn():
            self._begin()
            try:
                self._require_bound()
                yield self._rows
                self._rows.flush()
                if self._binding and self._rows.opens_gate:
                    self._binding.require_gate()
                self._commit_whole()
                # How far the store is, is kept outside of it; before a gate opens, durably
                if self._binding and self._rows.written:
                    self._binding.note(Mark(*self._rows.written), durably=self._rows.opens_gate)
                if self._files.frames >= _CHECKPOINT_PAGES:
                    is_whole = True
                    with suppress(
                        apsw.Error
                    ):  # the log stays as it is; the next commit tries again
                        is_whole = self._file.checkpoint(self._db)
                    if not is_whole:
                        raise _overwritten(self.root, is_committed=True)
            except BaseException:
                self._roll_back()
                raise
            finally:
                if self._binding:
                    self._binding.release()
        wake_all(os.path.join(self.root, "wake"))

    def _begin(self) -> None:
        self._rows.written, self._rows.opens_gate = None, False
        self._begin_whole()

    def _begin_whole(self) -> None:
        """Begin a transaction, unless a file of the store is another or does not belong to it."""
        self._refuse_lost(self._files.missing())
        self._db.do("BEGIN IMMEDIATE")
        try:
            if not self._files.has_log:
                self._files.find_log()
            self._refuse_lost(self._files.missing_or_cut())
            self._refuse_overwritten()
        except BaseException:
            if self._db.is_in_transaction:
                self._db.do("ROLLBACK")
            raise

    def _commit_whole(self) -> None:
        """Commit, and refuse to acknowledge it if a file of the store was another by then."""
        self._db.do("COMMIT")
        self._refuse_lost(self._files.missing_or_cut(), is_committed=True)
        if self._file.is_overwritten_since():
            raise _overwritten(self.root, is_committed=True)

    def _require_bound(self) -> None:
        if self._binding is None or self._home is None:
            return
        try:
            self._binding.require(self._rows)
        except StoreNotBound:
            if not self._home.is_for_asking:
                raise

    def require_ours(self) -> None:
        try:
            self._require_ours_by_a_view()
        except StoreOlder:
            # A view shows the moment in which it was opened. The mark that was read later may be of
            # a commit since then.
            with _translated(self.root), self._turn():
                self._require_ours_by_a_view()

    def _require_ours_by_a_view(self) -> None:
        with self.read() as rows:
            rows.trail_head()  # now the log is open: from here on it has to stay where it is
            if not self._files.has_log:
                self._files.find_log()
            if self._binding:
                try:
                    self._binding.require(rows)
                finally:
                    self._binding.release()

    def require_in_place(self) -> None:
        """Refuse a store of which a file was moved, replaced, cut or overwritten while it was open.

        Also one that lacks what this machine has seen, and also for a process that only reads.
        """
        self._refuse_lost(self._files.missing())
        if self._files.has_log and (self._files.missing_or_cut() or not self._file.seems_known()):
            # A writer may have begun a new log between two looks. In its turn nobody does, and a
            # view mends an index that was left half written.
            with _translated(self.root), self._turn(), self.read() as rows:
                rows.trail_head()
                self._refuse_lost(self._files.missing_or_cut())
                self._refuse_overwritten()
        self.require_ours()

    def _refuse_lost(self, path: str | None, *, is_committed: bool = False) -> None:
        if path:
            raise _lost(path, self.root, is_committed=is_committed)

    def _refuse_overwritten(self) -> None:
        if self._file.is_overwritten(self._db):
            raise _overwritten(self.root)

    # --- whose it is ------------------------------------------------------------------------------

    def missing(self) -> Mark | None:
        """Return the newest place that this machine has seen, if this store of ours lacks it."""
        if self._binding is None:
            return None
        with self.read() as rows:
            found = self._binding.missing(rows)
        if found is None:
            return None
        with _translated(self.root), self._turn(), self.read() as rows:  # as in `require_ours`
            return self._binding.missing(rows)

    @contextmanager
    def taking_over(self, *, adopts: bool) -> Generator[SqliteRows, None, None]:
        """Open a transaction in a store that lacks something, or is not ours.

        When it has ended, the store is ours as it is.
        """
        assert self._binding is not None  # noqa: S101 -- a caller that takes over has a home
        with _translated(self.root), self._turn():
            self._begin()
            try:
                former = identity_in(self._rows) if adopts else None
                if adopts:
                    _require_own_schema(self._db, self.root)
                else:
                    self._binding.missing(self._rows)
                yield self._rows
                self._rows.flush()
                head = Mark(*self._rows.trail_head())
                if adopts:
                    identity = self._binding.bind(at=time.time_ns() // 1_000_000, mark=head)
                    self._rows.keep_shared_document(IDENTITY, identity)
                self._commit_whole()
                self._binding.reset(head)
                self._binding.forget(former)
            except BaseException:
                self._roll_back()
                raise
        wake_all(os.path.join(self.root, "wake"))

    def _roll_back(self) -> None:
        self._rows.discard()
        if self._db.is_in_transaction:
            self._db.do("ROLLBACK")

    @contextmanager
    def _turn(self) -> Generator[None, None, None]:
        """Wait in the one queue of writers.

        The kernel serves it in order; SQLite's own waiting does not.
        """
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait_for_turn()
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _wait_for_turn(self) -> None:
        """Wait in the queue; a thread reports who holds it, for the wait cannot be interrupted."""
        from threading import Event, Thread  # 1 ms of a short command; most never wait

        has_ended = Event()
        with suppress(RuntimeError):  # no room for a thread: then nobody is told
            Thread(target=self._tell_who_holds, args=(has_ended,), daemon=True).start()
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        finally:
            has_ended.set()

    def _tell_who_holds(self, has_ended: "Event") -> None:
        """Say once who has held the queue, if the wait lasts.

        Those before us in the queue do not count.
        """
        # Only for a writer that waits long
        from adjourn.stores.sqlite.queue_holder import LONG, holder_of, waiting_sentence

        pid, since = -1, 0.0
        while not has_ended.wait(_BETWEEN_LOOKS):
            holder, now = holder_of(self._lock), time.monotonic()
            if (holder.pid if holder else 0) != pid:
                pid, since = holder.pid if holder else 0, now
            elif now - since >= LONG - _BETWEEN_LOOKS:
                way_out = holder.remedy if holder else "adjourn doctor"
                self.say(waiting_sentence(holder, now - since), way_out)
                return

    def next_queued(
        self,
        pool: str,
        *,
        supervisor: str,  # noqa: ARG002 -- a name of the port
        fits: Callable[[Task], bool],
    ) -> Task | None:
        with self.read() as view:
            return oldest_fitting(view, pool, fits)

    def listen(self) -> SocketListener:
        with _on_disk(self.root):
            return SocketListener(private_directory(os.path.join(self.root, "wake")))

    def run_key(self, task_id: str) -> str | None:  # noqa: ARG002 -- a store of one machine has no logins
        return None

    def back_up(self, target: str) -> None:
        """Copy the database, as of one moment, into a new file."""
        with _on_disk(target):
            fd = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            os.fchmod(fd, 0o600)
            os.close(fd)
        try:
            with _translated(target):
                self._db.copy_to(target)
        except AdjournError:
            os.unlink(target)
            raise

    def about(self) -> DatabaseSettings:
        """Say how the database is kept, and what is wrong with it, if anything."""
        with _translated(self.root):
            damage = [str(row[0]) for row in self._db.all("PRAGMA quick_check(1)")]
            return DatabaseSettings(
                version=apsw.sqlite_lib_version(),
                journal=str(self._db.all("PRAGMA journal_mode")[0][0]),
                synchronous=_SYNCHRONOUS.get(self._db.number("synchronous"), "unknown"),
                damage="" if damage == ["ok"] else "; ".join(damage),
            )

    @contextmanager
    def everything(self) -> Generator[Any, None, None]:
        """Return Everything that is kept, and let nobody change anything meanwhile."""
        # Only copies of a whole store need it
        from adjourn.stores.sqlite.copy import everything_in

        with _translated(self.root), self._turn():
            self._begin()
            try:
                self._require_bound()
                yield everything_in(self._db, self._rows)
            finally:
                self._roll_back()
                if self._binding:
                    self._binding.release()

    def take_in(self, content: Any) -> None:
        """Keep Everything that another store keeps, in the place of nothing."""
        # Only copies of a whole store need it
        from adjourn.stores.sqlite.copy import take_in

        with self.change():
            take_in(self._db, self._rows, content)

    def close(self) -> None:
        self._db.close()
        os.close(self._lock)


def _warn(sentence: str, way_out: str) -> None:
    # Only for a writer that waits long
    from adjourn.stores.sqlite.queue_holder import warn

    warn(sentence, way_out)


def _lost(path: str, root: str, *, is_committed: bool = False) -> StoreProblem:
    what = "what was recorded just now may be lost" if is_committed else "nothing was changed"
    doctor = command_line(["adjourn", "doctor", "--store", root])
    return StoreProblem(
        f"{path} was removed or replaced while the store was in use: {what}",
        way_out=f"stop what uses the store, then: {doctor}",
    )


def _overwritten(root: str, *, is_committed: bool = False) -> StoreDamaged:
    what = "what was recorded just now may be lost" if is_committed else "nothing was changed"
    path = os.path.join(root, directory.DATABASE)
    remove = command_line(["rm", f"{path}-wal", f"{path}-shm"])
    accept = command_line(["adjourn", "store", "accept", "--store", root])
    return StoreDamaged(
        f"another program wrote into {path}, for instance a backup that was copied over it: "
        f"it does not belong to its log {directory.DATABASE}-wal; {what}",
        way_out=f"stop what uses the store, then go on with the copy: {remove} && {accept}",
    )


def _known_version(db: SqliteConnection, path: str) -> int:
    """Return the schema's version, or refuse a file that is not ours or is newer than we are."""
    # In this order: a process that creates the store now writes its name and its tables in one
    # transaction.
    has_tables, application, version = (
        db.number(name) for name in ("schema_version", "application_id", "user_version")
    )
    if application not in {0, _OURS} or (application == 0 and has_tables):
        raise StoreRefused(
            f"{path} is a database of another program", way_out="name a store with --store DIR"
        )
    if version > SCHEMA:
        raise StoreProblem(
            f"{path} has schema {version}, and this program knows {SCHEMA}",
            way_out="use a newer adjourn: pip install -U adjourn",
        )
    return version


def _migrate(db: SqliteConnection, path: str, binding: Binding | None) -> None:
    """Bring the schema up to date, each step in a transaction of its own.

    A new store is bound in the one that makes it.
    """
    version = _known_version(db, path)
    if version == 0:
        db.do(f"PRAGMA page_size = {_PAGE}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
    # There is nothing in it: no trigger of anybody's, say
    if version == 0 and db.number("schema_version") == 0:
        identity = (
            binding.bind(at=time.time_ns() // 1_000_000, mark=Mark(0, GENESIS)) if binding else None
        )
        steps = ";".join(_schema(number) for number in range(1, SCHEMA + 1))
        db.do(
            f"BEGIN IMMEDIATE; {steps}; "
            f"PRAGMA application_id = {_OURS}; PRAGMA user_version = {SCHEMA}"
        )
        if identity:
            db.all("INSERT INTO shared_document (name, body) VALUES (?, ?)", IDENTITY, identity)
        db.do("COMMIT")
        return
    for number in range(version + 1, SCHEMA + 1):
        steps = _schema(number)
        db.do(
            f"BEGIN IMMEDIATE; {steps}; "
            f"PRAGMA application_id = {_OURS}; PRAGMA user_version = {number}; COMMIT"
        )


def _schema(number: int) -> str:
    with open(
        os.path.join(os.path.dirname(__file__), f"schema_{number}.sql"), encoding="utf-8"
    ) as file:
        return file.read()


def _require_own_schema(db: SqliteConnection, root: str) -> None:
    """Refuse a database with tables, triggers or views that are not ours.

    They could change what is written.
    """
    ours = SqliteConnection(":memory:")
    for number in range(1, SCHEMA + 1):
        ours.do(_schema(number))
    objects = (
        "SELECT type, name, tbl_name, sql FROM sqlite_schema "
        "WHERE name NOT LIKE 'sqlite\\_stat%' ESCAPE '\\' ORDER BY 1, 2"
    )
    foreign = set(db.all(objects)) ^ set(ours.all(objects))
    ours.close()
    if foreign:
        names = ", ".join(sorted({f"{kind} {name}" for kind, name, *_ in foreign}))
        raise StoreRefused(
            f"the database in {root} is not built as adjourn builds it: {names}. "
            "It may change what is written to it",
            way_out="start with a new store: adjourn run --store DIR -- COMMAND",
        )


@contextmanager
def _on_disk(path: str) -> Generator[None, None, None]:
    """Turn the system's errors into sentences."""
    try:
        yield
    except OSError as error:
        raise directory.unusable(path, error) from error


@contextmanager
def _translated(root: str) -> Generator[None, None, None]:
    """Turn SQLite's errors into sentences."""
    try:
        yield
    except AdjournError:
        raise
    except (apsw.ReadOnlyError, apsw.PermissionsError) as error:
        raise StoreProblem(
            f"{root} is read-only", way_out="make it writable, or name another with --store DIR"
        ) from error
    except apsw.FullError as error:
        raise disk_full(root) from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreDamaged(
            f"{root} holds a damaged database: {error}", way_out="restore a backup of adjourn.db"
        ) from error
    except apsw.Error as error:
        if getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_SHORT_READ:
            raise _lost(f"{root}/{directory.DATABASE}-wal", root) from error
        if isinstance(error, apsw.IOError | apsw.CantOpenError) and directory.has_no_room(root):
            raise disk_full(root) from error
        raise StoreProblem(
            f"{root} cannot be used: {error}",
            way_out="check the disk, or name another with --store DIR",
        ) from error


def wake_all(directory: str) -> None:
    """Send every listener a datagram, without waiting for any, and remove the sockets of dead ones.

    It never fails: the commit is on disk, and each listener checks now and then without a wake-up.
    """
    with suppress(OSError):
        names = os.listdir(directory)
        if not names:
            return
        folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with _datagram_socket() as sender:
                for name in names:
                    try:
                        sender.sendto(b"\1", _address(folder, name))
                    except ConnectionRefusedError:
                        with suppress(OSError):
                            os.unlink(name, dir_fd=folder)
                    except OSError:
                        continue  # a full socket has a wake-up waiting already
        finally:
            os.close(folder)


def _address(folder: int, name: str) -> str:
    """Return a short address: a socket's path may have 107 bytes, and a store may lie deeper."""
    return f"/proc/self/fd/{folder}/{name}"


def _datagram_socket() -> "socket.socket":
    # Importing socket takes 2 ms of a short command; most find nobody who listens.
    import socket

    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.settimeout(0)
    return made
