"""What a person says of a task's work when it is done.

Approve, approve and stop, request changes, reject.
"""

import msgspec

REVIEW = "review"
APPROVE = "approve"
APPROVE_AND_STOP = "approve and stop"
REQUEST_CHANGES = "request changes"
REJECT = "reject"
WANTS_CHANGES = "A person looked at your work and wants changes:"  # begins what an agent is told
CHOICES = (APPROVE, APPROVE_AND_STOP, f"{REQUEST_CHANGES}: TEXT", REJECT)


class WorkApproved(msgspec.Struct, frozen=True):
    """The work is good; the execution of the plan goes on, or stops here."""

    stops: bool


class ChangesRequested(msgspec.Struct, frozen=True):
    """The task goes on in its session, with what it is to do better."""

    feedback: str


class TurnedDown(msgspec.Struct, frozen=True):
    """The work is not wanted: the task has failed."""

    reason: str | None


Review = WorkApproved | ChangesRequested | TurnedDown


def review_of(text: str | None) -> Review | None:
    """Read a review, or return None if it is not one of the four.

    What is to change must be said.
    """
    word, _, rest = (text or "").partition(":")
    words = rest.strip()
    match word.strip(), words:
        case ("approve", ""):
            return WorkApproved(stops=False)
        case ("approve and stop", ""):
            return WorkApproved(stops=True)
        case ("request changes", feedback) if feedback:
            return ChangesRequested(feedback)
        case ("reject", reason):
            return TurnedDown(reason or None)
        case _:
            return None


def feedback_of(text: str | None) -> str | None:
    """Return what is to change, if that is what a review says."""
    review = review_of(text)
    return review.feedback if isinstance(review, ChangesRequested) else None
