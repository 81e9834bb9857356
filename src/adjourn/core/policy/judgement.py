"""What a policy says of a call: whether it may run, who may let it, and on which terms."""

from enum import StrEnum

import msgspec

from adjourn.core.ask import Approver, Terms
from adjourn.core.people import narrowed
from adjourn.core.task import Milliseconds

# All that a model learns about a refusal: not the rule, and not the path of its file
NOT_ALLOWED = "your policy does not allow this"
SAYS_NEVER = "your policy says never"
NO_RULES = "there is no rule at all"
NO_RULE_LETS = "no rule lets "  # and what it does not let run


class Action(StrEnum):
    """Whether a call runs by itself, after a person's yes, or not at all.

    Each is stricter than the one before.
    """

    AUTO = "auto"
    PROMPT = "prompt"
    NEVER = "never"


class Never(StrEnum):
    """What a call does that may never run.

    It waits for somebody who names it, or it is turned down at once.
    """

    PAUSE = "pause"
    REJECT = "reject"


class Effect(StrEnum):
    """What a second run of a call would do.

    Of an unknown one nobody knows, so it never gets one by itself.
    """

    READ_ONLY = "read_only"
    IDEMPOTENT = "idempotent"
    UNKNOWN = "unknown"


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy says of one call, and the rules that made it say so, in words."""

    action: Action = Action.PROMPT
    never: Never = Never.PAUSE
    effect: Effect = Effect.UNKNOWN
    terms: Terms = Terms()
    expires_after: Milliseconds | None = None
    remind_after: Milliseconds | None = None
    escalate_to: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    is_default: bool = False  # it asks only because no rule says otherwise

    @property
    def is_turned_down(self) -> bool:
        """Whether not even a person may let the call run."""
        return self.action is Action.NEVER and self.never is Never.REJECT

    @property
    def terms_of_ask(self) -> Terms:
        """The terms on which a person may let the call run."""
        is_never = self.action is Action.NEVER
        return msgspec.structs.replace(self.terms, by_name=is_never, override=is_never)

    @property
    def reasons_to_ask(self) -> tuple[str, ...]:
        """Why a person is asked, in words: the rule with its file and line, or that none allows."""
        first, *others = self.why or ("",)
        if self.action is Action.NEVER:
            return (f"{SAYS_NEVER}: {first}".removesuffix(": "), *others)
        if not self.is_default:
            return (f"your policy asks a person: {first}".removesuffix(": "), *others)
        reasons = [why for why in self.why if why != NO_RULES and not why.startswith(NO_RULE_LETS)]
        return ("no rule allows it", *reasons)

    def expiry(self, *others: Milliseconds | None) -> Milliseconds | None:
        """Return how long an ask about the call stays open: the shortest span that anybody set."""
        return min(
            (span for span in (self.expires_after, *others) if span is not None), default=None
        )


def approved_on(terms: Terms) -> Judgement:
    """Return what a person's approval is worth: the terms on which it was given."""
    return Judgement(action=Action.NEVER if terms.override else Action.PROMPT, terms=terms)


_ACTIONS = tuple(Action)
_NEVERS = tuple(Never)
_APPROVERS = tuple(Approver)
_EFFECTS = tuple(Effect)


def strictest(one: Judgement, other: Judgement) -> Judgement:
    """Return what satisfies both judgements: in each respect the stricter of the two."""
    return Judgement(
        action=max(one.action, other.action, key=_ACTIONS.index),
        never=max(one.never, other.never, key=_NEVERS.index),
        effect=max(one.effect, other.effect, key=_EFFECTS.index),
        terms=_strictest_terms(one.terms, other.terms),
        expires_after=one.expiry(other.expires_after),
        remind_after=min(
            (each.remind_after for each in (one, other) if each.remind_after is not None),
            default=None,
        ),
        escalate_to=tuple(dict.fromkeys((*one.escalate_to, *other.escalate_to))),
        why=tuple(dict.fromkeys((*one.why, *other.why))),
        is_default=all(each.is_default or each.action is Action.AUTO for each in (one, other)),
    )


def is_stricter(one: Judgement, than: Judgement) -> bool:
    """Say whether a call needs more than it did.

    What was approved on easier terms then counts no more.
    """
    both = strictest(one, than)
    if both.is_turned_down and not than.is_turned_down:
        return True
    return (both.action, both.terms) != (than.action, than.terms)


def _strictest_terms(one: Terms, other: Terms) -> Terms:
    return Terms(
        approver=max(one.approver, other.approver, key=_APPROVERS.index),
        not_requester=one.not_requester or other.not_requester,
        signed=one.signed or other.signed,
        by_name=one.by_name or other.by_name,
        override=one.override or other.override,
        approvals=max(one.approvals, other.approvals),
        people=narrowed(one.people, other.people),
    )
