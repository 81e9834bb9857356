"""A control group of version 2 around one child.

No fork leaves it, and one write kills all that is in it.
"""

import contextlib
import os
import time
from typing import Self

from adjourn.process.identity import SHIM_GROUP, look_at, membership

_MOUNTS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
_PATIENCE = 0.5  # seconds; the kernel needs a moment to see off the last member
_PAUSE = 0.001


def usable_folder() -> str | None:
    """Return where this process may make control groups, or None.

    Then everything goes without them.
    """
    own = membership("self")
    if not own:
        return None
    folders = (
        mount + own.rstrip("/")
        for mount in _MOUNTS
        if os.path.exists(f"{mount}/cgroup.controllers")
    )
    return next((folder for folder in folders if os.access(folder, os.W_OK)), None)


def name_of(pid: int, start_time: int) -> str:
    """Return the name of a shim's control group."""
    return f"adjourn-{pid}-{start_time}"


def remove_stale(folder: str) -> None:
    """Remove the groups that killed shims left, unless somebody is still in there."""
    for name in os.listdir(folder):
        maker = SHIM_GROUP.fullmatch(name)
        seen = look_at(int(maker["pid"])) if maker else None
        is_alive = maker and seen and seen.start_time == int(maker["start_time"])
        if maker and not is_alive:
            Cgroup(f"{folder}/{name}").try_to_remove()


class Cgroup:
    """One control group of ours; its name is never used twice."""

    def __init__(self, path: str) -> None:
        self.path = path

    @classmethod
    def make(cls, path: str) -> Self | None:
        """Make the group, or return None where that is not allowed or would be no help."""
        group = cls(path)
        try:
            os.mkdir(path)
        except OSError:
            return None
        if os.path.exists(f"{path}/cgroup.kill"):
            return group
        group.try_to_remove()
        return None

    def open(self) -> int | None:
        """Return a descriptor of the group, to fork into it, or None if it is gone."""
        try:
            return os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:  # another container, which cannot see this shim, tidied up
            return None

    def holds(self, pid: int | str) -> bool:
        """Return whether the process is in this group or in one below it."""
        return os.path.basename(self.path) in membership(pid).split("/")

    def kill(self) -> None:
        """Kill all members, also those below and those that are just being forked."""
        with (
            contextlib.suppress(OSError),
            open(f"{self.path}/cgroup.kill", "w", encoding="ascii") as switch,
        ):
            switch.write("1")

    def remove(self) -> None:
        """Remove the group once its last member is gone; one that does not go is left behind."""
        deadline = time.monotonic() + _PATIENCE
        while not self.try_to_remove() and time.monotonic() < deadline:
            time.sleep(_PAUSE)

    def try_to_remove(self) -> bool:
        """Try once to remove the group and those below it; return whether it is gone."""
        for folder, _, _ in os.walk(self.path, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        return not os.path.exists(self.path)
