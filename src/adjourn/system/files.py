"""How files are written, read and locked, and where the runs of a store keep theirs.

What is written is private whatever the umask, complete or not there at all, and on disk. What is
read is a regular file: a process of the same user can put anything in its place, a FIFO would block
for ever, a link leads elsewhere.
"""

import errno
import fcntl
import os
import stat
from contextlib import suppress

import msgspec

from adjourn.core.errors import Misuse, StoreProblem

# What `open` raises where no file of ours lies: nothing, a link, a socket, somebody else's file
_NO_FILE = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EACCES, errno.EPERM}
)
LOCK, RECORD, RESULT = "shim.lock", "shim.json", "result.json"


def private_directory(path: str) -> str:
    """Make a directory that only its owner can enter, unless it is there, and return it."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return path
    os.chmod(path, 0o700)
    return path


def private_file(path: str) -> None:
    """Make an empty file that only its owner can read, before anybody else makes it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(fd, 0o600)
    finally:
        os.close(fd)
    sync_directory(os.path.dirname(path))


def write_whole(path: str, content: bytes) -> None:
    """Put a complete file in place, or none; it is on disk when this returns."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with suppress(FileNotFoundError):
            os.unlink(temporary)  # of a process that died, or a link that somebody put there
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(fd, 0o600)
            write_all(fd, content)
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(temporary, path)
    except OSError:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    sync_directory(os.path.dirname(path))


def write_all(fd: int, content: bytes) -> None:
    """Write every byte, however many writes it takes."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(fd, rest) :]


class NotRegular(OSError):
    """What lies there is a directory, a FIFO, a socket or a device."""


class OwnedFile(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds, and the uid of its owner."""

    content: bytes
    owner: int


def open_regular(path: str, *, follow_links: bool = False) -> int:
    """Open a regular file for reading. Raise OSError, for anything else NotRegular."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    fd = os.open(path, flags if follow_links else flags | os.O_NOFOLLOW)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise NotRegular(errno.EINVAL, "not a regular file")


def open_plain(path: str) -> int | None:
    """Open a regular file for reading, or return None if it is missing or not ours to read."""
    try:
        return open_regular(path)
    except NotRegular:
        return None
    except OSError as error:
        if error.errno in _NO_FILE:
            return None
        raise


def read_plain(path: str, *, largest: int) -> bytes | None:
    """Return what a regular file of ours holds.

    None if it is missing, too large, or of another user.
    """
    fd = open_plain(path)
    if fd is None:
        return None
    with open(fd, "rb") as file:
        if os.fstat(fd).st_uid != os.geteuid():
            return None
        content = file.read(largest + 1)
    return content if len(content) <= largest else None


def read_owned(path: str, *, largest: int) -> OwnedFile | None:
    """Return a file that somebody else may have written, or None if it is missing.

    Raise Misuse for a link, for anything but a regular file, and for one that is larger.
    """
    try:
        fd = open_regular(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if isinstance(error, NotRegular):
            why = "it is not a plain file"
        elif error.errno == errno.ELOOP:
            why = "it is a symbolic link"
        else:
            why = f"it cannot be opened: {error.strerror}"
        raise Misuse(why, way_out="put a plain file there") from error
    with open(fd, "rb") as file:
        about = os.fstat(fd)
        if about.st_size > largest:
            raise Misuse(f"it has {about.st_size} bytes, more than {largest}", way_out="write less")
        content = file.read(largest + 1)
    if len(content) > largest:
        raise Misuse(f"it has more than {largest} bytes", way_out="write less")
    return OwnedFile(content=content, owner=about.st_uid)


def is_trusted(found: os.stat_result, *, owner: int | None = None) -> bool:
    """Say whether only its user, or root, can have written a file: what it says is followed."""
    if found.st_uid not in {os.geteuid() if owner is None else owner, 0}:
        return False
    is_of_group = found.st_mode & stat.S_IWGRP and not _is_own_group(found)
    return not (found.st_mode & stat.S_IWOTH or is_of_group)


def _is_own_group(found: os.stat_result) -> bool:
    """Say whether nobody but its user is in the group of a file, as where the umask is 002."""
    import grp  # seldom needed
    import pwd

    try:
        user, group = pwd.getpwuid(found.st_uid), grp.getgrgid(found.st_gid)
    except KeyError:
        return False
    is_named_so = (user.pw_gid, user.pw_name) == (group.gr_gid, group.gr_name)
    return is_named_so and set(group.gr_mem) <= {user.pw_name}


def read_secret(path: str, *, largest: int) -> bytes:
    """Return what a file holds that nobody else can have written. Raise OSError.

    It may be a link, as secrets that are mounted into containers are, or a pipe that the caller
    gave to this process (`<(command)`). Any other pipe could block for ever.
    """
    if path.startswith(("/dev/fd/", "/proc/self/fd/")):
        with open(path, "rb") as file:
            return file.read(largest)
    fd = open_regular(path, follow_links=True)
    with open(fd, "rb") as file:
        if not is_trusted(os.fstat(fd)):
            raise PermissionError(errno.EPERM, "it can be written by others")
        return file.read(largest)


def sync_directory(path: str) -> None:
    """Put a directory's entries on disk."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def disk_full(path: str) -> StoreProblem:
    """Return the error for a disk that is full, which names the disk."""
    from adjourn.core.text.render import command_line  # seldom needed, and slow to import

    sentence = f"the disk of {path} is full: free some space"
    return StoreProblem(sentence, way_out=command_line(["df", "-h", path]))


class HeldLock:
    """A lock file held by this process until `close`, or until it dies."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        """Return the descriptor that keeps the lock."""
        return self._fd

    def close(self) -> None:
        """Let go of the lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def hold_lock(path: str) -> HeldLock:
    """Take the lock at `path`, create the file if needed, and wait for its holder."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
    except BaseException:
        os.close(fd)
        raise
    return HeldLock(fd)


def hold_lock_if_free(path: str) -> HeldLock | None:
    """Take the lock at `path`, or return None if somebody has it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return HeldLock(fd)


def is_lock_held(path: str) -> bool:
    """Return whether somebody holds the lock at `path`.

    Asking never keeps others from asking or holding.
    """
    fd = open_plain(path)
    if fd is None:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(fd)


def runs_directory(root: str) -> str:
    """Return the directory that holds those of all runs and calls."""
    return os.path.join(root, "runs")


def run_directory(root: str, name: str) -> str:
    """Return the directory of a run, by its id, or of an attempt at a call, by its name."""
    return os.path.join(runs_directory(root), name)


def driver_directory(root: str, run_id: str) -> str:
    """Return where the driver of an agent's run keeps its files."""
    return os.path.join(run_directory(root, run_id), "driver")


def run_names(root: str) -> list[str]:
    """Return the names of the runs and calls that have files here."""
    try:
        return os.listdir(runs_directory(root))
    except FileNotFoundError:
        return []


RESPONSE = ".response.yaml"  # how the file of a response ends
OTHER_RESPONSE = ".elsewhere"  # and the one that notes where else an agent expects its response


def clarifications_directory(root: str) -> str:
    """Return the directory of the files by which agents ask and are answered."""
    return os.path.join(root, "clarifications")


def has_clarifications(root: str) -> bool:
    """Return whether any task of this store ever asked by files."""
    return os.path.isdir(clarifications_directory(root))


def checkpoint_path(root: str, task_id: str) -> str:
    """Return where an agent that asks by files leaves its checkpoint."""
    return os.path.join(root, "checkpoints", f"{task_id}.checkpoint.json")
