"""The supervisors of a store: which of them live, and what each wrote about itself.

Apart from `processes`, because every short command asks for this and needs nothing else of it.
"""

import os

import msgspec

from adjourn.process.ancestry import Place
from adjourn.system.files import is_lock_held


class SupervisorRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a supervisor writes about itself into its lock file."""

    pid: int
    started_at: int
    pool: str | None = None  # a worker's; a foreground command has none
    max_active: int = 1
    host: str = ""  # where several machines share the work
    place: Place | None = None  # the namespaces in which it starts its runs


class LocalSupervisors:
    """The supervisors of one store on this machine."""

    def __init__(self, root: str) -> None:
        self._root = root

    def supervisor_lives(self, supervisor: str) -> bool:
        """Return whether that supervisor still holds its lock."""
        return is_lock_held(supervisor_lock(self._root, supervisor))


class SharedSupervisors(LocalSupervisors):
    """The supervisors of a store that machines share.

    Of those of other machines, only the leases tell.
    """

    def supervisor_lives(self, supervisor: str) -> bool:
        """Return whether a supervisor may be alive.

        One of this machine is dead for sure once it lost its lock.
        """
        return not os.path.lexists(
            supervisor_lock(self._root, supervisor)
        ) or super().supervisor_lives(supervisor)


def supervisor_lock(root: str, supervisor: str) -> str:
    """Return the lock that a supervisor holds while it lives."""
    return os.path.join(root, "supervisors", f"{supervisor}.lock")


def living(root: str) -> dict[str, SupervisorRecord]:
    """Return the supervisors that hold their locks, with what each wrote about itself."""
    place = os.path.join(root, "supervisors")
    found = {
        name.removesuffix(".lock"): _about(os.path.join(place, name)) for name in _names(place)
    }
    return {name: about for name, about in found.items() if about}


def remove_dead(root: str, *, needed: set[str], dry_run: bool = False) -> int:
    """Remove the locks of dead supervisors that have no run left; return how many those are.

    Only its own supervisor ever writes into a lock, and holds it then. So one that has content and
    is not held belongs to a dead one. An empty one may be about to be held: it is left alone.
    """
    place = os.path.join(root, "supervisors")
    count = 0
    for name in _names(place):
        path = os.path.join(place, name)
        if not os.path.isfile(path):
            continue  # whatever it is, it is no lock of ours
        try:
            is_dead = os.path.getsize(path) > 0 and not is_lock_held(path)
            if is_dead and name.removesuffix(".lock") not in needed:
                if not dry_run:
                    os.unlink(path)
                count += 1
        except FileNotFoundError:
            continue  # somebody else prunes, or it has just left
    return count


def about_of(root: str, supervisor: str) -> SupervisorRecord | None:
    """Return what a living supervisor wrote about itself."""
    return _about(supervisor_lock(root, supervisor))


def _names(place: str) -> list[str]:
    try:
        return sorted(os.listdir(place))
    except FileNotFoundError:
        return []


def _about(path: str) -> SupervisorRecord | None:
    if not is_lock_held(path):
        return None
    with open(path, "rb") as file:
        content = file.read()
    try:
        return msgspec.json.decode(content, type=SupervisorRecord)
    except msgspec.DecodeError:
        return None  # it has just been made
