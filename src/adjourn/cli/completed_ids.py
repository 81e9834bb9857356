"""The ids that the shell completes, with what each is."""

import click
from click.shell_completion import CompletionItem

from adjourn.cli.session import Session
from adjourn.core.errors import AdjournError
from adjourn.core.states import ENDED
from adjourn.core.text.render import clipped, title
from adjourn.views.ask_row import ask_gist
from adjourn.views.call import short

_MOST = 50
_COLUMNS = 60


def completed_ids(
    session: Session, ctx: click.Context, kind: str, incomplete: str
) -> list[CompletionItem]:
    """Return open asks, or tasks with the newest first; nothing where the store cannot be read."""
    try:
        session.given_store = ctx.params.get("store")
        session.find_root()
        if not session.has_store:
            return []
        decisions = session.open_decisions()
        redactor = session.open_redactor()  # what a shell shows stays in its history
        with decisions.store.read() as view:
            if kind == "ask":
                asks = view.open_asks(limit=_MOST, awake_at=decisions.now())
                found = [
                    (ask.id, f"{ask.kind}: {ask_gist(view, ask, view.task(ask.task_id), redactor)}")
                    for ask in asks
                ]
            else:
                tasks = view.tasks(limit=_MOST)
                tasks.sort(key=lambda task: task.state in ENDED)  # the others are wanted first
                found = [
                    (task.id, f"{task.state}: {title(redactor.task(task).spec, columns=_COLUMNS)}")
                    for task in tasks
                ]
    except (AdjournError, OSError):
        return []  # a shell that completes a word is no place for errors
    return [
        CompletionItem(
            short(name) if short(name).startswith(incomplete) else name,
            help=clipped(what, columns=_COLUMNS),
        )
        for name, what in found
        if name.startswith(incomplete)
    ]
