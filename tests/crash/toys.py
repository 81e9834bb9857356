"""Toy programs that keep or break the promises, so that the harness itself can be put to the test."""

import contextlib
import ctypes
import functools
import os
import sys
from pathlib import Path

import apsw

from tests.crash.powerloss import Known
from tests.crash.stage import Ran, Stage

PR_SET_NAME = 15
CALL = "call-1"
BODY = b"dear reader" * 200


def connect(path: str | Path, *, synchronous: str = "FULL") -> apsw.Connection:
    """Open a database the way a careful program does."""
    db = apsw.Connection(str(path))
    db.execute(f"PRAGMA journal_mode=WAL; PRAGMA synchronous={synchronous}").fetchall()
    return db


def start_effect(stage: Stage) -> None:
    """Start the outside effect and wait for it."""
    child = os.fork()
    if child == 0:
        os.execve(
            stage.tools.effect,
            ["effect", str(stage.effects_file)],
            os.environ | {"ADJOURN_CALL_ID": CALL},
        )
    os.waitpid(child, 0)


def call_it(name: str) -> None:
    """Give this process its name."""
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)


class OneCall:
    """A store with one approved call.

    The step executes it, and the next command finishes what is left.
    """

    def setup(self, stage: Stage) -> None:
        stage.play(self._make)

    def step(self, stage: Stage) -> int:
        raise NotImplementedError

    def aftermath(self, stage: Stage, ran: Ran) -> list[str]:
        broken: list[str] = []
        again = stage.play(lambda: self.step(stage))
        if again.code != 0 or again.hung:
            broken.append(f"the next command failed: {again.complained}")
        if stage.survivors(patience=5):
            broken.append("a process survived")
        starts = [effect for effect in stage.effects() if effect.what == "start"]
        if len(starts) > 1:
            broken.append("the call started twice")
        if ran.code == 0 and ran.said != "done\n":
            broken.append("it said nothing")
        db = connect(stage.work / "db")
        if db.execute("PRAGMA integrity_check").get != "ok":
            broken.append("the store is corrupt")
        if not starts and db.execute("SELECT state FROM call").get == "done":
            broken.append("done, but never started")
        return broken

    def _make(self) -> int:
        db = connect("db")
        db.execute(
            "CREATE TABLE call (id TEXT PRIMARY KEY, state TEXT); INSERT INTO call VALUES ('call-1', 'approved')"
        )
        db.close()
        return 0


class Careful(OneCall):
    """Commits that the call is executing before it starts, and never starts it again."""

    def step(self, stage: Stage) -> int:
        db = connect("db")
        if db.execute(
            "UPDATE call SET state = 'executing' WHERE state = 'approved' RETURNING 1"
        ).get:
            start_effect(stage)
            db.execute("UPDATE call SET state = 'done' WHERE state = 'executing'")
        db.close()
        print("done")
        return 0


class Careless(OneCall):
    """Starts the call, and commits only then that it did."""

    def step(self, stage: Stage) -> int:
        db = connect("db")
        if db.execute("SELECT 1 FROM call WHERE state = 'approved'").get:
            start_effect(stage)
            db.execute("UPDATE call SET state = 'done' WHERE state = 'approved'")
        db.close()
        print("done")
        return 0


class WithShim(OneCall):
    """Has a shim execute the call; its result is a file, written whole or not at all."""

    def step(self, stage: Stage) -> int:
        db = connect("db")
        if db.execute(
            "UPDATE call SET state = 'executing' WHERE state = 'approved' RETURNING 1"
        ).get:
            shim = os.fork()
            if shim == 0:
                self._be_shim(stage)
            os.waitpid(shim, 0)
        state = "done" if Path("result").exists() else "uncertain"
        db.execute("UPDATE call SET state = ? WHERE state = 'executing'", (state,))
        db.close()
        print("done")
        return 0

    def aftermath(self, stage: Stage, ran: Ran) -> list[str]:
        broken = super().aftermath(stage, ran)
        state = connect(stage.work / "db").execute("SELECT state FROM call").get
        if (state == "uncertain") == (stage.work / "result").exists():
            broken.append(
                f"{state} with{'' if (stage.work / 'result').exists() else 'out'} a result"
            )
        return broken

    def _be_shim(self, stage: Stage) -> None:
        call_it("toy-shim")
        start_effect(stage)
        write_whole(Path("result"), b'{"exit": 0}')
        os._exit(0)


