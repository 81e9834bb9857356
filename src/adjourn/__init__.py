"""Lets any headless agent or tool stop for a person, leave, and come back with the answer."""

# Typing is not imported for it: no Ctrl+C can be caught before the command has begun
TYPE_CHECKING = False

if TYPE_CHECKING:  # the command imports this package, too, and needs none of these names
    from adjourn import checkpoint
    from adjourn.core.ask import Question
    from adjourn.core.call import Approved
    from adjourn.core.clarification import Context, WorkState
    from adjourn.core.errors import AdjournError, AlreadyDone, EditIgnored, NotInsideARun, Rejected
    from adjourn.library import approval, ask, clarify

__all__ = [
    "AdjournError",
    "AlreadyDone",
    "Approved",
    "Context",
    "EditIgnored",
    "NotInsideARun",
    "Question",
    "Rejected",
    "WorkState",
    "approval",
    "ask",
    "checkpoint",
    "clarify",
]

_HOMES = {
    "adjourn.core.call": ("Approved",),
    "adjourn.core.ask": ("Question",),
    "adjourn.core.clarification": ("Context", "WorkState"),
    "adjourn.core.errors": (
        "AdjournError",
        "AlreadyDone",
        "EditIgnored",
        "NotInsideARun",
        "Rejected",
    ),
    "adjourn.library": ("approval", "ask", "clarify"),
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first asked for."""
    # Importing adjourn does nothing: a name is loaded when it is used
    from importlib import import_module

    if name == "checkpoint":
        return import_module("adjourn.checkpoint")
    for home, names in _HOMES.items():
        if name in names:
            found: object = getattr(import_module(home), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module 'adjourn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
