"""What one notifier was told, what it still has to be told, and when to try again."""

from typing import Self

import msgspec

from adjourn.core.backoff import backoff
from adjourn.core.task import Milliseconds

FIRST_PAUSE: Milliseconds = 5_000
LONGEST_PAUSE: Milliseconds = 3_600_000
PATIENCE: Milliseconds = 86_400_000  # from the first try of an event to the last
MOST_PARKED = 1_000
_SEEMS_AWAY = 3  # so many failures in a row are the receiver's, not the event's
_REMEMBERED = 100


class Parked(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """An event that could not be delivered, or that must not overtake one of the same task."""

    place: int
    task_id: str
    tries: int = 0
    since: Milliseconds = 0
    next_at: Milliseconds = 0


class GivenUp(msgspec.Struct, frozen=True, kw_only=True):
    """An event that was never delivered."""

    place: int
    task_id: str
    at: Milliseconds
    why: str


class Outbox(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far one notifier is in the trail.

    All up to the cursor was told or is parked, all beyond it is still to come.
    """

    cursor: int
    parked: tuple[Parked, ...] = ()
    failures: int = 0
    not_before: Milliseconds = 0
    last_error: str | None = None
    count_delivered: int = 0
    count_given_up: int = 0
    given_up: tuple[GivenUp, ...] = ()

    # --- what to do next --------------------------------------------------------------------------

    def due(self, *, now: Milliseconds) -> Parked | None:
        """Return the oldest parked event to try now: of each task only the first is considered."""
        first = {parked.task_id: parked for parked in reversed(self.parked)}
        fitting = [parked for parked in first.values() if not is_ahead(parked.next_at, now=now)]
        return min(fitting, key=lambda parked: parked.place, default=None)

    def holds_back(self, task_id: str) -> bool:
        """Say whether an earlier event of the task is parked: later ones must not overtake it."""
        return any(parked.task_id == task_id for parked in self.parked)

    @property
    def is_full(self) -> bool:
        """Whether so much is parked that the rest should wait in the trail."""
        return len(self.parked) >= MOST_PARKED

    def next_at(self, *, now: Milliseconds) -> Milliseconds | None:
        """Return when to try again, or None if only a new event is a reason to."""
        first = {parked.task_id: parked.next_at for parked in reversed(self.parked)}
        not_before = self.not_before if is_ahead(self.not_before, now=now) else 0
        moments = [
            max(moment if is_ahead(moment, now=now) else 0, not_before) for moment in first.values()
        ]
        return min(moments, default=not_before or None)

    # --- what has happened ------------------------------------------------------------------------

    def past(self, place: int) -> Self:
        """Leave an event behind that is not to be told, or is told already."""
        return self._with(cursor=max(self.cursor, place), parked=self._without(place))

    def behind(self, place: int, *, task_id: str) -> Self:
        """Park an event behind another of its task."""
        return self._with(cursor=place, parked=(*self.parked, Parked(place=place, task_id=task_id)))

    def delivered(self, place: int) -> Self:
        """Go on after an event that the receiver took."""
        return msgspec.structs.replace(
            self.past(place),
            failures=0,
            not_before=0,
            last_error=None,
            count_delivered=self.count_delivered + 1,
        )

    def failed(self, place: int, *, task_id: str, now: Milliseconds, why: str) -> Self:
        """Park an event that the receiver did not take, or give it up.

        Leave a receiver alone that takes none at all.
        """
        before = next(
            (parked for parked in self.parked if parked.place == place),
            Parked(place=place, task_id=task_id),
        )
        since = before.since or now
        others = self._without(place)
        box = self._with(cursor=max(self.cursor, place), **self._discouraged(now=now, why=why))
        if now - since >= PATIENCE:
            given_up = (*self.given_up, GivenUp(place=place, task_id=task_id, at=now, why=why))[
                -_REMEMBERED:
            ]
            return msgspec.structs.replace(
                box, parked=others, given_up=given_up, count_given_up=self.count_given_up + 1
            )
        tries = before.tries + 1
        again = msgspec.structs.replace(
            before, tries=tries, since=since, next_at=now + pause_after(tries)
        )
        return msgspec.structs.replace(
            box, parked=tuple(sorted((*others, again), key=lambda parked: parked.place))
        )

    def _discouraged(self, *, now: Milliseconds, why: str) -> dict[str, object]:
        failures = self.failures + 1
        in_a_row = failures - _SEEMS_AWAY + 1
        not_before = now + pause_after(in_a_row) if in_a_row > 0 else self.not_before
        return {"failures": failures, "not_before": not_before, "last_error": why}

    def without_pauses(self) -> Self:
        """Try everything at once: a person says so."""
        parked = tuple(msgspec.structs.replace(each, next_at=0) for each in self.parked)
        return self._with(parked=parked, not_before=0, failures=0)

    def _without(self, place: int) -> tuple[Parked, ...]:
        return tuple(parked for parked in self.parked if parked.place != place)

    def _with(self, **changes: object) -> Self:
        return msgspec.structs.replace(self, **changes)


def is_ahead(moment: Milliseconds, *, now: Milliseconds) -> bool:
    """Say whether a pause lasts until a moment.

    None is longer than the longest: the clock was set back since it began.
    """
    return now < moment <= now + LONGEST_PAUSE


def pause_after(tries: int) -> Milliseconds:
    """Return how long to wait after so many tries.

    5 s, then twice as long each time, at most an hour.
    """
    return int(backoff(tries, first=FIRST_PAUSE, longest=LONGEST_PAUSE))
