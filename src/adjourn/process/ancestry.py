"""Whether this process is part of a run.

Its ancestors, its control group, its environment and its namespaces.
"""

import os
from typing import NamedTuple

from adjourn.core.namespaces import Place
from adjourn.process.cgroup import enclosing_group
from adjourn.system.clock import boot_id

# Every process of a run is below one of these
_OURS = frozenset({b"adjourn-shim", b"adjourn-forks"})
_TRIES = 20
_DEEPEST = 10_000
_INITIAL_PID_NAMESPACE = 0xEFFFFFFC  # the kernel's own number for the first one


class AncestryUnreadable(Exception):
    """/proc does not show the ancestors of this process, or they changed whenever it was read."""


class Ancestor(NamedTuple):
    """A process above this one, as /proc showed it."""

    pid: int
    name: bytes
    parent: int
    start_time: int


def find_enclosing_run() -> str | None:
    """Return a name for the run that this process is known to be part of, or None.

    Raise AncestryUnreadable where /proc hides it.
    """
    return mark_of_run() or enclosing_shim(read_ancestors())


def mark_of_run() -> str | None:
    """Return the mark of a run that this process carries itself.

    A variable, or the control group of a shim.
    """
    return os.environ.get("ADJOURN_RUN_ID") or enclosing_group()


def enclosing_shim(ancestors: list[Ancestor]) -> str | None:
    """Return the shim among these processes, or the fork server that adopted what it left."""
    return next((f"pid {one.pid}" for one in ancestors if one.name in _OURS), None)


def read_ancestors() -> list[Ancestor]:
    """Return this process and all above it, up to the first that /proc shows no parent of.

    While it reads, an ancestor may die, and its children get another parent. So the list counts
    only if a second reading finds the same processes; a pid that was used again has another start
    time.
    """
    for _ in range(_TRIES):
        found = _read_upwards()
        if found is not None and found == _read_upwards():
            return found
    raise AncestryUnreadable("the processes above this one cannot be read in /proc")


def came_from_outside(ancestors: list[Ancestor]) -> bool:
    """Return whether the last ancestor entered this pid namespace, as `docker exec` does.

    Only a process of an outer namespace can start such a process. In the first namespace the kernel
    itself started it.
    """
    return ancestors[-1].pid != 1


def _read_upwards() -> list[Ancestor] | None:
    found: list[Ancestor] = []
    # Not getpid(): /proc may show another pid namespace than our own, and then it has other
    # numbers.
    name = "self"
    while name != "0":
        one = _read_ancestor(name)
        if one is None or len(found) > _DEEPEST:
            return None
        found.append(one)
        name = str(one.parent)
    return found


def _read_ancestor(name: str) -> Ancestor | None:
    try:
        fd = os.open(f"/proc/{name}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            stat = os.read(fd, 4096)
        finally:
            os.close(fd)
        # The name may hold blanks and parentheses; nothing after its last one does.
        head, _, tail = stat.rpartition(b")")
        pid, _, comm = head.partition(b" (")
        fields = tail.split()
        return Ancestor(int(pid), comm, int(fields[1]), int(fields[19]))
    except (OSError, ValueError, IndexError):
        return None


def read_place() -> Place:
    """Return where this process lives; raise AncestryUnreadable where /proc does not say it."""
    first = _read_ancestor("1")
    try:
        if first is None:
            raise AncestryUnreadable("/proc does not show the first process")
        return Place(
            boot_id=boot_id(),
            pid_namespace=_namespace("pid"),
            first_process=first.start_time,
            user_namespace=_namespace("user"),
            mount_namespace=_namespace("mnt"),
            uid_map=_map("uid_map"),
            gid_map=_map("gid_map"),
        )
    except OSError as error:
        raise AncestryUnreadable(
            f"/proc does not show the namespaces of this process: {error.strerror}"
        ) from error


def is_initial(place: Place) -> bool:
    """Return whether this is the outermost pid namespace, which nothing can enter."""
    return place.pid_namespace == _INITIAL_PID_NAMESPACE


def _namespace(kind: str) -> int:
    try:
        return os.stat(f"/proc/self/ns/{kind}").st_ino
    except FileNotFoundError:
        return 0  # a kernel without namespaces of that kind


def _map(name: str) -> str:
    try:
        fd = os.open(f"/proc/self/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""  # a kernel without user namespaces
    try:
        return " ".join(os.read(fd, 4096).decode("ascii", "replace").split())
    finally:
        os.close(fd)


def enclosing_run() -> str | None:
    """Return the run that this process is known to be part of, if any.

    Where /proc hides the answer it is None. The authoriser checks again before a decision.
    """
    try:
        return find_enclosing_run()
    except AncestryUnreadable:
        return None
