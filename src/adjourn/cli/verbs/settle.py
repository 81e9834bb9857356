"""adjourn settle: record whether an uncertain call ran."""

import click

from adjourn.cli.foreground import report
from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.cli.verbs._replies import warn_receipts
from adjourn.core import exits
from adjourn.core.ask import Verb, Verdict


@verb("settle", prints_whole=True)
@click.argument("call")
@click.argument("verdict", type=click.Choice([verdict.value for verdict in Verdict]))
def command(session: Session, *, call: str, verdict: str) -> int:
    """Record whether CALL (TASK.NAME, or its ask) ran: its process vanished without a result.

    \b
    it-ran       it took effect: the task is done
    it-did-not   it had no effect: the task is paused
    run-again    run it once more, under the same call id
    """  # noqa: D301 -- click keeps the lines of a paragraph that begins with a backspace
    controller = session.open_controller()
    by = session.principal(controller.decisions)
    controller.decisions.authorise(by, Verb.SETTLE)
    task_id, number = controller.tasks.find_call(call)
    settled = controller.tasks.settle(task_id, number, Verdict(verdict), by=by)
    report(session, controller, settled)
    if session.verbose:
        warn_receipts(session, controller.decisions, settled)
    return exits.COMPLETED
