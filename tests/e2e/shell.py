"""A person's shell in a directory of its own, with the adjourn under test first on PATH."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from adjourn.ports.store import Store
from tests.hints import unknown_hints

AGENTS = Path(__file__).resolve().parent.parent / "agents"
ADJOURN = Path(sys.executable).parent / "adjourn"
SECONDS = 60
_BEYOND_THE_GATE = """
SELECT 1 FROM call JOIN task ON task.no = call.no >> 20 WHERE call.state NOT IN ('approved', 'claimed') AND task.id =
"""

Document = dict[str, Any]


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended, and what it said."""

    words: tuple[str, ...]
    code: int
    raw: bytes
    raw_err: bytes

    @property
    def out(self) -> str:
        """What it printed."""
        return self.raw.decode(errors="surrogateescape")

    @property
    def err(self) -> str:
        """What it complained of."""
        return self.raw_err.decode(errors="surrogateescape")

    @property
    def doc(self) -> Document:
        """The one JSON document on its stdout."""
        return msgspec.json.decode(self.raw, type=Document)

    def must(self, code: int) -> "Done":
        """Insist on an exit code, and on the absence of tracebacks and confessions."""
        report = f"{self.words}: exit code {self.code}, not {code}\n--- stdout\n{self.out[-3000:]}\n--- stderr\n{self.err[-3000:]}"
        assert self.code == code, report
        assert "Traceback" not in self.err, report
        assert "a defect in adjourn" not in self.out + self.err, report
        return self


