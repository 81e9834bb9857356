"""Runs one child: pumps its output, obeys signals, and ends its tree with it."""

import contextlib
import math
import os
import resource
import select
import signal
import time
from collections.abc import Callable
from functools import partial

import msgspec

from adjourn.core.policy.opening import unpinned
from adjourn.process.cgroup import Cgroup, name_of
from adjourn.process.identity import identify, look_at
from adjourn.process.lease import Lease
from adjourn.process.shim import Killed, ShimRecord, ShimResult, ShimSpec
from adjourn.process.shim_side.child import SHORTAGE, Child, read_report
from adjourn.process.shim_side.output import Output, ResultFile
from adjourn.process.tree import kill_children
from adjourn.process.watch import FileWatch
from adjourn.system.files import LOCK, RECORD, hold_lock
from adjourn.system.pinning import marks_of
from adjourn.system.poll import Signals

INTERRUPTS = (signal.SIGINT, signal.SIGTERM)
KILL = signal.SIGUSR1
_AGAIN = 1.0  # seconds until one that withstood is tried again
_LONGEST_ERROR = 500  # characters, so that the result fits into its room


class PreparedShim:
    """All that can be made, and can fail, while the gate is still shut."""

    def __init__(self, spec: ShimSpec, *, cgroups: str | None) -> None:
        self._lock = hold_lock(f"{spec.run_dir}/{LOCK}")
        self.result = ResultFile(spec.run_dir)
        self.stdout = Output(f"{spec.run_dir}/stdout", cap=spec.output_cap)
        self.stderr = Output(f"{spec.run_dir}/stderr", cap=spec.output_cap)
        self.lease = Lease(spec.run_dir, spec.deadline) if spec.deadline is not None else None
        me = identify(os.getpid())
        assert me is not None  # noqa: S101 this process is alive

        # What goes on as Python needs what Python does after a fork, so it cannot be cloned into a
        # group, and to be moved there takes longer than its start. Its tree is killed as where
        # there are no groups.
        self.group: Cgroup | None = None
        if cgroups and spec.use_cgroup and not spec.entry:
            self.group = Cgroup.make(f"{cgroups}/{name_of(me.pid, me.start_time)}")
        try:
            self.child = Child(
                spec,
                stdout=self.stdout.child_end,
                stderr=self.stderr.child_end,
                cgroup=self.group.open() if self.group else None,
            )
        except OSError:
            self.clean_up()
            raise

        child = look_at(self.child.pid)
        self.record = ShimRecord(
            boot_id=me.boot_id,
            pid=me.pid,
            start_time=me.start_time,
            cgroup=self.group.path if self.group else None,
            child=self.child.pid,
            child_start_time=child.start_time if child else 0,
            pipes=(os.fstat(self.stdout.fileno()).st_ino, os.fstat(self.stderr.fileno()).st_ino),
            call=spec.env.get("ADJOURN_CALL_ID", ""),
        )
        try:
            _write_record(spec.run_dir, self.record)
        except OSError:
            self.child.dismiss()
            self.clean_up()
            raise

    def clean_up(self) -> None:
        """Remove what is needed only while the shim lives."""
        if self.group:
            self.group.remove()


