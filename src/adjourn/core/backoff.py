"""How long to wait before a try that follows failed ones."""

_MOST_DOUBLINGS = 30


def backoff(tries: int, *, first: float, longest: float) -> float:
    """Return the pause after so many tries: `first`, doubled each time, up to `longest`."""
    return min(first * (1 << min(tries - 1, _MOST_DOUBLINGS)), longest)
