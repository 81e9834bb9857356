"""Checks that a caller is outside of every run of a store; what is not known counts as inside."""

import os

from adjourn.core.ask import Principal
from adjourn.core.errors import NotAllowed
from adjourn.core.namespaces import PLACES, Place, difference, known_places, with_place
from adjourn.core.states import CallState
from adjourn.core.task import Run
from adjourn.ports.store import Change, View
from adjourn.process import supervisors
from adjourn.process.ancestry import (
    Ancestor,
    AncestryUnreadable,
    came_from_outside,
    enclosing_shim,
    is_initial,
    mark_of_run,
    read_ancestors,
    read_place,
)
from adjourn.system.files import LOCK, RESULT, is_lock_held, run_directory, run_names

_DECIDE_ELSEWHERE = (
    "decide from the terminal where you started the task, or sign the decision with --sign KEY"
)


def require_outside(root: str, view: View, by: Principal, verb: str) -> None:
    """Refuse a decision on a store of one machine from what is, or may be, part of one of its runs.

    A response file tells who owns it and not which process reads it, so it is not looked at here:
    it never decides.
    """
    if by.name.startswith("file:"):
        return
    ancestors = _ancestors(verb)
    # What cannot be read may be a run that is alive
    running = view.current_runs()
    if not running and not view.unreadable:
        return
    if ancestors is None:
        raise _refused(verb, "the processes above this one cannot be read in /proc", running)
    for run in running:
        if _is_lost(root, view, run):
            raise NotAllowed(
                f"{verb} is refused: run {run.id} has just lost its shim, "
                "and this may be a part of it",
                way_out=f"adjourn show {run.task_id}, then run the command again",
            )
    if by.name.startswith("uid:"):
        _require_known_place(root, view, verb, ancestors, running)


def require_outside_here(root: str, by: Principal, verb: str) -> None:
    """Refuse a decision on a shared store from what is, or may be, part of a run of this machine.

    Who decides there is named by a login or a key, which may come from any container. So namespaces
    are not compared.
    """
    if not by.name.startswith("file:") and _ancestors(verb) is None and has_runs(root):
        raise NotAllowed(
            f"{verb} is refused: the processes above this one cannot be read in /proc, "
            "so it may be part of a run",
            way_out="decide from another machine, or from a terminal where /proc can be read",
        )


def note_place(tx: Change, by: Principal) -> None:
    """Remember that the store is used from here.

    While a run is alive nothing is noted: it could be the run that calls.
    """
    if not by.name.startswith("uid:") or by.inside_run or tx.running() or tx.unreadable:
        return
    place, places = place_if_any(), known_places(tx.shared_document(PLACES))
    if place and place not in places:
        tx.keep_shared_document(PLACES, with_place(places, place))


def place_if_any() -> Place | None:
    """Return where this process lives, or None where /proc does not say it."""
    try:
        return read_place()
    except AncestryUnreadable:
        return None


def _ancestors(verb: str) -> list[Ancestor] | None:
    """Return the processes above this one, or None if they cannot be read.

    Refuse what is known to be part of a run.
    """
    try:
        ancestors = read_ancestors()
    except AncestryUnreadable:
        ancestors = None
    if mark_of_run() or (ancestors and enclosing_shim(ancestors)):
        sentence = f"{verb} is refused inside a run: what runs under adjourn may ask, never decide"
        raise NotAllowed(sentence, way_out="decide from a terminal of your own")
    return ancestors


def _is_lost(root: str, view: View, run: Run) -> bool:
    """Return whether a shim of the run is gone without a result.

    Then what it started may be anywhere, and look like anybody. A shim that ends as it should kills
    all that it started before it writes its result.
    """
    places = [run.id] if run.shim else []
    calls = view.calls_in(run.task_id, CallState.EXECUTING)
    places += [call.place for call in calls if call.shim]
    folders = [run_directory(root, place) for place in places]
    return any(
        not is_lock_held(os.path.join(folder, LOCK))
        and not os.path.lexists(os.path.join(folder, RESULT))
        for folder in folders
    )


def _require_known_place(
    root: str, view: View, verb: str, ancestors: list[Ancestor], running: list[Run]
) -> None:
    """Refuse a local user outside of the places from which the store was used while nothing ran."""
    try:
        place = read_place()
    except AncestryUnreadable as error:
        raise _refused(verb, str(error), running) from error
    differs = difference(place, known_places(view.shared_document(PLACES)))
    if differs:
        why = f"{differs} is not one from which this store was used while nothing ran"
        raise _refused(verb, why, running)
    is_known = not view.unreadable and _all_run_in(root, place, running)
    if came_from_outside(ancestors) and not is_known:
        raise _refused(
            verb, "the process that started this one is outside of its pid namespace", running
        )


def _all_run_in(root: str, place: Place, running: list[Run]) -> bool:
    """Whether all runs are in this pid namespace.

    Then none of them can have entered it from outside.
    """
    if is_initial(place):
        return False
    for run in running:
        about = supervisors.about_of(root, run.supervisor)
        theirs = about.place if about else None
        if theirs is None or (theirs.pid_namespace, theirs.first_process) != (
            place.pid_namespace,
            place.first_process,
        ):
            return False
    return True


def has_runs(root: str) -> bool:
    """Return whether this machine may have a run of a store.

    A supervisor or a shim holds its lock.
    """
    if supervisors.living(root):
        return True
    return any(
        is_lock_held(os.path.join(run_directory(root, name), LOCK)) for name in run_names(root)
    )


def _refused(verb: str, why: str, running: list[Run]) -> NotAllowed:
    why = f"this process may be part of a run, for {why}"
    if not running:
        sentence = f"{verb} is refused while a task cannot be read: {why}"
        return NotAllowed(sentence, way_out=f"{_DECIDE_ELSEWHERE}; or first: adjourn doctor")
    task_id = running[0].task_id
    sentence = f"{verb} is refused while task {task_id} runs: {why}"
    return NotAllowed(sentence, way_out=f"{_DECIDE_ELSEWHERE}; or first: adjourn wait {task_id}")