class Running:
    """One child, from its start until nothing of its tree is left."""

    def __init__(self, spec: ShimSpec, prepared: PreparedShim, signals: Signals) -> None:
        self._spec = spec
        self._prepared = prepared
        self._signals = signals
        self._child = prepared.child
        self._executed = False  # whether its report is over: it is its program, or has given up
        self._report = prepared.child.complaint
        self._file_watch = FileWatch(())
        self._status: int | None = None
        self._latest: float | None = None  # when it has taken too long
        self._deadline: float | None = None  # when it is killed, or killed again
        self._killed: Killed | None = None
        self._interrupted = False
        self._timed_out = False
        self._survivors = 0
        self._poll = select.poll()
        self._sources: dict[int, Callable[[], None]] = {}

    def run(self) -> ShimResult:
        """Run the child to its end and return how it ended."""
        began_at = _now()
        self._file_watch = FileWatch(unpinned(self._spec.files))
        is_dead = False
        try:
            self._child.start()
        except BrokenPipeError:
            is_dead = True
        if self._spec.timeout is not None:
            self._latest = time.monotonic() + self._spec.timeout

        self._watch(self._signals.fileno(), self._signals.drain)
        self._watch(self._child.report, self._read_report)
        for output in (self._prepared.stdout, self._prepared.stderr):
            self._watch(output.fileno(), partial(self._pump, output))
        if self._prepared.lease:
            self._watch(self._prepared.lease.fileno(), self._prepared.lease.renew)
        while self._status is None:
            for fd, _ in self._poll.poll(self._timeout()):
                self._sources[fd]()
            self._reap()
            if self._status is None:
                self._obey()

        self._end_tree()
        self._read_report()
        if is_dead and not self._report:
            self._report = SHORTAGE + b"it died before it became the command"
        return self._result(self._status, began_at=began_at, ended_at=_now())

    def _watch(self, fd: int, act: Callable[[], None]) -> None:
        self._sources[fd] = act
        self._poll.register(fd, select.POLLIN)

    def _timeout(self) -> int | None:
        """Return for how many milliseconds there is nothing to do, unless an event comes."""
        moment = self._latest if self._deadline is None else self._deadline
        waits = [] if moment is None else [moment - time.monotonic()]
        if self._prepared.lease and not self._killed:
            waits.append(self._prepared.lease.left())
        return max(0, math.ceil(min(waits) * 1000)) if waits else None

    def _pump(self, output: Output) -> None:
        with contextlib.suppress(BlockingIOError):
            if not output.pump():
                self._poll.unregister(output)

    def _read_report(self) -> None:
        """Read from the child that it became its program, or why it could not."""
        if self._executed:
            return
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self._child.report, 4096):
                self._report += piece
            self._executed = True
            self._poll.unregister(self._child.report)

    def _reap(self) -> bool:
        """Collect the dead children, adopted ones too; return whether any child is left."""
        try:
            while (dead := os.waitpid(-1, os.WNOHANG))[0]:
                if dead[0] == self._child.pid:
                    self._status = dead[1]
        except ChildProcessError:
            return False
        return True

    def _obey(self) -> None:
        """Interrupt or kill the living child, as signals, its time limit and its lease demand."""
        interrupts = self._signals.count(*INTERRUPTS)
        self._interrupted = interrupts > 0

        why: Killed | None = None
        if self._deadline is not None and time.monotonic() >= self._deadline:
            why = self._killed or "grace"  # one that withstood is killed again for the same reason
        elif not self._killed:
            if self._prepared.lease and self._prepared.lease.left() <= 0:
                why = "lease"
            elif self._signals.count(KILL):
                why = "kill"
            elif interrupts > 1:
                why = "second interrupt"
        if why:
            self._killed = why
            self._end_tree()
            self._deadline = time.monotonic() + _AGAIN
            return

        # An interrupt waits for the exec: before it, the child is a copy of this shim
        if not self._executed or self._killed or self._deadline is not None:
            return
        is_late = self._latest is not None and time.monotonic() >= self._latest
        self._timed_out = is_late and not interrupts
        if interrupts or self._timed_out:
            # Where it became another user, all that is left is to wait
            with contextlib.suppress(PermissionError):
                os.killpg(self._child.pid, self._spec.interrupt)
            self._deadline = time.monotonic() + self._spec.grace

    def _end_tree(self) -> None:
        if not self._reap():
            return
        if self._prepared.group:
            self._prepared.group.kill()
        _allow_many_descriptors()
        self._survivors = kill_children(self._reap)

    def _result(self, status: int, *, began_at: int, ended_at: int) -> ShimResult:
        """Return the result; the tree is dead, so nothing more can be printed."""
        for output in (self._prepared.stdout, self._prepared.stderr):
            output.drain()
            output.finish()
        code = os.waitstatus_to_exitcode(status)
        report = read_report(self._report)
        complaint, refused = report.complaint[:_LONGEST_ERROR], report.refused[:_LONGEST_ERROR]
        has_run = not (complaint or refused)
        touched, unknown = self._file_watch.close()
        watched = report.executed.watched if has_run else {}
        changed = [name for name, marks in watched.items() if marks_of(name) != marks]
        restored = [name for name in touched if name in watched and name not in changed]
        unknown = [name for name in unknown if name in watched and name not in changed]
        return ShimResult(
            started=has_run,
            exit_code=code if code >= 0 and has_run else None,
            signal=-code if code < 0 else None,
            error=complaint or None,
            is_shortage=report.is_shortage,
            is_busy=report.is_busy,
            interrupted=self._interrupted,
            timed_out=self._timed_out,
            killed=self._killed if code == -signal.SIGKILL else None,
            began_at=began_at,
            ended_at=ended_at,
            stdout_bytes=self._prepared.stdout.total,
            stdout_left_out=self._prepared.stdout.left_out,
            stderr_bytes=self._prepared.stderr.total,
            stderr_left_out=self._prepared.stderr.left_out,
            survivors=self._survivors,
            program=report.executed.program if has_run else None,
            script=report.executed.script if has_run else None,
            refused=refused or None,
            changed=", ".join(changed)[:_LONGEST_ERROR] or None,
            restored=", ".join(restored)[:_LONGEST_ERROR] or None,
            unknown=", ".join(unknown)[:_LONGEST_ERROR] or None,
        )


def _write_record(run_dir: str, record: ShimRecord) -> None:
    draft = f"{run_dir}/shim.tmp"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(fd, msgspec.json.encode(record))
    finally:
        os.close(fd)
    os.rename(draft, f"{run_dir}/{RECORD}")


def _allow_many_descriptors() -> None:
    """Make room for a pidfd of each member of a large tree.

    Nothing is started from here on that would inherit it.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _now() -> int:
    return time.time_ns() // 1_000_000
