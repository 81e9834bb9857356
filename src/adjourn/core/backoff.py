"""How long to wait before a try that follows failed ones."""

from adjourn.core.task import PAUSES_BETWEEN_TRIES

_MOST_DOUBLINGS = 30


def pause_before_try(tries: int) -> float:
    """Return the pause after so many tries to start a program that somebody was writing."""
    return PAUSES_BETWEEN_TRIES[min(max(tries, 1), len(PAUSES_BETWEEN_TRIES)) - 1]


def backoff(tries: int, *, first: float, longest: float) -> float:
    """Return the pause after so many tries: `first`, doubled each time, up to `longest`."""
    return min(first * (1 << min(tries - 1, _MOST_DOUBLINGS)), longest)
