"""Watches the files that a start cannot pin: a swap is seen also if it is put back in time."""

import os
import stat
import struct
from collections.abc import Iterator, Sequence

from adjourn.process import linux
from adjourn.system.pinning import is_roots_alone, lease, opened, paths_of, steps_to

_EVENT = struct.Struct("iIII")
_ROOM = 1 << 16

# What happens to a file or a link itself; of a directory only whether it is moved or removed: its
# entries come and go.
_CHANGES = linux.IN_MODIFY | linux.IN_ATTRIB | linux.IN_CLOSE_WRITE
_MOVES = linux.IN_MOVE_SELF | linux.IN_DELETE_SELF | linux.IN_DONT_FOLLOW | linux.IN_ONESHOT


class FileWatch:
    """An inotify watch on files, and on all that this user could move on the way to them."""

    def __init__(self, names: Sequence[str]) -> None:
        """Begin to watch files, by their names as they are spelled."""
        # By the number of a watch: the files that it is about
        self._names: dict[int, set[str]] = {}
        self._unknown: set[str] = set()  # files of which not every change is seen
        self._fd = -1
        if not names:
            return
        try:
            self._fd = linux.inotify()
        except OSError:  # this user has too many of them
            self._unknown.update(names)
            return
        for name in names:
            try:
                for path in paths_of(name):
                    self._watch(path, name)
            except OSError:
                self._unknown.add(name)
            if not _has_no_writer(name):
                self._unknown.add(name)

    def close(self) -> tuple[list[str], list[str]]:
        """Stop; return the files that were changed or swapped, and those that may have been."""
        if self._fd < 0:
            return [], sorted(self._unknown)
        touched = {name for number in self._events() for name in self._names.get(number, ())}
        os.close(self._fd)
        self._fd = -1
        watched = {name for names in self._names.values() for name in names}
        unknown = self._unknown | {name for name in watched if not _has_no_writer(name)}
        return sorted(touched), sorted(unknown - touched)

    def _watch(self, path: str, name: str) -> None:
        """Watch each step of a path before it is followed, so that no later change is missed."""
        # By directory: whether only root can move or remove something in it
        is_safe: dict[str, bool] = {}
        for step, about in steps_to(path):
            is_directory = stat.S_ISDIR(about.st_mode)
            is_safe[step] = is_directory and is_roots_alone(about) and os.geteuid() != 0
            is_on_the_way = is_directory or stat.S_ISLNK(about.st_mode)
            if is_on_the_way and is_safe.get(os.path.dirname(step), False):
                continue
            mask = _MOVES if is_directory else _MOVES | _CHANGES
            self._names.setdefault(linux.add_watch(self._fd, step, mask), set()).add(name)

    def _events(self) -> Iterator[int]:
        """Yield the watches to which something happened.

        Each tells it once, so there is room for all.
        """
        while True:
            try:
                content = os.read(self._fd, _ROOM)
            except BlockingIOError:
                return
            at = 0
            while at < len(content):
                number, _, _, length = _EVENT.unpack_from(content, at)
                yield number
                at += _EVENT.size + length


def _has_no_writer(name: str) -> bool:
    """Return whether it is certain that nobody has a file open for writing, or mapped.

    Such a writer causes no event.
    """
    try:
        for path in paths_of(name):
            with opened(path) as fd:
                if os.geteuid() == 0 or not is_roots_alone(os.fstat(fd)):
                    lease(fd)
    except OSError:
        return False
    return True