def write_whole(path: Path, body: bytes, *, sync_file: bool = True, sync_dir: bool = True) -> None:
    """Write by temporary file, fsync, rename, fsync of the directory: or leave out a part of it."""
    temporary = path.with_suffix(".tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(fd, body)
    if sync_file:
        os.fsync(fd)
    os.close(fd)
    temporary.rename(path)
    if sync_dir:
        fd = os.open(path.parent, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)


careful = Careful()
careless = Careless()
with_shim = WithShim()


class Diary:
    """Writes one row per command and says so.

    A row that was told of must be there after a power loss.
    """

    def __init__(self, *, synchronous: str) -> None:
        self._synchronous = synchronous

    def setup(self, stage: Stage) -> None:
        pass

    def tell(self, stage: Stage) -> None:
        for number in range(6):
            stage.play(functools.partial(self._write, number))

    def judge(self, stage: Stage, known: Known, *, thorough: bool) -> list[str]:
        del thorough
        told = {int(text) for text in known.said.values() if text.endswith("\n")}
        try:
            there = self._entries(stage.work / "db")
        except apsw.Error:
            return ["the diary is damaged"]
        return [] if told <= there else ["an acknowledged entry is lost"]

    def _entries(self, path: Path) -> set[int]:
        with contextlib.closing(connect(path)) as db:
            if db.execute("PRAGMA integrity_check").get != "ok":
                raise apsw.CorruptError
            if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'entry'").get:
                return set()
            return {row[0] for row in db.execute("SELECT number FROM entry")}

    def _write(self, number: int) -> int:
        db = connect("db", synchronous=self._synchronous)
        db.execute("CREATE TABLE IF NOT EXISTS entry (number INTEGER, body BLOB)")
        db.execute("INSERT INTO entry VALUES (?, randomblob(6000))", (number,))
        print(number)
        sys.stdout.flush()
        if number % 2:  # else the log stays, as after a kill
            db.close()
        return 0


class Letter:
    """Writes a file that must be there, and whole, once it was told of."""

    def __init__(self, *, sync_file: bool = True, sync_dir: bool = True) -> None:
        self._sync_file = sync_file
        self._sync_dir = sync_dir

    def setup(self, stage: Stage) -> None:
        pass

    def tell(self, stage: Stage) -> None:
        stage.play(self._write)

    def judge(self, stage: Stage, known: Known, *, thorough: bool) -> list[str]:
        del thorough
        path = stage.work / "letter"
        body = path.read_bytes() if path.exists() else None
        broken: list[str] = []
        if body is None and known.said:
            broken.append("an acknowledged letter is lost")
        if body is not None and body != BODY:
            broken.append("the letter is damaged")
        return broken

    def _write(self) -> int:
        write_whole(Path("letter"), BODY, sync_file=self._sync_file, sync_dir=self._sync_dir)
        print("sent")
        return 0


class Gate(Careful):
    """Executes the one call; after a power loss a call that started must not be startable again."""

    def __init__(self, *, synchronous: str) -> None:
        self._synchronous = synchronous

    def tell(self, stage: Stage) -> None:
        stage.play(lambda: self._execute(stage))

    def judge(self, stage: Stage, known: Known, *, thorough: bool) -> list[str]:
        del thorough
        db = connect(stage.work / "db")
        state = db.execute("SELECT state FROM call").get
        db.close()
        started = any(effect.what == "start" for effect in known.effects)
        return ["a call that started would start again"] if started and state == "approved" else []

    def _execute(self, stage: Stage) -> int:
        db = connect("db", synchronous=self._synchronous)
        db.execute("UPDATE call SET state = 'executing' WHERE state = 'approved'")
        start_effect(stage)
        db.execute("UPDATE call SET state = 'done' WHERE state = 'executing'")
        db.close()
        return 0


diary = Diary(synchronous="FULL")
diary_unsynced = Diary(synchronous="OFF")
diary_late = Diary(synchronous="NORMAL")
letter = Letter()
letter_without_body = Letter(sync_file=False)
letter_without_name = Letter(sync_dir=False)
gate = Gate(synchronous="FULL")
gate_unsynced = Gate(synchronous="NORMAL")
