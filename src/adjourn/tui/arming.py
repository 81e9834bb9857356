"""Whether a key may decide something: what is held down, pasted or typed ahead never does.

A key decides if all of the text was on the screen for 250 ms, if no other key came in the 250 ms
before it, and if none follows at once. A key that is held down has a pause before it repeats, so
its second press may look like a new one: the third, which follows at once, tells.
"""

SHOWN = 0.25  # seconds for which all of the text must have been on the screen
QUIET = 0.25  # seconds without a key before one that decides
ALONE = 0.15  # seconds in which nothing may follow it; slow terminals repeat 10 times a second


class Arming:
    """Counts keys and clicks. The caller says what time it is, in seconds."""

    def __init__(self) -> None:
        self._count = 0
        self._last = float("-inf")
        self._before_last = float("-inf")

    def note_key(self, now: float) -> None:
        """Note that a key or a button was pressed."""
        self._count += 1
        self._before_last, self._last = self._last, now

    @property
    def count(self) -> int:
        """How many were pressed: if it grows while one waits, that one was not alone."""
        return self._count

    def why_not(self, now: float, *, shown_at: float | None) -> str | None:
        """Say why the key that was just pressed cannot decide, or return None if it can.

        `shown_at` is when the last part of the text came on the screen, None if some never did.
        """
        if shown_at is None:
            return "Not all of it was on the screen yet: PgDn shows the rest."
        if now - shown_at < SHOWN:
            return "It came on the screen only now: look at it, then press the key again."
        if self._last - self._before_last < QUIET:
            return "Several keys came at once, so none of them counts."
        return None
