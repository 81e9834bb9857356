"""Who may do what: scopes, the table from verbs to scopes, and how much a decision is worth."""

from enum import StrEnum

import msgspec

from adjourn.core.ask import Approver, Principal, Terms
from adjourn.core.errors import NotAllowed
from adjourn.core.people import find_person


class Scope(StrEnum):
    """What a principal may be trusted with."""

    REQUEST = "request"
    ANSWER = "answer"
    APPROVE = "approve"
    ADMIN = "admin"


class Level(StrEnum):
    """How far a decision is from the one whom it lets act.

    The same user, another one, or a signature that was verified.
    """

    L0 = "L0"
    L1 = "L1"
    L2 = "L2"


MEANINGS = {
    Level.L0: (
        "by the user as whom the task was started: "
        "it stops mistakes, not a hostile process of that user"
    ),
    Level.L1: "by another user than the one who started the task",
    Level.L2: "signed with a key, verified when it was recorded and again before the gate opens",
}


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of everybody whose name begins with the same word."""

    is_human: bool = False  # a person is taken to be there
    needs_listing: bool = False  # it is one only if the owner's config says so
    best: Level = Level.L0  # that a decision of this kind can have


KINDS = {
    "uid": Kind(is_human=True, best=Level.L1),  # a user of this machine, at a command line
    "db": Kind(is_human=True, best=Level.L1),  # a login of a shared store
    "key": Kind(is_human=True, best=Level.L2),  # who signed with that SSH key
    "passkey": Kind(is_human=True, best=Level.L2),  # who signed with that passkey
    "web": Kind(is_human=True, best=Level.L1),  # a session of a browser
    "telegram": Kind(is_human=True, needs_listing=True, best=Level.L1),
    "slack": Kind(is_human=True, needs_listing=True, best=Level.L1),
    "token": Kind(is_human=True, needs_listing=True, best=Level.L1),  # of the HTTP API
    "link": Kind(is_human=True, needs_listing=True),  # who has a signed link
    "agent": Kind(),  # a host that speaks MCP
    "webhook": Kind(),
    "file": Kind(),  # a response file: it answers, and decides nothing
}
"""Every kind of principal; one that is not here may do nothing."""

# Kinds that are no person, whatever a config says
_NOBODY = frozenset({"agent", "file"})

# Each of these may be the holder of any token, too
_MAY_HOLD_TOKENS = frozenset({"uid", "db", "token", "agent", "link", "webhook"})

# Their own name tells who they are; all others speak through a process of some user
_BY_THEMSELVES = frozenset({"uid", "db"})

ALL = frozenset(Scope)
LOGIN = "db:"  # begins the name of a login of a shared store
AGENT = "agent"  # the kind of those who decide only for what they started
TOKEN = "token"  # noqa: S105 -- the kind of those who call the HTTP API
AGENT_SCOPES = frozenset({Scope.REQUEST, Scope.ANSWER, Scope.APPROVE})

SCOPES = {
    "start": Scope.REQUEST,
    "ask": Scope.REQUEST,
    "resume": Scope.REQUEST,
    "restart": Scope.REQUEST,
    "pause": Scope.REQUEST,
    "cancel": Scope.REQUEST,
    "answer": Scope.ANSWER,
    "approve": Scope.APPROVE,
    "reject": Scope.APPROVE,
    "edit": Scope.APPROVE,
    "settle": Scope.APPROVE,
    "snooze": Scope.APPROVE,
    "decide": Scope.APPROVE,
    "prune": Scope.ADMIN,
    "rules": Scope.ADMIN,
    "notify": Scope.ADMIN,
    "accept": Scope.ADMIN,
    "setup": Scope.ADMIN,
    "delegate": Scope.ADMIN,
    "users": Scope.ADMIN,
    "serve": Scope.ADMIN,
    "tokens": Scope.ADMIN,
}
"""Every verb that changes something; one that is not here nobody may use."""

# All that a run may do beyond its own children; it decides nothing
_INSIDE = frozenset({"start", "ask", "resume"})


class Rights(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody may do, and by which other names the same person goes."""

    scopes: frozenset[Scope] = frozenset()
    also: tuple[str, ...] = ()
    # Nobody else can open the store: every `uid:N` of its trail is this user, however mapped
    is_only_user: bool = False
    is_person: bool = False  # the owner's config says that a person stands behind the name


NONE = Rights()


def is_human(by: Principal, rights: Rights = NONE) -> bool:
    """Return whether this counts as a person; a process of a run does not."""
    kind = KINDS.get(by.kind)
    if kind is None or not kind.is_human or by.inside_run is not None:
        return False
    return rights.is_person or not kind.needs_listing


def is_signer(by: Principal) -> bool:
    """Return whether somebody is known by a signature that was verified."""
    kind = KINDS.get(by.kind)
    return kind is not None and kind.best is Level.L2


def needs_outside(verb: str) -> bool:
    """Say whether a verb is for those only who are outside of every run.

    Who follows the trail decides nothing.
    """
    return verb.partition(" ")[0] not in _INSIDE and verb != "notify --follow"


