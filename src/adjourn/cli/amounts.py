"""What the value of an option may be: amounts, lengths of time and moments."""

from typing import Any

import click

from adjourn.core.when import milliseconds, moment_of


class Amount(click.FloatRange):
    """A number from 0 on; `nan` and `inf` are words that a float takes and nobody means."""

    def __init__(self, most: float | None = None) -> None:
        super().__init__(0, most)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        number: float = super().convert(value, param, ctx)
        if number - number != 0:
            self.fail(f"{value!r} is not a number that one can count to.", param, ctx)
        return number


class Duration(click.ParamType[int]):
    """A length of time: 90s, 15m, 8h, 2d."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return milliseconds."""
        if isinstance(value, int):
            return value
        try:
            return milliseconds(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a time such as 90s, 15m, 8h or 2d", param, ctx)


DURATION = Duration()


class Since(click.ParamType[int]):
    """A moment: so long ago (90s, 15m, 8h, 2d), or a date or time as ISO 8601 has them; without a zone, UTC."""

    name = "when"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return milliseconds since 1970."""
        from datetime import UTC, datetime

        from adjourn.wiring import now

        if isinstance(value, int):
            return value
        try:
            return now() - milliseconds(str(value))
        except ValueError:
            pass
        try:
            moment = datetime.fromisoformat(str(value))
            return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is neither a time such as 8h or 2d nor a date such as 2026-01-31", param, ctx)


SINCE = Since()


class Moment(click.ParamType[int]):
    """A moment: 2026-11-17T09:00, in local time unless it ends in Z or an offset."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return milliseconds since 1970."""
        if isinstance(value, int):
            return value
        try:
            return moment_of(str(value))
        except (ValueError, OSError):
            self.fail(f"{value!r} is not a moment such as 2026-11-17T09:00", param, ctx)


MOMENT = Moment()
