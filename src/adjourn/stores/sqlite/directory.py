"""The directory a store lives in: made safely, refused when it is not, checked while it is open."""

import errno
import os
import stat
import struct
from typing import NamedTuple

from adjourn.core.errors import NotFound, StoreDamaged, StoreProblem, StoreRefused
from adjourn.core.text.render import command_line
from adjourn.system.files import disk_full, private_file, sync_directory, write_whole

DATABASE = "adjourn.db"
LOCK = "write.lock"
MOVING = "moving.json"  # says into which database the store is being moved
FENCED = "moving"  # where the database lies while it is moved
_CUSTOMARY = ".adjourn"
# What a person writes, and we only read
_OF_A_PERSON = frozenset({".gitignore", "policy.toml", "supervision.yaml"})
_HEADER = 512  # bytes of the smallest page
_IGNORE = b"*\n!policy.toml\n!supervision.yaml\n"  # and so itself
# Kinds of file systems whose locks hold for all who see them, because only this machine sees them.
# A block device belongs to one machine, so its file systems need no list; these have no device.
_WITHOUT_DEVICE = frozenset(
    {"tmpfs", "ramfs", "rootfs", "overlay", "aufs", "zfs", "btrfs", "bcachefs"}
    | {"lxfs", "wslfs", "ubifs", "jffs2", "yaffs2", "fuse.fuse-overlayfs"}
)
# These show another directory, which is named as what is mounted: they are as local as that one.
_STACKED = frozenset(
    {"ecryptfs", "shiftfs"}
    | {f"fuse.{name}" for name in ("gocryptfs", "encfs", "cryfs", "securefs")}
    | {f"fuse.{name}" for name in ("mergerfs", "bindfs", "unionfs", "unionfs-fuse", "overlayfs")}
)
_DEEPEST = 8  # directories that are mounted on each other
# On a device that they share
_OF_SEVERAL_MACHINES = frozenset({"ocfs2", "gfs", "gfs2", "gpfs", "mmfs"})
SMALLEST_BLOCK = 4096  # of a disk on which what SQLite has mapped never lacks its block
_PROBE = 65_536  # bytes
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
# Of the wal-index: is it there, the page size, the last frame, the salts, and how many frames are
# in the database already
_INDEX = struct.Struct("=12x B x H I 4x 8x 8s 56x I")
_HEAD = struct.Struct(">I 12x 8s")  # of the log: what it is, the salts
_MAGIC = (0x377F0682, 0x377F0683)
_LOG_HEAD = 32
_FRAME_HEAD = 24
HEAD_SIZE = 100  # bytes of a database: what it is, and a counter of changes
_MOST_DESCRIPTORS = 65_536


def prepare(root: str) -> str:
    """Return the database's path in `root`; make the private directory if it is missing."""
    if not os.path.lexists(root):
        above = os.path.dirname(root)
        try:
            _refuse_network(root, os.stat(above).st_dev)
            os.mkdir(root, 0o700)
            os.chmod(root, 0o700)  # whatever the umask
        except FileExistsError:
            pass  # somebody makes it at the same time
        except (FileNotFoundError, NotADirectoryError):
            raise NotFound(
                f"{above} is not a directory", way_out="name a store with --store DIR"
            ) from None
    mode = _checked(root).st_mode

    # A repository can bring a link that leads to the user's files
    with os.scandir(root) as entries:
        for entry in entries:
            if entry.is_symlink() and entry.name not in _OF_A_PERSON:
                raise StoreRefused(
                    f"{entry.path} is a symbolic link", way_out=command_line(["rm", entry.path])
                )

    # It becomes private and hidden from git, unless others keep things in it
    ignore = os.path.join(root, ".gitignore")
    is_open = mode & _OTHERS or not os.path.lexists(ignore)
    is_customary = os.path.basename(root) == _CUSTOMARY
    if mode & stat.S_IRWXU == stat.S_IRWXU and is_open and (is_customary or not os.listdir(root)):
        os.chmod(root, 0o700)
        write_whole(ignore, _IGNORE)
        sync_directory(os.path.dirname(root))

    # SQLite follows no link on its way, so links are resolved here.
    path = os.path.join(os.path.realpath(root), DATABASE)
    for needed in (os.path.join(root, LOCK), path):
        if os.path.lexists(needed):
            continue
        if os.path.lexists(os.path.join(root, MOVING)):  # what it keeps may count there already
            raise StoreProblem(
                f"{root} is being moved into a database, and the move was not finished",
                way_out=command_line(["adjourn", "store", "migrate", "--from", root]),
            )
        private_file(needed)
    _refuse_remains(path)
    return path


