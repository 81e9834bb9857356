"""What the drivers of Claude Code and Codex do alike with the calls of their agents.

A batch is judged in one moment, a call that was decided is found again when the model repeats it,
and each is handed out once.
"""

from collections.abc import Sequence

import msgspec

from adjourn.core.agent.calls import CallResult, Held, Proposed
from adjourn.core.call import Call
from adjourn.ports.drive import Drive


class Decided(msgspec.Struct, frozen=True):
    """A call that was decided while it was held, and the fingerprints that it is found by."""

    held: Held
    fingerprints: frozenset[str]


class Member(msgspec.Struct, frozen=True):
    """A call of a batch, and the fingerprints that it may be found by, the likeliest first."""

    proposal: Proposed
    fingerprints: tuple[str, ...]


def judge_batch(
    drive: Drive, members: Sequence[Member], *, decided: Sequence[Decided]
) -> list[Held]:
    """Return how each call of a batch stands: as it was decided before, or as the policy says.

    All new calls are put before the policy in one moment. A decision serves one call.
    """
    left, found = list(decided), list[Held | None]()
    for member in members:
        same = next(
            (each for mark in member.fingerprints for each in left if mark in each.fingerprints),
            None,
        )
        left = [each for each in left if each is not same]
        found.append(same.held if same else None)

    new = [member.proposal for member, held in zip(members, found, strict=True) if held is None]
    judged = iter(drive.propose(new) if new else ())
    return [held or next(judged) for held in found]


class HandedOut:
    """The calls that the agent makes now, by its own names for them."""

    def __init__(self, drive: Drive) -> None:
        self._drive = drive
        self._calls: dict[str, Call] = {}

    def hand_out(self, name: str, call: Call) -> Call | None:
        """Let the agent make an approved call, once, with the bytes of what is returned.

        None: it is not what was approved any more, and a person is asked again.
        """
        handed = self._drive.hand_out(call)
        if handed:
            self._calls[name] = handed
        return handed

    def close(self, name: str, result: CallResult) -> None:
        """Record how a call ended, if it was handed out."""
        if call := self._calls.pop(name, None):
            self._drive.close(call, result)

    @property
    def calls(self) -> dict[str, Call]:
        """A copy of all handed-out calls that have no result yet."""
        return dict(self._calls)
