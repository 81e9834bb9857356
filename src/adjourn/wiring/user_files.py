"""The user's own files: where they are, and whether others could have written them."""

import os

from adjourn.core.errors import Misuse

_OTHERS_MAY_WRITE = 0o002


def config_directory() -> str:
    """Return where the user's files are. A relative XDG_CONFIG_HOME is void: it would be the project's."""
    home = os.environ.get("XDG_CONFIG_HOME", "")
    base = home if os.path.isabs(home) else os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "adjourn")


def is_trusted(found: os.stat_result, *, owner: int | None = None) -> bool:
    """Say whether only its user, or root, can have written a file: what it says is followed."""
    return found.st_uid in {os.geteuid() if owner is None else owner, 0} and not found.st_mode & _OTHERS_MAY_WRITE


def require_trust(path: str, found: os.stat_result, *, owner: int | None = None) -> None:
    """Refuse a file that others could have written: it names commands that are run, and people who may decide."""
    if not is_trusted(found, owner=owner):
        raise Misuse(f"{path} can be written by others: what it says is not followed", way_out=f"chmod o-w {path}")


def has_config() -> bool:
    """Say whether the user has a config at all."""
    return os.path.lexists(os.path.join(config_directory(), "config.toml"))
