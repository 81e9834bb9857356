"""Remembers on this machine how far a database was, so that an older copy in its place is noticed."""

import fcntl
import os
import time
from contextlib import suppress

import msgspec

from adjourn.core.errors import StoreProblem

_MOMENT = 1.0  # seconds


class _Kept(msgspec.Struct, frozen=True):
    place: int
    seal: bytes


class Seen:
    """The newest place of the trail that anybody here has seen, and the seal that was there."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._kept_at = float("-inf")
        self._newest: _Kept | None = self._read()
        self._kept: _Kept | None = self._newest
        self._synced: _Kept | None = None

    def _read(self) -> _Kept | None:
        if self._path is None:
            return None
        try:
            with open(self._path, "rb") as file:
                return msgspec.json.decode(file.read(), type=_Kept)
        except (OSError, msgspec.DecodeError):
            return None

    @property
    def place(self) -> int:
        """The newest place; 0 where nothing was seen yet."""
        return self._newest.place if self._newest else 0

    def require(self, seal: bytes | None, *, name: str) -> None:
        """Refuse a database that has something else, or nothing, where this machine has seen the newest seal."""
        if self._newest is None or self._newest.seal == seal:
            return
        has = "nothing there" if seal is None else "something else there"
        raise StoreProblem(
            f"{name} is an older copy, or another database: this machine has seen place {self.place} of its trail, "
            f"and it has {has}. What ran since could run a second time, so nothing is done with it",
            way_out=f"name the newest copy; or, if this one is to count from now on, say on every machine: {self._forgetting}",
        )

    @property
    def _forgetting(self) -> str:
        return (
            f"rm {self._path}; then start its workers anew"
            if self._path
            else "restart what uses it"
        )

    def note(self, place: int | None, seal: bytes | None) -> None:
        """Remember how far the database is."""
        if place is not None and seal is not None and place > self.place:
            self._newest = _Kept(place, seal)

    def refresh(self) -> None:
        """Learn what other processes of this machine have seen meanwhile."""
        kept = self._read()
        if kept and kept.place > self.place:
            self._newest = self._kept = kept

    def keep_soon(self) -> None:
        """Write it down unless that was done a moment ago.

        Whoever ends, or looks again, makes up for it.
        """
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
                f"{self._path} cannot be written: {error.strerror}. This machine must remember how far {name} is "
                "before it starts anything",
                way_out="free some space, or set XDG_STATE_HOME to a directory that you can write to",
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
