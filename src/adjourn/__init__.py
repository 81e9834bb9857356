"""Lets any headless agent or tool stop for a person, leave, and come back with the answer."""

from adjourn import checkpoint
from adjourn.core.ask import Question
from adjourn.core.clarification import Context, WorkState
from adjourn.core.errors import AdjournError, AlreadyDone, NotInsideARun, Rejected
from adjourn.library import approval, ask, clarify

__all__ = [
    "AdjournError",
    "AlreadyDone",
    "Context",
    "NotInsideARun",
    "Question",
    "Rejected",
    "WorkState",
    "approval",
    "ask",
    "checkpoint",
    "clarify",
]
