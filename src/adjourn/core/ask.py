"""One thing that a person must settle, and the reply that settles it."""

from enum import StrEnum
from hashlib import sha256
from typing import ClassVar, TypeAlias, TypeGuard, assert_never

import msgspec

from adjourn.core.call import call_name
from adjourn.core.errors import AlreadySettled
from adjourn.core.people import GivenApproval, Person, missing_words
from adjourn.core.states import AskState
from adjourn.core.task import Milliseconds
from adjourn.core.text.when import stamp

# With this begins the prompt of an approval that is asked for again
LATER = "this store was restored or copied: the call may have been approved and run since then"


class Approver(StrEnum):
    """Who may approve."""

    ANY = "any"
    HUMAN = "human"


class Terms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an approval needs to count."""

    approver: Approver = Approver.ANY
    not_requester: bool = False
    signed: bool = False
    by_name: bool = False  # `--approve-all` does not cover it
    override: bool = False  # the policy says never: a person must say why it runs all the same
    approvals: int = 1  # by so many people
    people: tuple[Person, ...] | None = None  # only these count; None: all approvers

    @property
    def is_counted(self) -> bool:
        """Whether approvals count by person: some people may give them, or several must."""
        return self.people is not None


class AskKind(StrEnum):
    """What is asked: may this call run, what is the answer, or did that call run."""

    APPROVAL = "approval"
    QUESTION = "question"
    UNCERTAIN = "uncertain"

    @property
    def noun(self) -> str:
        """The kind as a sentence names it."""
        return {"approval": "an approval", "question": "a question"}.get(self, "an uncertain call")

    @property
    def verbs(self) -> str:
        """The verbs that settle it, as a sentence names them."""
        return {"approval": "`approve` or `reject`", "question": "`answer`"}.get(self, "`settle`")


class Verb(StrEnum):
    """How a person replies."""

    APPROVE = "approve"
    REJECT = "reject"
    ANSWER = "answer"
    SETTLE = "settle"


class Verdict(StrEnum):
    """What a person knows of an uncertain call."""

    IT_RAN = "it-ran"
    IT_DID_NOT = "it-did-not"
    RUN_AGAIN = "run-again"


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who acts, as the channel says; never as a field of the message says."""

    name: str  # KIND:NAME, where the kind is one of core.authority.scopes.KINDS
    inside_run: str | None = None
    # The user or login of the process that speaks for it, where that is not itself the principal
    through: str | None = None
    key: str | None = None  # of a signer: the fingerprint of the key, `key:SHA256:...`

    @property
    def names(self) -> tuple[str, ...]:
        """All names by which a person may list this principal."""
        return (self.name, self.key) if self.key else (self.name,)

    @property
    def kind(self) -> str:
        """What stands before the colon of its name."""
        return self.name.partition(":")[0]


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody says to an ask."""

    ask_id: str
    verb: Verb
    text: str | None = None
    digest: str | None = None
    # With an approval: the arguments, as JSON, that the person would rather have
    edited: bytes | None = None
    # What an edited command depends on, as it was when the person looked
    files: dict[str, str] | None = None
    # With an approval of what the policy never allows: why it runs all the same
    override: str | msgspec.UnsetType = msgspec.UNSET
    comment: str | None = None  # with an approval: what the person notes about it

    @property
    def reason_to_override(self) -> str | None:
        """Why a person overrides the policy, if they said why."""
        said = self.override.strip() if isinstance(self.override, str) else ""
        return said or None


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """How an ask ended: by a person's reply, because its time was over, or by being withdrawn."""

    state: AskState  # any but pending
    at: Milliseconds
    by: str
    reply: str | None = None  # the text that came with it
    level: str | None = None  # how much the decision is worth; adjourn's own have no level


class AskFields(msgspec.Struct, frozen=True, kw_only=True):
    """What every ask has."""

    id: str
    task_id: str
    number: int
    run: int
    prompt: str
    created_at: Milliseconds
    snoozed_until: Milliseconds | None = None
    settlement: Settlement | None = None

    @property
    def state(self) -> AskState:
        """Whether it is pending, or how it ended."""
        return self.settlement.state if self.settlement else AskState.PENDING

    @property
    def is_open(self) -> bool:
        """Whether it still needs a person."""
        return self.settlement is None

    @property
    def reply(self) -> str | None:
        """The text of the reply, if it has a reply with a text."""
        return self.settlement.reply if self.settlement else None

    def is_snoozed(self, now: Milliseconds) -> bool:
        """Whether somebody does not want to see it yet."""
        return self.snoozed_until is not None and self.snoozed_until > now


