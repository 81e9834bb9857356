"""What a process inside a run keeps for the next run of its task: one JSON value."""

from typing import Any


def save(value: Any) -> None:
    """Keep a JSON value; it is on disk when this returns. A restart begins without it."""
    from adjourn.wiring.inside import InsideRun

    with InsideRun.open() as inside:
        inside.save(value)


def load(default: Any = None) -> Any:
    """Return what was saved last, by this run or an earlier one."""
    from adjourn.wiring.inside import InsideRun

    with InsideRun.open() as inside:
        return inside.load(default)
