"""adjourn notify: say who is told what, and tell them."""

import gc
import signal
from types import FrameType

import click
import msgspec

from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.cli.verbs._worker_log import WorkerLog
from adjourn.core import exits
from adjourn.core.text.render import prose
from adjourn.supervision.notify_loop import Round, Sender
from adjourn.views.block import Table, lines
from adjourn.views.notice import Occasion
from adjourn.wiring.notifications import (
    Configured,
    config_signature,
    configured,
    open_sender,
    send_sample,
    send_until_closed,
    wait_until_closed,
)
from adjourn.wiring.ownership import require_outside_of_all_runs


class NotifierDoc(msgspec.Struct, frozen=True, kw_only=True):
    """One notifier: what it is notified of, and what was delivered."""

    name: str
    on: tuple[Occasion, ...]
    to: str
    delivered: int
    waiting: int
    given_up: int
    error: str | None


@verb("notify")
@click.option(
    "--flush",
    is_flag=True,
    help="Deliver now what waits, including what would be retried later.",
)
@click.option(
    "--check", is_flag=True, help="Only check the config, and list who gets which events."
)
@click.option(
    "--test",
    "is_test",
    is_flag=True,
    help="Send each notifier a test message, and print whether it arrived.",
)
@click.option(
    "--follow",
    is_flag=True,
    help="Deliver events until stdin closes. Workers start this themselves.",
)
@click.option(
    "--hear",
    is_flag=True,
    help="Take what people press in chats until stdin closes. `worker --hear` starts this.",
)
def command(
    session: Session, *, flush: bool, check: bool, is_test: bool, follow: bool, hear: bool
) -> int:
    """List who is notified of pauses, decisions and endings, and what was delivered.

    A worker delivers them. The user's config.toml says who gets what; a project cannot change it:

    \b
    [[notify]]
    name = "me"
    command = ["notify-send", "adjourn"]
    """  # noqa: D301 -- click keeps the lines of a paragraph that begins with a backspace
    if not (check or is_test):
        session.require_named_store()
    # A notification may be read anywhere, so its command names the store
    session.given_store = session.root
    if follow or hear:
        return _stay_until_closed(session, verb="notify --follow" if follow else "notify --hear")
    notifiers = configured()
    if is_test and notifiers:
        return _test(session, notifiers)
    sent: dict[str, Round] = {}
    if flush and notifiers:
        controller = session.open_controller()
        controller.decisions.authorise_alone(
            session.principal(controller.decisions), "notify --flush"
        )
        sent = {each.name: _sender(session, each).send_due(at_once=True) for each in notifiers}
    documents = [_document(session, each, is_check=check and not sent) for each in notifiers]
    if session.wants_json:
        session.print_document({"schema_version": 1, "notifiers": documents})
    elif documents:
        head = ("NAME", "DELIVERED", "WAITING", "GIVEN UP", "EVENTS", "TO")
        rows = [
            [doc.name, str(doc.delivered), str(doc.waiting), str(doc.given_up), _of(doc), doc.to]
            for doc in documents
        ]
        errors = [f"{doc.name}: {prose(doc.error)}" for doc in documents if doc.error]
        session.show([Table(head=head, rows=rows), *lines(errors)])
    else:
        session.print("No notifiers are configured. Add a [[notify]] table to config.toml.")
    return exits.FAILED if any(each.failed for each in sent.values()) else exits.COMPLETED


def _test(session: Session, notifiers: list[Configured]) -> int:
    """Send each notifier a notice of no task, in no store, and print what came of it."""
    require_outside_of_all_runs("notify --test")
    results = {each.name: send_sample(each) for each in notifiers}
    if session.wants_json:
        documents = [
            {"name": name, "delivered": why is None, "error": why} for name, why in results.items()
        ]
        session.print_document({"schema_version": 1, "tests": documents})
    else:
        rows = [
            (each.name, "no" if results[each.name] else "yes", each.way, results[each.name] or "")
            for each in notifiers
        ]
        head = ("NAME", "ARRIVED", "TO", "ERROR")
        session.show([Table(head=head, rows=[tuple(map(prose, row)) for row in rows])])
    return exits.FAILED if any(results.values()) else exits.COMPLETED


def _sender(session: Session, each: Configured) -> Sender:
    redactor = session.open_redactor()
    return open_sender(each, session.root, commands=session.commands, redactor=redactor)


def _stay_until_closed(session: Session, *, verb: str) -> int:
    """Tell what happens, or take what is pressed, until the worker that started this leaves."""
    gc.freeze()
    gc.enable()  # short commands go without; this one lasts
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, _stay)  # it leaves when its worker does, after the last round
    controller = session.open_controller()
    controller.decisions.authorise_alone(session.principal(controller.decisions), verb)
    log = WorkerLog(session, as_json=session.wants_json)
    if verb == "notify --follow":
        send_until_closed(
            0,
            root=session.root,
            commands=session.commands,
            redactor=session.open_redactor(),
            log=log.log,
        )
        return exits.COMPLETED
    # Imported here: most who are told never listen
    from adjourn.hearing import start_hearing

    seen = config_signature()
    hearing = start_hearing(
        session.root,
        commands_for=session.commands_for,
        redactor=session.open_redactor(),
        log=log.log,
    )
    wait_until_closed(0, threads=hearing.threads, seen=seen)
    hearing.close()
    return exits.COMPLETED


def _stay(_number: int, _frame: FrameType | None) -> None:
    """Let a signal pass; unlike an ignored one, commands that are started here do not ignore it."""


def _document(session: Session, each: Configured, *, is_check: bool) -> NotifierDoc:
    box, waiting = None, 0
    if session.has_store and not is_check:
        waiting = _sender(session, each).count_waiting()
        with session.open_controller().store.read() as view:
            box = view.outbox(each.name)
    return NotifierDoc(
        name=each.name,
        on=tuple(occasion for occasion in Occasion if occasion in each.on),
        to=each.way,
        delivered=box.count_delivered if box else 0,
        waiting=waiting,
        given_up=box.count_given_up if box else 0,
        error=box.last_error if box else None,
    )


def _of(doc: NotifierDoc) -> str:
    return "all" if len(doc.on) == len(Occasion) else ", ".join(doc.on)
