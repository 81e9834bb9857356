"""A shim as its supervisor sees it: what to run, the gate, the signals, the result."""

import os
import select
import signal
from typing import Literal, TypeVar

import msgspec

from adjourn.core.errors import AdjournError
from adjourn.core.task import ProcessId
from adjourn.process.identity import Pinned
from adjourn.system.files import LOCK, RECORD, RESULT, is_lock_held, read_plain
from adjourn.system.machine import boot_id, is_shortage

Kept = TypeVar("Kept")

Killed = Literal["grace", "second interrupt", "kill", "lease"]  # why a child was killed

# Seconds that a shim at its gate has to leave, which takes it milliseconds; and one that was killed
_GATE_LIMIT, _MOMENT = 5.0, 1.0
_LARGEST = 64 * 1024  # bytes of a record or a result; ours have less than 4 KiB


class ShimFailed(AdjournError):
    """The shim could not be made ready; nothing of it runs."""

    code = "shim_failed"


class MachineFailed(ShimFailed):
    """The machine could not make the shim ready.

    It lacks something, or a process of ours was killed. The same start may succeed later.
    """

    code = "machine_failed"


def is_machines(error: ShimFailed | OSError) -> bool:
    """Return whether the machine is why a start failed, and not what was to be started."""
    return isinstance(error, MachineFailed) or (
        isinstance(error, OSError) and is_shortage(error.errno)
    )


def why_failed(error: ShimFailed | OSError) -> str:
    """Return why a start failed, in a sentence."""
    return error.sentence if isinstance(error, ShimFailed) else error.strerror or str(error)


class GateShut(AdjournError):
    """The shim was gone before its gate opened: the child never ran and never will."""

    code = "gate_shut"


class ShimSpec(msgspec.Struct, frozen=True, kw_only=True):
    """All that a shim needs to know to run one child; its paths are absolute."""

    run_dir: str
    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]  # the child's whole environment; its PATH finds the command
    interrupt: int = signal.SIGINT.value  # what the child gets on the first interrupt
    grace: float = 5.0  # seconds that it then has
    timeout: float | None = None  # seconds after which it is interrupted
    output_cap: int = 16 * 1024 * 1024  # bytes of each stream's head
    grant: bytes = b""  # what the child finds in the pipe that ADJOURN_GRANT_FD names
    # When to kill, in seconds since the machine started, unless a later one is handed over
    deadline: float | None = None
    use_cgroup: bool = True
    # What its words name, with the digests that were let through; nothing where nobody looked
    files: dict[str, str] = {}
    own: str = ""  # this very adjourn, which the command `adjourn` means
    # `module:function` that a fork of a warm server calls with the argv, in the place of an exec
    entry: str = ""


class ShimRecord(ProcessId, frozen=True, kw_only=True, omit_defaults=True):
    """Who the shim is, and how to find what it started should it die before its time."""

    cgroup: str | None = None
    child: int  # its pid, and its session's number
    child_start_time: int
    pipes: tuple[int, ...]  # inodes of the child's stdout and stderr
    call: str = ""  # the id of the call that it runs

    @property
    def identity(self) -> ProcessId:
        """Return the shim's name."""
        return ProcessId(boot_id=self.boot_id, pid=self.pid, start_time=self.start_time)


