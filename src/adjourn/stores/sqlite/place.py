"""The directory a store lives in: made safely, and refused when it is not safe."""

import os
import stat

from adjourn.core.errors import NotFound, StoreProblem, StoreRefused
from adjourn.files import sync_directory, write_whole

DATABASE = "adjourn.db"
_IGNORE = b"*\n!.gitignore\n!policy.toml\n!supervision.yaml\n"
_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "fuse.sshfs", "fuse.s3fs"}
)


def prepare(root: str) -> str:
    """Return the database's path in `root`, a private directory that is made if it is not there."""
    try:
        os.mkdir(root, 0o700)
    except FileExistsError:
        _check(root)
        return os.path.join(root, DATABASE)
    except FileNotFoundError:
        raise NotFound(f"{os.path.dirname(root)} is not a directory", way_out="name a store with --store DIR") from None
    except OSError as error:
        raise _unusable(root, error) from error
    _furnish(root)
    return os.path.join(root, DATABASE)


def _furnish(root: str) -> None:
    os.chmod(root, 0o700)  # whatever the umask
    _check(root)
    write_whole(os.path.join(root, ".gitignore"), _IGNORE)
    sync_directory(os.path.dirname(root))


def _check(root: str) -> None:
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
    kind = filesystem_kind(found.st_dev)
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


def _unusable(root: str, error: OSError) -> StoreProblem:
    kind = StoreRefused if isinstance(error, PermissionError) else StoreProblem
    return kind(f"{root} cannot be used: {error.strerror}", way_out="name a store with --store DIR")
