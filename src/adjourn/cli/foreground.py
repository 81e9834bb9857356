"""Runs a task in the foreground: shows its output while it works, and how it stands when its process has left."""

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

from adjourn.cli.present import standing
from adjourn.cli.projection import project
from adjourn.cli.session import Session
from adjourn.controller import Controller
from adjourn.core import exits
from adjourn.core.render import block
from adjourn.core.scene import Scene
from adjourn.core.states import TaskState
from adjourn.core.task import Task
from adjourn.core.when import span
from adjourn.supervise import Supervisor
from adjourn.wiring import now
from adjourn.wiring.supervision import open_supervisor

EXIT_CODES = {
    TaskState.QUEUED: exits.FAILED,
    TaskState.RUNNING: exits.FAILED,
    TaskState.WAITING: exits.PAUSED,
    TaskState.PAUSED: exits.PAUSED,
    TaskState.SUCCEEDED: exits.COMPLETED,
    TaskState.FAILED: exits.FAILED,
    TaskState.CANCELED: exits.FAILED,
}
_CHUNK = 1 << 20


@contextmanager
def supervising(session: Session) -> Generator[tuple[Controller, Supervisor], None, None]:
    """Be a supervisor for a while. The fork server is there before the store is opened."""
    controller, supervisor = open_supervisor(session.root)
    try:
        session.settle(controller)
        yield controller, supervisor
    finally:
        supervisor.close()


def run_to_the_end(session: Session, supervisor: Supervisor, task: Task) -> Task:
    """Run a queued task and show what it prints."""
    screen = Screen(session)
    try:
        return supervisor.run(task, watcher=screen.follow if screen.is_wanted else None)
    finally:
        screen.clear()


def report(session: Session, controller: Controller, task: Task) -> int:
    """Write the manifest of a pause, say how the task stands, and return the exit code for it."""
    scene = controller.scene(task.id)
    manifest = project(session, scene)
    if session.wants_json:
        session.document(manifest)
    elif scene.task.state is not TaskState.SUCCEEDED or sys.stdout.isatty():
        session.say(_closing(session, scene))
    return EXIT_CODES[scene.task.state]


def _closing(session: Session, scene: Scene) -> str:
    if scene.task.state is TaskState.SUCCEEDED:
        return f"Completed in {span(scene.task.updated_at - scene.task.created_at)}  (task {scene.task.id})"
    return standing(session, scene, now=now())


class Screen:
    """What a person sees of a run in the foreground: its output, and on a terminal a line that tells the time."""

    def __init__(self, session: Session) -> None:
        self.is_wanted = not session.wants_json or session.verbose
        self._streams = [Stream("stderr", sys.stderr.fileno())] if session.wants_json else []
        if not session.wants_json:
            self._streams = [Stream("stdout", 1), Stream("stderr", 2)]
        self._ticks = sys.stderr.isatty() and not session.wants_json
        self._began = time.monotonic()
        self._shown = False

    def follow(self, place: str) -> None:
        """Hand on what the run has printed since the last look."""
        if any(stream.has_more(place) for stream in self._streams):
            self.clear()
            for stream in self._streams:
                stream.hand_on(place)
        if self._ticks:
            self._tick()

    def _tick(self) -> None:
        elapsed = int((time.monotonic() - self._began) * 1000)
        os.write(2, f"\r\x1b[2Krunning {span(elapsed)}  (Ctrl+C pauses)\r".encode())
        self._shown = True

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            os.write(2, b"\r\x1b[2K")
            self._shown = False


class Stream:
    """One output file of a run, and the descriptor that it is copied to."""

    def __init__(self, name: str, fd: int) -> None:
        self._name = name
        self._fd = fd
        self._offset = 0
        self._is_terminal = os.isatty(fd)

    def has_more(self, place: str) -> bool:
        """Say whether there is something new."""
        try:
            return os.stat(os.path.join(place, self._name)).st_size > self._offset
        except FileNotFoundError:
            return False

    def hand_on(self, place: str) -> None:
        """Copy what is new: byte for byte, except to a terminal, where control characters are made visible."""
        with open(os.path.join(place, self._name), "rb") as file:
            file.seek(self._offset)
            while chunk := file.read(_CHUNK):
                self._offset += len(chunk)
                self._write(block(chunk.decode(errors="surrogateescape")).encode() if self._is_terminal else chunk)

    def _write(self, chunk: bytes) -> None:
        view = memoryview(chunk)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError:
            self._offset = 1 << 62  # whoever closed it does not want to hear
