"""The life of a shim, seen from inside.

Stands at the gate, runs the child, ends its tree, writes the result.
"""

import contextlib
import errno
import os
import select
import signal
from typing import NoReturn

import msgspec

from adjourn.process import linux
from adjourn.process.shim import Ready, ShimResult, ShimSpec
from adjourn.process.shim_side.running import INTERRUPTS, KILL, Prepared, Running
from adjourn.system.shortage import is_shortage
from adjourn.system.signals import Signals

# The run's folder is gone, and with it all reason to wait for room in it
_LOST = (errno.ENOENT, errno.ESTALE)
_RETRY = 500  # milliseconds
_UNEXPECTED = 70


def live(spec: ShimSpec, *, gate: int, report: int, cgroups: str | None) -> NoReturn:
    """Be a shim, from just after its fork to its end."""
    status = _UNEXPECTED
    try:
        os.setsid()
        linux.rename_process("adjourn-shim")
        linux.become_subreaper()
        signals = Signals(*INTERRUPTS, KILL, signal.SIGCHLD)
        status = _stand(spec, signals, gate=gate, report=report, cgroups=cgroups)
    except BaseException:  # noqa: BLE001 nobody above could be told
        _leave_a_note(spec.run_dir)
    finally:
        os._exit(status)


def _stand(spec: ShimSpec, signals: Signals, *, gate: int, report: int, cgroups: str | None) -> int:
    """Go from the preparation to the result; return the exit status."""
    try:
        prepared = Prepared(spec, cgroups=cgroups)
    except OSError as error:
        place = "its directory" if is_shortage(error.errno) else spec.run_dir
        sentence = f"cannot prepare {place}: {error.strerror}"
        sentence = sentence.encode(errors="backslashreplace").decode()
        _tell(report, Ready(error=sentence, is_shortage=is_shortage(error.errno)))
        return 1
    _tell(report, Ready(record=prepared.record))
    opened = _opens(gate, signals)
    too_late = opened and prepared.lease is not None and prepared.lease.left() <= 0
    if opened and not too_late:
        result = Running(spec, prepared, signals).run()
    else:
        prepared.child.dismiss()
        interrupted = signals.count(*INTERRUPTS, KILL) > 0
        result = ShimResult(
            started=False, interrupted=interrupted, killed="lease" if too_late else None
        )
    kept = _keep(result, prepared, signals)
    prepared.clean_up()
    return 0 if kept else 1


def _tell(report: int, ready: Ready) -> None:
    # The supervisor is gone; so is the hand that would open the gate
    with contextlib.suppress(BrokenPipeError):
        os.write(report, msgspec.json.encode(ready))
    os.close(report)


def _opens(gate: int, signals: Signals) -> bool:
    """Wait at the gate; say whether it was opened.

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


def _keep(result: ShimResult, prepared: Prepared, signals: Signals) -> bool:
    """Write the result, waiting for room on the disk as long as nobody says to kill.

    Say whether it is there.
    """
    poll = select.poll()
    poll.register(signals, select.POLLIN)
    told = signals.count(*INTERRUPTS, KILL)
    while True:
        try:
            prepared.result.write(result)
        except OSError as error:
            if error.errno in _LOST or signals.count(*INTERRUPTS, KILL) > told:
                return False
        else:
            return True
        poll.poll(_RETRY)
        signals.drain()


def _leave_a_note(run_dir: str) -> None:
    import traceback

    with contextlib.suppress(OSError), open(f"{run_dir}/shim.error", "w", encoding="utf-8") as note:
        traceback.print_exc(file=note)
