"""How files are put in place: private whatever the umask, whole or not at all, and on disk."""

import os
from contextlib import suppress

from adjourn.core.errors import StoreProblem


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
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
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


def sync_directory(path: str) -> None:
    """Put a directory's entries on disk."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def disk_full(path: str) -> StoreProblem:
    """Return the error for a disk that is full, which names the disk."""
    from adjourn.core.render import command_line

    sentence = f"the disk of {path} is full: free some space, and run the command again"
    return StoreProblem(sentence, way_out=command_line(["df", "-h", path]))
