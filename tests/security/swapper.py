"""An attacker: watches a file with inotify, and swaps it at the event of its choice.

It runs as a process of its own.

Orders come on stdin, one per line: the kind of swap, the event's number, the file, the other file.
It answers `armed`, then `swapped` or `idle` when `stop` comes. It puts nothing back.
"""

import ctypes
import mmap
import os
import select
import struct
from collections.abc import Callable

OPEN, ACCESS, CLOSED = 0x20, 0x1, 0x10  # IN_OPEN, IN_ACCESS, IN_CLOSE_NOWRITE
_EVENT = struct.Struct("iIII")
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Obey until stdin ends."""
    orders = os.fdopen(0, "rb", buffering=0)
    while line := orders.readline():
        kind, number, file, other = line.decode().rstrip("\n").split("\t")
        watch = _libc.inotify_init1(os.O_NONBLOCK)
        folder = os.path.realpath(os.path.dirname(file)).encode()
        if _libc.inotify_add_watch(watch, folder, OPEN | ACCESS | CLOSED) < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch")
        swap = _swap(kind, file, other)
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


def _swap(kind: str, file: str, other: str) -> Callable[[], None]:
    """Prepare one kind of swap, and return what carries it out."""
    folder, strange = os.path.dirname(file), os.path.dirname(other)
    with open(other, "rb") as source:
        content = source.read()
    if kind == "link":  # the file is reached through a link to its folder
        os.symlink(strange, f"{folder}.draft")
    mapped: mmap.mmap | None = None
    if kind == "map":
        fd = os.open(file, os.O_RDWR)
        mapped = mmap.mmap(fd, 0)
        os.close(fd)

    def swap() -> None:
        if kind == "rename":
            os.rename(other, file)
        elif kind == "link":
            os.rename(f"{folder}.draft", folder)
        elif kind == "folder":
            os.rename(folder, f"{folder}.old")
            os.rename(strange, folder)
        elif mapped:
            mapped[: len(content)] = content
            mapped.close()
        else:
            _write(file, content)

    return swap


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
