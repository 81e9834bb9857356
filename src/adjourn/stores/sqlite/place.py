"""The directory a store lives in: made safely, and refused when it is not safe."""

import errno
import os
import stat

from adjourn.core.errors import NotFound, StoreDamaged, StoreProblem, StoreRefused
from adjourn.files import private_file, sync_directory, write_whole

DATABASE = "adjourn.db"
LOCK = "write.lock"
MOVING = "moving.json"  # says into which database the store is being moved
FENCED = "moving"  # where the database lies while it is moved
_CUSTOMARY = ".adjourn"
_HEADER = 512  # bytes of the smallest page
_IGNORE = b"*\n!.gitignore\n!policy.toml\n!supervision.yaml\n"
_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "fuse.sshfs", "fuse.s3fs"}
)
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def prepare(root: str) -> str:
    """Return the database's path in `root`, a private directory that is made and furnished if it is not there."""
    if not os.path.lexists(root):
        _make(root)
    mode = _checked(root).st_mode
    if mode & stat.S_IRWXU == stat.S_IRWXU and (mode & _OTHERS or not os.path.lexists(_ignore(root))):
        _furnish(root)
    # SQLite follows no link on its way: whoever came here by one is taken to where it leads.
    path = os.path.join(os.path.realpath(root), DATABASE)
    for needed in (os.path.join(root, LOCK), path):
        if not os.path.lexists(needed):
            _refuse_moving(root)
            private_file(needed)
    _refuse_remains(path)
    return path


def _refuse_moving(root: str) -> None:
    """Refuse a store that is being moved into a database: what it keeps may count there already."""
    if os.path.lexists(os.path.join(root, MOVING)):
        from adjourn.core.render import command_line  # seldom needed

        raise StoreProblem(
            f"{root} is being moved into a database, and the move was not finished",
            way_out=command_line(["adjourn", "store", "migrate", "--from", root]),
        )


def identity(path: str) -> tuple[int, int] | None:
    """Return which file is there, whatever it is called; or None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _refuse_remains(path: str) -> None:
    """Refuse what is left of a database that was cut off: SQLite takes it for an empty one, and all would seem settled."""
    has_log = _size(f"{path}-wal") > 0  # first: whoever makes the database in this very moment fills it before its log
    size = os.lstat(path).st_size
    is_cut = 0 < size < _HEADER or (size == 0 and has_log)
    if is_cut and not _size(f"{path}-journal"):  # with a journal it is one that was being made; SQLite undoes that
        raise StoreDamaged(f"{path} has {size} bytes: it is not a whole database", way_out="restore a backup of adjourn.db")


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _make(root: str) -> None:
    above = os.path.dirname(root)
    try:
        _refuse_network(root, os.stat(above).st_dev)
        os.mkdir(root, 0o700)
        os.chmod(root, 0o700)  # whatever the umask
    except FileExistsError:
        return  # somebody makes it at the same time
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"{above} is not a directory", way_out="name a store with --store DIR") from None


def _furnish(root: str) -> None:
    """Make a directory private and hide it from git; leave it alone if others keep things in it."""
    if os.path.basename(root) != _CUSTOMARY and os.listdir(root):
        return
    os.chmod(root, 0o700)
    write_whole(_ignore(root), _IGNORE)
    sync_directory(os.path.dirname(root))


def _ignore(root: str) -> str:
    return os.path.join(root, ".gitignore")


def _checked(root: str) -> os.stat_result:
    found = os.lstat(root)
    if stat.S_ISLNK(found.st_mode):
        raise StoreRefused(f"{root} is a symbolic link", way_out="name the directory itself with --store DIR")
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
    kind = filesystem_kind(device)
    if kind in _NETWORK:
        raise StoreRefused(
            f"{root} is on a network filesystem ({kind}), where SQLite's locks cannot be trusted",
            way_out="put the store on a local disk: --store DIR",
        )


def filesystem_kind(device: int, *, mounts: str = "/proc/self/mountinfo") -> str:
    """Return the type of the filesystem that a device number belongs to, or "" where that cannot be known."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as lines:
            kinds = [line.partition(" - ")[2].split(" ", 1)[0] for line in lines if line.split(" ", 3)[2] == wanted]
    except OSError:
        return ""
    return kinds[-1] if kinds else ""


def unusable(path: str, error: OSError) -> StoreProblem:
    """Return what the operating system says of a path, as a sentence with a way out."""
    if error.errno == errno.EROFS:
        return StoreProblem(f"{path} is read-only", way_out="make it writable, or name another with --store DIR")
    if error.errno in _FULL:
        return StoreProblem(f"the disk of {path} is full", way_out="free some space and say it again")
    kind = StoreRefused if isinstance(error, PermissionError) else StoreProblem
    return kind(f"{path} cannot be used: {error.strerror}", way_out="name a store with --store DIR")
