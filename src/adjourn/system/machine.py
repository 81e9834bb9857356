"""What this machine gives: clock, boot, new ids, the user's state directory; what it may lack."""

import errno
import os
import time
from collections.abc import Mapping, MutableMapping

from adjourn.core.errors import Misuse

_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
# A start that fails for one of these may succeed later, with the same bytes and the same approval.
_PROCESSES_AND_MEMORY = frozenset({errno.EAGAIN, errno.ENOMEM, errno.ENOBUFS})
_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ETOOMANYREFS})
_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})
_SHORTAGES = _PROCESSES_AND_MEMORY | _DESCRIPTORS | _DISK
STATE = "ADJOURN_STATE"  # a run gets it: HOME and XDG_STATE_HOME may be others inside
KEY = "ADJOURN_STORE_KEY"
AGENT_SECRET = "ADJOURN_MCP_SECRET"  # noqa: S105 -- the name of a variable
_LARGEST_KEY = 65_536  # bytes of its file
_SHORTEST_KEY = 32  # characters: the store keeps a digest of it, which nobody may be able to guess


def now() -> int:
    """Return the time in milliseconds."""
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """Return 128 random bits as 26 characters that are easy to type and never begin with a dash."""
    bits = int.from_bytes(os.urandom(16), "big") << 2
    return "".join(_LETTERS[bits >> shift & 31] for shift in range(125, -1, -5))


def boot_id() -> str:
    """Return what tells this boot of this machine from every other."""
    fd = os.open("/proc/sys/kernel/random/boot_id", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 64).decode().strip()
    finally:
        os.close(fd)


def is_shortage(number: int | None) -> bool:
    """Return whether this error is about the machine, and not about what was to be started."""
    return number in _SHORTAGES


def hinders_looking(number: int | None) -> bool:
    """Return whether this error number says nothing about the file that was to be read."""
    return number in _PROCESSES_AND_MEMORY | _DESCRIPTORS


_taken: dict[str, str] = {}


def state_directory(environment: Mapping[str, str]) -> str:
    """Return the user's state directory.

    A relative XDG_STATE_HOME or HOME is void: it would be the project's.
    """
    given = environment.get(STATE, "")
    if os.path.isabs(given):
        return given
    base = environment.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        home = environment.get("HOME", "")
        base = os.path.join(home if os.path.isabs(home) else _home_of_user(), ".local", "state")
    return os.path.join(base, "adjourn")


def _home_of_user() -> str:
    import pwd  # seldom needed

    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        raise Misuse(
            f"uid {os.geteuid()} has no home directory: nothing can be kept outside of the store",
            way_out="set XDG_STATE_HOME to a directory of yours",
        ) from None


def take_key_from(environment: MutableMapping[str, str]) -> None:
    """Take the key of a store out of the environment, so that no child process gets it."""
    if key := environment.pop(KEY, None):
        _taken[KEY] = key


def take_key_file(path: str) -> None:
    """Read the key of a store from a file."""
    from adjourn.system.files import read_secret  # seldom needed

    try:
        _taken[KEY] = read_secret(path, largest=_LARGEST_KEY).decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise Misuse(
            f"{path}: the key cannot be read: {why}", way_out="name a file that holds the key"
        ) from error


def store_key() -> str | None:
    """Return the key that was given for a store, if one was."""
    key = (_taken.get(KEY) or os.environ.get(KEY) or "").strip()
    if key and len(key) < _SHORTEST_KEY:
        sentence = (
            f"the key of the store has {len(key)} characters: it needs {_SHORTEST_KEY} or more"
        )
        raise Misuse(sentence, way_out="make one with: openssl rand -hex 32")
    return key or None
