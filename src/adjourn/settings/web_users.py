"""The people who may log in to `adjourn serve`, with the public keys of their passkeys."""

import os
import re
from collections.abc import Callable
from contextlib import closing

import msgspec

from adjourn.core.authority.scopes import Scope
from adjourn.core.errors import Misuse, NotFound
from adjourn.settings.config import config_directory, config_path, require_trust
from adjourn.system.files import hold_lock, private_directory, write_whole

_FILE = "users.json"
_LOCK = "users.lock"
# As a person of the config is called: no two names look alike
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class Passkey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The public half of a passkey, and where it was made: it serves nowhere else."""

    id: str  # base64url, as the browser writes it
    public_key: str  # base64url
    rp_id: str
    name: str
    at: str


class WebUser(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Somebody who may log in: `web:NAME`, and `passkey:NAME` where a passkey signed."""

    name: str
    scopes: tuple[Scope, ...]
    at: str
    passkeys: tuple[Passkey, ...] = ()


class _Users(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    users: tuple[WebUser, ...] = ()


def read_users(owner: int | None = None) -> tuple[WebUser, ...]:
    """Return the users of a config's owner; a file that others could have written is refused."""
    path = os.path.join(os.path.dirname(config_path(owner)), _FILE)
    try:
        with open(path, "rb") as file:
            require_trust(path, os.fstat(file.fileno()), owner=owner)
            return msgspec.json.decode(file.read(), type=_Users).users
    except FileNotFoundError:
        return ()
    except (OSError, msgspec.MsgspecError) as error:
        raise Misuse(
            f"{path} cannot be read: {error}",
            way_out=f"mv {path} {path}.old, then adjourn users add NAME",
        ) from None


def find_user(name: str, owner: int | None = None) -> WebUser | None:
    """Return the user of that name, if there is one."""
    return next((user for user in read_users(owner) if user.name == name), None)


def require_user(name: str) -> WebUser:
    """Return the user of that name, or raise NotFound."""
    found = find_user(name)
    if found is None:
        raise NotFound(f"no user is called {name!r}", way_out="adjourn users list")
    return found


def change_users(change: Callable[[tuple[WebUser, ...]], tuple[WebUser, ...]]) -> None:
    """Replace the users by what `change` returns; of two who change them one waits."""
    os.makedirs(os.path.dirname(config_directory()), exist_ok=True)
    directory = private_directory(config_directory())
    with closing(hold_lock(os.path.join(directory, _LOCK))):
        users = change(read_users())
        content = msgspec.json.format(msgspec.json.encode(_Users(users=users)), indent=2)
        write_whole(os.path.join(directory, _FILE), content + b"\n")


def is_user_name(name: str) -> bool:
    """Return whether a user may be called so."""
    return bool(_NAME.fullmatch(name))


def add_user(name: str, scopes: tuple[Scope, ...], *, at: str) -> WebUser:
    """Add a user, or raise Misuse where the name is not valid or is taken."""
    if not is_user_name(name):
        raise Misuse(
            f"{name!r} is not a name: lower-case letters a to z, digits, `.`, `_` and `-`",
            way_out="adjourn users add anna",
        )
    made = WebUser(name=name, scopes=scopes, at=at)

    def change(users: tuple[WebUser, ...]) -> tuple[WebUser, ...]:
        if any(user.name == name for user in users):
            raise Misuse(f"there is a user {name} already", way_out=f"adjourn users link {name}")
        return (*users, made)

    change_users(change)
    return made


def remove_user(name: str) -> None:
    """Remove a user with all passkeys, or raise NotFound."""

    def change(users: tuple[WebUser, ...]) -> tuple[WebUser, ...]:
        left = tuple(user for user in users if user.name != name)
        if len(left) == len(users):
            raise NotFound(f"no user is called {name!r}", way_out="adjourn users list")
        return left

    change_users(change)


def change_passkeys(
    name: str, change: Callable[[tuple[Passkey, ...]], tuple[Passkey, ...]]
) -> None:
    """Replace the passkeys of a user by what `change` returns."""

    def change_all(users: tuple[WebUser, ...]) -> tuple[WebUser, ...]:
        if all(user.name != name for user in users):
            raise NotFound(f"no user is called {name!r}", way_out="adjourn users list")
        return tuple(
            msgspec.structs.replace(user, passkeys=change(user.passkeys))
            if user.name == name
            else user
            for user in users
        )

    change_users(change_all)
