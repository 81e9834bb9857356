"""adjourn inbox: what waits for a person."""

import click

from adjourn.cli.hint import command as next_command
from adjourn.cli.options import verb
from adjourn.cli.present import GIST, short, table, title
from adjourn.cli.session import Session
from adjourn.core.ask import Ask, AskKind
from adjourn.core.render import fit, visible
from adjourn.core.task import Task
from adjourn.core.when import ago
from adjourn.ports import View
from adjourn.wiring import now


@verb("inbox")
@click.option("--limit", type=click.IntRange(1, 100_000), default=20, show_default=True, metavar="N", help="How many to show.")
@click.option("--after", metavar="ASK", help="Show those that came after this one.")
def command(session: Session, *, limit: int, after: str | None) -> None:
    """List the open asks of all tasks, oldest first."""
    if not session.has_store:
        _say(session, [], more=False)
        return
    start = session.controller.find_ask(after).id if after else None
    with session.controller.store.read() as view:
        if session.wants_json:
            _say_json(session, view, view.open_asks(limit=limit, after=start))
            return
        # One more than is shown tells that there are more; counting them all would cost more than showing these.
        asks = view.open_asks(limit=limit + 1, after=start)
        rows = [_row(view, ask) for ask in asks[:limit]]
    _say(session, rows, more=len(asks) > limit)


def _row(view: View, ask: Ask) -> tuple[str, str, str, str, str]:
    task = view.task(ask.task_id)
    return (short(ask.id), ask.kind, short(ask.task_id), ago(ask.created_at, now=now()), _gist(ask, task))


def _gist(ask: Ask, task: Task) -> str:
    return fit(visible(ask.prompt), columns=GIST) if ask.kind is AskKind.QUESTION else title(task)


def _say(session: Session, rows: list[tuple[str, str, str, str, str]], *, more: bool) -> None:
    if session.wants_json:
        session.document({"schema_version": 1, "count": 0, "asks": []})
        return
    if not rows:
        session.say("Nothing waits for you.")
        return
    session.say(table(session, ("ASK", "KIND", "TASK", "SINCE", "WHAT"), rows, colour_by=1))
    if more:
        session.say(f"\nThere are more: {next_command(session, 'inbox', '--after', rows[-1][0])}")


def _say_json(session: Session, view: View, asks: list[Ask]) -> None:
    from adjourn.core.manifest import ask_doc

    docs = [ask_doc(ask, {ask.call: view.call(ask.task_id, ask.call)} if ask.call else {}) for ask in asks]
    session.document({"schema_version": 1, "count": view.count_open_asks(), "asks": docs})
