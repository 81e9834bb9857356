"""The life of a shim: it waits at the gate, runs the child, ends its tree, writes the result."""

import contextlib
import errno
import os
import select
import signal
from typing import NoReturn

import msgspec

from adjourn.core.text.render import spelled
from adjourn.process import linux
from adjourn.process.shim import Ready, ShimResult, ShimSpec
from adjourn.process.shim_side.running import INTERRUPTS, KILL, PreparedShim, Running
from adjourn.system.machine import is_shortage
from adjourn.system.poll import Signals

# The run's directory is gone, and with it all reason to wait for space on its disk
_LOST = (errno.ENOENT, errno.ESTALE)
_RETRY = 500  # milliseconds
_UNEXPECTED = 70


def live(spec: ShimSpec, *, gate: int, report: int, cgroups: str | None) -> NoReturn:
    """Be a shim, from just after its fork to its exit."""
    status = _UNEXPECTED
    try:
        # A session of its own, so that no terminal's signal finds it. A subreaper, so that every
        # orphan of the child's tree becomes a child of this process, and none gets away.
        os.setsid()
        linux.rename_process("adjourn-shim")
        linux.become_subreaper()
        signals = Signals(*INTERRUPTS, KILL, signal.SIGCHLD)
        status = _run(spec, signals, gate=gate, report=report, cgroups=cgroups)
    except BaseException:  # noqa: BLE001 nobody above could be told
        import traceback  # slow to import, and every start would wait for it

        path = f"{spec.run_dir}/shim.error"
        with contextlib.suppress(OSError), open(path, "w", encoding="utf-8") as note:
            traceback.print_exc(file=note)
    finally:
        os._exit(status)


def _run(spec: ShimSpec, signals: Signals, *, gate: int, report: int, cgroups: str | None) -> int:
    """Prepare, wait at the gate, run the child, write its result; return the exit status."""
    try:
        prepared = PreparedShim(spec, cgroups=cgroups)
    except OSError as error:
        directory = "its directory" if is_shortage(error.errno) else spec.run_dir
        sentence = spelled(f"cannot prepare {directory}: {error.strerror}")
        _send_ready(report, Ready(error=sentence, is_shortage=is_shortage(error.errno)))
        return 1
    _send_ready(report, Ready(record=prepared.record))

    opened = _wait_at_gate(gate, signals)
    too_late = opened and prepared.lease is not None and prepared.lease.left() <= 0
    if opened and not too_late:
        result = Running(spec, prepared, signals).run()
    else:
        prepared.child.dismiss()
        interrupted = signals.count(*INTERRUPTS, KILL) > 0
        result = ShimResult(
            started=False, interrupted=interrupted, killed="lease" if too_late else None
        )

    is_written = _write_result(result, prepared, signals)
    prepared.clean_up()
    return 0 if is_written else 1


def _send_ready(report: int, ready: Ready) -> None:
    # The supervisor is gone; so is the hand that would open the gate
    with contextlib.suppress(BrokenPipeError):
        os.write(report, msgspec.json.encode(ready))
    os.close(report)


def _wait_at_gate(gate: int, signals: Signals) -> bool:
    """Return whether the gate was opened.

    It was not if its keeper died, or a signal came first.
    """
    poll = select.poll()
    poll.register(gate, select.POLLIN)
    poll.register(signals, select.POLLIN)
    try:
        while True:
            ready = [fd for fd, _ in poll.poll()]
            signals.drain()
            if signals.count(*INTERRUPTS, KILL):
                return False
            if gate in ready:
                return os.read(gate, 1) != b""
    finally:
        os.close(gate)


def _write_result(result: ShimResult, prepared: PreparedShim, signals: Signals) -> bool:
    """Write the result; wait for space on the disk until somebody interrupts or kills.

    Return whether it is there.
    """
    poll = select.poll()
    poll.register(signals, select.POLLIN)
    before = signals.count(*INTERRUPTS, KILL)
    while True:
        try:
            prepared.result.write(result)
        except OSError as error:
            if error.errno in _LOST or signals.count(*INTERRUPTS, KILL) > before:
                return False
        else:
            return True
        poll.poll(_RETRY)
        signals.drain()