class Ready(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a shim tells its supervisor when it stands at the gate, or why it does not."""

    record: ShimRecord | None = None
    error: str = ""
    is_shortage: bool = False  # whether the machine is the reason


class ShimResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the child ended, as its shim recorded it."""

    started: bool  # False only if the child's program provably never ran
    exit_code: int | None = None
    signal: int | None = None
    error: str | None = None  # why it could not be started
    is_shortage: bool = False  # whether the machine is the reason: then it may be started later
    is_busy: bool = False  # whether somebody was writing its program: it may be started later, too
    interrupted: bool = False  # an interrupt came while it ran, or before
    timed_out: bool = False  # it was interrupted because it took too long
    killed: Killed | None = None
    began_at: int | None = None  # milliseconds since the epoch
    ended_at: int | None = None
    stdout_bytes: int = 0  # how much it printed
    stdout_left_out: int = 0  # how much of that is not in the file
    stderr_bytes: int = 0
    stderr_left_out: int = 0
    # The digest of what was executed, where it was let through by its digest
    program: str | None = None
    script: str | None = None  # and of the script that a shell was given
    # Which file was another than the one that was let through: then nothing was started
    refused: str | None = None
    # Which files that could not be pinned have changed since just before the start
    changed: str | None = None
    # And which were changed or swapped meanwhile, and are the same again
    restored: str | None = None
    unknown: str | None = None  # and of which that is not known
    survivors: int = 0  # processes that even SIGKILL did not end, or that belong to somebody else


class Shim:
    """A shim held by its pidfd, and its gate if it is still ours to open."""

    def __init__(
        self, pinned: Pinned, *, identity: ProcessId, gate: int = -1, threshold: int = -1
    ) -> None:
        self.identity = identity
        self._pinned = pinned
        self._gate = gate
        self._threshold = threshold  # our own hold on the reading end of the gate

    def fileno(self) -> int:
        """Return the pidfd; it polls readable once the shim is gone."""
        return self._pinned.fileno()

    def open_gate(self) -> None:
        """Let the child start; raise GateShut if the shim is gone, so that it never will."""
        gate, self._gate = self._gate, -1
        if gate < 0:
            # Not GateShut: that would say that the child never ran.
            raise RuntimeError("a gate opens once, and only for the supervisor that made it")
        try:
            if self._pinned.gone(within=0):
                raise GateShut(
                    "the process that should have started the command was gone before it did"
                )
            os.write(gate, b"!")
        finally:
            os.close(gate)

    def has_never_started(self) -> bool:
        """Return whether the child never ran, and never will once we let go of the shim.

        Its gate is ours and was not opened, or the shim is gone and left the byte unread.
        """
        if self._gate >= 0:
            return True
        if self._threshold < 0 or not self._pinned.gone(within=0):
            return False
        # Not by a read, which would take the byte: what was seen once stays true
        poll = select.poll()
        poll.register(self._threshold, select.POLLIN)
        return any(events & select.POLLIN for _, events in poll.poll(0))

    def shut_gate(self) -> None:
        """Make sure that the child never starts, unless the gate was opened before."""
        gate, self._gate = self._gate, -1
        if gate >= 0:
            os.close(gate)

    def interrupt(self) -> None:
        """Have one interrupt passed on to the child, and its tree killed after the grace.

        The second time, at once. A shim that is stopped is woken for it.
        """
        self._pinned.send(signal.SIGINT)
        self._pinned.send(signal.SIGCONT)

    def kill(self) -> None:
        """Have the child's whole tree killed at once."""
        self._pinned.send(signal.SIGUSR1)
        self._pinned.send(signal.SIGCONT)

    def leave_gate(self) -> None:
        """Wait until a shim that was interrupted at its gate has left; kill it after a while."""
        if not self.wait(_GATE_LIMIT):
            self._pinned.send(signal.SIGKILL)
            self.wait(_MOMENT)

    def wait(self, timeout: float | None) -> bool:
        """Wait until the shim is gone, or `timeout` seconds; return whether it is gone."""
        return self._pinned.gone(within=timeout)

    def close(self) -> None:
        """Let go of the shim; if its gate was never opened, it ends without starting its child."""
        self.shut_gate()
        if self._threshold >= 0:
            os.close(self._threshold)
            self._threshold = -1
        self._pinned.close()


def adopt(run_dir: str, identity: ProcessId) -> Shim | None:
    """Return the shim that another supervisor started, if it lives and holds its lock."""
    if identity.boot_id != boot_id():
        return None
    pinned = Pinned.pin(identity.pid, if_it=lambda seen: seen.start_time == identity.start_time)
    if pinned is None:
        return None
    if holds_lock(run_dir):
        return Shim(pinned, identity=identity)
    pinned.close()
    return None


def holds_lock(run_dir: str) -> bool:
    """Return whether the shim of this run is alive, in whichever PID namespace."""
    return is_lock_held(f"{run_dir}/{LOCK}")


def read_result(run_dir: str) -> ShimResult | None:
    """Return what the shim wrote down, or None if there is nothing, or nothing whole."""
    return _read(f"{run_dir}/{RESULT}", ShimResult)


def read_record(run_dir: str) -> ShimRecord | None:
    """Return who the shim of this run is or was, or None if there was none."""
    return _read(f"{run_dir}/{RECORD}", ShimRecord)


def _read(path: str, kind: type[Kept]) -> Kept | None:
    content = read_plain(path, largest=_LARGEST)
    if content is None:
        return None
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
