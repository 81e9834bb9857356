"""The calls of an agent: judged as a batch, handed out once each, and closed with their results."""

from collections.abc import Sequence

import msgspec

from adjourn.core.agent.calls import CallResult, Held, Proposed, cut
from adjourn.core.call import canonical
from adjourn.core.states import CallState
from adjourn.ports.drive import Drive
from adjourn.runners.acp import words
from adjourn.runners.acp.memory import MemoryKeeper
from adjourn.runners.acp.protocol import AgentCall, WantedCall
from adjourn.runners.call_batch import Decided, HandedOut, Member, judge_batch


class HeldCalls:
    """What an agent wants to do, is doing, and has done in one run."""

    def __init__(self, drive: Drive, keeper: MemoryKeeper) -> None:
        self._drive = drive
        self._keeper = keeper
        self._handed_out = HandedOut(drive)
        # By its item, the members of a call that stands for several, and how each has ended
        self._members: dict[str, dict[str, AgentCall | None]] = {}

    def proposed(self, wanted: WantedCall, *, said: str | None = None) -> Proposed:
        """Return a call as it is put before the policy; `said` are the model's last words."""
        told = "\n".join(filter(None, [said, wanted.words]))
        return Proposed(tool=wanted.tool, body=wanted.body, label=wanted.item, words=told or None)

    def needs_nobody(self, wanted: WantedCall) -> bool:
        """Say whether a call would run now: a person has approved it, or the policy lets it."""
        mark = _fingerprint(wanted.body)
        is_decided = any(mark in each.fingerprints for each in self._approved())
        return is_decided or self._drive.lets_run(self.proposed(wanted))

    def judge(self, wanted: Sequence[WantedCall], *, said: str | None) -> list[Held]:
        """Put a whole batch before the policy; return how each call stands."""
        members = [
            Member(self.proposed(each, said=said), (_fingerprint(each.body),)) for each in wanted
        ]
        held = judge_batch(self._drive, members, decided=self._approved())
        names = [each.call.tool_call_id for each in held if each.call]
        kept = dict.fromkeys((*self._keeper.memory.held, *names))
        self._keeper.remember(held=tuple(kept))
        return held

    def hold(self, held: Sequence[Held]) -> None:
        """Remember that the model must be told how these end."""
        names = [each.call.tool_call_id for each in held if each.call]
        untold = dict.fromkeys((*self._keeper.memory.untold, *names))
        self._keeper.remember(untold=tuple(untold))

    def hand_out(self, wanted: Sequence[WantedCall], held: Sequence[Held]) -> bool:
        """Take all approved calls of a batch out of the store, or none.

        Before the first is answered nothing runs.
        """
        pairs = [
            (each.item, one.call)
            for each, one in zip(wanted, held, strict=True)
            if one.call and one.call.state is CallState.APPROVED
        ]
        self._members |= {each.item: dict.fromkeys(each.members) for each in wanted if each.members}
        # Before it is made: after a kill from here on, the model is told about the call
        self._keeper.made(tuple(call.tool_call_id for _, call in pairs))
        for number, (item, call) in enumerate(pairs):
            if self._handed_out.hand_out(item, call) is None:
                for earlier, _ in pairs[:number]:
                    self._handed_out.close(earlier, CallResult(ok=False, error=words.NOT_ASKED))
                return False
        return True

    def _approved(self) -> list[Decided]:
        """Return the calls that a person approved and the agent has not made yet."""
        found = [self._drive.held(name) for name in self._keeper.memory.held]
        return [
            Decided(held, frozenset({_fingerprint(held.call.body)}))
            for held in found
            if held and held.call and held.call.state is CallState.APPROVED
        ]

    def untold(self) -> list[Held]:
        """Return the calls of which the model has to be told when it goes on."""
        memory = self._keeper.memory
        approved = [each.held.call for each in self._approved()]
        names = dict.fromkeys(
            (*memory.made, *memory.untold, *(call.tool_call_id for call in approved if call))
        )
        return [held for name in names if (held := self._drive.held(name))]

    def forget_told(self) -> None:
        """Forget calls of which the model was told all: those that are approved can be made yet."""
        names = [each.held.call.tool_call_id for each in self._approved() if each.held.call]
        self._keeper.remember(held=tuple(names), made=())

    def end(self, call: AgentCall) -> bool:
        """Close a call that has ended; return whether it was one that had been handed out."""
        name, ended = call.tool_call_id, [call]
        for item, members in self._members.items():
            if name in members and item in self._handed_out.calls:
                members[name] = call
                ended = [each for each in members.values() if each]
                if len(ended) < len(members):
                    return True
                name = item
        if name not in self._handed_out.calls:
            return False
        output, left_out = cut("\n".join(each.output for each in ended))
        is_fine = all(each.status == "completed" for each in ended)
        result = CallResult(ok=is_fine, output=output, left_out=left_out)
        self._handed_out.close(name, result)
        return True

    @property
    def has_open_calls(self) -> bool:
        """Whether any handed-out call has no result yet."""
        return bool(self._handed_out.calls)

    def cut_off(self, *, why: str) -> None:
        """Close the calls that were being made when the run was ended on purpose."""
        for name in self._handed_out.calls:
            self._handed_out.close(name, CallResult(ok=False, error=why))


def _fingerprint(body: bytes) -> str:
    """Return what two requests for the same call have in common."""
    parts = msgspec.json.decode(body)
    return canonical([parts["tool"], parts["arguments"]]).decode()
