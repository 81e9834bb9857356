"""Puts the whole controller together.

What runs commands, and settles what dead supervisors left.
"""

from adjourn.controller.controller import Controller
from adjourn.wiring import open_context


def open_controller(root: str, *, as_worker: bool = False, for_asking: bool = False) -> Controller:
    """Open the store and return what applies the rules."""
    return Controller(open_context(root, as_worker=as_worker, for_asking=for_asking))
