"""Which calls belong together: those of one message of the model, known when the message is there to its last word."""

from adjourn.runners.claude.stream import Began, Called, Event, Stopped

SETTLING = 0.3  # seconds; a message that does not stream is told call by call, before the first hook is asked


class Turn:
    """One message of the model, and the calls in it."""

    def __init__(self, message: str, *, streams: bool) -> None:
        self.message = message
        self.streams = streams
        self.calls: list[Called] = []
        self.is_stopped = False
        self.is_abandoned = False  # another message began before this one was whole: its calls never count
        self.heard_at = 0.0

    def rest(self, now: float) -> float:
        """Return how many seconds to wait before all calls of the message are surely known; nobody knows while it streams."""
        if self.is_stopped or self.is_abandoned:
            return 0.0
        return float("inf") if self.streams else max(0.0, self.heard_at + SETTLING - now)


class Turns:
    """The messages of the model so far, as the stream tells of them."""

    def __init__(self) -> None:
        self._turn_of: dict[str, Turn] = {}
        self._current: Turn | None = None
        self.count = 0

    def hear(self, event: Event, *, now: float) -> None:
        """Take in what the stream tells."""
        match event:
            case Began(message=message):
                self._begin(message, streams=True)
            case Called():
                self._add(event, now=now)
            case Stopped() if self._current:
                self._current.is_stopped = True
            case _:
                pass

    def turn_of(self, call: str) -> Turn | None:
        """Return the message that a call stands in, if the stream has told of it."""
        return self._turn_of.get(call)

    def _begin(self, message: str, *, streams: bool) -> Turn:
        if self._current and self._current.streams and not self._current.is_stopped:
            self._current.is_abandoned = True
        self._current = Turn(message, streams=streams)
        self.count += 1
        return self._current

    def _add(self, called: Called, *, now: float) -> None:
        turn = self._current
        is_another = turn is None or (called.is_whole and (turn.streams or turn.message != called.message))
        if turn is None or is_another:
            turn = self._begin(called.message, streams=not called.is_whole)
        if called.call not in {known.call for known in turn.calls}:
            turn.calls.append(called)
        turn.heard_at = now
        self._turn_of[called.call] = turn
