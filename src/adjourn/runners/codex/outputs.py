"""What a resumed thread is told before the model goes on.

An output for every call that is open in it.
"""

from typing import Any

from adjourn.core.agent.calls import Held
from adjourn.core.call import Call
from adjourn.core.states import CallState
from adjourn.ports.drive import Drive
from adjourn.runners.codex import words
from adjourn.runners.codex.memory import CodexMemory, Put
from adjourn.runners.codex.session import OpenCall, Rollout

ASKED_ABOUT = frozenset(
    {"exec_command", "shell", "shell_command", "apply_patch", "request_user_input"}
)
Part = tuple[Put, Held]


class Outputs:
    """What is known of the calls that the last run of a thread left open."""

    def __init__(self, memory: CodexMemory, drive: Drive) -> None:
        self._memory = memory
        self._asks = drive.asks()
        known = [(put, drive.held(put.name)) for put in memory.put]
        names = {put.name for put in memory.put}
        batch = [
            (_put(held.call), held)
            for held in drive.batch()
            if held.call and held.call.tool_call_id not in names
        ]
        self._cut = [held for name in memory.cut if (held := drive.held(name))]
        self.parts: list[Part] = [*((put, held) for put, held in known if held), *batch]

    @property
    def approved(self) -> tuple[str, ...]:
        """The names of the calls that Codex may repeat."""
        return tuple(
            put.name
            for put, held in self.parts
            if held.call and held.call.state is CallState.APPROVED
        )

    def outputs(self, rollout: Rollout) -> list[dict[str, Any]]:
        """Return what closes the open calls, in the order in which the model made them."""
        return [
            {"type": call.output_type, "call_id": call.id, "output": self._output(call)}
            for call in rollout.open_calls
        ]

    def _output(self, call: OpenCall) -> str:
        parts = [part for part in self.parts if part[0].call == call.id]
        queried = [each for each in self._memory.queried if each.call == call.id]
        if queried:
            return words.answers_told(queried, self._asks)
        if call.is_cell:
            ran = [each for each in self._memory.ran if each.call == call.id]
            return words.cell_told(ran, [_told(part) for part in parts])
        if parts:
            return words.call_told(parts[0][1])
        return words.NOT_ASKED if call.name in ASKED_ABOUT else words.INTERRUPTED

    def in_words(self, rollout: Rollout) -> str | None:
        """Return what cannot be told as an output, for the call is closed.

        By Codex when it was stopped, or as it ran on.
        """
        closed = [_told(part) for part in self.parts if part[0].call in rollout.aborted]
        cut = [(words.line_of(held.call), words.call_told(held)) for held in self._cut if held.call]
        lines = [f"{line}: {text}" for line, text in (*closed, *cut)]
        lines += self._answers_in_words(rollout.aborted)
        return "\n\n".join(lines) or None

    def _answers_in_words(self, aborted: frozenset[str]) -> list[str]:
        replies = {ask.id: ask for ask in self._asks}
        asked = [
            replies[each.ask]
            for each in self._memory.queried
            if not each.call or each.call in aborted
        ]
        return [
            f"{ask.prompt}\nAnswer: {ask.reply}" if ask.reply else f"{ask.prompt}\nNobody answered."
            for ask in asked
        ]


def _put(call: Call) -> Put:
    """Say where a call belongs of which nothing more was written down.

    Most are called what the model calls them.
    """
    return Put(item=call.tool_call_id, call=call.tool_call_id, name=call.tool_call_id)


def _told(part: Part) -> tuple[str, str]:
    put, held = part
    return (words.line_of(held.call) if held.call else put.item), words.call_told(held)
