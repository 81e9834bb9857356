"""Whether this process is part of a run, and where it lives on its machine: its namespaces."""

import os
from typing import NamedTuple

import msgspec

from adjourn.process.identity import SHIM_GROUP, membership
from adjourn.system.machine import boot_id

PLACES = "places"  # the name of the shared document that lists where people use the store from
_MOST = 8
# Every process of a run is below one of these
_OURS = frozenset({b"adjourn-shim", b"adjourn-forks"})
_TRIES = 20
_DEEPEST = 10_000
_INITIAL_PID_NAMESPACE = 0xEFFFFFFC  # the kernel's own number for the first one


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The namespaces of a process.

    Inode numbers are used again, so the pid namespace has its first process with it.
    """

    boot_id: str
    pid_namespace: int
    first_process: int  # when the first process of the pid namespace started
    user_namespace: int
    mount_namespace: int
    uid_map: str
    gid_map: str


def known_places(body: bytes | None) -> tuple[Place, ...]:
    """Return the places that a store knows.

    None where the list cannot be read, so that nothing is believed.
    """
    try:
        return msgspec.json.decode(body, type=tuple[Place, ...]) if body else ()
    except msgspec.MsgspecError:
        return ()


def with_place(places: tuple[Place, ...], place: Place) -> bytes:
    """Return the list with one more place.

    What an earlier boot left is dropped, and so is the oldest of too many.
    """
    kept = [known for known in places if known.boot_id == place.boot_id and known != place]
    return msgspec.json.encode([*kept, place][-_MOST:])


def difference(place: Place, places: tuple[Place, ...]) -> str | None:
    """Return what keeps a place from being one of these, in words, or None if it is one of them."""
    if place in places:
        return None
    pid_namespace = (place.boot_id, place.pid_namespace, place.first_process)
    same = [
        each
        for each in places
        if (each.boot_id, each.pid_namespace, each.first_process) == pid_namespace
    ]
    if not same:
        return "its pid namespace"
    nearest = same[-1]
    if (place.uid_map, place.gid_map) != (nearest.uid_map, nearest.gid_map):
        return "its map of user ids"
    return (
        "its user namespace"
        if place.user_namespace != nearest.user_namespace
        else "its mount namespace"
    )


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
    groups = membership("self").split("/")
    group = next((name for name in groups if SHIM_GROUP.fullmatch(name)), None)
    return os.environ.get("ADJOURN_RUN_ID") or group


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


def parent_run_in(root: str) -> str | None:
    """Return the run that this process is part of, if it is kept in the store of that directory."""
    outer = os.environ.get("ADJOURN_STORE", "")
    return os.environ.get("ADJOURN_RUN_ID") if os.path.abspath(outer) == root else None
