"""adjourn worker: take ready tasks and run them."""

import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

import click
import msgspec

from adjourn.cli.foreground import require_redaction
from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.cli.terminal import StatusLine
from adjourn.controller.controller import Controller
from adjourn.core.documents import plain_json
from adjourn.core.errors import NotAllowed, StoreProblem
from adjourn.core.task import DEFAULT_POOL, Task
from adjourn.core.text.render import prose
from adjourn.core.text.when import ago, stamp
from adjourn.settings.supervision import read_settings
from adjourn.system.signals import deferred_signals
from adjourn.views.call import table
from adjourn.views.next_step import command as next_command
from adjourn.wiring import living, now
from adjourn.wiring.notifications import HURRIED, LAST_ROUND, Messenger
from adjourn.wiring.supervisor import open_worker

_MANY = 100  # tasks that are counted; of more it says only that there are more
_BETWEEN_COUNTS = 0.25  # seconds
_HEADINGS = {
    "name": "WORKER",
    "pid": "PID",
    "pool": "POOL",
    "active": "ACTIVE",
    "max_active": "MAX",
    "since": "SINCE",
    "host": "HOST",
}


@verb("worker")
@click.option(
    "--max-active",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="How many runs at a time (default: 4).",
)
@click.option(
    "--pool",
    default=DEFAULT_POOL,
    show_default=True,
    metavar="NAME",
    help="Take only tasks of this pool.",
)
@click.option("--once", is_flag=True, help="Run what is ready, and leave: for cron.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How to log, on stderr.",
)
@click.option("--status", is_flag=True, help="Say which workers are alive, and leave.")
def command(
    session: Session,
    *,
    max_active: int | None,
    pool: str,
    once: bool,
    log_format: str,
    status: bool,
) -> int:
    """Take ready tasks and run them, until told to stop. A decision starts its task at once.

    SIGTERM or Ctrl+C drains: nothing new is started, and what runs is paused (or finished, see
    supervision.yaml).
    """
    if status:
        return _say_status(session)
    if session.inside_run:
        raise NotAllowed(
            "a worker inside a run would end with it, and all it runs",
            way_out="start it from a terminal of your own",
        )
    require_redaction(session)
    settings = read_settings(session.root)
    if max_active:
        settings = msgspec.structs.replace(settings, max_active=max_active)
    with deferred_signals() as signals, speaking(session, as_json=log_format == "json") as voice:
        messenger = Messenger(session.root, log=voice.log, log_format=log_format)

        def look(controller: Controller, active: int) -> None:
            messenger.look()
            voice.tell(controller, active=active, most=settings.max_active, pool=pool)

        supervisor, worker = open_worker(
            session.root,
            settings,
            pool=pool,
            log=voice.log,
            on_settled=_projected(session),
            on_look=look,
        )
        voice.log(
            "worker_started",
            name=supervisor.name,
            pool=pool,
            max_active=settings.max_active,
            pid=os.getpid(),
        )
        try:
            worker.work(signals, once=once)
        finally:
            messenger.close(within=HURRIED if signals.count() else LAST_ROUND)
            voice.log("worker_stopped", name=supervisor.name)
            supervisor.close()
    return 0


def _projected(session: Session) -> Any:
    from adjourn.supervision.manifest_file import project

    def settled(controller: Controller, task: Task) -> None:
        project(session, controller.scene(task.id))

    return settled


@contextmanager
def speaking(session: Session, *, as_json: bool) -> Generator["Voice", None, None]:
    """Have a voice for a while; on a terminal it ends without a trace of its last line."""
    voice = Voice(session, as_json=as_json)
    try:
        yield voice
    finally:
        voice.line.remove()


class Voice:
    """What a worker says: a line for each thing that happens, and on a terminal one more that tells how it stands."""

    def __init__(self, session: Session, *, as_json: bool) -> None:
        self._session = session
        self._as_json = as_json
        self.line = StatusLine(is_wanted=not (as_json or session.verbose))  # others speak then, too
        self._last = ""
        self._counted = (0, 0)
        self._count_again_at = 0.0
        self._next = "Ctrl+C drains"

    def log(self, event: str, **facts: object) -> None:
        """Say one thing."""
        moment = stamp(now())
        clean = self._session.redactor.document(facts)
        if self._as_json:
            line = plain_json(msgspec.json.encode({"at": moment, "event": event, **clean}).decode())
        else:
            line = " ".join(
                [
                    moment,
                    event.replace("_", " "),
                    *(f"{name}={prose(str(fact))}" for name, fact in clean.items()),
                ]
            )
        self._last = f"{event.replace('_', ' ')} {moment[11:19]}"
        if event == "draining":
            self._next = "Ctrl+C again kills"
        if self.line.is_there:
            self.line.say(line)
        else:
            self._session.warn(line)

    def tell(self, controller: Controller, *, active: int, most: int, pool: str) -> None:
        """Rewrite the last line if there is something new."""
        if not self.line.is_there:
            return
        # Counting must not hold up what is to be started
        if not active or time.monotonic() >= self._count_again_at:
            self._count_again_at = time.monotonic() + _BETWEEN_COUNTS
            with suppress(StoreProblem):
                self._counted = _counted(controller, pool)
        queued, asks = self._counted
        ready = f"{queued}{'+' if queued == _MANY else ''} queued"
        waiting = f"{asks} {'ask waits' if asks == 1 else 'asks wait'}{' (adjourn inbox)' if asks else ''}"
        self.line.show(
            f"{active} of {most} active, {ready}, {waiting}; {self._last}  ({self._next})"
        )


def _counted(controller: Controller, pool: str) -> tuple[int, int]:
    with controller.store.read() as view:
        return len(view.queued(pool=pool, limit=_MANY)), view.count_open_asks()


def _say_status(session: Session) -> int:
    workers = _workers(session)
    if session.wants_json:
        session.document({"schema_version": 1, "workers": workers})
        return 0
    if not workers:
        session.say(f"No worker is alive here. Start one with: {next_command(session, 'worker')}")
        return 0
    keys = [
        "name",
        "pid",
        "pool",
        "active",
        "max_active",
        "since",
        *(["host"] if "host" in workers[0] else []),
    ]
    rows = [[str(worker[key]) for key in keys] for worker in workers]
    session.say(table(session, tuple(_HEADINGS[key] for key in keys), rows))
    return 0


def _workers(session: Session) -> list[dict[str, object]]:
    if not session.has_store:
        return []
    with session.controller.store.read() as view:
        supervisors = [view.run(task.id, task.runs).supervisor for task in view.running()]
    return [
        {
            "name": name,
            "pid": about.pid,
            "pool": about.pool,
            "active": supervisors.count(name),
            "max_active": about.max_active,
            **({"host": about.host} if about.host else {}),
            "since": stamp(about.started_at)
            if session.wants_json
            else ago(about.started_at, now=session.now()),
        }
        for name, about in living(session.root).items()
        if about.pool
    ]
