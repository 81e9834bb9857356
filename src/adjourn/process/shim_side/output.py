"""Takes what a child prints from a pipe to a file: the head, and if it was too much, the tail."""

import contextlib
import errno
import fcntl
import mmap
import os
import struct
import termios

import msgspec

from adjourn.process.shim import ShimResult
from adjourn.system.files import RESULT

TAIL = 1024 * 1024
_PIPE_SIZE = 1024 * 1024  # the most that Linux gives to anybody


class Output:
    """One stream of a child, kept in one file.

    The file's head takes bytes as they come, up to the cap or until the disk refuses. From then on
    a ring in memory keeps the newest ones, and `finish` puts them after a line that says how many
    are missing.
    """

    def __init__(self, path: str, *, cap: int) -> None:
        self._file = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
        self._pipe, self.child_end = os.pipe()
        os.set_blocking(self._pipe, False)
        with contextlib.suppress(OSError):  # many big pipes of one user: then a small one must do
            fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
        self._room = cap
        self._head = 0
        self._tail = 0
        self._ring = memoryview(mmap.mmap(-1, TAIL))  # memory only for what is used of it
        self._next = 0
        self.total = 0

    @property
    def left_out(self) -> int:
        """Return how many of the child's bytes the file does not have."""
        return self.total - self._head - self._tail

    def fileno(self) -> int:
        """Return the end of the pipe to poll."""
        return self._pipe

    def pump(self, most: int = TAIL) -> int:
        """Take at most `most` bytes from the pipe, waiting for none.

        0 means that no one can write to it any more.
        """
        window = self._ring[self._next : self._next + most]
        if self._room:
            window = self._ring[: min(self._room, most)]
        count = os.readv(self._pipe, [window])
        self.total += count
        if self._room:
            self._to_head(window[:count])
        else:
            self._kept(count)
        return count

    def drain(self) -> None:
        """Take what is in the pipe now, and no more.

        A stranger may hold its other end and write for ever.
        """
        (waiting,) = struct.unpack("i", fcntl.ioctl(self._pipe, termios.FIONREAD, bytes(4)))
        with contextlib.suppress(BlockingIOError):
            while waiting > 0 and (count := self.pump(waiting)):
                waiting -= count

    def finish(self) -> None:
        """Write the tail and have the file on disk, as far as the disk allows."""
        os.close(self._pipe)
        if self._tail:
            self._write_tail()
        if self._head or self._tail:
            # How the child ended matters more than its output
            with contextlib.suppress(OSError):
                os.fsync(self._file)
        os.close(self._file)

    def _to_head(self, piece: memoryview) -> None:
        written = _write(self._file, piece)
        self._head += written
        self._room -= written
        if written < len(piece):
            self._room = 0
            rest = bytes(piece[written:])
            self._ring[: len(rest)] = rest
            self._kept(len(rest))

    def _kept(self, count: int) -> None:
        self._next = (self._next + count) % TAIL
        self._tail = min(self._tail + count, TAIL)

    def _write_tail(self) -> None:
        gap = b"\n[adjourn: %d bytes left out here]\n" % self.left_out if self.left_out else b""
        oldest_first = [self._ring[self._next : self._tail], self._ring[: self._next]]
        for piece in (memoryview(gap), *oldest_first):
            if _write(self._file, piece) < len(piece):
                self._tail = 0
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, self._head)
                return


def _write(fd: int, piece: memoryview) -> int:
    """Write the whole piece, or as much as the disk takes; return how much that was."""
    written = 0
    with contextlib.suppress(OSError):
        while written < len(piece):
            written += os.write(fd, piece[written:])
    return written


_DRAFT = "result.tmp"
_ROOM = 16384  # bytes; any result fits


class ResultFile:
    """The place of one result, with room on disk from the start."""

    def __init__(self, run_dir: str) -> None:
        self._folder = os.open(run_dir, os.O_RDONLY | os.O_DIRECTORY)
        if os.path.lexists(f"{run_dir}/{RESULT}"):
            raise FileExistsError(errno.EEXIST, "this run has its result already")
        self._draft = os.open(
            _DRAFT,
            os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW,
            0o600,
            dir_fd=self._folder,
        )
        os.posix_fallocate(self._draft, 0, _ROOM)

    def write(self, result: ShimResult) -> None:
        """Have the result on disk; after an error it may be tried again."""
        content = msgspec.json.encode(result)
        os.pwrite(self._draft, content, 0)
        os.ftruncate(self._draft, len(content))
        os.fsync(self._draft)
        os.rename(_DRAFT, RESULT, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        os.fsync(self._folder)