def identity(path: str) -> tuple[int, int] | None:
    """Return which file is there, whatever it is called; or None if it is missing."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _refuse_remains(path: str) -> None:
    """Refuse what is left of a database that was cut off.

    SQLite takes it for an empty one, and all would seem settled.
    """
    # First: a process that creates the database right now fills it before its log
    has_log = _size(f"{path}-wal") > 0
    size = os.lstat(path).st_size
    is_cut = 0 < size < _HEADER or (size == 0 and has_log)
    # With a journal it is one that was being made; SQLite undoes that
    if is_cut and not _size(f"{path}-journal"):
        raise StoreDamaged(
            f"{path} has {size} bytes: it is not a whole database",
            way_out="restore a backup of adjourn.db",
        )


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _checked(root: str) -> os.stat_result:
    found = os.lstat(root)
    if stat.S_ISLNK(found.st_mode):
        raise StoreRefused(
            f"{root} is a symbolic link", way_out="name the directory itself with --store DIR"
        )
    if not stat.S_ISDIR(found.st_mode):
        raise StoreRefused(f"{root} is not a directory", way_out="name a store with --store DIR")
    if found.st_uid != os.geteuid():
        raise StoreRefused(
            f"{root} belongs to uid {found.st_uid}, and you are uid {os.geteuid()}",
            way_out="use a store of your own: --store DIR",
        )
    _refuse_network(root, found.st_dev)
    return found


def _refuse_network(root: str, device: int) -> None:
    """Refuse a file system that other machines may see.

    Whether their locks keep us out cannot be known.
    """
    kind, source = mounted(device)
    if kind and not is_local(kind, source):
        raise StoreRefused(
            f"{root} is on a network filesystem ({kind}), or on one that is not known to be local: "
            "SQLite's locks cannot be trusted there",
            way_out="put the store on a local disk: --store DIR",
        )


def is_local(kind: str, source: str, *, depth: int = 0) -> bool:
    """Return whether only this machine sees a mounted file system."""
    if kind in _WITHOUT_DEVICE:
        return True
    if kind in _STACKED:
        return depth < _DEEPEST and _is_local_directory(source, depth=depth + 1)
    # What is mounted there may be called anything
    is_fuse = kind == "fuse" or kind.startswith("fuse.")
    return source.startswith("/dev/") and not is_fuse and kind not in _OF_SEVERAL_MACHINES


def _is_local_directory(path: str, *, depth: int) -> bool:
    """Return whether a directory is known to be on a local file system."""
    if not path.startswith("/"):
        return False
    try:  # mountinfo writes a blank as \040
        kind, source = mounted(os.stat(path.replace("\\040", " ")).st_dev)
    except OSError:
        return False
    return bool(kind) and is_local(kind, source, depth=depth)


def filesystem_kind(device: int, *, mounts: str = "/proc/self/mountinfo") -> str:
    """Return the type of the file system of a device number, or "" where it is unknown."""
    return mounted(device, mounts=mounts)[0]


def mounted(device: int, *, mounts: str = "/proc/self/mountinfo") -> tuple[str, str]:
    """Return the type of a mounted file system and its device, or two empty texts."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as lines:
            found = [
                line.partition(" - ")[2].split(" ")
                for line in lines
                if line.split(" ", 3)[2] == wanted
            ]
    except OSError:
        return "", ""
    return (found[-1][0], found[-1][1]) if found else ("", "")


