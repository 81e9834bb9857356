"""Tells on stderr what an agent does as it happens, where `--verbose` asks for it."""

import sys
from collections.abc import Sequence

from adjourn.core.agent.calls import CallResult, Held, Proposed
from adjourn.core.call import Call
from adjourn.core.states import CallState
from adjourn.core.text.render import visible
from adjourn.settings.config import open_redactor
from adjourn.views.call import gist

_STANDS = {
    CallState.PENDING: "waits for a person",
    CallState.APPROVED: "may run",
    CallState.REJECTED: "is rejected",
    CallState.EXPIRED: "has expired",
    CallState.DONE: "is done",
    CallState.FAILED: "has failed",
    CallState.UNCERTAIN: "may have run",
}


class Narrator:
    """Prints each call once for each state it reaches, without secrets."""

    def __init__(self) -> None:
        self._redactor = open_redactor()
        self._told: set[tuple[str, str]] = set()

    def tell_proposed(self, batch: Sequence[Proposed], held: Sequence[Held]) -> None:
        """Tell what the agent wants to do, and what the policy made of it."""
        for proposed, each in zip(batch, held, strict=True):
            if each.call is None:
                name = visible(proposed.label or proposed.tool)
                self._print(f"call {name} {visible(proposed.tool)}: only reads, and runs")
        self.tell_held(held)

    def tell_held(self, held: Sequence[Held]) -> None:
        """Tell how calls stand, as far as that is new."""
        for each in held:
            if each.call:
                self.tell(each.call, each.result)

    def tell(self, call: Call, result: CallResult | None = None) -> None:
        """Tell how a call stands, if that is new."""
        stands = _STANDS.get(call.state, call.state)
        if result is not None:
            stands = "is done" if result.ok else "has failed"
            stands += f", exit code {result.exit_code}" if result.exit_code is not None else ""
        if (call.id, stands) not in self._told:
            self._told.add((call.id, stands))
            what = gist(self._redactor.call(call))
            self._print(f"call {visible(call.tool_call_id)} {stands}: {what}")

    def tell_step(self, number: int) -> None:
        """Tell that the model has answered."""
        self._print(f"step {number}")

    def _print(self, sentence: str) -> None:
        sys.stderr.write(f"adjourn: {sentence}\n")
        sys.stderr.flush()
