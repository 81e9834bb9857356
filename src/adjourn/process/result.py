"""Writes down what became of a child: whole or not at all, even when the disk has filled up meanwhile."""

import errno
import os

import msgspec

from adjourn.process.shim import RESULT, ShimResult

_DRAFT = "result.tmp"
_ROOM = 16384  # bytes; any result fits


class ResultFile:
    """The place of one result, with room on disk from the start."""

    def __init__(self, run_dir: str) -> None:
        self._folder = os.open(run_dir, os.O_RDONLY | os.O_DIRECTORY)
        if os.path.lexists(f"{run_dir}/{RESULT}"):
            raise FileExistsError(errno.EEXIST, "this run has its result already")
        self._draft = os.open(_DRAFT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600, dir_fd=self._folder)
        os.posix_fallocate(self._draft, 0, _ROOM)

    def write(self, result: ShimResult) -> None:
        """Have the result on disk; after an error it may be tried again."""
        content = msgspec.json.encode(result)
        os.pwrite(self._draft, content, 0)
        os.ftruncate(self._draft, len(content))
        os.fsync(self._draft)
        os.rename(_DRAFT, RESULT, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        os.fsync(self._folder)
