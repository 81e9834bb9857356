"""The keyboard of a person who is asked at a terminal: only keys that follow the question count."""

import select
import termios
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

_STDIN = 0
_QUIET_MS = 250  # without a key, before a question takes one
_PASTE_MS = 50  # what follows a line within this time was not typed


def wait_for_silence(*, is_stopped: Callable[[], bool] = lambda: False) -> None:
    """Discard what was typed so far, and return when no key was pressed for 250 ms.

    Call it after the thing to decide is on the screen and before the question is. A key that is held
    down, or a paste that is still arriving, puts the question off.
    """
    with _key_by_key(), suppress(termios.error):
        termios.tcflush(_STDIN, termios.TCIFLUSH)
        while not is_stopped() and _has_input(_QUIET_MS):
            termios.tcflush(_STDIN, termios.TCIFLUSH)


def is_pasted() -> bool:
    """Return whether more input follows the line that was just read, as in a paste; it is discarded."""
    with _key_by_key():
        return _has_input(_PASTE_MS)


def _has_input(within_ms: int) -> bool:
    """Wait for a key. A terminal that is gone has none."""
    poll = select.poll()
    poll.register(_STDIN, select.POLLIN)
    found = poll.poll(within_ms)
    return bool(found) and not found[0][1] & (select.POLLHUP | select.POLLERR | select.POLLNVAL)


@contextmanager
def _key_by_key() -> Generator[None, None, None]:
    """Let single keys be noticed, not only whole lines. Afterwards all that was typed is discarded."""
    try:
        before = termios.tcgetattr(_STDIN)
    except termios.error:  # no terminal, or one that was closed
        yield
        return
    changed = before.copy()
    changed[3] &= ~(termios.ICANON | termios.ECHO)
    try:
        with suppress(termios.error):
            termios.tcsetattr(_STDIN, termios.TCSANOW, changed)
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(_STDIN, termios.TCSAFLUSH, before)