class Shell:
    """Runs commands as a person would, and knows where everything is."""

    # The URL of a store that all shells share from their beginning
    database_of_all: ClassVar[str | None] = None

    def __init__(self, place: Path) -> None:
        self.place = place
        self.store = place / ".adjourn"
        self.database: str | None = None  # the URL of a store that machines share
        self.me = f"uid:{os.getuid()}"
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("ADJOURN", "_ADJOURN", "CI"))
            and name not in {"AUTO_APPROVAL", "NO_COLOR", "FORCE_COLOR"}
        }
        self.environment["XDG_CONFIG_HOME"] = str(place / ".config")  # never the developer's own
        self.environment["XDG_STATE_HOME"] = str(place.with_name(f"{place.name}-state"))  # likewise
        self.environment["PATH"] = os.pathsep.join(
            [str(ADJOURN.parent), os.environ.get("PATH", os.defpath)]
        )
        if self.database_of_all:
            self.share(self.database_of_all)

    def run(
        self,
        *words: str | bytes,
        expect: int | None = 0,
        env: Mapping[str, str] | None = None,
        cwd: Path | str | None = None,
        stdin: bytes | None = None,
    ) -> Done:
        """Run any program to its end and insist on its exit code; None means any."""
        done = subprocess.run(
            words,
            cwd=cwd or self.place,
            env={**self.environment, **(env or {})},
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        ended = Done(
            words=tuple(map(repr, words)),
            code=done.returncode,
            raw=done.stdout,
            raw_err=done.stderr,
        )
        unknown = unknown_hints(ended.raw)
        assert unknown == [], f"{unknown}: A-R29: no test runs a hint of this form as printed"
        return ended if expect is None else ended.must(expect)

    def adjourn(
        self,
        *words: str | bytes,
        expect: int | None = 0,
        env: Mapping[str, str] | None = None,
        cwd: Path | str | None = None,
    ) -> Done:
        """Run adjourn to its end."""
        return self.run(str(ADJOURN), *words, expect=expect, env=env, cwd=cwd)

    def json(
        self, verb: str, *words: str | bytes, expect: int = 0, env: Mapping[str, str] | None = None
    ) -> Document:
        """Run a verb with `--output json` and return the document."""
        return self.adjourn(verb, "--output", "json", *words, expect=expect, env=env).doc

    def line(
        self, line: str, *, expect: int | None = 0, env: Mapping[str, str] | None = None
    ) -> Done:
        """Have a shell run a line, exactly as it was printed somewhere."""
        return self.run("sh", "-c", line, expect=expect, env=env)

    def start(self, *words: str, **settings: Any) -> "subprocess.Popen[bytes]":
        """Start adjourn and return at once."""
        started: Any = subprocess.Popen(
            [str(ADJOURN), *words],
            **{
                "cwd": self.place,
                "env": self.environment,
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                **settings,
            },
        )
        process: subprocess.Popen[bytes] = started
        return process

    def script(self, text: str, *, name: str = "script.sh") -> str:
        """Put a shell script into the directory and return how to call it."""
        path = self.place / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o700)
        return f"./{name}"

    def agent(self, name: str) -> str:
        """Put one of the agents into the directory and return how to call it."""
        shutil.copy(AGENTS / name, self.place / name)
        (self.place / name).chmod(0o700)
        return f"./{name}"

    @property
    def project(self) -> Path:
        """Where the project keeps its policy, whatever the store is."""
        place = self.place / ".adjourn"
        place.mkdir(mode=0o700, exist_ok=True)
        return place

    def share(self, url: str) -> None:
        """Have the program keep its tasks in PostgreSQL, and its files in a place of their own."""
        from psycopg.conninfo import conninfo_to_dict

        from adjourn.stores.postgres.store import PostgresStore

        home = str(self.place.with_name(f"{self.place.name}-state"))
        self.environment |= {"ADJOURN_STORE": url, "XDG_STATE_HOME": home}
        self.store = Path(_place_for(url, home))
        self.database = url
        self.me = f"db:{conninfo_to_dict(url)['user']}"
        PostgresStore(url).close()

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Say something to the store's database past the program.

        Both kinds of store have the same tables.
        """
        if self.database is None:
            import apsw

            return list(apsw.Connection(str(self.store / "adjourn.db")).execute(statement))
        import psycopg

        with psycopg.connect(
            self.database, options="-csearch_path=adjourn", autocommit=True
        ) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def open_store(self) -> Store:
        """Open the store past the program."""
        if self.database is None:
            from adjourn.stores.sqlite.store import SqliteStore

            return SqliteStore(str(self.store))
        from adjourn.stores.postgres.store import PostgresStore

        return PostgresStore(self.database)

    # --- short ways to what tests look at ---------------------------------------------------------

    def paused(self, *command: str) -> Document:
        """Run a command that pauses, and return its manifest."""
        return self.json("run", "--", *command, expect=10)

    def detached(self, *command: str, options: tuple[str, ...] = ()) -> str:
        """Run a command detached, wait until it works, and return the task's id."""
        task: str = self.json("run", "--detach", *options, "--", *command)["task_id"]
        until((self.store / "runs" / f"{task}.1" / "shim.json").exists, what="the shim is there")
        until(lambda: bool(self.sql(f"{_BEYOND_THE_GATE} '{task}'")), what="its gate is open")
        return task

    def state(self, task: str) -> str:
        """Return a task's state."""
        state: str = self.json("show", task)["state"]
        return state

    def inbox(self) -> list[Document]:
        """Return the open asks."""
        asks: list[Document] = self.json("inbox")["asks"]
        return asks

    def runs(self, task: str) -> list[Document]:
        """Return a task's run records."""
        runs: list[Document] = self.json("runs", task)["runs"]
        return runs

    def lines(self, name: str) -> list[str]:
        """Return what scripts noted down outside of the store."""
        path = self.place / name
        return path.read_text().splitlines() if path.exists() else []

    def shim(self, run: str) -> int:
        """Return the pid of a run's shim."""
        return int(
            msgspec.json.decode((self.store / "runs" / run / "shim.json").read_bytes())["pid"]
        )

    def supervisor(self, run: str) -> int:
        """Return the pid of a run's supervisor: the parent of its fork server."""
        return parent_of(parent_of(self.shim(run)))

    def processes(self) -> dict[int, str]:
        """Return every living process that works in the directory, or for a run of the store."""
        return dict(self._living())

    def _living(self) -> Iterator[tuple[int, str]]:
        ours = f"ADJOURN_STORE={self.store}\0".encode()
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                inside = os.readlink(f"/proc/{entry}/cwd").startswith(str(self.place))
                if inside or ours in Path(f"/proc/{entry}/environ").read_bytes() + b"\0":
                    yield (
                        int(entry),
                        Path(f"/proc/{entry}/cmdline")
                        .read_bytes()
                        .replace(b"\0", b" ")
                        .decode(errors="replace"),
                    )

    def end(self) -> dict[int, str]:
        """End whatever is left and return it: a test that ended well leaves nothing."""
        with contextlib.suppress(TimeoutError):
            until(lambda: not self.processes(), what="everything has left", seconds=3)
        left = self.processes()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return left


def _place_for(url: str, home: str) -> str:
    from adjourn.wiring.shared import place_for

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", home)
        return place_for(url)


def parent_of(pid: int) -> int:
    """Return the parent of a process."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def until(is_so: Callable[[], bool], *, what: str, seconds: float = 20) -> None:
    """Wait for something that happens in another process."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds} s: {what}")
        time.sleep(0.02)
