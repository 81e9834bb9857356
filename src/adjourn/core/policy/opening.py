"""A command that is about to start: what it depends on, and what keeps it from starting."""

from collections.abc import Mapping
from enum import Enum

import msgspec

from adjourn.core.ask import ApprovalAsk, Terms
from adjourn.core.call import Call, Command
from adjourn.core.policy.judgement import Action, Judgement, Never

# Behind the digest of a file that is opened once more by its path, after the last look
NOT_PINNED = " (not pinned)"


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


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What was found on disk when a command was looked at, and what no digest covers, in words."""

    program: str | None = None
    # Every program that the words name (`core.reading.programs_of`), and where it really is
    programs: dict[str, str] = {}
    files: dict[str, str] = {}  # path to `sha256:…`, or to why there is no digest
    # Directories and paths that the call names, and where each of them really is
    real: dict[str, str] = {}
    # Those of the files whose very bytes adjourn itself starts
    pinned: frozenset[str] = frozenset()
    root: str | None = None  # of the repository that the task's workspace is in
    # Programs found in the directory that the command would run in, outside of the root
    near: frozenset[str] = frozenset()
    # Of the repository's own programs and scripts, by where they really are: their digests
    content: dict[str, str] = {}
    # By a program's word: where the interpreters that its script names really are
    readers: dict[str, tuple[str, ...]] = {}
    searched: dict[str, tuple[str, ...]] = {}  # the same, of those that `env` finds on PATH
    doubts: dict[str, str] = {}  # by a program's word: why its interpreters may be others


NOTHING_SEEN = Surroundings()


def without_pins(seen: Surroundings) -> Surroundings:
    """Return the same surroundings for somebody who starts the command without adjourn.

    An agent that makes its own calls.
    """
    files = {
        path: f"{found}{NOT_PINNED}" if path in seen.pinned else found
        for path, found in seen.files.items()
    }
    return msgspec.structs.replace(seen, files=files, pinned=frozenset())


def unpinned(files: Mapping[str, str]) -> list[str]:
    """Return the files that were hashed and cannot be pinned."""
    return sorted(path for path, found in files.items() if found.endswith(NOT_PINNED))


def differences(shown: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Say, path by path, how the files found differ from those that were shown."""
    paths = sorted({*shown, *found})
    return [
        _difference(path, shown.get(path), found.get(path))
        for path in paths
        if shown.get(path) != found.get(path)
    ]


def _difference(path: str, shown: str | None, found: str | None) -> str:
    if shown is None:
        return f"{path} is new: {found}"
    return f"{path} was {shown} and is {found or 'gone'}"
