"""Plays kill points and power losses, one line of JSON in and one out, in forks of a process that has everything imported."""

import contextlib
import gc
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tests.crash import inject
from tests.crash.powerloss import Loss, Outage, suffer
from tests.crash.scenario import Fault, Point, Verdict, find
from tests.crash.stage import Stage
from tests.crash.tools import Tools


class Server:
    """One stage, on which one kill point after another is played."""

    def __init__(self, root: Path, *, tools: Tools) -> None:
        self._root = root
        self._stage = Stage(root / "stage", tools=tools)

    def serve(self) -> None:
        """Answer every line until there are no more."""
        for line in sys.stdin:
            self._answer(msgspec.json.decode(line, type=Point | Outage))

    def _answer(self, job: Point | Outage) -> None:
        """Do the work in a fork, which prints the answer.

        Nothing that it does wrong outlives it.
        """
        server = os.getpid()
        child = os.fork()
        if child == 0:
            self._stage.adopt_orphans()
            self._stage.end_with(server)
            answer: Verdict | Loss | Fault
            try:
                answer = self._verdict(job) if isinstance(job, Point) else self._loss(job)
            except BaseException:  # noqa: BLE001 -- whatever it was, the driver must hear of it
                answer = Fault(trace=traceback.format_exc())
            sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
            sys.stdout.buffer.flush()
            os._exit(0)
        os.waitpid(child, 0)

    def _verdict(self, point: Point) -> Verdict:
        scenario = find(point.scenario)
        self._stage.restore(self._template(point.scenario))
        self._stage.control.aim(point.aim)
        self._stage.aimed = point.aim
        begun = time.monotonic()
        try:
            ran = self._stage.play(lambda: scenario.step(self._stage), aim=point.aim)
            shot = self._stage.shot(point.aim)
            broken = scenario.aftermath(self._stage, ran)
        finally:
            self._stage.clear()
        return Verdict(
            point=point,
            killed=shot.killed != 0,
            what=shot.what,
            calls=shot.calls,
            trace=shot.trace,
            seconds=time.monotonic() - begun,
            broken=broken,
        )

    def _loss(self, outage: Outage) -> Loss:
        self._empty()
        return suffer(find(outage.story), self._stage, outage)

    def _template(self, name: str) -> Path:
        template = self._root / name.replace(":", ".")
        if not template.exists():
            self._empty()
            find(name).setup(self._stage)
            self._stage.clear()
            self._stage.keep(template)
        return template

    def _empty(self) -> None:
        empty = self._root / "empty"
        (empty / "work").mkdir(parents=True, exist_ok=True)
        self._stage.restore(empty)


@contextlib.contextmanager
def _root() -> Iterator[Path]:
    root = Path("/dev/shm") / f"adjourn-crash-{os.getpid()}"
    root.mkdir(mode=0o700)
    server = os.getpid()
    try:
        yield root
    finally:
        if os.getpid() == server:
            shutil.rmtree(root, ignore_errors=True)


def main() -> None:
    """Serve until stdin closes.

    The arguments are the two tools and the modules to import beforehand.
    """
    library, effect, *modules = sys.argv[1:]
    assert inject.loaded(), "start this with LD_PRELOAD"
    for module in modules:
        __import__(module)
    gc.freeze()  # what is shared stays shared: a fork that collects garbage would copy it all
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with _root() as root:
        Server(root, tools=Tools(library=library, effect=effect)).serve()


if __name__ == "__main__":
    main()
