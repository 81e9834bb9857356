"""How a run ends, and what is known when it does."""

import msgspec

from adjourn.core.clarification import Left
from adjourn.core.task import PauseReason

_NEEDS_A_PERSON = frozenset({10, 90})
_LEAVING = frozenset({0, 10, 90})


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """What the shim saw of the process."""

    code: int | None = None
    signal: int | None = None
    interrupted: bool = False
    error: str | None = None
    output: str = ""
    errors: str = ""  # the end of its stderr, of one that may ask for approval
    left: Left | None = None
    # The digest of what was executed, where it was let through by its digest
    program: str | None = None
    script: str | None = None  # and of the script that a shell was given
    # Which files that could not be pinned have changed since just before the start
    changed: str | None = None
    # And which were changed or swapped meanwhile, and are the same again
    restored: str | None = None
    unknown: str | None = None  # and of which that is not known

    @property
    def wants_a_person(self) -> bool:
        """Whether it left with an exit code that may ask for approval of the command itself."""
        return self.code in _NEEDS_A_PERSON and self.may_leave_asks

    @property
    def may_leave_asks(self) -> bool:
        """Whether it left by itself, in a way that lets asks stay open."""
        return self.code in _LEAVING and not self.interrupted and not self.error


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What the store knows of a run at the moment it ends."""

    open_asks: tuple[str, ...] = ()
    settled_asks: bool = False
    untold_asks: bool = False  # whether tools of an agent asked something that it does not know yet
    open_children: tuple[str, ...] = ()
    ended_children: bool = False
    asks_by_exit_code: bool = True  # whether exit codes 10 and 90 without asks ask for approval
    was_approved: bool = False
    approved_manifest: str | None = None
    told: str | None = None  # what a driver said of its run
    resumable: bool = False  # whether its agent's session could go on, as the driver saw it last


class Completed(msgspec.Struct, frozen=True):
    """It did its work."""

    message: str | None = None


class Failed(msgspec.Struct, frozen=True):
    """It ended badly."""

    reason: str


class Waits(msgspec.Struct, frozen=True):
    """It left until the asks it registered, or the tasks it started, are settled."""


class WantsApproval(msgspec.Struct, frozen=True):
    """It left until a person approves its own command."""

    manifest: str | None = None
    last_lines: str | None = None  # what it printed last


class Interrupted(msgspec.Struct, frozen=True):
    """It was told to stop, and stopped; or it cannot go on for now, and says why.

    One that died left what it did as it was.
    """

    reason: str | None = None
    died: bool = False
    cause: PauseReason = PauseReason.USER_INTERRUPT


Outcome = Completed | Failed | Waits | WantsApproval | Interrupted
