"""Whether a task may be resumed or restarted from here: not from inside another repository."""

import os

from adjourn.cli.session import Session
from adjourn.core.errors import CannotResume, Misuse
from adjourn.core.task import Task
from adjourn.core.text.render import visible
from adjourn.settings.find_store import repository_of


def require_own_repository(session: Session, task: Task, *, verb: str, named: str | None) -> None:
    """Refuse a task of another repository than the one around us, unless its workspace is named.

    The same command in two repositories is not the same work. Outside of every repository there is
    nothing to mistake it for.
    """
    workspace = os.path.realpath(task.spec.workspace)
    here = os.path.realpath(named if named is not None else os.getcwd())
    if named is not None and not os.path.isdir(here):
        raise Misuse(
            f"{visible(named)} is not a directory",
            way_out=session.commands(verb, task.id, "--workspace", workspace),
        )
    around = repository_of(here)
    is_elsewhere = here != workspace and (
        repository_of(workspace) != around if around else named is not None
    )
    if is_elsewhere:
        what = "--workspace names" if named is not None else "this is"
        raise CannotResume(
            f"task {task.id} belongs to {visible(workspace)}, and {what} {visible(around or here)}",
            way_out=session.commands(verb, task.id, "--workspace", workspace),
        )
