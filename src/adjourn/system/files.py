"""How files are put in place: private whatever the umask, whole or not at all, and on disk."""

import errno
import os
import stat
from contextlib import suppress

from adjourn.core.errors import StoreProblem

# What `open` says of a path that leads to no file of ours: none, a link, a socket, somebody else's.
_NO_FILE = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EACCES, errno.EPERM}
)


def private_directory(path: str) -> str:
    """Make a directory that only its owner can enter, unless it is there, and return it."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return path
    os.chmod(path, 0o700)
    return path


def private_file(path: str) -> None:
    """Make an empty file that only its owner can read, before anything else could make it otherwise."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(fd, 0o600)
    finally:
        os.close(fd)
    sync_directory(os.path.dirname(path))


def write_whole(path: str, content: bytes) -> None:
    """Put a file in place whole or not at all; it is on disk when this returns."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        _write_new(temporary, content)
        os.rename(temporary, path)
    except OSError:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    sync_directory(os.path.dirname(path))


def _write_new(path: str, content: bytes) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)  # of a process that died, or a link that somebody put there
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(fd, 0o600)
        write_all(fd, content)
        os.fsync(fd)
    finally:
        os.close(fd)


def write_all(fd: int, content: bytes) -> None:
    """Write every byte, however many writes it takes."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(fd, rest) :]


def open_plain(path: str) -> int | None:
    """Open a plain file for reading, or return None where there is none.

    A process of the same user can put anything in its place. A FIFO would block for ever and a link
    leads elsewhere.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _NO_FILE:
            return None
        raise
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    return None


def read_plain(path: str, *, largest: int) -> bytes | None:
    """Return what a plain file holds, or None where there is none, or a larger one."""
    fd = open_plain(path)
    if fd is None:
        return None
    with open(fd, "rb") as file:
        content = file.read(largest + 1)
    return content if len(content) <= largest else None


def sync_directory(path: str) -> None:
    """Put a directory's entries on disk."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def disk_full(path: str) -> StoreProblem:
    """Return the error for a disk that is full, which names the disk."""
    from adjourn.core.text.render import command_line

    sentence = f"the disk of {path} is full: free some space"
    return StoreProblem(sentence, way_out=command_line(["df", "-h", path]))
