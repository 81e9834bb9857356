"""A keyboard at a real terminal, used by somebody who looks before they press a key."""

from tests.e2e.terminal import Terminal

_TRIES = 12


class Keyboard:
    """Presses keys that a TUI takes: after a pause, and again if the machine was too slow."""

    def __init__(self, person: Terminal) -> None:
        self.person = person

    def press(self, keys: bytes) -> None:
        """Press keys when the keyboard was silent for long enough."""
        self.person.listen(0.45)
        self.person.type(keys)

    def press_until(self, keys: bytes, text: str) -> None:
        """Press keys until something is on the screen; a TUI that had to wait may refuse them."""
        for _ in range(_TRIES):
            self.press(keys)
            for _ in range(20):
                self.person.listen(0.1)
                if text in "\n".join(self.person.lines):
                    return
        self.person.shows(text)