def leave_at_fault(root: str) -> None:
    """Have a SIGBUS print that the disk is full, and end this process with 1.

    SQLite makes room for what it maps in steps of 4 KB, by one byte for each. Where blocks are
    smaller, the rest of a step has no block until it is written to, and on a full disk that write
    is a SIGBUS. What was committed is safe.
    """
    # Slow to import, and seldom needed
    import ctypes

    # Slow to import, and seldom needed
    import signal

    full = disk_full(root)
    text = f"adjourn: {full.sentence}\n  try: {full.way_out}\n".encode("utf-8", "backslashreplace")

    def leave(_number: int) -> None:
        os.write(2, text)
        os._exit(full.exit_code)

    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(leave)
    _handlers.append(handler)
    ctypes.CDLL(None).signal(int(signal.SIGBUS), handler)


_handlers: list[object] = []  # the C library has only their addresses


def has_no_room(root: str) -> bool:
    """Return whether the disk of a store takes no more.

    SQLite does not always say why it failed.
    """
    probe = os.path.join(root, f".room.{os.getpid()}")
    try:
        fd = os.open(
            probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
    except OSError as error:
        return error.errno in _FULL
    try:
        os.posix_fallocate(fd, 0, _PROBE)
    except OSError as error:
        return error.errno in _FULL
    else:
        return False
    finally:
        os.close(fd)
        os.unlink(probe)


def unusable(path: str, error: OSError) -> StoreProblem:
    """Return what the operating system says of a path, as a sentence with a way out."""
    if error.errno == errno.EROFS:
        return StoreProblem(
            f"{path} is read-only", way_out="make it writable, or name another with --store DIR"
        )
    if error.errno in _FULL:
        return disk_full(path)
    kind = StoreRefused if isinstance(error, PermissionError) else StoreProblem
    return kind(f"{path} cannot be used: {error.strerror}", way_out="name a store with --store DIR")


class FileState(NamedTuple):
    """What the database file is like at one moment."""

    inode: int
    size: int
    changed_at: int  # in nanoseconds
    salts: bytes  # of its log
    backfilled: int  # frames of the log that are in the file
    head: bytes

    @property
    def file(self) -> tuple[int, int, int, bytes]:
        """What only a write into the file changes."""
        return self.inode, self.size, self.changed_at, self.head

    @property
    def checkpoint(self) -> tuple[bytes, int]:
        """What a checkpoint changes, or a log that begins again."""
        return self.salts, self.backfilled


class OpenFiles:
    """The database, its log and the log's index, as this process has them open.

    SQLite does not notice that its write-ahead log was removed or replaced: it goes on writing into
    a file that nobody finds, or behind the end of an empty one, which the next process that opens
    the database ignores. So the descriptors that SQLite holds are compared with the names, and the
    head of the log with the index that all connections share.

    Nothing is opened here: to close a second descriptor of the database or of the index would drop
    the locks that SQLite holds on it.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._known = {path: identity(path)}
        self._database, self._log, self._index = -1, -1, -1
        self.frames = 0  # of the log, when it was last compared with its index

    def find_log(self) -> None:
        """Learn which files SQLite has open; a transaction is open, so it has."""
        found = _descriptors()
        names = [f"{self._path}-wal", f"{self._path}-shm"]
        for name in names:
            named = identity(name)
            # The one that is open is another file, if it was removed, renamed or replaced.
            self._known[name] = named if named in found else None
        self._database = found.get(self._known[self._path], -1)
        self._log, self._index = (found.get(self._known[name], -1) for name in names)

    @property
    def has_log(self) -> bool:
        """Whether the log was looked for."""
        return len(self._known) > 1

    def missing(self) -> str | None:
        """Return the name of a file that is not the one any more that is open, if there is one."""
        for name, known in self._known.items():
            if known is None or identity(name) != known:
                return name
        return None

    def missing_or_cut(self) -> str | None:
        """Return what `missing` does, or the name of a log that lacks what the index counts on.

        That is certain only while nobody else can write: inside a transaction, or right after it.
        """
        missing = self.missing()
        if missing or self._agree():
            return missing
        # Another connection of this process may have closed the descriptor that was found first
        self.find_log()
        return None if self._agree() else f"{self._path}-wal"

    def _agree(self) -> bool:
        try:
            index = os.pread(self._index, _INDEX.size, 0)
            head = os.pread(self._log, _LOG_HEAD, 0)
            size = os.fstat(self._log).st_size
        except OSError:
            return False
        if len(index) < _INDEX.size:
            return False
        is_there, page, self.frames, salts, _ = _INDEX.unpack(index)
        if not is_there:
            return False
        if self.frames == 0:
            return True  # all of it is in the database
        if len(head) < _LOG_HEAD:
            return False
        magic, own = _HEAD.unpack_from(head)
        return (
            magic in _MAGIC
            and own == salts
            and size >= _LOG_HEAD + self.frames * (_FRAME_HEAD + _page_size(page))
        )

    # --- the database file ------------------------------------------------------------------------

    def database_stat(self) -> tuple[int, int, int]:
        """Return which file the database is, its size, and when it was written last."""
        found = os.stat(self._path)
        return found.st_ino, found.st_size, found.st_mtime_ns

    def database_state(self) -> FileState:
        """Return what the database file is like now; a transaction was open, so SQLite has it."""
        try:
            found = os.fstat(self._database)
        except OSError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self._known[self._path]:
            # Another connection of this process has closed the descriptor that was found first
            self.find_log()
            found = os.fstat(self._database)
        *_, salts, backfilled = _INDEX.unpack(os.pread(self._index, _INDEX.size, 0))
        head = os.pread(self._database, HEAD_SIZE, 0).ljust(HEAD_SIZE, b"\0")
        return FileState(found.st_ino, found.st_size, found.st_mtime_ns, salts, backfilled, head)

    def content(self, page: int) -> bytes:
        """Return a page as it is in the database file."""
        _, size, *_ = _INDEX.unpack(os.pread(self._index, _INDEX.size, 0))
        return os.pread(self._database, _page_size(size), (page - 1) * _page_size(size))

    def logged(self, page: int) -> bytes | None:
        """Return a page as it is in the log, if it is there."""
        _, size, frames, *_ = _INDEX.unpack(os.pread(self._index, _INDEX.size, 0))
        length = _FRAME_HEAD + _page_size(size)
        for begin in range(_LOG_HEAD + (frames - 1) * length, 0, -length):
            if os.pread(self._log, 4, begin) == page.to_bytes(4, "big"):
                return os.pread(self._log, _page_size(size), begin + _FRAME_HEAD)
        return None

    def is_log_in_file(self) -> bool:
        """Say whether each page of the log is in the database file as it is in the log."""
        _, size, frames, *_ = _INDEX.unpack(os.pread(self._index, _INDEX.size, 0))
        length = _FRAME_HEAD + _page_size(size)
        newest: dict[int, int] = {}
        for begin in range(_LOG_HEAD, _LOG_HEAD + frames * length, length):
            newest[int.from_bytes(os.pread(self._log, 4, begin), "big")] = begin + _FRAME_HEAD
        return all(
            self.content(page) == os.pread(self._log, _page_size(size), place)
            for page, place in newest.items()
        )

    def newest_in_log(self) -> tuple[int, bytes]:
        """Return the last page that was written into the log: its number and its content."""
        _, size, frames, *_ = _INDEX.unpack(os.pread(self._index, _INDEX.size, 0))
        begin = _LOG_HEAD + (frames - 1) * (_FRAME_HEAD + _page_size(size))
        frame = os.pread(self._log, _FRAME_HEAD + _page_size(size), begin)
        return int.from_bytes(frame[:4], "big"), frame[_FRAME_HEAD:]


def _page_size(written: int) -> int:
    return 65536 if written == 1 else written


def _descriptors() -> dict[tuple[int, int] | None, int]:
    """Return the descriptors of this process by the files that they lead to."""
    try:
        numbers = sorted(map(int, os.listdir("/proc/self/fd")))
    except FileNotFoundError:
        # No /proc is mounted here: whether this may decide at all is the controller's question
        numbers = list(range(min(os.sysconf("SC_OPEN_MAX"), _MOST_DESCRIPTORS)))
    found: dict[tuple[int, int] | None, int] = {}
    for fd in numbers:
        try:
            about = os.fstat(fd)
        except OSError:
            continue  # not open; or it is the descriptor that listed them
        found[about.st_dev, about.st_ino] = fd
    return found
