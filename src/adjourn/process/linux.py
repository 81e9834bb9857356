"""The few system calls that Linux has and Python has not."""

import ctypes
import itertools
import os
import struct

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_SYS_CLONE3 = 435
_CLONE_INTO_CGROUP = 0x2_0000_0000
_SIGCHLD = 17
_SIGKILL = 9

IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE = 0x2, 0x4, 0x8
IN_DELETE_SELF, IN_MOVE_SELF = 0x400, 0x800
IN_DONT_FOLLOW, IN_ONESHOT = 0x0200_0000, 0x8000_0000

# PyDLL keeps the interpreter's lock: a child made by clone3 finds it in its own hands, as after
# fork.
_libc = ctypes.PyDLL(None, use_errno=True)


def rename_process(name: str) -> None:
    """Show this process as `name` in ps and top."""
    _prctl(_PR_SET_NAME, name.encode())


def become_subreaper() -> None:
    """Inherit every orphan among this process's descendants, so that none gets away."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with(parent: int) -> None:
    """Have this process killed when its parent dies, also if that was before this call."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def fork_into(cgroup: int) -> int:
    """Fork a child that is in the cgroup (its folder's descriptor) from its first instruction on.

    Joining later costs some 7 ms, for the kernel then waits until every core has seen it.
    The child may do little more than exec: Python's own work after a fork is left out.
    """
    arguments = struct.pack("11Q", _CLONE_INTO_CGROUP, 0, 0, 0, _SIGCHLD, 0, 0, 0, 0, 0, cgroup)
    return _checked(_libc.syscall(_SYS_CLONE3, arguments, ctypes.c_size_t(len(arguments))))


def inotify() -> int:
    """Return a descriptor that tells what happens to watched files; reading it does not block."""
    return _checked(_libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))


def add_watch(fd: int, path: str, mask: int) -> int:
    """Watch a file by its path, and return the number of that watch."""
    return _checked(_libc.inotify_add_watch(fd, os.fsencode(path), ctypes.c_uint32(mask)))


def _prctl(option: int, argument: int | bytes) -> None:
    value = argument if isinstance(argument, bytes) else ctypes.c_ulong(argument)
    _checked(_libc.prctl(option, value, ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def close_all_but(*kept: int) -> None:
    """Close every descriptor beyond the standard three, save those to keep."""
    edges = [2, *sorted(fd for fd in kept if fd > 2), os.sysconf("SC_OPEN_MAX")]  # noqa: PLR2004 -- that is the number of stderr
    for below, above in itertools.pairwise(edges):
        if below + 1 < above:  # closerange(0, 0) closes everything
            os.closerange(below + 1, above)
