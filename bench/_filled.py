"""Fills stores with tasks that wait, each by the way that a task comes to wait.

A filled store is kept for the next bench.
"""

import gc
import hashlib
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import adjourn
from adjourn.controller.context import Context
from adjourn.controller.controller import Controller
from adjourn.controller.runs import Claimed
from adjourn.core.ask import Principal, Question
from adjourn.core.outcome import Exit
from adjourn.core.task import ProcessId, Run, Spec, Task
from adjourn.process.processes import LocalProcesses
from adjourn.runners import find_runner
from adjourn.stores.sqlite.binding import Home, identity_in
from adjourn.stores.sqlite.database import SqliteRows
from adjourn.stores.sqlite.store import SqliteStore
from adjourn.system.machine import now, state_directory
from adjourn.wiring import STORE
from adjourn.wiring.authority import FileAuthoriser, FileSignatures
from adjourn.wiring.surroundings import open_gate

_BATCH = 500  # tasks that share a transaction
_BOOT = "6f1d8a52-07c3-4c5e-9a44-5b2b1f0f7c11"
_PERSON = Principal(name=f"uid:{os.getuid()}")
_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"

Waiting = Callable[[Controller, int, str], Task]


def waits_for_approval(controller: Controller, number: int, workspace: str) -> Task:
    """Leave a task that waits for the approval of its command, with a short manifest."""
    run = _running(
        controller, ("./deploy.sh", "--to", "production", f"--build={number}"), number, workspace
    )
    manifest = f'{{"action": "deploy", "target": "production", "build": {number}, "reason": "the release is ready"}}'
    return controller.runs.finish(
        run, Exit(code=90, output=f"checking build {number}\n{manifest}\n")
    )


def waits_for_an_answer(controller: Controller, number: int, workspace: str) -> Task:
    """Leave a task that waits for the answer to a question."""
    run = _running(controller, ("./migrate.sh", f"--batch={number}"), number, workspace)
    prompt = f"Migrate batch {number} to the new schema?"
    controller.asks.ask(run.id, Question(prompt=prompt, key=prompt, choices=("yes", "no")))
    return controller.runs.finish(run, Exit(code=10, output=f"reading batch {number}\n"))


def waits_with(argv: tuple[str, ...]) -> Waiting:
    """Return what leaves a task that waits for the approval of this command."""

    def waits(controller: Controller, number: int, workspace: str) -> Task:
        return controller.runs.finish(_running(controller, argv, number, workspace), Exit(code=90))

    return waits


def _running(controller: Controller, argv: tuple[str, ...], number: int, workspace: str) -> Run:
    task = controller.tasks.start(
        Spec(runner="command", argv=argv, workspace=workspace), by=_PERSON
    )
    claimed = controller.runs.claim(task.id, supervisor=_new_id())
    assert isinstance(claimed, Claimed)
    shim = ProcessId(boot_id=_BOOT, pid=4_000 + number % 28_000, start_time=1_000_000 + number)
    executing = controller.runs.execute(claimed.run, shim=shim)
    assert isinstance(executing, Run)
    return executing


def store_with(count: int, waiting: Waiting) -> Path:
    """Return the directory of a store with that many waiting tasks, made by this very version of adjourn; do not change it."""
    kept = Path(tempfile.gettempdir()) / f"adjourn-bench-{os.getuid()}"
    place = kept / _version() / f"{waiting.__name__}-{count}"
    if not place.exists():
        _forget_all_but(place.parent)
        draft = place.with_name(f"{place.name}.{os.getpid()}")
        draft.mkdir(parents=True, mode=0o700)
        fill(draft / STORE, count, waiting)
        draft.rename(place)
    return place


def _forget_all_but(version: Path) -> None:
    """Remove the stores of other versions: a large one takes 200 MB."""
    for other in version.parent.glob("*"):
        if other != version:
            shutil.rmtree(other, ignore_errors=True)


