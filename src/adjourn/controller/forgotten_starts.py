"""Starts that this machine has proof of and the store does not know.

A store that was restored from a backup has forgotten what started since. Nothing may run twice, so
every start leaves a mark on this machine, and every claim compares the marks with the trail.
"""

import msgspec

from adjourn.controller.transaction import Transaction
from adjourn.core.call import COMMAND, Call
from adjourn.core.states import CallMove
from adjourn.core.task import Run, number_of_run
from adjourn.core.trail.reason import is_known
from adjourn.ports.store import View
from adjourn.ports.world import NeverStarted, Processes, ShimState, StillRuns, Vanished


class ForgottenStart(msgspec.Struct, frozen=True):
    """Where a call was started, and what became of it."""

    place: str
    state: ShimState


def find_forgotten_start(
    processes: Processes, view: View, call: Call, *, place: str
) -> ForgottenStart | None:
    """Return the start of a call that this machine has proof of and the trail does not tell."""
    mark = processes.start_mark(call.id, place=place)
    if mark is None or is_known(mark.place, call, view.told(call.task_id, limit=-1)):
        return None
    state = processes.found_at(mark.place)
    if isinstance(state, NeverStarted):
        return None
    # The files of a call that was handed out are those of its agent; other bytes are another call.
    # Neither says how this call ended.
    is_handed_out = call.tool != COMMAND and number_of_run(mark.place) > 0
    has_other_bytes = bool(mark.digest) and not call.digest.startswith(mark.digest)
    if is_handed_out or (has_other_bytes and not isinstance(state, StillRuns)):
        state = Vanished()
    return ForgottenStart(mark.place, state)


def state_at(processes: Processes, view: View, call: Call, *, place: str) -> ShimState:
    """Return what became of a claimed call of which the store knows no shim."""
    found = find_forgotten_start(processes, view, call, place=place)
    return found.state if found and found.place == place else NeverStarted()


def record_start(tx: Transaction, run: Run, call: Call, place: str) -> Call:
    """Record that a claimed call did start."""
    started = tx.move(call, CallMove.EXECUTE)
    tx.tell(
        call.task_id,
        "call_found",
        run=run.number,
        call=call.number,
        digest=call.digest,
        place=place,
    )
    return started