def refuse_inside(by: Principal, verb: str) -> None:
    """Refuse a caller that is part of a run, unless the verb decides nothing."""
    if by.inside_run and verb.partition(" ")[0] not in _INSIDE:
        sentence = f"{verb} is refused inside a run: what runs under adjourn may ask, never decide"
        raise NotAllowed(sentence, way_out="decide from a terminal of your own")


def refuse_without(scopes: frozenset[Scope], by: Principal, verb: str) -> None:
    """Refuse a caller that lacks the scope of a verb.

    A verb may have words behind it, as in `rules add`.
    """
    if by.kind not in KINDS:
        sentence = f"{by.name} may not {verb}: nobody knows that kind of principal"
        raise NotAllowed(sentence, way_out="decide from a terminal of your own")
    scope = SCOPES.get(verb.partition(" ")[0])
    if scope is None:
        raise NotAllowed(f"nobody may {verb}: it is in no scope", way_out="adjourn --help")
    if scope not in scopes:
        raise NotAllowed(
            f"{by.name} may not {verb}: that needs the scope {scope}", way_out=_way_to(scope, by)
        )


def _way_to(scope: Scope, by: Principal) -> str:
    if not by.name.startswith(LOGIN):
        return f'name = "{by.name}" and scopes = ["{scope}"] in a [[principal]] of config.toml'
    role = "adjourn_approver" if scope in {Scope.ANSWER, Scope.APPROVE} else "adjourn_worker"
    login = by.name.removeprefix(LOGIN)
    return f"as the owner of the database: adjourn store roles, then GRANT {role} TO {login}"


def level_of(by: Principal, rights: Rights, *, requester: str) -> Level:
    """Say what a decision is worth, given who asked for what it decides."""
    kind = KINDS.get(by.kind)
    if kind is None or kind.best is not Level.L1:
        return kind.best if kind else Level.L0
    if by.kind in _BY_THEMSELVES:
        user: str | None = by.name
    else:
        # Who reaches us through a process of the requester's is worth no more than the requester
        user = by.through if is_human(by, rights) and requester not in rights.also else None
    is_another = (
        user is not None
        and _are_two_of_a_kind(user, requester)
        and not _is_the_same_user(rights, requester)
    )
    return Level.L1 if is_another else Level.L0


def _is_the_same_user(rights: Rights, requester: str) -> bool:
    """Say whether the requester must be the decider.

    A user namespace gives one user as many numbers as it likes.
    """
    return rights.is_only_user and requester.startswith("uid:")


def _are_two_of_a_kind(one: str, other: str) -> bool:
    """Say whether these are two users of the same channel.

    A `uid:` and a `db:` may be the same person.
    """
    return one != other and one.partition(":")[0] == other.partition(":")[0]


def refuse_terms(
    terms: Terms,
    by: Principal,
    rights: Rights,
    *,
    requester: str,
    override: str | None,
    way_out: str,
) -> None:
    """Refuse an approval that would not count on those terms.

    `override` is why a person lets run what the policy never allows.
    """
    if terms.override:
        overriding = f'{way_out} --override "why it must run"'
        if not is_human(by, rights):
            sentence = (
                f"your policy says never: only a person at a command line can override that,"
                f" and {by.name} is not one"
            )
            raise NotAllowed(sentence, way_out=overriding)
        if not override:
            raise NotAllowed(
                "your policy says never: approving it needs a reason to override that",
                way_out=overriding,
            )
    if terms.approver is Approver.HUMAN and not is_human(by, rights):
        raise NotAllowed(
            f"only a person may approve this, and {by.name} is not one", way_out=way_out
        )
    # Of an agent's task the user behind the agent counts as the requester, and may be anybody here
    is_requester = (
        requester in {by.name, by.through, *rights.also}
        or _is_the_same_user(rights, requester)
        or (requester.startswith(f"{AGENT}:") and not is_signer(by))
        # A user or another token here may well be the holder of the token that asked
        or (requester.startswith(f"{TOKEN}:") and by.kind in _MAY_HOLD_TOKENS)
    )
    if terms.not_requester and is_requester:
        raise NotAllowed(
            f"{by.name} asked for this: somebody else has to approve it", way_out=way_out
        )
    if terms.signed and not is_signer(by):
        raise NotAllowed("this needs a signed approval", way_out=f"{way_out} --sign KEY")
    if terms.people is not None:
        person = person_of(terms, by, rights)
        if person is None:
            names = ", ".join(each.name for each in terms.people) or "nobody of your config"
            raise NotAllowed(
                f"{by.name} is not among those who may approve this: {names}",
                way_out=f"{way_out} --sign KEY",
            )
        own = next(each.principals for each in terms.people if each.name == person)
        if terms.not_requester and requester in own:
            raise NotAllowed(
                f"{person} asked for this, as {requester}: somebody else has to approve it",
                way_out=way_out,
            )


def person_of(terms: Terms, by: Principal, rights: Rights) -> str | None:
    """Return which of those who may approve a principal is, by any of its names."""
    people = terms.people or ()
    person = find_person(people, by.names) if by.kind not in _NOBODY else None
    # Other names may only tell that it is somebody else as well, and then nobody knows who it is
    return person if person == find_person(people, (*by.names, *rights.also)) else None
