"""Which calls belong together.

Those of one message of the model, known when the message is there to its last word.
"""

from collections.abc import Sequence

from adjourn.runners.claude.options import LISTENS
from adjourn.runners.claude.protocol import (
    Began,
    Called,
    Event,
    HookBegan,
    HookEnded,
    Init,
    Starts,
    Stopped,
)

LOOK = 0.05  # seconds between two looks into the session's file


class ModelTurn:
    """One message of the model, and the calls in it."""

    def __init__(self, message: str, *, streams: bool) -> None:
        self.message = message
        self.streams = streams
        self.calls: list[Called] = []
        self.is_stopped = False
        self.is_abandoned = False  # nobody can tell what else belongs to it: its calls never count
        self.is_judged = False

    @property
    def is_settled(self) -> bool:
        """Whether it is known of all of its calls what they are, or that it never will be."""
        return self.is_stopped or self.is_abandoned

    def rest(self) -> float:
        """Return in how many seconds to look again whether all calls of the message are known.

        One that streams will say so.
        """
        if self.is_settled:
            return 0.0
        return float("inf") if self.streams else LOOK

    def knows(self, call: str) -> bool:
        """Say whether a call is one of it."""
        return any(known.call == call for known in self.calls)

    def add(self, called: Called) -> None:
        """Take in one of its calls, which may be told twice.

        Two that go by one name cannot be told apart, so neither counts.
        """
        known = next((known for known in self.calls if known.call == called.call), None)
        if known is None:
            self.calls.append(called)
        elif (known.tool, known.arguments) != (called.tool, called.arguments):
            self.is_abandoned = True


class Turns:
    """The messages of the model so far, as the stream shows them."""

    def __init__(self) -> None:
        self._turn_of: dict[str, ModelTurn] = {}
        self._current: ModelTurn | None = None
        self.count = 0

    def hear(self, event: Event) -> None:
        """Take in what the stream tells."""
        match event:
            case Began(message=message):
                self._begin(message, streams=True)
            case Called():
                self._add(event, self._turn_for(event))
            case Stopped() if self._current and self._current.streams:
                self._current.is_stopped = True
            case _:
                pass

    def complete(self, turn: ModelTurn, calls: Sequence[Called]) -> None:
        """Take in all calls of a message that did not stream, unless the stream showed others."""
        if {known.call for known in turn.calls} <= {called.call for called in calls}:
            for called in calls:
                self._add(called, turn)
            turn.is_stopped = True

    def turn_of(self, call: str) -> ModelTurn | None:
        """Return the message that a call stands in, if the stream has shown it."""
        return self._turn_of.get(call)

    def _begin(self, message: str, *, streams: bool) -> ModelTurn:
        if self._current and not self._current.is_stopped:
            self._current.is_abandoned = True
        # A message begins when all calls before it have ended. Their names may come again: some
        # servers count from one in each.
        self._turn_of = {call: turn for call, turn in self._turn_of.items() if turn.is_abandoned}
        self._current = ModelTurn(message, streams=streams)
        self.count += 1
        return self._current

    def _turn_for(self, called: Called) -> ModelTurn:
        turn = self._current
        if turn is None or (called.is_whole and (turn.streams or turn.message != called.message)):
            return self._begin(called.message, streams=not called.is_whole)
        # It comes too late: the others were judged without it
        if turn.is_settled and not turn.knows(called.call):
            turn = ModelTurn(called.message, streams=False)
            turn.is_abandoned = True
        return turn

    def _add(self, called: Called, turn: ModelTurn) -> None:
        turn.add(called)
        self._turn_of[called.call] = turn


_BEFORE_A_CALL = "PreToolUse"


class HookWatch:
    """What the stream reports about hooks.

    Of several that change a call, the one that ends last is right: that must be ours.
    """

    def __init__(self) -> None:
        self._running: set[str] = set()
        self._unseen: list[str] = []  # our answers whose hooks have not ended yet
        self._are_on = False
        self.are_off = False  # the session has begun, and nothing was heard of ours

    def hear(self, event: Event) -> None:
        """Take in what the stream tells."""
        match event:
            case HookBegan(id=name, moment=moment) if moment == _BEFORE_A_CALL:
                self._running.add(name)
            case HookEnded():
                self._end(event)
            case Starts(state="started") | Init() | Began() | Called():
                self.are_off = not self._are_on
            case _:
                pass

    def _end(self, ended: HookEnded) -> None:
        self._running.discard(ended.id)
        self._are_on = self._are_on or LISTENS in ended.complained
        if ended.said.strip() in self._unseen:
            self._unseen.remove(ended.said.strip())

    def answer(self, answer: str) -> None:
        """Take note of what one of ours was told to say."""
        self._unseen.append(answer)

    def others_run(self, *, waiting: int) -> bool:
        """Say whether hooks of others run, while so many of ours wait."""
        return len(self._running) > waiting + len(self._unseen)
