"""What tells one receiver what happened."""

from typing import Protocol

from adjourn.core.task import Milliseconds


class NotDelivered(Exception):
    """A receiver did not take what it was told; the words say why."""


class Notifier(Protocol):
    """Tells one receiver what happened. It owns no state: what was told is kept in the store."""

    def send(self, notice_id: str, body: bytes, *, at: Milliseconds) -> None:
        """Return when the receiver has taken the document, or raise NotDelivered.

        It never takes longer than its timeout.
        """
        ...

    def hang_up(self) -> None:
        """Break off what is being sent, in whatever thread: nothing of it goes on."""
        ...
