"""adjourn notify: say who is told what, and tell them."""

from types import FrameType

import click
import msgspec

from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.core import exits
from adjourn.core.scene import Scene
from adjourn.core.text.render import prose
from adjourn.supervision.notify_loop import Hint, Told
from adjourn.views.call import table
from adjourn.views.next_step import resume_hint
from adjourn.views.notice import Occasion
from adjourn.wiring.notifications import Configured, configured, courier_for, deliver_until


class NotifierDoc(msgspec.Struct, frozen=True, kw_only=True):
    """Who is told of what, and how far that is."""

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
    help="Tell now all that was not told yet, also what would be tried later.",
)
@click.option(
    "--check", is_flag=True, help="Only say whether the config can be used, and who is told what."
)
@click.option(
    "--follow",
    is_flag=True,
    help="Tell all that happens until stdin is closed: what a worker starts by itself.",
)
def command(session: Session, *, flush: bool, check: bool, follow: bool) -> int:
    """Say who is told of pauses, decisions and endings, and how far that is.

    A worker delivers by itself.

    Who is told what is a matter of the user's config.toml, never of a project.
    """
    if follow:
        return _follow(session)
    notifiers = configured()
    if flush and notifiers:
        session.controller.decisions.authorise_alone(session.principal, "notify --flush")
        return _say(
            session, notifiers, told={each.name: _flush(session, each) for each in notifiers}
        )
    return _say(session, notifiers, told={}, is_check=check)


def _flush(session: Session, each: Configured) -> Told:
    return courier_for(each, session.root, hint=_hint(session)).deliver(at_once=True)


def _hint(session: Session) -> Hint:
    """Return what writes the next command.

    Whoever reads it may be anywhere, so it names the store.
    """
    session.given_store = session.root

    def hint(scene: Scene) -> str:
        return resume_hint(session, scene)

    return hint


def _follow(session: Session) -> int:
    import gc
    import signal

    from adjourn.cli.verbs.worker import Voice

    gc.enable()  # short commands go without; this one lasts
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stay)  # it leaves when its worker does, after the last round
    session.controller.decisions.authorise_alone(session.principal, "notify --follow")
    voice = Voice(session, as_json=session.wants_json)
    deliver_until(session.root, hint=_hint(session), log=voice.log, closed=0)
    return exits.COMPLETED


def _stay(_number: int, _frame: FrameType | None) -> None:
    """Let a signal pass; unlike an ignored one, it is not ignored by commands that are started here."""


def _say(
    session: Session, notifiers: list[Configured], *, told: dict[str, Told], is_check: bool = False
) -> int:
    documents = [
        _document(session, each, told.get(each.name), is_check=is_check) for each in notifiers
    ]
    if session.wants_json:
        session.document({"schema_version": 1, "notifiers": documents})
    elif documents:
        session.say(_as_table(session, documents))
    else:
        session.say("Nobody is told of anything: the user's config has no [[notify]].")
    return exits.FAILED if any(each.failed for each in told.values()) else exits.COMPLETED


def _document(
    session: Session, each: Configured, told: Told | None, *, is_check: bool
) -> NotifierDoc:
    box, waiting = None, 0
    if session.has_store and not is_check:
        waiting = courier_for(each, session.root, hint=_hint(session)).count_waiting()
        with session.controller.store.read() as view:
            box = view.outbox(each.name)
    return NotifierDoc(
        name=each.name,
        on=tuple(occasion for occasion in Occasion if occasion in each.on),
        to=each.way,
        delivered=told.delivered if told else 0,
        waiting=waiting,
        given_up=box.count_given_up if box else 0,
        error=box.last_error if box else None,
    )


def _as_table(session: Session, documents: list[NotifierDoc]) -> str:
    head = ("NAME", "DELIVERED", "WAITING", "GIVEN UP", "TOLD OF", "TO")
    rows = [
        [doc.name, str(doc.delivered), str(doc.waiting), str(doc.given_up), _of(doc), doc.to]
        for doc in documents
    ]
    errors = [f"{doc.name}: {prose(doc.error)}" for doc in documents if doc.error]
    return "\n".join([table(session, head, rows), *errors])


def _of(doc: NotifierDoc) -> str:
    return "all" if len(doc.on) == len(Occasion) else ", ".join(doc.on)
