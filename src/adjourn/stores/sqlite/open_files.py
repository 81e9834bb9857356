"""Checks that the files behind an open database are still under their names, and its log is whole.

SQLite does not notice that its write-ahead log was removed or replaced: it goes on writing into a
file that nobody finds, or behind the end of an empty one, which the next process that opens the
database ignores. So the descriptors that SQLite holds are compared with the names, and the head of
the log with the index that all connections share.

Nothing is opened here: to close a second descriptor of the index would drop the locks that SQLite
holds on it.
"""

import os
import struct

from adjourn.stores.sqlite import directory

# Of the wal-index: is it there, the page size, the last frame, the salts
_INDEX = struct.Struct("=12x B x H I 4x 8x 8s")
_HEAD = struct.Struct(">I 12x 8s")  # of the log: what it is, the salts
_MAGIC = (0x377F0682, 0x377F0683)
_HEAD_SIZE = 32
_FRAME_HEAD = 24
_MOST_DESCRIPTORS = 65_536


class OpenFiles:
    """The database, its log and the log's index, as this process has them open."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._known = {path: directory.identity(path)}
        self._log, self._index = -1, -1

    def find_log(self) -> None:
        """Learn which files SQLite has open; a transaction is open, so it has."""
        found = _descriptors()
        names = [f"{self._path}-wal", f"{self._path}-shm"]
        for name in names:
            identity = directory.identity(name)
            # The one that is open is another file, if it was removed, renamed or replaced.
            self._known[name] = identity if identity in found else None
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
            head = os.pread(self._log, _HEAD_SIZE, 0)
            size = os.fstat(self._log).st_size
        except OSError:
            return False
        if len(index) < _INDEX.size:
            return False
        is_there, page, frames, salts = _INDEX.unpack(index)
        if not is_there:
            return False
        if frames == 0:
            return True  # all of it is in the database
        if len(head) < _HEAD_SIZE:
            return False
        magic, own = _HEAD.unpack_from(head)
        page_size = 65536 if page == 1 else page
        return (
            magic in _MAGIC
            and own == salts
            and size >= _HEAD_SIZE + frames * (_FRAME_HEAD + page_size)
        )


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
