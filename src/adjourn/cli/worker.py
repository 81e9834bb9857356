"""adjourn worker: take ready tasks and run them."""

import os
from typing import Any

import click
import msgspec

from adjourn.cli.options import verb
from adjourn.cli.present import table
from adjourn.cli.session import Session
from adjourn.controller import Controller
from adjourn.core.errors import Misuse
from adjourn.core.task import DEFAULT_POOL, Task
from adjourn.core.when import ago, stamp
from adjourn.supervise import deferred_signals
from adjourn.wiring import living, now
from adjourn.wiring.notification import Messenger
from adjourn.wiring.working import open_worker
from adjourn.worker import Settings

_SETTINGS = "supervision.yaml"
_LARGEST = 64 * 1024
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
@click.option("--max-active", type=click.IntRange(1, 1000), metavar="N", help="How many runs at a time (default: 4).")
@click.option("--pool", default=DEFAULT_POOL, show_default=True, metavar="NAME", help="Take only tasks of this pool.")
@click.option("--once", is_flag=True, help="Run what is ready, and leave: for cron.")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", help="How to log, on stderr.")
@click.option("--status", is_flag=True, help="Say which workers are alive, and leave.")
def command(session: Session, *, max_active: int | None, pool: str, once: bool, log_format: str, status: bool) -> int:
    """Take ready tasks and run them, until told to stop. A decision starts its task at once.

    SIGTERM or Ctrl+C drains: nothing new is started, and what runs is paused (or finished, see supervision.yaml).
    """
    if status:
        return _say_status(session)
    settings = read_settings(session.root)
    if max_active:
        settings = msgspec.structs.replace(settings, max_active=max_active)
    voice = Voice(session, as_json=log_format == "json")
    with deferred_signals() as signals:
        messenger = Messenger(session.root, log=voice.log, log_format=log_format)
        supervisor, worker = open_worker(
            session.root, settings, pool=pool, log=voice.log, on_settled=_projected(session), on_look=messenger.look
        )
        voice.log("worker_started", name=supervisor.name, pool=pool, max_active=settings.max_active, pid=os.getpid())
        try:
            worker.work(signals, once=once)
        finally:
            messenger.close()
            voice.log("worker_stopped", name=supervisor.name)
            supervisor.close()
    return 0


def _projected(session: Session) -> Any:
    from adjourn.cli.projection import project

    def settled(controller: Controller, task: Task) -> None:
        project(session, controller.scene(task.id))

    return settled


def read_settings(root: str) -> Settings:
    """Read `supervision.yaml`, or use the defaults where there is none. What it does not know is an error."""
    path = os.path.join(root, _SETTINGS)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(_LARGEST)
    except FileNotFoundError:
        return Settings()
    import yaml

    try:
        return _checked(msgspec.convert(yaml.safe_load(text) or {}, Settings))
    except (yaml.YAMLError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise Misuse(f"{path}: {' '.join(str(error).split())}", way_out="see docs/how-to/run-a-worker.md") from error


def _checked(settings: Settings) -> Settings:
    for name in ("poll_interval", "grace"):
        if not 0 <= getattr(settings, name) <= 86_400:  # noqa: PLR2004 -- a day
            raise msgspec.ValidationError(f"{name} must lie between 0 and 86400 seconds")
    if not (1 <= settings.max_active <= 1000 and 1 <= settings.retries <= 100):  # noqa: PLR2004 -- far beyond use
        raise msgspec.ValidationError("max_active must lie between 1 and 1000, retries between 1 and 100")
    return settings


class Voice:
    """What a worker says: a line for each thing that happens."""

    def __init__(self, session: Session, *, as_json: bool) -> None:
        self._session = session
        self._as_json = as_json

    def log(self, event: str, **facts: object) -> None:
        """Say one thing."""
        moment = stamp(now())
        if self._as_json:
            line = msgspec.json.encode({"at": moment, "event": event, **facts}).decode()
        else:
            line = " ".join([moment, event.replace("_", " "), *(f"{name}={fact}" for name, fact in facts.items())])
        self._session.warn(line)


def _say_status(session: Session) -> int:
    workers = _workers(session)
    if session.wants_json:
        session.document({"schema_version": 1, "workers": workers})
        return 0
    if not workers:
        session.say("No worker is alive here. Start one with: adjourn worker")
        return 0
    keys = ["name", "pid", "pool", "active", "max_active", "since", *(["host"] if "host" in workers[0] else [])]
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
            "since": ago(about.started_at, now=now()),
        }
        for name, about in living(session.root).items()
        if about.pool
    ]
