"""adjourn logs: what a task printed."""

import os
import sys

import click

from adjourn.cli.options import verb
from adjourn.cli.screen import Margin, Stream, hand_on_all
from adjourn.cli.session import Session
from adjourn.cli.terminal import print_exactly
from adjourn.controller.controller import Controller
from adjourn.core.errors import NotFound
from adjourn.core.states import TaskState
from adjourn.core.task import Task, run_id
from adjourn.supervision.wait import wait_until
from adjourn.system.files import open_plain, run_directory
from adjourn.system.poll import OUTPUT_SECONDS


@verb("logs", prints_whole=True)
@click.argument("task", metavar="ID")
@click.option("-f", "--follow", is_flag=True, help="Go on while the task runs.")
@click.option(
    "--run", "number", type=click.IntRange(1), metavar="N", help="The n-th run instead of the last."
)
def command(session: Session, *, task: str, follow: bool, number: int | None) -> int:
    """Print what a task's run printed: its stdout on stdout, its stderr on stderr.

    To a file it is byte for byte; on a terminal control characters are made visible, and each row
    is marked out or err.
    """
    controller = session.open_controller()
    found = controller.decisions.find_task(task)
    wanted = number or found.runs
    if not 1 <= wanted <= found.runs:
        raise NotFound(f"task {found.id} has no run {wanted}", way_out=f"adjourn runs {found.id}")
    place = run_directory(session.root, run_id(found.id, wanted))
    _tell_of_elsewhere(session, controller, found.id, wanted, place=place)
    if session.wants_json:
        session.is_copy = False  # what was printed is what was asked for
        session.print_document(_document(place, run_id(found.id, wanted)))
        return 0
    margin = Margin()
    streams = [
        Stream("stdout", sys.stdout.fileno(), margin),
        Stream("stderr", sys.stderr.fileno(), margin),
    ]
    if follow and wanted == found.runs:

        def look() -> None:
            session.settle(controller)
            hand_on_all(streams, place)

        wait_until(controller, found.id, _has_left, look=look, every=OUTPUT_SECONDS)
    hand_on_all(streams, place)
    if ending := margin.end():
        print_exactly(ending.removesuffix("\n"))
    return 0


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


def _has_left(task: Task) -> bool:
    return task.state is not TaskState.RUNNING


def _document(place: str, name: str) -> dict[str, object]:
    return {
        "schema_version": 1,
        "run_id": name,
        "stdout": _text(place, "stdout"),
        "stderr": _text(place, "stderr"),
    }


def _text(place: str, name: str) -> str:
    fd = open_plain(os.path.join(place, name))
    if fd is None:
        return ""
    with open(fd, encoding="utf-8", errors="replace") as file:
        return file.read()