@contextmanager
def copy_of(place: Path) -> Generator[Path, None, None]:
    """Lend a copy of a filled store's directory, to be changed at will."""
    with tempfile.TemporaryDirectory(prefix="adjourn-bench-") as folder:
        copy = Path(shutil.copytree(place, Path(folder) / "workspace"))
        _bind(copy / STORE)
        yield copy


def _bind(root: Path) -> None:
    """Make a copy of a store ours.

    Its key is known, and what was seen of an earlier copy is not about this one.
    """
    store = SqliteStore(str(root), home=_home())
    with store.read() as view:
        identity = identity_in(view)
    assert identity is not None
    shutil.rmtree(Path(_home().directory) / "stores" / identity.id, ignore_errors=True)
    store.require_ours()
    store.close()


def fill(
    root: Path | str,
    count: int,
    waiting: Waiting,
    *,
    workspace: str = "/srv/people/someone/src/shop",
) -> list[str]:
    """Fill a store through the controller, many tasks to a commit, and return the tasks' ids."""
    store = _Hasty(str(root))
    controller = Controller(
        Context(
            store,
            clock=now,
            new_id=_new_id,
            find_runner=find_runner,
            open_processes=lambda: LocalProcesses(str(root)),
            open_gate=lambda: open_gate(str(root)),
            authoriser=FileAuthoriser(str(root)),
            signatures=FileSignatures(str(root)),
        )
    )
    ids: list[str] = []
    started = time.monotonic()
    gc.disable()
    for first in range(0, count, _BATCH):
        with store.transaction():
            ids += [
                waiting(controller, number, workspace).id
                for number in range(first, min(first + _BATCH, count))
            ]
        _tell(first, count, started)
    gc.enable()
    store.close()
    return ids


def _home() -> Home:
    return Home(
        directory=state_directory(os.environ),
        key="a key of benches, so that their copies of a store are theirs",
    )


class _Hasty(SqliteStore):
    """A store whose changes share the transaction that is open; a crash would take it all."""

    def __init__(self, root: str) -> None:
        super().__init__(root, home=_home())
        self._db.do(
            "PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 20000; PRAGMA cache_size = -400000"
        )

    def transaction(self) -> AbstractContextManager[SqliteRows]:
        """Open the transaction that everything inside shares."""
        return super().change()

    def close(self) -> None:
        """Move everything into the one file, then let go of the store."""
        self._db.do("PRAGMA wal_checkpoint(TRUNCATE)")
        super().close()

    @contextmanager
    def change(self) -> Generator[SqliteRows, None, None]:
        """Change within the shared transaction."""
        yield self._rows

    @contextmanager
    def read(self) -> Generator[SqliteRows, None, None]:
        """Read within the shared transaction."""
        yield self._rows


def open_asks(place: Path, *, limit: int) -> list[str]:
    """Return the ids of open asks, oldest first."""
    store = SqliteStore(str(place / STORE))
    with store.read() as view:
        asks = [ask.id for ask in view.open_asks(limit=limit)]
    store.close()
    return asks


def some(things: list[str], count: int) -> list[str]:
    """Return some of the things, from everywhere."""
    return random.Random(1).sample(things, count)  # noqa: S311 -- the same ones each time


def _new_id() -> str:
    """Return an id of the form that adjourn gives, faster."""
    bits = random.getrandbits(130)
    return "".join([_LETTERS[bits >> shift & 31] for shift in range(0, 130, 5)])


def _version() -> str:
    """Return a digest of all that makes the rows of a store."""
    package = Path(adjourn.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.*")):
        if path.suffix in {".py", ".sql"} and {"controller", "core", "stores"} & set(
            path.relative_to(package).parts
        ):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _tell(done: int, count: int, started: float) -> None:
    if count >= 10_000 and done % 10_000 == 0:
        print(
            f"filling a store: {done:,} of {count:,}, {time.monotonic() - started:.0f} s",
            file=sys.stderr,
            flush=True,
        )
