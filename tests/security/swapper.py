"""An attacker: watches a file with inotify, and swaps it at the event of its choice.

It runs as a process of its own.

Orders come on stdin, one per line: the kind of swap, the event's number, the file, the other file,
and perhaps a file to wait for. It answers `armed`, then `swapped` or `idle` when `stop` comes. It
puts nothing back, unless it was told what to wait for: then it puts everything back when that file
is there, and removes it.
"""

import contextlib
import ctypes
import mmap
import os
import select
import struct
import time
from collections.abc import Callable

OPEN, ACCESS, CLOSED = 0x20, 0x1, 0x10  # IN_OPEN, IN_ACCESS, IN_CLOSE_NOWRITE
_EVENT = struct.Struct("iIII")
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Obey until stdin ends."""
    orders = os.fdopen(0, "rb", buffering=0)
    while line := orders.readline():
        kind, number, file, other, *sign = line.decode().rstrip("\n").split("\t")
        watch = _libc.inotify_init1(os.O_NONBLOCK)
        folder = os.path.realpath(os.path.dirname(file)).encode()
        if _libc.inotify_add_watch(watch, folder, OPEN | ACCESS | CLOSED) < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch")
        swap = Swap(kind, file, other, until=sign[0] if sign else "").swap
        print("armed", flush=True)
        print(
            "swapped"
            if _wait(watch, os.path.basename(file).encode(), int(number), swap)
            else "idle",
            flush=True,
        )
        os.close(watch)


def _wait(watch: int, name: bytes, number: int, swap: Callable[[], None]) -> bool:
    """Swap at the n-th event that is about the file.

    Return whether it came so far before `stop` did.
    """
    poll = select.poll()
    poll.register(0, select.POLLIN)
    poll.register(watch, select.POLLIN)
    swapped = False
    while True:
        ready = [fd for fd, _ in poll.poll()]
        if watch in ready and not swapped:
            events = os.read(watch, 65536)
            at = 0
            while at < len(events):
                length = _EVENT.unpack_from(events, at)[3]
                at += _EVENT.size
                if events[at : at + length].rstrip(b"\0") == name:
                    number -= 1
                    if number == 0:
                        swap()
                        swapped = True
                at += length
        elif watch in ready:
            os.read(watch, 65536)
        if 0 in ready:
            os.read(0, 5)  # stop, and a newline
            return swapped


class Swap:
    """One swap of a file: prepared, carried out, and perhaps put back."""

    def __init__(self, kind: str, file: str, other: str, *, until: str) -> None:
        self._kind, self._file, self._other, self._until = kind, file, other, until
        self._folder, self._strange = os.path.dirname(file), os.path.dirname(other)
        with open(file, "rb") as source:
            self._own = source.read()
        with open(other, "rb") as source:
            self._content = source.read()
        if until and kind == "rename":
            os.link(file, f"{file}.kept")
        if kind == "link":  # the file is reached through a link to its folder
            os.symlink(self._strange, f"{self._folder}.draft")
        self._mapped: mmap.mmap | None = None
        if kind == "map":
            fd = os.open(file, os.O_RDWR)
            self._mapped = mmap.mmap(fd, 0)
            os.close(fd)
            # The page is dirty now: a write leaves the file's times as they are
            self._mapped[:1] = self._own[:1]

    def swap(self) -> None:
        """Put the other file in the place of the file, and put it back when it is time."""
        if self._kind == "rename":
            os.rename(self._other, self._file)
        elif self._kind == "link":
            os.rename(f"{self._folder}.draft", self._folder)
        elif self._kind == "folder":
            os.rename(self._folder, f"{self._folder}.old")
            os.rename(self._strange, self._folder)
        else:
            self._write(self._content)
        if self._until:
            _wait_for(self._until)
            self._put_back()
            with contextlib.suppress(FileNotFoundError):  # nothing was started
                os.unlink(self._until)
        elif self._mapped:
            self._mapped.close()

    def _put_back(self) -> None:
        if self._kind == "rename":
            os.rename(f"{self._file}.kept", self._file)
        elif self._kind == "link":
            os.symlink(f"{os.path.dirname(self._folder)}/real", f"{self._folder}.draft")
            os.rename(f"{self._folder}.draft", self._folder)
        elif self._kind == "folder":
            os.rename(self._folder, self._strange)
            os.rename(f"{self._folder}.old", self._folder)
        else:
            self._write(self._own)

    def _write(self, content: bytes) -> None:
        if self._mapped:
            self._mapped[: len(content)] = content
        else:
            _write(self._file, content)


def _wait_for(sign: str) -> None:
    for _ in range(1000):
        if os.path.exists(sign):
            return
        time.sleep(0.001)


def _write(file: str, content: bytes) -> None:
    """Write in place, again and again as long as the file is busy or somebody holds a lease."""
    for _ in range(2000):
        try:
            fd = os.open(file, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            continue
        os.write(fd, content)
        os.close(fd)
        return


if __name__ == "__main__":
    main()
