"""What every `[[notify]]` table may have, whatever kind of notifier it chooses."""

import base64
import binascii
import os
from typing import Any

import msgspec

from adjourn.ports.notifier import BadTable, read_keys
from adjourn.settings.config import Config
from adjourn.system.files import read_secret
from adjourn.views.notice import Occasion

DEFAULT_TIMEOUT = 10.0
LONGEST_TIMEOUT = 300.0
_PREFIX = "whsec_"
_KEY_BYTES = range(24, 65)
_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_SECRETS = ("secret", "secret_env", "secret_file")
_LONGEST_NAME = 64
_CHATS = ("telegram", "slack")  # where the platform says who pressed
_BY_LINK = ("ntfy", "mail")  # where the holder of the link may decide


class Secret(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a secret is to be found.

    Both the signer and the verifier have one of the three.
    """

    secret: str = ""
    secret_env: str = ""
    secret_file: str = ""


class NotifyTable(Secret, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The common keys of a notifier."""

    on: tuple[Occasion, ...] = tuple(Occasion)
    timeout: float = DEFAULT_TIMEOUT
    name: str = ""


COMMON_KEYS = {
    "on": "What to notify about: a list of `pause`, `decision`, `completion`, `failure`, "
    "`uncertain` and `reminder`. Without it, all of them. With an empty list, only of reminders "
    "whose rule names it in `escalate_to`.",
    "secret": "What the webhook is signed with: `whsec_` and 24 to 64 bytes in base64. "
    "A webhook needs this or one of the next two.",
    "secret_env": "The environment variable that holds the secret.",
    "secret_file": "The file that holds the secret; a relative path begins at the config's "
    "directory.",
    "timeout": "Seconds that one try may take, up to 300. Without it, 10.",
    "name": "What to call it: letters, digits, `.`, `_` and `-`. Without it, the command's file "
    "name, or the URL's host. The store remembers under this name what was told.",
}
"""What each common key means, for the reference."""


def read_table(content: Any) -> tuple[NotifyTable, dict[str, Any]]:
    """Return the common keys of a table and the rest of it, or raise BadTable."""
    try:
        values = msgspec.convert(content, dict[str, Any])
    except msgspec.ValidationError as error:
        raise BadTable(str(error)[:1].lower() + str(error)[1:]) from error
    common = {key: values.pop(key) for key in COMMON_KEYS if key in values}
    table = read_keys(common, NotifyTable)
    if not 0 < table.timeout <= LONGEST_TIMEOUT:
        raise BadTable(f"`timeout` must be above 0 and at most {LONGEST_TIMEOUT:g} seconds")
    return table, values


def refuse_secret(table: Secret, *, kind: str) -> None:
    """Refuse a table that names a secret for a notifier that has none."""
    for key in _SECRETS:
        if getattr(table, key):
            raise BadTable(f"`{key}` is for a webhook; a {kind} has none")


def require_secret(table: Secret) -> None:
    """Refuse a table that names no secret, or several."""
    if sum(bool(getattr(table, key)) for key in _SECRETS) != 1:
        raise BadTable("a webhook needs exactly one of `secret`, `secret_env` and `secret_file`")


def proper_name(name: str) -> str:
    """Return a name that can be printed anywhere, or raise BadTable."""
    if not name or not _NAME.issuperset(name) or name.startswith(".") or len(name) > _LONGEST_NAME:
        raise BadTable(f"`name` must be up to {_LONGEST_NAME} letters, digits, `.`, `_` and `-`")
    return name


def key_of(table: Secret, *, directory: str) -> bytes:
    """Return the bytes that a webhook is signed with, from wherever the table says they are."""
    require_secret(table)
    if table.secret:
        return _decoded(table.secret, "secret")
    if table.secret_env:
        if table.secret_env not in os.environ:
            raise BadTable(f"`secret_env`: there is no variable {table.secret_env}")
        return _decoded(os.environ[table.secret_env], "secret_env")
    path = os.path.join(directory, os.path.expanduser(table.secret_file))
    try:
        return _decoded(read_secret(path, largest=1024).decode("ascii", "replace"), "secret_file")
    except OSError as error:
        raise BadTable(f"`secret_file`: {path}: {error.strerror}") from error


def _decoded(secret: str, key: str) -> bytes:
    """Read a secret; errors do not hold it."""
    text = secret.strip()
    try:
        decoded = base64.b64decode(text.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if not text.startswith(_PREFIX) or len(decoded) not in _KEY_BYTES:
        raise BadTable(f"`{key}`: a secret is whsec_ and 24 to 64 bytes in base64")
    return decoded


def read_token(file: str, variable: str, *, directory: str) -> str:
    """Return a token from a file or a variable of the environment; errors do not hold it."""
    if bool(file) == bool(variable):
        raise BadTable("a token comes from one file (`token_file`) or one variable (`token_env`)")
    if variable:
        if variable not in os.environ:
            raise BadTable(f"`token_env`: there is no variable {variable}")
        return os.environ[variable].strip()
    path = os.path.join(directory, os.path.expanduser(file))
    try:
        return read_secret(path, largest=4096).decode("ascii", "replace").strip()
    except OSError as error:
        raise BadTable(f"`token_file`: {path}: {error.strerror}") from error


def approvers_in(config: Config) -> dict[str, str]:
    """Return who may press buttons, as `telegram:42` or `slack:U7`, and what each is called.

    A table that cannot be used names nobody; `notify --check` says what is wrong with it.
    """
    found: dict[str, str] = {}
    for table in _tables(config):
        for kind in _CHATS:
            approvers = _as_table(_as_table(table.get(kind)).get("approvers"))
            found |= {
                f"{kind}:{each}": name
                for each, name in approvers.items()
                if isinstance(name, str) and name
            }
    return found


def links_in(config: Config) -> dict[str, str | None]:
    """Return which notifiers send links that decide, and which person each stands for, if any."""
    found: dict[str, str | None] = {}
    for table in _tables(config):
        for kind in _BY_LINK:
            if kind in table:
                person = _as_table(table[kind]).get("person")
                is_named = isinstance(person, str) and person
                found[str(table.get("name") or kind)] = person if is_named else None
    return found


def _tables(config: Config) -> list[dict[str, Any]]:
    return [_as_table(table) for table in config.tables("notify")]


def _as_table(content: object) -> dict[str, Any]:
    """Return a table of the config; anything else is an empty one."""
    try:
        return msgspec.convert(content, dict[str, Any])
    except msgspec.ValidationError:
        return {}
