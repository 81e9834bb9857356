"""adjourn logs: what a task printed."""

import os
import sys

import click

from adjourn.cli.options import TASK_NAME, verb
from adjourn.cli.screen import Margin, Stream, hand_on_all
from adjourn.cli.session import Session
from adjourn.cli.terminal import flush, print_exactly
from adjourn.controller.controller import Controller
from adjourn.core.errors import Misuse, NotFound
from adjourn.core.states import ENDED, TaskState
from adjourn.core.task import Task, run_id
from adjourn.supervision.wait import wait_until
from adjourn.system.files import open_plain, run_directory
from adjourn.system.poll import OUTPUT_SECONDS
from adjourn.views.call import short


@verb("logs", prints_whole=True)
@click.argument("task", type=TASK_NAME, metavar="ID")
@click.option(
    "-f",
    "--follow",
    is_flag=True,
    help="Keep printing until the task has ended, also after a pause.",
)
@click.option("--all", "wants_all", is_flag=True, help="All runs of the task, oldest first.")
@click.option(
    "--run", "number", type=click.IntRange(1), metavar="N", help="The n-th run instead of the last."
)
def command(
    session: Session, *, task: str, follow: bool, wants_all: bool, number: int | None
) -> int:
    """Print what a task's run printed: its stdout on stdout, its stderr on stderr.

    To a file it is byte for byte; on a terminal control characters are made visible, and each row
    is marked out or err.
    """
    if wants_all and number is not None:
        raise Misuse("--all and --run exclude each other", way_out=f"adjourn logs {task} --all")
    controller = session.open_controller()
    found = controller.decisions.find_task(task)
    first = 1 if wants_all else number or found.runs
    last = found.runs if wants_all else first
    if not 1 <= first <= last <= found.runs:
        raise NotFound(f"task {found.id} has no run {first}", way_out=f"adjourn runs {found.id}")
    if session.wants_json:
        session.is_copy = False  # what was printed is what was asked for
        runs = [_document(session, run_id(found.id, each)) for each in range(first, last + 1)]
        document = {"runs": runs} if wants_all else runs[0]
        session.print_document({"schema_version": 1, **document})
        return 0

    printer = _Printer(session, controller, found.id, is_marked=wants_all)
    for each in range(first, last + 1):
        printer.print_new(each)
    if follow and last == found.runs:
        printer.follow(found, last)
    printer.end()
    return 0


class _Printer:
    """Prints what the runs of a task print, one run after the other."""

    def __init__(
        self, session: Session, controller: Controller, task_id: str, *, is_marked: bool
    ) -> None:
        self._session = session
        self._controller = controller
        self._task_id = task_id
        self._is_marked = is_marked
        self._number = 0
        self._margin = Margin()
        self._streams: list[Stream] = []

    def print_new(self, number: int) -> None:
        """Print what a run has printed since the last time; a later run begins with its mark."""
        place = run_directory(self._session.root, run_id(self._task_id, number))
        if number != self._number:
            self.end()
            self._number = number
            self._streams = [
                Stream("stdout", sys.stdout.fileno(), self._margin),
                Stream("stderr", sys.stderr.fileno(), self._margin),
            ]
            # Only where a person reads: what is redirected stays as the runs wrote it
            if self._is_marked and sys.stdout.isatty() and sys.stderr.isatty():
                self._session.print(f"run {number}:")
                flush()
            _tell_of_elsewhere(self._session, self._controller, self._task_id, number, place=place)
        hand_on_all(self._streams, place)

    def follow(self, task: Task, number: int) -> None:
        """Keep printing until the task has ended, also across resumes."""
        session, controller = self._session, self._controller
        told: set[int] = set()

        def look() -> None:
            session.settle(controller)
            with controller.store.read() as view:
                now = view.task(task.id)
            for each in range(max(self._number, number), now.runs + 1):
                self._is_marked = self._is_marked or each > number
                self.print_new(each)
            if now.state in {TaskState.WAITING, TaskState.PAUSED} and now.runs not in told:
                told.add(now.runs)
                self.end()
                how = "waits for a person" if now.state is TaskState.WAITING else "is paused"
                session.warn(f"adjourn: task {short(task.id)} {how}: {_way_on(session, now)}")

        def runs(now: Task) -> bool:
            return now.state is TaskState.RUNNING or now.state in ENDED

        def rests(now: Task) -> bool:
            return now.state is not TaskState.RUNNING

        # Only what is printed has to be looked for; all else is an event
        while task.state not in ENDED:
            if task.state is TaskState.RUNNING:
                task = wait_until(controller, task.id, rests, look=look, every=OUTPUT_SECONDS)
            else:
                task = wait_until(controller, task.id, runs, look=look)
        look()

    def end(self) -> None:
        """Bring the cursor of a terminal to the beginning of a row."""
        if ending := self._margin.end():
            print_exactly(ending.removesuffix("\n"))
            flush()


def _way_on(session: Session, task: Task) -> str:
    words = ("inbox",) if task.state is TaskState.WAITING else ("resume", short(task.id))
    return session.commands(*words)


def _tell_of_elsewhere(
    session: Session, controller: Controller, task_id: str, number: int, *, place: str
) -> None:
    """Say why nothing is printed of a run that had a process, and left no files here.

    Silence would be taken for its own.
    """
    with controller.store.read() as view:
        run = view.run(task_id, number)
    had_a_process = run.shim or run.exit_code is not None or run.signal is not None
    if had_a_process and not os.path.isdir(place):
        session.warn(
            f"adjourn: what run {run.id} printed is not here: it is kept on the machine that ran it"
        )


def _document(session: Session, name: str) -> dict[str, object]:
    place = run_directory(session.root, name)
    return {"run_id": name, "stdout": _text(place, "stdout"), "stderr": _text(place, "stderr")}


def _text(place: str, name: str) -> str:
    fd = open_plain(os.path.join(place, name))
    if fd is None:
        return ""
    with open(fd, encoding="utf-8", errors="replace") as file:
        return file.read()
