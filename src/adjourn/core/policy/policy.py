"""Rules that say auto, prompt or never for a call.

Their order does not matter: in each respect the strictest wins.
"""

from functools import cached_property

import msgspec

from adjourn.core.call import canonical
from adjourn.core.people import Person, Team
from adjourn.core.policy.judgement import Never
from adjourn.core.policy.rule import Index, Rule
from adjourn.core.task import Milliseconds


class Allowance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An always-allow rule: exactly one call, in one workspace or task, until a day."""

    id: str
    call: bytes  # the canonical bytes of the tool and of what of its arguments decides
    programs: dict[str, str]
    until: Milliseconds
    by: str
    at: Milliseconds
    workspace: str | None = None
    task: str | None = None
    # The digests of the repository's own programs and scripts in it, by where they really are
    files: dict[str, str] = {}


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a policy was read from."""

    path: str
    kind: str  # user, project or rules
    rules: int


class Origin(msgspec.Struct, frozen=True):
    """A file that may hold rules."""

    path: str
    is_project: bool


class Include(msgspec.Struct, frozen=True, kw_only=True):
    """Another file that a file names, and where it does."""

    path: str
    line: int
    column: int


class Policy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """All rules that hold for a workspace, and what happens to a call that may never run."""

    rules: tuple[Rule, ...] = ()
    allowances: tuple[Allowance, ...] = ()
    never: Never = Never.PAUSE
    directories: tuple[str, ...] = ()  # open to the built-in agent beside its workspace
    sources: tuple[Source, ...] = ()
    people: tuple[Person, ...] = ()  # of the user's config, if a rule needs them
    teams: tuple[Team, ...] = ()

    @cached_property
    def strict(self) -> Index:
        """The rules that let something pass."""
        return Index((rule for rule in self.rules if rule.loosens), strictly=True)

    @cached_property
    def generous(self) -> Index:
        """The rules that ask or forbid."""
        return Index((rule for rule in self.rules if rule.tightens), strictly=False)

    @cached_property
    def allowed(self) -> dict[bytes, list[Allowance]]:
        """The always-allow rules by the call that they are about."""
        found: dict[bytes, list[Allowance]] = {}
        for each in self.allowances:
            found.setdefault(each.call, []).append(each)
        return found


NO_POLICY = Policy()


def encode_policy(policy: Policy) -> bytes:
    """Return the canonical bytes of a policy: equal policies, equal bytes."""
    return canonical(policy)


def decode_policy(body: bytes) -> Policy:
    """Read a policy back."""
    return msgspec.json.decode(body, type=Policy)


def open_since(snapshot: Policy, current: Policy) -> tuple[str, ...]:
    """Return which directories are open for a task that began under a snapshot.

    Those that were, and still are.
    """
    return tuple(path for path in snapshot.directories if path in current.directories)
