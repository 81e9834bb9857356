"""What changed in a workspace since its task paused."""

from collections.abc import Iterator

from adjourn.cli.session import Session
from adjourn.core.documents import WorkspaceDoc, spelled
from adjourn.core.scene import Scene
from adjourn.core.states import TaskState
from adjourn.core.text.render import visible
from adjourn.supervision.workspace_notes import head_at_pause
from adjourn.workspace.git import changed_since, head_of

_SHOWN = 50
_SHORT = 12


def since_the_pause(session: Session, scene: Scene) -> WorkspaceDoc | None:
    """Return what changed, of a task that waits or is paused.

    Nothing of the repository is run for it.
    """
    run, workspace = scene.run, scene.task.spec.workspace
    if (
        scene.task.state not in {TaskState.WAITING, TaskState.PAUSED}
        or run is None
        or run.paused_at is None
    ):
        return None
    then, now = head_at_pause(session.controller, scene.task), head_of(workspace)
    changes = changed_since(workspace, run.paused_at)
    return WorkspaceDoc(
        head_then=then.commit if then else None,
        head_now=now.commit if now else None,
        ref_then=then.ref if then else None,
        ref_now=now.ref if now else None,
        changed=tuple(
            spelled(path)
            for path in (changes.paths if not session.cuts else changes.paths[:_SHOWN])
        ),
        changed_count=len(changes.paths),
        looked_at=changes.looked_at,
        is_whole=changes.is_whole,
    )


def since_lines(since: WorkspaceDoc) -> Iterator[str]:
    """Say what changed, a line for each thing."""
    yield "workspace since the pause"
    yield from _head_lines(since)
    yield from (f"  changed  {visible(path)}" for path in since.changed)
    if since.changed_count > len(since.changed):
        yield f"  … {since.changed_count - len(since.changed):,} more; --full shows all"
    if not since.is_whole:
        yield f"  There is more than a short look covers: it ended after {since.looked_at:,} entries."
    elif not since.changed_count:
        yield f"  no file changed, of {since.looked_at:,} entries"


def _head_lines(since: WorkspaceDoc) -> Iterator[str]:
    if since.head_then is None and since.head_now is None:
        return
    if (since.head_then, since.ref_then) == (since.head_now, since.ref_now):
        yield f"  HEAD is where it was: {_named(since.head_now, since.ref_now)}"
    else:
        yield f"  HEAD was {_named(since.head_then, since.ref_then)}, is {_named(since.head_now, since.ref_now)}"


def _named(commit: str | None, ref: str | None) -> str:
    where = f" ({visible(ref)})" if ref else ""
    return f"{commit[:_SHORT] if commit else 'unknown'}{where}"
