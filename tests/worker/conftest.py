"""What every worker test has.

A shell, workers that end with the test, and the promise that nothing is left running.
"""

import contextlib
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.shell import Shell, until
from tests.stores import on_store

StartWorker = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shell]:
    """Return a shell in a directory of its own; afterwards no process of it may be left."""
    shell = on_store(request, Shell(tmp_path))
    yield shell
    assert shell.end() == {}


@pytest.fixture
def worker(shell: Shell) -> Iterator[StartWorker]:
    """Return what starts a worker and waits until it listens."""
    workers: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> "subprocess.Popen[bytes]":
        log = (shell.place / f"worker-{len(workers)}.log").open("wb")
        process = shell.start("worker", *words, stdout=subprocess.DEVNULL, stderr=log)
        log.close()
        workers.append(process)
        until(
            lambda: str(process.pid) in shell.adjourn("worker", "--status").out,
            what="the worker is there",
        )
        return process

    yield start
    for process in workers:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
            process.terminate()
    for process in workers:
        process.wait(timeout=30)
