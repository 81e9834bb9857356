"""The PostgreSQL store.

Many machines, one database, every commit on disk before it is acknowledged.
"""

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import cached_property

import msgspec
import psycopg

from adjourn.core.errors import Conflict, Outdated, StoreOlder, StoreProblem, UnreadableRow
from adjourn.core.states import TaskState
from adjourn.core.task import Task
from adjourn.ports.world import StartMark
from adjourn.stores.copy import Everything
from adjourn.stores.postgres.ask_rows import PostgresRows
from adjourn.stores.postgres.batch import SQL
from adjourn.stores.postgres.batched_rows import IdentityMap
from adjourn.stores.postgres.connection import PostgresConnection, TransactionStart, Values
from adjourn.stores.postgres.listener import NotifyListener
from adjourn.stores.postgres.restore_check import NewestSeen, SeenMark
from adjourn.stores.postgres.schema import make_roles, require_schema
from adjourn.stores.postgres.task_rows import task_of
from adjourn.stores.postgres.translation import Translated, shown

LEASE = 30.0  # seconds
_MOMENT = b"SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_HEAD = (
    b" FROM (VALUES (1)) AS one LEFT JOIN "
    b"(SELECT no, seal FROM adjourn.event ORDER BY no DESC LIMIT 1) AS head ON true"
)
_ERAS = b"(SELECT body FROM adjourn.shared_document WHERE name = 'store/accepted')"
_PLACE = b", no, seal, " + _ERAS
_READ = (b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", _MOMENT + _PLACE + _HEAD)
# A client that stops in the middle, or is cut off, blocks the others no longer than this; no
# statement of ours is.
_SILENCE = b", set_config('idle_in_transaction_session_timeout', '10s', true)"
_CHANGE = (
    b"BEGIN ISOLATION LEVEL READ COMMITTED",
    _MOMENT + _PLACE + b", pg_current_xact_id()::text" + _SILENCE + _HEAD,
)
_PAST = b"SELECT (SELECT seal FROM adjourn.event WHERE no = $1), " + _ERAS
ACCEPTED = "store/accepted"  # the shared document with the eras of the database
STARTED = "store/started"  # the one with the calls that were started before an era began
_NOT_HERE = 5.0  # seconds before a task that does not fit this machine is offered again
_FRESH = 10.0  # seconds for which the clock of this machine goes as fast as that of the database
_STATUS = b"SELECT pg_xact_status($1::xid8)"
_READ_BACK = 30.0  # seconds to find out whether a commit counts whose reply was lost


class PostgresStore:
    """Keeps tasks in a database that several machines share."""

    def __init__(
        self,
        url: str,
        *,
        listen_url: str | None = None,
        lease: float = LEASE,
        seen: str | None = None,
    ) -> None:
        self.lease = lease
        self._url = url
        self._listen_url = url if listen_url is None else listen_url or None
        # A client that listens elsewhere, or nowhere, has a pooler there, which may not know
        # prepared statements.
        self.name = shown(url)
        self._translated = Translated(self.name)
        self._db = PostgresConnection(url, prepares=listen_url is None)
        self._listeners: list[NotifyListener] = []
        self._clock = (0, float("-inf"))
        self._number = ""  # of the transaction that is open
        self._known = 0  # the connection on which the past was looked at
        self._prefetched: IdentityMap | None = None  # what was read of the task that was taken last
        # What is behind a pooler may change without a word
        self._is_pooled = listen_url is not None
        self._seen = NewestSeen(seen)
        # What a process of a run shows with an agent's login: 64 hexadecimal digits
        self.key: str | None = None
        self._kept_starts: dict[str, StartMark] = {}  # by the names of calls
        self._starts_of: tuple[str, ...] = ()  # the eras in which they were read
        self._has_changed = False  # whether anything was committed
        self.on_first_change: Callable[[], None] = lambda: None
        self.unreadable: dict[str, UnreadableRow] = {}
        self._open()

    def _open(self) -> None:
        try:
            with self._translated:
                require_schema(self._db)
                with suppress(StoreOlder):  # it can be read; a change is refused later
                    self._require_known_past()
        except BaseException:
            self._db.close()
            raise

    def now(self) -> int:
        """Return the time in milliseconds by the clock of the database.

        Those of the machines may differ.
        """
        if time.monotonic() - self._clock[1] > _FRESH:
            with self._translated:
                self._set_clock(self._db.all(_MOMENT)[0])
        moment, seen = self._clock
        return moment + int((time.monotonic() - seen) * 1000)

    def _set_clock(self, row: Values) -> None:
        self._clock = (int(row[0]), time.monotonic())

    @contextmanager
    def read(self) -> Generator[PostgresRows, None, None]:
        with self._translated:
            self._db.begin(TransactionStart(*_READ, then=self._looked))
            try:
                yield PostgresRows(
                    self._db,
                    changes=False,
                    lease=self.lease,
                    unreadable=self.unreadable,
                    prefetched=self._prefetched,
                )
            finally:
                with suppress(psycopg.Error):
                    self._db.leave()
                self._seen.keep_soon()

    @contextmanager
    def change(self) -> Generator[PostgresRows, None, None]:
        with self._changing(self._begun) as rows:
            yield rows

    @contextmanager
    def _changing(self, then: Callable[[Values], None]) -> Generator[PostgresRows, None, None]:
        with self._translated:
            begin, look = _CHANGE
            if self.key:
                look = look.replace(
                    _HEAD, b", set_config('adjourn.key', '%s', true)" % self.key.encode() + _HEAD
                )
            self._db.begin(TransactionStart(begin, look, then=then))
            rows = PostgresRows(
                self._db,
                changes=True,
                lease=self.lease,
                unreadable=self.unreadable,
                prefetched=self._prefetched,
            )
            self._prefetched = None
            self._number = ""
            try:
                yield rows
                if self._may_be_another or not rows.is_guarded:
                    self._db.open()  # before anything can be lost, its number is known
                self._commit(rows)
            except BaseException:
                self._roll_back()
                self._db.queues.clear()
                raise
            self._db.queues |= rows.queues
            if not self._has_changed:
                self.on_first_change()
            self._has_changed = True
            # A command may end without a word to us: what it acknowledges is kept before it does
            if rows.opens_gate:
                self._seen.keep_synced(name=str(self.name))
            else:
                self._seen.keep()

    def _looked(self, seen: Values) -> None:
        """Remember how far the database is, unless another one than before may have answered."""
        moment, place, seal, accepted = seen
        self._set_clock((moment,))
        if not self._may_be_another and (place or 0) >= self._seen.place:
            self._seen.note_look(place, seal, accepted)

    def _begun(self, seen: Values) -> None:
        moment, place, seal, accepted, number, *_ = seen
        self._set_clock((moment,))
        self._number = str(number)
        if self._may_be_another or (place or 0) < self._seen.place:
            self._require_known_past()
        self._seen.note_look(place, seal, accepted)

    @property
    def _may_be_another(self) -> bool:
        """Whether another server may answer than the one whose past is known."""
        return self._is_pooled or self._db.reach() != self._known

    def _require_known_past(self) -> None:
        """Refuse a copy of the database that lacks what this machine has seen."""
        try:
            self._check_past()
            self._known = self._db.reach()
        except BaseException:
            self._roll_back()
            raise

    def _check_past(self) -> None:
        self._seen.refresh()
        ((seal, accepted),) = self._db.all(_PAST, self._seen.place)
        self._seen.require(seal, accepted, name=str(self.name))

    # --- a copy that lacks something --------------------------------------------------------------

    def require_ours(self) -> None:
        with self._translated:
            self._require_known_past()

    def missing(self) -> SeenMark | None:
        """Return the newest place that this machine has seen, if the database lacks it."""
        try:
            self.require_ours()
        except StoreOlder:
            return self._seen.newest
        return None

    @contextmanager
    def accepting(self, era: str) -> Generator[PostgresRows, None, None]:
        """Open a transaction in a copy that lacks something.

        When it has ended, the copy counts as it is, on all machines.
        """
        with self._changing(self._begun_to_accept) as rows:
            # Of several who accept, one is first: from here on the others wait
            rows.shared_document(ACCEPTED)
            try:
                self._check_past()
            except StoreOlder:
                yield rows
            else:
                raise Conflict(
                    f"{self.name} lacks nothing that this machine has seen", way_out="adjourn tasks"
                )
            rows.keep_shared_document(ACCEPTED, msgspec.json.encode(self._seen.next_eras(era)))
        with suppress(StoreProblem):  # it counts; the next client finds the new era
            self.require_ours()
            self._seen.keep_synced(name=str(self.name))

    def keep_starts(self, rows: PostgresRows, marks: Mapping[str, StartMark]) -> None:
        """Keep for all machines which calls were started, of which the trail may tell nothing."""
        kept = self._starts(rows.shared_document(STARTED)) | dict(marks)
        rows.keep_shared_document(STARTED, msgspec.json.encode(kept))

    def kept_start(self, name: str) -> StartMark | None:
        """Return what was kept of a start when the database was accepted.

        Some machine started that call.
        """
        if not self._seen.eras:
            return None
        if self._starts_of != self._seen.eras:
            with self._translated:
                rows = self._db.all(SQL["shared_document"], STARTED)
            self._kept_starts, self._starts_of = (
                self._starts(rows[0][0] if rows else None),
                self._seen.eras,
            )
        return self._kept_starts.get(name)

    @staticmethod
    def _starts(body: bytes | None) -> dict[str, StartMark]:
        return msgspec.json.decode(body, type=dict[str, StartMark]) if body else {}

    def _begun_to_accept(self, seen: Values) -> None:
        self._set_clock((seen[0],))
        self._number = str(seen[4])

    def _roll_back(self) -> None:
        with suppress(psycopg.Error):
            self._db.roll_back()

    def _commit(self, rows: PostgresRows) -> None:
        """Say the last words and commit.

        If the reply is lost, ask whether it counts: the same answer as if it had come.
        """
        last = rows.finish()
        try:
            *_, ((place, seal, _),) = self._db.commit(last)
            self._seen.note(place, seal)
        except psycopg.OperationalError as error:
            if self._db.is_open:
                raise
            # Its guard lets nobody do it a second time: the next reader sees whether it was done
            if not self._number:
                raise Outdated(f"{self.name} went away while this was saved") from error
            self._read_back(rows, error)

    def _read_back(self, rows: PostgresRows, error: psycopg.Error) -> None:
        match self._find_commit_status(rows):
            case "committed":
                # A gate opens only if its place in the trail is known; anything else was saved,
                # whatever fails now.
                with nullcontext() if rows.opens_gate else suppress(psycopg.Error):
                    for place, seal in self._db.all(SQL["trail_head"]):
                        self._seen.note(place, seal)
            case "aborted":
                raise StoreProblem(
                    f"{self.name} went away before this was saved", way_out="run the command again"
                ) from error
            case _:
                sentence = (
                    f"{self.name} went away while this was saved: nobody knows yet whether it was"
                )
                raise StoreProblem(
                    sentence,
                    way_out="adjourn tasks, to see whether it counts, before you try again",
                ) from error

    def _find_commit_status(self, rows: PostgresRows) -> str | None:
        """Return "committed" or "aborted" for the open transaction, or None if it stays unknown."""
        deadline = time.monotonic() + _READ_BACK
        pause = 0.05
        while True:
            try:
                ((status,),) = self._db.all(_STATUS, self._number)
                if status == "aborted":
                    return "aborted"
                if status == "committed":
                    # A transaction that died with the server is gone, and its number may be
                    # another's by now: so a row that only ours wrote has to be there.
                    left = rows.evidence
                    is_ours = left is None or self._db.all(
                        SQL[left.query], self._number, *left.values
                    )
                    return "committed" if is_ours else "aborted"
            except psycopg.OperationalError:
                pass  # it is not there yet
            except psycopg.Error:
                return "aborted"  # a copy of the database that never had it
            if time.monotonic() > deadline:
                return None
            time.sleep(pause)
            pause = min(2 * pause, 2.0)

    def next_queued(
        self, pool: str, *, supervisor: str, fits: Callable[[Task], bool]
    ) -> Task | None:
        with self._translated:
            self._prefetched = None
            if self._may_be_another:
                self._require_known_past()
            if task := self._just_queued(pool, fits):
                return task
            while taken := self._db.all(SQL["take_next"], pool, supervisor, int(self.lease)):
                try:
                    task = task_of(taken[0])
                    if fits(task):
                        return task
                except UnreadableRow as error:
                    error.note_in(self.unreadable)
                self._db.all(SQL["leave_to_others"], taken[0][0], supervisor, _NOT_HERE)
        return None

    def _just_queued(self, pool: str, fits: Callable[[Task], bool]) -> Task | None:
        """Return a task that we have heard was just queued, with all that its claim needs.

        Nobody has it until it is claimed.
        """
        while name := next(
            (name for ear in self._listeners if (name := ear.next_queued(pool))), None
        ):
            rows = PostgresRows(
                self._db, changes=False, lease=self.lease, unreadable=self.unreadable
            )
            try:
                rows.prefetch(name)
            except UnreadableRow as error:
                error.note_in(self.unreadable)
                continue
            no = rows.known.numbers.get(name, 0)
            task = rows.known.tasks.get(no)
            if task and task.state is TaskState.QUEUED and fits(task):
                self._prefetched = rows.known
                return task
        return None

    def listen(self) -> NotifyListener:
        ear = NotifyListener(self._listen_url, forget=self._listeners.remove)
        self._listeners.append(ear)
        return ear

    @contextmanager
    def everything(self) -> Generator[Everything, None, None]:
        """Return all that is kept, as of one moment; others go on meanwhile."""
        # Only shared stores need it: its packages are optional
        from adjourn.stores.postgres.copy import everything_in

        with self.read() as rows:
            yield everything_in(self._db, rows)

    def take_in(self, content: Everything, *, move: str = "") -> None:
        """Keep all that another store keeps, in an empty database or one that has just that.

        What was written is compared before the commit. A move that was committed before is known
        by its name and changes nothing: others may have gone on since.
        """
        # Only shared stores need it: its packages are optional
        from adjourn.stores.postgres.copy import everything_in, take_in

        with self.change() as rows:
            self._db.all(b"LOCK TABLE adjourn.task IN EXCLUSIVE MODE")
            if move and rows.shared_document(f"moved:{move}") is not None:
                return
            if not rows.tasks(limit=1) and not rows.trail(limit=1):
                take_in(self._db, rows, content)
            if everything_in(self._db, rows) != content:
                raise Conflict(
                    f"{self.name} keeps something else already",
                    way_out="name a database without tasks",
                )
            if move:
                rows.keep_shared_document(f"moved:{move}", b"")

    def make_roles(self) -> None:
        """Make the roles for agents, approvers and workers."""
        with self._translated:
            make_roles(self._db)

    @cached_property
    def login(self) -> tuple[str, frozenset[str] | None]:
        """Who the database says we are, and which roles of adjourn's we have.

        None where it holds nobody to any.
        """
        with self._translated:
            ((name, is_guarded, roles),) = self._db.all(SQL["login"])
        return str(name), frozenset(roles) if is_guarded else None

    def run_key(self, task_id: str) -> str | None:
        if self.login[1] is None:
            return None
        with self._translated:
            ((key,),) = self._db.all(b"SELECT adjourn.run_key($1)", task_id)
        return str(key)

    def roles_of(self, login: str) -> frozenset[str] | None:
        """Return which roles of adjourn's another login has now.

        None where the database holds nobody to any.
        """
        if self.login[1] is None:
            return None
        with self._translated:
            ((roles,),) = self._db.all(SQL["roles_of"], login)
        return frozenset(roles)

    @property
    def is_read_only(self) -> bool:
        """Whether nothing can be changed in it: a standby server, or one that is told so."""
        with self._translated:
            ((word,),) = self._db.all(b"SELECT current_setting('transaction_read_only')")
        return bool(word == "on")

    def supervisors(self) -> list[tuple[str, str, bytes]]:
        """Return who is alive, on which host, and what each says of itself."""
        with self._translated:
            return [(name, host, body) for name, _, host, body in self._db.all(SQL["living"])]

    def close(self) -> None:
        if self._has_changed:
            with suppress(StoreProblem):  # it was acknowledged: what counts is in the database
                self._seen.keep_synced(name=str(self.name))
        else:
            self._seen.keep()
        self._db.close()
