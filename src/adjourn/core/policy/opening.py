"""A command that is about to start, and what keeps it from starting."""

from enum import Enum

import msgspec

from adjourn.core.ask import ApprovalAsk, Terms
from adjourn.core.call import Call, Command
from adjourn.core.policy.judgement import Action, Judgement, Never


class Way(Enum):
    """What happens to a command that was judged."""

    RUN = "run"
    ASK = "ask"
    REFUSE = "refuse"


def way_of(judgement: Judgement, *, is_gated: bool) -> Way:
    """Say what a judgement does to a call.

    Where nobody wants to be asked, only what may never run is turned down.
    """
    if judgement.action is Action.NEVER:
        return Way.ASK if is_gated and judgement.never is Never.PAUSE else Way.REFUSE
    return Way.ASK if is_gated and judgement.action is Action.PROMPT else Way.RUN


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """A command that is about to be queued: its exact bytes, and what the policy says of them."""

    command: Command
    judgement: Judgement
    is_gated: bool
    policy: bytes | None = None

    @property
    def way(self) -> Way:
        """Whether it runs, waits for a person, or is turned down."""
        return way_of(self.judgement, is_gated=self.is_gated)

    @property
    def is_let_through_by_policy(self) -> bool:
        """Whether the policy itself says that it may run."""
        return self.judgement.action is Action.AUTO

    @property
    def told(self) -> str | None:
        """What the trail says of a call that runs although the policy would have asked a person."""
        return self.judgement.action.value if self.policy and not self.is_gated else None


class OwnAsk(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes part of the ask of a process that wants its own command approved."""

    files: dict[str, str] = {}
    reasons: tuple[str, ...] = ()  # why it is asked, beyond that it ran and left
    terms: Terms = Terms()
    expires_after: int | None = None
    remind_after: int | None = None
    escalate_to: tuple[str, ...] = ()


class Obstacle(msgspec.Struct, frozen=True, kw_only=True):
    """Why a call that was let through may not start now."""

    call: Call
    ask: ApprovalAsk | None
    opening: Opening
    changes: tuple[str, ...]
