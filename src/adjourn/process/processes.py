"""What this machine knows of a store's processes: which live, and what dead ones left."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256

import msgspec

from adjourn.core.clarification import Left
from adjourn.core.outcome import Exit
from adjourn.core.task import ProcessId, number_of_run, task_of_run
from adjourn.core.text.render import spelled
from adjourn.ports.world import Ended, NeverStarted, ShimState, StartMark, StillRuns, Vanished
from adjourn.process.cgroup import Cgroup
from adjourn.process.shim import ShimFailed, adopt, holds_lock, read_record, read_result
from adjourn.process.supervisors import LocalSupervisors, SharedSupervisors
from adjourn.process.tree import kill_leftovers
from adjourn.system.files import (
    RECORD,
    RESULT,
    open_plain,
    private_directory,
    read_plain,
    run_directory,
    run_names,
    sync_directory,
    write_all,
    write_whole,
)
from adjourn.system.machine import boot_id

_MOMENT = 0.3  # a shim whose gate was shut for good needs a few milliseconds to say so
_YOUNG = 2.0  # seconds
_TAIL = 256 * 1024
# Marks of calls whose gate was opened, each on disk before that, and found by the call's id. The
# store can lose its newest changes: a backup is restored, or its log is removed. The mark stays,
# and its name says that the call was started. Only the name is synced, which costs one `fsync` of
# the directory. A power cut may take the text of the mark, which says where its files are.
STARTED = "started"
_DIGITS = 16  # of the call's digest
_LARGEST = 4096  # bytes of a mark
_LONGEST = 120  # bytes of a name that is a call's id


# Root and task id in; what its process left in files out
LeftBy = Callable[[str, str], Left | None]


class LocalProcesses(LocalSupervisors):
    """Processes of this machine, told apart by what they hold and what they wrote."""

    def __init__(self, root: str, *, left_by: LeftBy | None = None) -> None:
        super().__init__(root)
        self._left_by = left_by

    def shim_state(self, run_id: str, shim: ProcessId) -> ShimState:
        """Return the state of a run's shim; when it vanished, nothing of the run is left alive.

        A shim that holds its lock is alive, also if no process here has its pid: it is in another
        PID namespace.
        """
        place = run_directory(self._root, run_id)
        # Alive first, result second: a shim that ends between the two looks has left its result.
        living = adopt(place, shim)
        if living is not None:
            has_ended = living.wait(_MOMENT if _is_young(shim) else 0)
            living.close()
            if not has_ended:
                return StillRuns()
        elif holds_lock(place):
            return StillRuns()
        return self.left_behind(run_id)

    def can_adopt(self, run_id: str, shim: ProcessId) -> bool:
        """Return whether a run's shim is alive, in a PID namespace where it can be signalled."""
        living = adopt(run_directory(self._root, run_id), shim)
        if living is None:
            return False
        has_ended = living.wait(_MOMENT if _is_young(shim) else 0)
        living.close()
        return not has_ended

    def start_mark(self, call_id: str, *, place: str) -> StartMark | None:
        """Return what this machine knows of a start of a call."""
        mark = read_mark(self._root, call_id)
        directory = run_directory(self._root, place)
        if mark or not place or not os.path.lexists(os.path.join(directory, RESULT)):
            return mark
        result, record = read_result(directory), read_record(directory)
        is_its_own = record is None or record.call in {"", call_id}
        return (
            StartMark(place=place, digest="")
            if is_its_own and (result is None or result.started)
            else None
        )

    def leave_start_mark(self, call_id: str, mark: StartMark) -> None:
        """Mark a call as started. It is on disk when this returns."""
        folder = os.path.join(self._root, STARTED)
        if not os.path.isdir(folder):
            private_directory(folder)
            sync_directory(self._root)
        path = os.path.join(folder, name_of_mark(call_id))
        text = f"{mark.place}:{mark.digest[:_DIGITS]}".encode()
        try:
            fd = os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
            )
        except FileExistsError:  # an earlier start, which the store knows to have failed
            write_whole(path, text)
            return
        try:
            os.fchmod(fd, 0o600)
            write_all(fd, text)
        finally:
            os.close(fd)
        sync_directory(folder)

    def found_at(self, place: str) -> ShimState:
        """Return the state of what was started there, by its files alone."""
        directory = run_directory(self._root, place)
        if not place or not os.path.isdir(directory):
            return Vanished()
        record = read_record(directory)
        if record:
            return self.shim_state(place, record.identity)
        return StillRuns() if holds_lock(directory) else self.left_behind(place)

    def has_live_run(self, task_id: str) -> bool:
        """Say whether a shim of the task is alive here, by the files of its runs alone."""
        names = [name for name in run_names(self._root) if name.partition(".")[0] == task_id]
        return any(holds_lock(run_directory(self._root, name)) for name in names)

    def shim_at(self, place: str) -> ProcessId | None:
        """Return who runs, or ran, what was started there."""
        record = read_record(run_directory(self._root, place))
        return record.identity if record else None

    def left_behind(self, run_id: str) -> ShimState:
        """Return what a shim that is gone left behind."""
        place = run_directory(self._root, run_id)
        result = read_result(place)
        if result is None:
            # Else this is a copy of the store that ran it, which may be at work beside us
            if os.path.isdir(place):
                kill_leftovers(place, run_id)
            return Vanished()
        record = read_record(place)
        if record and record.cgroup and os.path.exists(record.cgroup):
            Cgroup(record.cgroup).remove()  # its shim did not
        if result.started and result.killed == "lease":
            return Vanished()  # killed because it lost its supervisor: nobody knows how far it got
        if not (result.started or result.error or result.interrupted):
            return NeverStarted(_readable(result.refused) or "", is_refused=bool(result.refused))
        if result.is_shortage and not (result.started or result.interrupted):
            return NeverStarted(_readable(result.error) or "")
        if result.is_busy and not (result.started or result.interrupted):
            return NeverStarted(_readable(result.error) or "", is_busy=True)
        error = "it took too long and was stopped" if result.timed_out else _readable(result.error)
        exit_ = Exit(
            code=result.exit_code,
            signal=result.signal,
            interrupted=result.interrupted,
            error=error,
            program=result.program,
            script=result.script,
            changed=_readable(result.changed),
            restored=_readable(result.restored),
            unknown=_readable(result.unknown),
        )
        if not number_of_run(run_id):  # a call of an agent, which is told both
            return Ended(
                msgspec.structs.replace(
                    exit_, output=last_output(place) + last_output(place, "stderr")
                )
            )
        left = (
            self._left_by(self._root, task_of_run(run_id))
            if self._left_by and exit_.may_leave_asks
            else None
        )
        # What it said before it left is part of the ask for approval
        errors = last_output(place, "stderr") if exit_.wants_a_person else ""
        return Ended(
            msgspec.structs.replace(exit_, output=last_output(place), errors=errors, left=left)
        )


