"""Remembers on this machine how far a database was, so that an older copy in its place is noticed.

A database that lacks what was seen can be accepted as it is (`adjourn store accept`). That begins a
new era of it, whose id the database keeps. What one machine accepted is accepted for all:
everything that may have run was made uncertain in the database. So a machine whose newest place is
of an earlier era goes on.
"""

import fcntl
import os
import time
from contextlib import suppress

import msgspec

from adjourn.core.errors import StoreOlder, StoreProblem
from adjourn.core.text.render import command_line

_MOMENT = 1.0  # seconds


class SeenMark(msgspec.Struct, frozen=True, omit_defaults=True):
    """A place of the trail, the seal that was there, and the era in which it was seen."""

    place: int
    seal: bytes
    era: str = ""
    eras: int = 0  # how many eras had begun by then


def decode_eras(body: bytes | None) -> tuple[str, ...]:
    """Return the ids of the eras that began with `store accept`, the newest last."""
    return msgspec.json.decode(body, type=tuple[str, ...]) if body else ()


class NewestSeen:
    """The newest place of the trail that anybody here has seen, and the seal that was there."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._kept_at = float("-inf")
        self._newest: SeenMark | None = self._read()
        self._kept: SeenMark | None = self._newest
        self._synced: SeenMark | None = None
        self._accepted: bytes | None = None  # what the database said last of its eras
        self._eras: tuple[str, ...] = ()

    def _read(self) -> SeenMark | None:
        if self._path is None:
            return None
        try:
            with open(self._path, "rb") as file:
                return msgspec.json.decode(file.read(), type=SeenMark)
        except (OSError, msgspec.DecodeError):
            return None

    @property
    def place(self) -> int:
        """The newest place; 0 where nothing was seen yet."""
        return self._newest.place if self._newest else 0

    @property
    def newest(self) -> SeenMark | None:
        """The newest place, its seal and its era."""
        return self._newest

    @property
    def eras(self) -> tuple[str, ...]:
        """The eras of the database, as far as it was looked at."""
        return self._eras

    def require(self, seal: bytes | None, accepted: bytes | None, *, name: str) -> None:
        """Refuse a database without the newest seal that this machine has seen.

        If it was accepted since then, on whichever machine, it counts as it is from now on.
        """
        self._learn_eras(accepted)
        newest = self._newest
        if newest is None or newest.place == 0 or newest.seal == seal:
            return
        if newest.era in ("", *self._eras) and newest.era != self._era:
            self._newest = SeenMark(0, b"", self._era, len(self._eras))
            return
        has = "nothing there" if seal is None else "something else there"
        raise StoreOlder(
            f"{name} is an older copy, or another database: "
            f"this machine has seen place {newest.place} of its trail, and it has {has}. "
            "What ran since then could run a second time. "
            "It can be looked at; nothing in it is started or decided",
            way_out=self._accepting,
        )

    @property
    def _accepting(self) -> str:
        place = ["--store", os.path.dirname(self._path)] if self._path else []
        return command_line(["adjourn", "store", "accept", *place])

    def _learn_eras(self, accepted: bytes | None) -> None:
        if accepted != self._accepted:
            self._accepted, self._eras = accepted, decode_eras(accepted)

    @property
    def _era(self) -> str:
        return self._eras[-1] if self._eras else ""

    def next_eras(self, era: str) -> tuple[str, ...]:
        """Return the eras of a database that is accepted.

        The last one seen here may be missing in an older copy.
        """
        last = self._newest.era if self._newest else ""
        known = self._eras if last in ("", *self._eras) else (*self._eras, last)
        return (*known, era)

    def note(self, place: int | None, seal: bytes | None) -> None:
        """Remember how far the database is, in the era that was read last."""
        is_later = (
            self._newest is None
            or self._newest.era != self._era
            or (place or 0) > self._newest.place
        )
        if place is not None and seal is not None and is_later:
            self._newest = SeenMark(place, seal, self._era, len(self._eras))

    def note_look(self, place: int | None, seal: bytes | None, accepted: bytes | None) -> None:
        """Remember how far a database is that has all that was seen here, and in which era."""
        self._learn_eras(accepted)
        self.note(place, seal)

    def refresh(self) -> None:
        """Learn what other processes of this machine have seen meanwhile."""
        kept = self._read()
        if kept and _is_later(kept, self._newest):
            self._newest = self._kept = kept

    def keep_soon(self) -> None:
        """Write down what was only looked at, unless that was done a moment ago."""
        if time.monotonic() - self._kept_at > _MOMENT:
            self.keep()

    def keep(self) -> None:
        """Write it down, perhaps only in memory and perhaps not at all.

        For what was only looked at that is enough.
        """
        with suppress(OSError):
            self._write(synced=False)

    def keep_synced(self, *, name: str) -> None:
        """Write it down, on disk, before something is done that must not be done again.

        Or raise StoreProblem.
        """
        try:
            self._write(synced=True)
        except OSError as error:
            raise StoreProblem(
                f"{self._path} cannot be written: {error.strerror}. "
                f"This machine must remember how far {name} is "
                "before it starts anything",
                way_out=(
                    "free some space, or set XDG_STATE_HOME to a directory that you can write to"
                ),
            ) from error

    def _write(self, *, synced: bool) -> None:
        """Put the newest place that any process of this machine knows into the file.

        Several processes write it. Each takes a lock on the directory and reads the file first, so
        that a process that is behind never puts an older place there.
        """
        if self._path is None or self._newest is None:
            return
        if self._newest is (self._synced if synced else self._kept):
            return
        self._kept_at = time.monotonic()
        draft = f"{self._path}.{os.getpid()}"
        folder = os.open(os.path.dirname(self._path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            self.refresh()
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(draft, flags, 0o600), "wb") as file:
                file.write(msgspec.json.encode(self._newest))
                if synced:
                    file.flush()
                    os.fsync(file.fileno())
            os.rename(draft, self._path)
            if synced:
                os.fsync(folder)
                self._synced = self._newest
            self._kept = self._newest
        finally:
            os.close(folder)


def _is_later(kept: SeenMark, ours: SeenMark | None) -> bool:
    """Say whether a mark that another process wrote stands for more than ours.

    Eras come before places.
    """
    if ours is None or (kept.eras == ours.eras and kept.era != ours.era):
        return True
    return (kept.eras, kept.place) > (ours.eras, ours.place)