class ApprovalAsk(AskFields, frozen=True, kw_only=True):
    """Asks whether a call may run."""

    kind: ClassVar[AskKind] = AskKind.APPROVAL
    call: int
    label: str | None = None  # what the agent calls the call
    key: str | None = None  # only of a call that a process proposed
    slot: str | None = None
    manifest: str | None = None
    gate: bool = False  # nothing has run yet: it asks whether the command may start at all
    terms: Terms = Terms()
    replaces: str | None = None
    expires_at: Milliseconds | None = None
    given: tuple[GivenApproval, ...] = ()  # where approvals count by person: those so far
    remind_at: Milliseconds | None = None  # None once somebody was reminded
    escalate_to: tuple[str, ...] = ()  # who is told beside the others when it is reminded of

    @property
    def tool_call_id(self) -> str:
        """The name of the call."""
        return call_name(self.call, self.label)

    @property
    def terms_met(self) -> Terms:
        """The terms that its approvals meet: those of the people who approved."""
        people = self.terms.people
        if people is None:
            return self.terms
        givers = {each.person for each in self.given}
        met = tuple(person for person in people if person.name in givers)
        return msgspec.structs.replace(self.terms, people=met)

    @property
    def count_words(self) -> str | None:
        """How many approvals it has and who is missing; None if one from anybody settles it."""
        terms = self.terms
        if terms.people is None:
            return None
        have = f"{len(self.given)} of {terms.approvals} approvals"
        if self.given:
            have += f" ({', '.join(each.person for each in self.given)})"
        if not self.is_open:
            return have
        return f"{have}; still missing: {missing_words(terms.approvals, terms.people, self.given)}"


class QuestionAsk(AskFields, frozen=True, kw_only=True):
    """Asks for an answer."""

    kind: ClassVar[AskKind] = AskKind.QUESTION
    key: str | None = None  # a copy that leaves the store may lack it: it can hold a secret
    slot: str | None = None
    choices: tuple[str, ...] = ()
    review: bool = False  # its process is done: it asks whether the work is good
    expires_at: Milliseconds | None = None

    @property
    def name(self) -> str:
        """What an answer names it by."""
        return self.key or self.id

    @property
    def answer(self) -> str | None:
        """The text of its answer, or None if it has no answer. An answer can be empty."""
        settled = self.settlement
        return (settled.reply or "") if settled and settled.state is AskState.ANSWERED else None


class UncertainAsk(AskFields, frozen=True, kw_only=True):
    """Asks whether a call ran that nobody saw end. It does not expire: silence proves nothing."""

    kind: ClassVar[AskKind] = AskKind.UNCERTAIN
    call: int
    label: str | None = None  # what the agent calls the call

    @property
    def tool_call_id(self) -> str:
        """The name of the call."""
        return call_name(self.call, self.label)


# One thing that a person must settle. What only one kind has is found by its type.
Ask: TypeAlias = ApprovalAsk | QuestionAsk | UncertainAsk


def number_of_call(ask: Ask) -> int | None:
    """Return which call of its task an ask is about; a question is about none."""
    match ask:
        case ApprovalAsk() | UncertainAsk():
            return ask.call
        case QuestionAsk():
            return None
        case _:
            assert_never(ask)


def is_review(ask: Ask) -> TypeGuard[QuestionAsk]:
    """Return whether an ask asks if finished work is good."""
    return isinstance(ask, QuestionAsk) and ask.review


def expiry_of(ask: Ask) -> Milliseconds | None:
    """Return when an ask expires, if it does."""
    match ask:
        case ApprovalAsk() | QuestionAsk():
            return ask.expires_at
        case UncertainAsk():
            return None
        case _:
            assert_never(ask)


def require_open(ask: Ask) -> None:
    """Refuse a second reply: the sentence says who was first, when, and what they said."""
    settled = ask.settlement
    if settled is None:
        return
    said = f" ({settled.reply})" if settled.reply else ""
    raise AlreadySettled(
        f"ask {ask.id} was {settled.state} by {settled.by} at {stamp(settled.at)}{said}",
        way_out=f"adjourn show {ask.task_id}",
    )


class AskReason(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a person is asked, in adjourn's own words, and what the program printed before it."""

    reasons: tuple[str, ...] = ()
    last_lines: str | None = None


NO_REASON = AskReason()


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a process inside a run wants to make, if a person lets it."""

    prompt: str
    tool: str
    body: bytes
    key: str
    # Its key names this one call in all runs: however often it is proposed, it is the same
    is_named: bool = False
    expires_after: Milliseconds | None = None
    # The schema, as JSON, of arguments that the process takes in the place of its own
    editable: bytes | None = None


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a process inside a run wants to know."""

    prompt: str
    key: str
    choices: tuple[str, ...] = ()
    expires_after: Milliseconds | None = None
    found_by: str | None = None  # what finds it again in a later run, where that is not its key


RESUME_KEY = "resume_with"  # the key of an ask that resumes an agent of others (core.foreign)
DIGEST_KEY = "q_"  # how the key of a question begins that was asked without one


def question_of(
    prompt: str, *, key: str | None, choices: tuple[str, ...], expires_after: Milliseconds | None
) -> Question:
    """Return a question.

    Without a key it gets one that says nothing of its text, which may quote a secret.

    Such a question is found again by its text, as it was before keys were digests.
    """
    name = key or f"{DIGEST_KEY}{sha256(prompt.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
    return Question(
        prompt=prompt,
        key=name,
        choices=choices,
        expires_after=expires_after,
        found_by=key or prompt,
    )
