"""adjourn _supervise: run one task of an MCP server's, apart from it."""

import os
import sys

import click

from adjourn.cli.foreground import report, supervising
from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.controller.controller import Controller
from adjourn.core.errors import AdjournError
from adjourn.core.states import TaskState
from adjourn.core.task import Task

_NOTHING = "-"


@verb("_supervise", hidden=True)
@click.option("--slot", help="The slot of the task that is being started.")
@click.option("--task", help="The task that is being continued.")
def command(session: Session, *, slot: str | None, task: str | None) -> int:
    """Wait for the id of a task on stdin, and run it. Without a word, look for it in the store."""
    with supervising(session) as (controller, supervisor):
        word = sys.stdin.readline().strip()
        if word == _NOTHING:
            return 0
        found = _find(controller, word or task, slot)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, sys.stdin.fileno())
        session.wants_json = True
        if found is None or found.state is not TaskState.QUEUED:
            return 0
        return report(session, controller, supervisor.run(found))


def _find(controller: Controller, name: str | None, slot: str | None) -> Task | None:
    """Return the task, or None if the process that was about to commit it died first."""
    try:
        with controller.store.read() as view:
            if name:
                return view.task(name)
            return view.task_in_slot(slot) if slot and slot != _NOTHING else None
    except AdjournError:
        return None
