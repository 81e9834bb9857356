"""adjourn worker: take ready tasks and run them."""

import os
from contextlib import closing

import click
import msgspec

from adjourn.cli.foreground import require_redaction
from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.cli.verbs._worker_log import WorkerLog
from adjourn.core.errors import NotAllowed
from adjourn.core.task import DEFAULT_POOL
from adjourn.core.text.when import ago, stamp
from adjourn.process.ancestry import enclosing_run
from adjourn.settings.supervision import read_settings
from adjourn.system.poll import deferred_signals
from adjourn.views.block import Table
from adjourn.wiring import living
from adjourn.wiring.notifications import FOLLOW, HEAR, HURRIED, LAST_ROUND, NotifyProcess
from adjourn.wiring.worker import open_worker

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
@click.option("--once", is_flag=True, help="Run what is ready, then exit: for cron.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How to log, on stderr.",
)
@click.option(
    "--hear",
    is_flag=True,
    help="Also take what people press in the chats of your [[notify]] tables.",
)
@click.option("--status", is_flag=True, help="List the live workers, and exit.")
def command(
    session: Session,
    *,
    max_active: int | None,
    pool: str,
    once: bool,
    log_format: str,
    hear: bool,
    status: bool,
) -> int:
    """Take ready tasks and run them, until told to stop. A decision starts its task at once.

    SIGTERM or Ctrl+C drains: nothing new is started, and what runs is paused (or finished, see
    supervision.yaml).
    """
    if status:
        return _print_status(session)
    if enclosing_run():
        raise NotAllowed(
            "a worker inside a run would end with that run, and so would its tasks",
            way_out="start it from a terminal of your own",
        )
    require_redaction(session)
    settings = read_settings(session.root)
    if max_active:
        settings = msgspec.structs.replace(settings, max_active=max_active)
    log = WorkerLog(session, as_json=log_format == "json")
    with deferred_signals() as signals, closing(log.status):
        helpers = [
            NotifyProcess(session.root, log=log.log, log_format=log_format, flag=flag)
            for flag in ((FOLLOW, HEAR) if hear else (FOLLOW,))
        ]
        controller, supervisor, worker = open_worker(
            session.root,
            settings,
            pool=pool,
            log=log.log,
            commands=session.commands,
            redactor=session.open_redactor(),
        )
        log.log(
            "worker_started",
            name=supervisor.name,
            pool=pool,
            max_active=settings.max_active,
            pid=os.getpid(),
        )
        try:
            for active in worker.work(signals, once=once):
                for helper in helpers:
                    helper.start_if_needed()
                log.show_status(controller, active=active, most=settings.max_active, pool=pool)
        finally:
            # What is pressed now is decided by the next who listens; what is due is still told
            for helper in reversed(helpers):
                helper.close(within=HURRIED if signals.count() else LAST_ROUND)
            log.log("worker_stopped", name=supervisor.name)
            supervisor.close()
    return 0


def _print_status(session: Session) -> int:
    workers: list[dict[str, object]] = []
    if session.has_store:
        controller = session.open_controller()
        with controller.store.read() as view:
            supervisors = [run.supervisor for run in view.current_runs()]
        moment = controller.now()
        workers = [
            {
                "name": name,
                "pid": about.pid,
                "pool": about.pool,
                "active": supervisors.count(name),
                "max_active": about.max_active,
                **({"host": about.host} if about.host else {}),
                "since": stamp(about.started_at)
                if session.wants_json
                else ago(about.started_at, now=moment),
            }
            for name, about in living(session.root).items()
            if about.pool
        ]
    if session.wants_json:
        session.print_document({"schema_version": 1, "workers": workers})
    elif workers:
        keys = [key for key in _HEADINGS if key in workers[0]]
        rows = [[str(worker[key]) for key in keys] for worker in workers]
        session.show([Table(head=[_HEADINGS[key] for key in keys], rows=rows)])
    else:
        session.print(f"No worker is alive here. Start one with: {session.commands('worker')}")
    return 0
