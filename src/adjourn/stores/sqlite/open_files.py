"""Checks that the files behind an open database are still under their names, and its log is whole.

SQLite does not notice that its write-ahead log was removed or replaced: it goes on writing into a
file that nobody finds, or behind the end of an empty one, which the next process that opens the
database ignores. So the descriptors that SQLite holds are compared with the names, and the head of
the log with the index that all connections share.

Nothing is opened here: to close a second descriptor of the database or of the index would drop the
locks that SQLite holds on it.
"""

import os
import struct
from typing import NamedTuple

from adjourn.stores.sqlite import directory

# Of the wal-index: is it there, the page size, the last frame, the salts, and how many frames are
# in the database already
_INDEX = struct.Struct("=12x B x H I 4x 8x 8s 56x I")
_HEAD = struct.Struct(">I 12x 8s")  # of the log: what it is, the salts
_MAGIC = (0x377F0682, 0x377F0683)
_LOG_HEAD = 32
_FRAME_HEAD = 24
HEAD_SIZE = 100  # bytes: what the database is, and a counter of changes
_MOST_DESCRIPTORS = 65_536


class FileState(NamedTuple):
    """What the database file is like at one moment."""

    inode: int
    size: int
    changed_at: int  # in nanoseconds
    salts: bytes  # of its log
    backfilled: int  # frames of the log that are in the file
    head: bytes

    @property
    def file(self) -> tuple[int, int, int, bytes]:
        """What only a write into the file changes."""
        return self.inode, self.size, self.changed_at, self.head

    @property
    def checkpoint(self) -> tuple[bytes, int]:
        """What a checkpoint changes, or a log that begins again."""
        return self.salts, self.backfilled


class OpenFiles:
    """The database, its log and the log's index, as this process has them open."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._known = {path: directory.identity(path)}
        self._database, self._log, self._index = -1, -1, -1
        self.frames = 0  # of the log, when it was last compared with its index

    def find_log(self) -> None:
        """Learn which files SQLite has open; a transaction is open, so it has."""
        found = _descriptors()
        names = [f"{self._path}-wal", f"{self._path}-shm"]
        for name in names:
            identity = directory.identity(name)
            # The one that is open is another file, if it was removed, renamed or replaced.
            self._known[name] = identity if identity in found else None
        self._database = found.get(self._known[self._path], -1)
        self._log, self._index = (found.get(self._known[name], -1) for name in names)

    @property
    def has_log(self) -> bool:
        """Whether the log was looked for."""
        return len(self._known) > 1

    def missing(self) -> str | None:
        """Return the name of a file that is not the one any more that is open, if there is one."""
        for name, known in self._known.items():
            if known is None or directory.identity(name) != known:
                return name
        return None

    def missing_or_cut(self) -> str | None:
        """Return what `missing` does, or the name of a log that lacks what the index counts on.

        That is certain only while nobody else can write: inside a transaction, or right after it.
        """
        missing = self.missing()
        if missing or self._agree():
            return missing
        # Another connection of this process may have closed the descriptor that was found first
        self.find_log()
        return None if self._agree() else f"{self._path}-wal"

    def _agree(self) -> bool:
        try:
            index = os.pread(self._index, _INDEX.size, 0)
            head = os.pread(self._log, _LOG_HEAD, 0)
            size = os.fstat(self._log).st_size
        except OSError:
            return False
        if len(index) < _INDEX.size:
            return False
        is_there, page, self.frames, salts, _ = _INDEX.unpack(index)
        if not is_there:
            return False
        if self.frames == 0:
            return True  # all of it is in the database
        if len(head) < _LOG_HEAD:
            return False
        magic, own = _HEAD.unpack_from(head)
        return (
            magic in _MAGIC
            and own == salts
            and size >= _LOG_HEAD + self.frames * (_FRAME_HEAD + _page_size(page))
        )

    # --- the database file ------------------------------------------------------------------------

    def database_stat(self) -> tuple[int, int, int]:
        """Return which file the database is, its size, and when it was written last."""
        found = os.stat(self._path)
        return found.st_ino, found.st_size, found.st_mtime_ns

    def database_state(self) -> FileState:
        """Return what the database file is like now; a transaction was open, so SQLite has it."""
        try:
            found = os.fstat(self._database)
        except OSError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self._known[self._path]:
            # Another connection of this process has closed the descriptor that was found first
            self.find_log()
            found = os.fstat(self._database)
        *_, salts, backfilled = _INDEX.unpack(os.pread(self._index, _INDEX.size, 0))
        head = os.pread(self._database, HEAD_SIZE, 0).ljust(HEAD_SIZE, b"\0")
        return FileState(found.st_ino, found.st_size, found.st_mtime_ns, salts, backfilled, head)

    def content(self, page: int) -> bytes:
        """Return a page as it is in the database file."""
        _, size, *_ = _INDEX.unpack(os.pread(self._index, _INDEX.size, 0))
        return os.pread(self._database, _page_size(size), (page - 1) * _page_size(size))

    def logged(self, page: int) -> bytes | None:
        """Return a page as it is in the log, if it is there."""
        _, size, frames, *_ = _INDEX.unpack(os.pread(self._index, _INDEX.size, 0))
        length = _FRAME_HEAD + _page_size(size)
        for begin in range(_LOG_HEAD + (frames - 1) * length, 0, -length):
            if os.pread(self._log, 4, begin) == page.to_bytes(4, "big"):
                return os.pread(self._log, _page_size(size), begin + _FRAME_HEAD)
        return None

    def newest_in_log(self) -> tuple[int, bytes]:
        """Return the last page that was written into the log: its number and its content."""
        _, size, frames, *_ = _INDEX.unpack(os.pread(self._index, _INDEX.size, 0))
        begin = _LOG_HEAD + (frames - 1) * (_FRAME_HEAD + _page_size(size))
        frame = os.pread(self._log, _FRAME_HEAD + _page_size(size), begin)
        return int.from_bytes(frame[:4], "big"), frame[_FRAME_HEAD:]


def _page_size(written: int) -> int:
    return 65536 if written == 1 else written


def _descriptors() -> dict[tuple[int, int] | None, int]:
    """Return the descriptors of this process by the files that they lead to."""
    try:
        numbers = sorted(map(int, os.listdir("/proc/self/fd")))
    except FileNotFoundError:
        # No /proc is mounted here: whether this may decide at all is the controller's question
        numbers = list(range(min(os.sysconf("SC_OPEN_MAX"), _MOST_DESCRIPTORS)))
    found: dict[tuple[int, int] | None, int] = {}
    for fd in numbers:
        try:
            about = os.fstat(fd)
        except OSError:
            continue  # not open; or it is the descriptor that listed them
        found[about.st_dev, about.st_ino] = fd
    return found
