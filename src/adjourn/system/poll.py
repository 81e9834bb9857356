"""Waits for an event, or until it is time to check without one."""

import select
from typing import Protocol

CHECK_SECONDS = 2.0  # a check repairs a lost wake-up; everything else is an event
OUTPUT_SECONDS = 0.1  # between two reads of what a run has printed


class EventSource(Protocol):
    """Something that is readable when an event has come, until it is drained."""

    def fileno(self) -> int:
        """Return the descriptor to poll."""
        ...

    def drain(self) -> None:
        """Forget the events that have come so far."""
        ...


class Poll:
    """Waits for several sources, and for plain descriptors, at once.

    What it waits for is checked after each wait, whether an event came or not. Sources are drained
    before that check, so an event that comes during it ends the next wait at once.
    """

    def __init__(self, *sources: EventSource) -> None:
        self._sources = sources
        self._poll = select.poll()
        for source in sources:
            self.add(source.fileno())

    def add(self, fd: int) -> None:
        """Wait for this descriptor too."""
        self._poll.register(fd, select.POLLIN)

    def remove(self, fd: int) -> None:
        """Do not wait for this descriptor any more."""
        self._poll.unregister(fd)

    def wait(self, seconds: float = CHECK_SECONDS) -> set[int]:
        """Wait for an event, at most so long; return the descriptors that were readable."""
        ready = {fd for fd, _ in self._poll.poll(max(seconds, 0) * 1000)}
        for source in self._sources:
            source.drain()
        return ready
