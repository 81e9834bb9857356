"""What the server needs to know of one model API.

An adapter is one file with one object of this shape.
"""

from collections.abc import Iterator
from typing import Any, Protocol

from tests.model.script import Turn

Body = dict[str, Any]
Event = tuple[str | None, Body | str]  # the event's name, if this API names them, and its data


class Api(Protocol):
    """Speaks one model API."""

    name: str
    path: str  # how the request's path ends

    def answers_so_far(self, request: Body) -> int:
        """Return how many answers of the model the request's conversation holds already."""
        ...

    def whole(self, turn: Turn, request: Body) -> Body:
        """Return the answer as one JSON document."""
        ...

    def events(self, turn: Turn, request: Body) -> Iterator[Event]:
        """Yield the answer as a stream of events, the end mark included."""
        ...

    def error(self, status: int, message: str) -> Body:
        """Return the body of an HTTP error."""
        ...

    def too_long(self) -> Body:
        """Return the body of the error for a conversation that is too long."""
        ...
