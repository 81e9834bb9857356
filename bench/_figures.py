"""Prints figures as an aligned table and says which goals were missed."""

from argparse import ArgumentParser
from collections.abc import Sequence
from typing import NamedTuple


def words(description: str | None) -> ArgumentParser:
    """Return the parser of a bench's command line, with what all of them take."""
    parser = ArgumentParser(description=description)
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="show the parts as well, where there is something to part",
    )
    return parser


class Figure(NamedTuple):
    """One figure; `value` is what the goal limits, in the goal's unit."""

    what: str
    measured: str
    against: str
    value: float
    goal: float
    unit: str = "x"
    below: bool = False  # the goal itself is too much already
    at_least: bool = False  # more is better

    @property
    def is_reached(self) -> bool:
        """Whether the goal is reached."""
        if self.at_least:
            return self.value >= self.goal
        return self.value < self.goal if self.below else self.value <= self.goal

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        sign = "≥" if self.at_least else "<" if self.below else "≤"
        verdict = "ok" if self.is_reached else "MISSED"
        return (
            self.what,
            self.measured,
            self.against,
            f"{number(self.value)}{self.unit}",
            f"{sign} {number(self.goal)}{self.unit}",
            verdict,
        )


def report(title: str, figures: Sequence[Figure]) -> int:
    """Print the table; return 1 if a goal was missed, else 0."""
    print(f"\n{title}")
    show(("", "measured", "against", "figure", "goal", ""), [figure.cells() for figure in figures])
    return 0 if all(figure.is_reached for figure in figures) else 1


def show(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print an aligned table: the first column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    for row in (heads, *rows):
        first = row[0].ljust(widths[0])
        print(
            "  ".join(
                [
                    first,
                    *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
                ]
            ).rstrip()
        )


def number(value: float) -> str:
    """Write a number with as many digits as it deserves."""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.2f}"


def ms(seconds: float) -> str:
    """Write a time in milliseconds."""
    return f"{seconds * 1000:.1f} ms" if seconds < 10 else f"{seconds * 1000:,.0f} ms"