class SharedProcesses(SharedSupervisors, LocalProcesses):
    """Processes of this machine and of others that share the store.

    Of those, only the leases tell.
    """

    def __init__(
        self,
        root: str,
        *,
        left_by: LeftBy | None = None,
        kept_start: Callable[[str], StartMark | None] | None = None,
    ) -> None:
        super().__init__(root, left_by=left_by)
        self._kept_start = kept_start

    def start_mark(self, call_id: str, *, place: str) -> StartMark | None:
        """Return what this machine knows of a start of a call, or what another one kept for all."""
        mark = super().start_mark(call_id, place=place)
        if mark or not self._kept_start:
            return mark
        return self._kept_start(name_of_mark(call_id))

    def shim_state(self, run_id: str, shim: ProcessId) -> ShimState:
        """Return the state of a run's shim.

        On another machine it has killed its tree by the time that its lease was over.
        """
        if shim.boot_id == boot_id():
            return super().shim_state(run_id, shim)
        return StillRuns() if holds_lock(run_directory(self._root, run_id)) else Vanished()


def _readable(error: str | None) -> str | None:
    """Escape what is not UTF-8: the name of a command need not be."""
    return error and spelled(error)


def _is_young(shim: ProcessId) -> bool:
    """Return whether the shim may still be about to write that its gate stayed shut."""
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - shim.start_time / os.sysconf("SC_CLK_TCK")
    return age < _YOUNG


def set_aside(directory: str) -> None:
    """Make room for a run of whose name another has left files.

    The store was set back, and gave the name once more.
    """
    if not os.path.isdir(directory):
        return
    if not any(os.path.lexists(os.path.join(directory, name)) for name in (RECORD, RESULT)):
        return  # the same run, whose shim could not be made ready
    if holds_lock(directory):
        raise ShimFailed(
            "a process that was started before the store was set back still runs in its place"
        )
    number = 1
    while os.path.lexists(f"{directory}.before-{number}"):
        number += 1
    os.rename(directory, f"{directory}.before-{number}")


def last_output(place: str, stream: str = "stdout") -> str:
    """Return the end of what a run printed."""
    fd = open_plain(os.path.join(place, stream))
    if fd is None:
        return ""
    with open(fd, "rb") as file:
        file.seek(max(0, os.fstat(fd).st_size - _TAIL))
        return file.read(_TAIL).decode(errors="replace")


def read_mark(root: str, call_id: str) -> StartMark | None:
    """Return the newest mark of a call, if it was ever started on this machine."""
    path = os.path.join(root, STARTED, name_of_mark(call_id))
    content = read_plain(path, largest=_LARGEST)
    if content is None and not os.path.lexists(path):
        return None
    place, _, digest = (content or b"").decode(errors="replace").partition(":")
    return StartMark(place=place if _is_name(place) else "", digest=digest)


def marks_of(root: str, task_ids: set[str]) -> dict[str, StartMark]:
    """Return, by name, the marks of all calls of these tasks that this machine ever started."""
    found: dict[str, StartMark] = {}
    with suppress(FileNotFoundError):
        for name in os.listdir(os.path.join(root, STARTED)):
            mark = read_mark(root, name) if name.partition(".")[0] in task_ids else None
            if mark:
                found[name] = mark
    return found


def remove_marks(root: str, task_ids: set[str]) -> None:
    """Forget the marks of tasks that were pruned."""
    folder = os.path.join(root, STARTED)
    with suppress(FileNotFoundError):
        for name in os.listdir(folder):
            if name.partition(".")[0] in task_ids:
                with suppress(OSError):
                    os.unlink(os.path.join(folder, name))


def name_of_mark(call_id: str) -> str:
    """Return the name of a call's mark.

    Its id, unless an agent chose one that is no name for a file.
    """
    if _is_name(call_id):
        return call_id
    return (
        f"{call_id.partition('.')[0]}.{sha256(call_id.encode(errors='surrogatepass')).hexdigest()}"
    )


def _is_name(text: str) -> bool:
    return (
        text.isascii()
        and text.isprintable()
        and "/" not in text
        and 0 < len(text) <= _LONGEST
        and text[0] != "."
    )
