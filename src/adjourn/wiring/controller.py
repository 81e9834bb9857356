"""Puts the whole controller together.

What runs commands, and settles what dead supervisors left.
"""

from adjourn.controller.controller import Controller
from adjourn.wiring import is_shared, open_context


def open_controller(root: str, *, as_worker: bool = False, for_asking: bool = False) -> Controller:
    """Open the store and return what applies the rules."""
    return Controller(open_context(root, as_worker=as_worker, for_asking=for_asking))


def name_of(root: str) -> str:
    """Return what people call a store: its directory, or the database."""
    if not is_shared(root):
        return root
    from adjourn.wiring.shared import named

    return named(root)
