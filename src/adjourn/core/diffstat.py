"""What a task changed in its workspace: file by file, in lines."""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from adjourn.core.text.render import visible, width

SHOWN = 50
_BAR = 24
_WIDEST = 60


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """How one file changed; lines are counted where it is text and not very large."""

    path: str
    what: Literal["added", "changed", "removed"]
    lines_added: int | None = None
    lines_removed: int | None = None


class Diffstat(msgspec.Struct, frozen=True, kw_only=True):
    """What changed between two looks at a workspace."""

    files: tuple[FileChange, ...] = ()
    is_whole: bool = True

    @property
    def summary(self) -> str:
        """All of it in one sentence."""
        if not self.files:
            return "no file changed"
        added = sum(change.lines_added or 0 for change in self.files)
        removed = sum(change.lines_removed or 0 for change in self.files)
        files, more, fewer = len(self.files), _count(added, "line"), _count(removed, "line")
        return f"{_count(files, 'file')} changed, {more} added, {fewer} removed"


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """What a task had changed when one of its runs ended."""

    run: int
    stat: Diffstat


def diffstat_lines(stat: Diffstat, *, most: int = SHOWN) -> Iterator[str]:
    """Show what changed, a line for each file, and all of it in the last."""
    shown = stat.files[:most]
    names = [visible(change.path) for change in shown]
    room = min(max(map(width, names), default=0), _WIDEST)
    largest = max((_size(change) for change in shown), default=0)
    for name, change in zip(names, shown, strict=True):
        yield f"{name}{' ' * (room - width(name))} | {_told(change, largest)}"
    if len(stat.files) > most:
        yield f"… {len(stat.files) - most:,} more files"
    yield (
        stat.summary if stat.is_whole else f"{stat.summary}; there is more than a short look covers"
    )


def _told(change: FileChange, largest: int) -> str:
    note = "" if change.what == "changed" else f"  {change.what}"
    if change.lines_added is None or change.lines_removed is None:
        return f"not text{note}"
    return f"{_size(change):>5,} {_bar(change.lines_added, change.lines_removed, largest)}{note}"


def _bar(added: int, removed: int, largest: int) -> str:
    scale = min(1.0, _BAR / max(largest, 1))
    return "+" * _scaled(added, scale) + "-" * _scaled(removed, scale)


def _scaled(count: int, scale: float) -> int:
    return max(1, round(count * scale)) if count else 0


def _size(change: FileChange) -> int:
    return (change.lines_added or 0) + (change.lines_removed or 0)


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def by_path(changes: Sequence[FileChange]) -> tuple[FileChange, ...]:
    """Put changes in order."""
    return tuple(sorted(changes, key=lambda change: change.path))
