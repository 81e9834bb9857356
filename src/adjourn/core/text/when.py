"""Moments and spans, as people and machines read them."""

from datetime import UTC, datetime

_SPANS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"))


def stamp(moment: int) -> str:
    """Return an ISO 8601 time in UTC, to the millisecond."""
    return (
        datetime.fromtimestamp(moment / 1000, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def span(milliseconds: int) -> str:
    """Return a length of time with its two largest units: 3d 4h, 2m 5s, 0.4s."""
    rest = max(milliseconds, 0)
    if rest < 10_000:  # noqa: PLR2004 -- ten seconds
        return f"{rest / 1000:.1f}s"
    parts: list[str] = []
    for size, unit in _SPANS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])


def milliseconds(text: str) -> int:
    """Read a length of time such as 90s, 15m, 8h or 2d."""
    sizes = {unit: size for size, unit in _SPANS}
    number, unit = text[:-1], text[-1:]
    if unit not in sizes or not (number.isascii() and number.isdigit()):
        raise ValueError(text)
    return int(number) * sizes[unit]


def moment_of(text: str) -> int:
    """Read a moment such as 2026-11-17T09:00, in local time unless it has a zone."""
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except OverflowError as error:
        raise ValueError(text) from error


def ago(moment: int, *, now: int) -> str:
    """Return how long ago something was; a clock that went back makes it 'now', never negative."""
    return f"{span(now - moment)} ago" if now - moment >= 1000 else "now"  # noqa: PLR2004 -- one second


def moment(text: str) -> int:
    """Read a time that `stamp` wrote."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)
