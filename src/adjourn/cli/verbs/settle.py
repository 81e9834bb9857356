"""adjourn settle: record whether an uncertain call ran."""

import click

from adjourn.cli.foreground import report
from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.cli.verbs._replies import warn_receipts
from adjourn.controller.controller import Controller
from adjourn.controller.decisions import ENOUGH, require_named
from adjourn.core import exits
from adjourn.core.ask import UncertainAsk, Verb, Verdict
from adjourn.core.errors import Conflict, NotFound


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
    task_id, number = _named(controller, call) if "." in call else _asked_about(controller, call)
    settled = controller.tasks.settle(task_id, number, Verdict(verdict), by=by)
    report(session, controller, settled)
    if session.verbose:
        warn_receipts(session, controller.decisions, settled)
    return exits.COMPLETED


def _named(controller: Controller, call: str) -> tuple[str, int]:
    text, _, name = call.partition(".")
    require_named(text)
    task = controller.decisions.find_task(text, shortest=ENOUGH)
    with controller.store.read() as view:
        labelled = view.call_labelled(task.id, name)
    number = name.removeprefix("tc_") if name.startswith("tc_") else ""
    if labelled is None and not (number.isascii() and number.isdigit()):
        raise NotFound(
            f"no call {call}: write TASK.tc_N, or the agent's own name for it",
            way_out="adjourn inbox",
        )
    return task.id, labelled.number if labelled else int(number)


def _asked_about(controller: Controller, text: str) -> tuple[str, int]:
    ask = controller.decisions.find_ask(text)
    if not isinstance(ask, UncertainAsk):
        raise Conflict(
            f"ask {ask.id} is not about an uncertain call", way_out=f"adjourn show {ask.task_id}"
        )
    return ask.task_id, ask.call
