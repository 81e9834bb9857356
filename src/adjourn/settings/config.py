"""Reads the config of the user: never a project's."""

import os
import re
from typing import TYPE_CHECKING, Any

import msgspec

from adjourn.core.errors import Misuse
from adjourn.core.task import Milliseconds
from adjourn.system.files import is_trusted
from adjourn.system.machine import store_key

if TYPE_CHECKING:
    from adjourn.core.redact import Redactor

WAY_OUT = "adjourn notify --check"
KEYS = (
    "agent",
    "acp",
    "notify",
    "principal",
    "person",
    "team",
    "web",
    "webhook",
    "allowed_signers",
    "revoked_signers",
    "redact",
    "tui",
    "pause_on_approval",
    "exit_codes",
)
_LARGEST = 1024 * 1024
PAUSE_ON_APPROVAL = "ADJOURN_PAUSE_ON_APPROVAL"
_YES_OR_NO = {
    "1": True,
    "true": True,
    "yes": True,
    "0": False,
    "false": False,
    "no": False,
    "": False,
}
EXIT_CODES = "ADJOURN_EXIT_CODES"
_MOST_PATTERNS = 100
_LEAD_OF_KEY = 64  # characters of a key: enough to know it by
_SECRETS_HELP = "redact = ['ACME-[0-9]+'] in that file"


def config_directory() -> str:
    """Return where the user's files are.

    A relative XDG_CONFIG_HOME is void: it would be the project's.
    """
    home = os.environ.get("XDG_CONFIG_HOME", "")
    base = home if os.path.isabs(home) else os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "adjourn")


def require_trust(path: str, found: os.stat_result, *, owner: int | None = None) -> None:
    """Refuse a file that others could have written.

    It names commands that are run, and people who may decide.
    """
    if not is_trusted(found, owner=owner):
        raise Misuse(
            f"{path} can be written by others: what it says is not followed",
            way_out=f"chmod go-w {path}, or make it your own",
        )


def has_config() -> bool:
    """Say whether the user has a config at all."""
    return os.path.lexists(os.path.join(config_directory(), "config.toml"))


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """What a config says, by its keys, and since when."""

    path: str
    content: dict[str, Any] = {}
    since: Milliseconds = 0

    @property
    def directory(self) -> str:
        """Where relative paths in it begin."""
        return os.path.dirname(self.path)

    def tables(self, key: str) -> list[Any]:
        """Return the tables of that name."""
        try:
            return msgspec.convert(self.content.get(key, []), list[Any])
        except msgspec.ValidationError:
            raise Misuse(
                f"{self.path}: `{key}` must be tables: write [[{key}]], with two brackets",
                way_out=WAY_OUT,
            ) from None

    def file(self, key: str, *, table: dict[str, Any] | None = None) -> str:
        """Return the file that a key names, or the one beside the config that is called so."""
        named = (self.content if table is None else table).get(key, key)
        if not isinstance(named, str) or not named or "\0" in named:
            raise Misuse(f"{self.path}: `{key}` must be the path of a file", way_out=WAY_OUT)
        return os.path.join(self.directory, os.path.expanduser(named))


def config_path(owner: int | None = None) -> str:
    """Return where the config of a user is: our own, unless a uid is given that is not ours.

    Of others we know the home only.
    """
    if owner is not None and owner != os.geteuid():
        return os.path.join(_home_of(owner), ".config", "adjourn", "config.toml")
    return os.path.join(config_directory(), "config.toml")


def _home_of(uid: int) -> str:
    # Slow to import, and seldom needed
    import pwd

    try:
        return pwd.getpwuid(uid).pw_dir
    except KeyError:
        raise Misuse(f"uid {uid} has no home, and so no config", way_out="adjourn doctor") from None


def read_config(owner: int | None = None) -> Config:
    """Return what a user's config says; what is wrong with it is said with its file and key."""
    path = config_path(owner)
    try:
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            require_trust(path, found, owner=owner)
            return Config(
                path=path,
                content=_parsed(path, file.read(_LARGEST)),
                since=found.st_mtime_ns // 1_000_000,
            )
    except FileNotFoundError:
        return Config(path=path)
    except OSError as error:
        raise Misuse(f"{path}: {error.strerror}", way_out=WAY_OUT) from error


def _parsed(path: str, content: bytes) -> dict[str, Any]:
    # Slow to import, and seldom needed
    import tomllib

    try:
        parsed = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Misuse(f"{path}: {error}", way_out=WAY_OUT) from error
    unknown = sorted(parsed.keys() - set(KEYS))
    if unknown:
        raise Misuse(
            f"{path}: `{unknown[0]}` is unknown; known are {', '.join(KEYS)}",
            way_out="adjourn config --help",
        )
    return parsed


def wants_pauses() -> bool:
    """Say whether the user wants to be asked wherever no flag says otherwise.

    The environment says so, or `pause_on_approval` in the config.
    """
    if PAUSE_ON_APPROVAL in os.environ:
        said = os.environ[PAUSE_ON_APPROVAL].lower()
        if said not in _YES_OR_NO:
            raise Misuse(
                f"{PAUSE_ON_APPROVAL} is {said!r}: it must be 1 or 0",
                way_out=f"export {PAUSE_ON_APPROVAL}=1",
            )
        return _YES_OR_NO[said]
    if not has_config():
        return False
    config = read_config()
    given = config.content.get("pause_on_approval", False)
    if not isinstance(given, bool):
        raise Misuse(
            f"{config.path}: `pause_on_approval` must be true or false",
            way_out="adjourn config --help",
        )
    return given


def exit_codes_setting() -> str:
    """Return what exit codes 10 and 90 of a command that asked nothing mean: `ask` or `none`.

    The environment says so, or `exit_codes` in the config.
    """
    config = read_config() if EXIT_CODES not in os.environ and has_config() else None
    given = config.content.get("exit_codes", "ask") if config else os.environ.get(EXIT_CODES, "ask")
    if given not in ("ask", "none"):
        where = f"{config.path}: `exit_codes`" if config else EXIT_CODES
        raise Misuse(
            f'{where} must be "ask" or "none"', way_out="adjourn run --exit-codes none -- COMMAND"
        )
    return str(given)


def open_redactor() -> "Redactor":
    """Return what takes secrets out of copies.

    Where the user's patterns cannot be used, nothing is copied at all.
    """
    from adjourn.core.redact import Redactor  # who prints no copy starts without it

    config = read_config()
    try:
        patterns = msgspec.convert(config.content.get("redact", []), list[str])
    except msgspec.ValidationError:
        raise Misuse(
            f"{config.path}: `redact` must be a list of patterns, at the top of the file",
            way_out=_SECRETS_HELP,
        ) from None
    if len(patterns) > _MOST_PATTERNS:
        raise Misuse(
            f"{config.path}: `redact` has {len(patterns)} patterns, more than {_MOST_PATTERNS}",
            way_out=_SECRETS_HELP,
        )
    if key := store_key():  # the store's own is a secret, too
        patterns.append(re.escape(key[:_LEAD_OF_KEY]) + (r"\S*" if len(key) > _LEAD_OF_KEY else ""))
    return Redactor(patterns)
