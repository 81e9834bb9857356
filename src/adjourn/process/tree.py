"""Kills process trees to the last member, and never a stranger."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator

from adjourn.process.cgroup import Cgroup
from adjourn.process.identity import Pinned, ProcStat, look_at
from adjourn.process.shim import ShimRecord, holds_lock, read_record
from adjourn.system.machine import boot_id

CHILDREN = "/proc/self/task/{}/children"
_PATIENCE = 2.0  # seconds; who is not gone by then sleeps in the kernel, or is not ours to kill
_MOMENT = 0.05  # seconds; what one round of kills gets to take effect
# Seconds between the moment in which a process lets go of its files and that in which it is gone
_DYING = 0.3
_STRIKES = 16


def kill_children(reap: Callable[[], bool], *, spare: Collection[int] = ()) -> int:
    """Kill all descendants of this process, which is a subreaper; return how many withstood it.

    `reap` collects the dead and says whether there are children left, beside those to spare.
    """
    me = os.getpid()
    deadline = time.monotonic() + _PATIENCE
    while _strike(reap, spare):
        withstood = kill_all(lambda process: process.parent == me and process.pid not in spare)
        if time.monotonic() > deadline:
            return len(withstood)
    return 0


def kill_leftovers(run_dir: str, run_id: str) -> int:
    """Kill what is still alive of a run whose shim is dead; return how many processes that were.

    A member is known by its control group, by the ADJOURN_RUN_ID that it was started with, by its
    session, or by an ancestor. The caller is spared.
    """
    record = read_record(run_dir)
    if holds_lock(run_dir) or (record and _belongs_to_another(record)):
        return 0
    group = Cgroup(record.cgroup) if record and record.cgroup else None
    deadline = time.monotonic() + _PATIENCE
    killed: set[tuple[int, int]] = set()
    while (found := kill_all(_member_of(record, run_id))) and time.monotonic() < deadline:
        killed |= {(process.pid, process.start_time) for process in found}
        if group and not group.holds("self"):
            group.kill()
    if group:
        group.remove()
    return len(killed)


def _belongs_to_another(record: ShimRecord) -> bool:
    """Return whether a run belongs to another machine, or to the store of which ours is a copy.

    Then its shim lives, and holds no lock of ours.
    """
    if record.boot_id != boot_id():
        return True
    shim = Pinned.pin(record.pid, if_it=lambda seen: seen.start_time == record.start_time)
    if shim is None:
        return False
    is_gone = shim.gone(within=_DYING)
    shim.close()
    return not is_gone


def kill_all(is_ours: Callable[[ProcStat], bool]) -> set[ProcStat]:
    """Kill the processes that pass the test and all below them; return them.

    All are stopped before the first is killed: the stopped neither fork nor reap, so none is missed
    and no pid changes hands.
    """
    frozen: dict[ProcStat, Pinned] = {}
    # A member that was not stopped yet may fork: look again until a round finds nobody new
    while _freeze_more(frozen, is_ours):
        pass
    for pinned in frozen.values():
        pinned.send(signal.SIGKILL)
    deadline = time.monotonic() + _MOMENT
    for pinned in frozen.values():
        pinned.gone(within=max(0, deadline - time.monotonic()))
        pinned.close()
    return set(frozen)


def children() -> list[int]:
    """Return the pids of this process's children; each stays taken until this process reaps it."""
    try:
        with open(CHILDREN.format(os.getpid()), "rb") as listed:
            return [int(pid) for pid in listed.read().split()]
    except FileNotFoundError:  # a kernel that keeps no such list
        return [process.pid for process in _others() if process.parent == os.getpid()]


def _strike(reap: Callable[[], bool], spare: Collection[int]) -> bool:
    """Kill the children of this process several times; return whether one is left.

    This catches what forks and exits so fast that it is gone before a look at all processes gets to
    it, for an orphan becomes a child of this process at once.
    """
    for _ in range(_STRIKES):
        if not reap():
            return False
        for pid in set(children()).difference(spare):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
    return True


def _freeze_more(frozen: dict[ProcStat, Pinned], is_ours: Callable[[ProcStat], bool]) -> bool:
    """Stop the members that were not found before; return whether there were any."""
    known = {process.pid: pinned for process, pinned in frozen.items()}
    before = len(frozen)

    def belongs(process: ProcStat) -> bool:
        parent = known.get(process.parent)
        return is_ours(process) or (parent is not None and not parent.gone())

    for process in _others():
        if (
            process.pid not in known
            and belongs(process)
            and (pinned := Pinned.pin(process.pid, if_it=belongs))
        ):
            pinned.send(signal.SIGSTOP)
            known[process.pid] = frozen[process] = pinned
    return len(frozen) > before


def _others() -> Iterator[ProcStat]:
    """Yield every living process but this one, parents mostly before their children."""
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdecimal()):
        if pid != os.getpid() and (process := look_at(pid)):
            yield process


def _member_of(record: ShimRecord | None, run_id: str) -> Callable[[ProcStat], bool]:
    """Return the test that only members of the run pass."""
    mark = f"ADJOURN_RUN_ID={run_id}".encode()

    def is_member(process: ProcStat) -> bool:
        if mark in _environment(process.pid):
            return True
        if record is None:
            return False
        is_in_group = record.cgroup is not None and Cgroup(record.cgroup).holds(process.pid)
        return is_in_group or _is_in_session(process, record)

    return is_member


def _is_in_session(process: ProcStat, record: ShimRecord) -> bool:
    """Return whether the process is in the child's session.

    The number alone proves nothing: a later session may have got it. So either its leader is still
    the child, or the process holds a pipe that the shim made for the child.
    """
    if process.session != record.child:
        return False
    leader = look_at(record.child)
    return (
        leader.start_time == record.child_start_time
        if leader
        else _holds_pipe(process.pid, record.pipes)
    )


def _environment(pid: int) -> list[bytes]:
    """Return the environment that a process was started with, or nothing if we may not read it."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as environment:
            return environment.read().split(b"\0")
    except OSError:
        return []


def _holds_pipe(pid: int, inodes: tuple[int, ...]) -> bool:
    wanted = {f"pipe:[{inode}]" for inode in inodes}
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{fd}") in wanted:
                    return True
    return False
