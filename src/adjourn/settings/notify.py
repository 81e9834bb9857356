"""What a `[[notify]]` table may say."""

import base64
import binascii
import os
from typing import Any
from urllib.parse import urlsplit

import msgspec

from adjourn.views.notice import Occasion

DEFAULT_TIMEOUT = 10.0
LONGEST_TIMEOUT = 300.0
_PREFIX = "whsec_"
_KEY_BYTES = range(24, 65)
_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_SECRETS = ("secret", "secret_env", "secret_file")
_LONGEST_NAME = 64


class BadTable(Exception):
    """A table cannot be used; the words name its key and say why."""


class Secret(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a secret is to be found.

    Whoever signs with it, and whoever verifies, has one of the three.
    """

    secret: str = ""
    secret_env: str = ""
    secret_file: str = ""


class Table(Secret, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One notifier, as the user's config describes it."""

    on: tuple[Occasion, ...] = tuple(Occasion)
    command: tuple[str, ...] = ()
    webhook: str = ""
    timeout: float = DEFAULT_TIMEOUT
    name: str = ""


KEYS = {
    "on": "What to be told of: a list of `pause`, `decision`, `completion`, `failure` and `uncertain`. Without it, all of them.",
    "command": "The command to run, as a list of words; no shell. It gets the document on its stdin, "
    "and has taken it when it exits 0.",
    "webhook": "The URL to post to: `https`, or `http` to this machine. It has taken the document when it answers 2xx.",
    "secret": "What the webhook is signed with: `whsec_` and 24 to 64 bytes in base64. "
    "A webhook needs this or one of the next two.",
    "secret_env": "The environment variable that holds the secret.",
    "secret_file": "The file that holds the secret; a relative path begins at the config's directory.",
    "timeout": "Seconds that one try may take, up to 300. Without it, 10.",
    "name": "What to call it: letters, digits, `.`, `_` and `-`. Without it, the command's file name, or the URL's host. "
    "The store remembers under this name what was told.",
}
"""What each key means, for the reference."""


def read_table(content: Any) -> Table:
    """Return a table whose every key makes sense, with its name, or raise BadTable."""
    try:
        table = msgspec.convert(content, Table)
    except msgspec.ValidationError as error:
        raise BadTable(told(error)) from error
    _require_one_way(table)
    if not table.on:
        raise BadTable("`on` is empty: nothing would ever be told")
    if not 0 < table.timeout <= LONGEST_TIMEOUT:
        raise BadTable(f"`timeout` must be above 0 and at most {LONGEST_TIMEOUT:g} seconds")
    return msgspec.structs.replace(table, name=_name(table))


def told(error: msgspec.ValidationError) -> str:
    """Say a mismatch with the name of its key, not with the path of a parser."""
    text, _, path = str(error).partition(" - at `$")
    key = path.strip("`.").partition("[")[0]
    return f"`{key}`: {text[:1].lower()}{text[1:]}" if key else f"{text[:1].lower()}{text[1:]}"


def _require_one_way(table: Table) -> None:
    if bool(table.command) == bool(table.webhook):
        raise BadTable("it needs `command` or `webhook`, and not both")
    if table.command:
        given = [f"`{key}`" for key in _SECRETS if getattr(table, key)]
        if given:
            raise BadTable(f"{given[0]} is for a webhook; a command has none")
        _require_words(table)
        return
    _require_url(table.webhook)
    require_secret(table)


def require_secret(table: Secret) -> None:
    """Refuse a table that names no secret, or several."""
    if sum(bool(getattr(table, key)) for key in _SECRETS) != 1:
        raise BadTable("a webhook needs exactly one of `secret`, `secret_env` and `secret_file`")


def _require_words(table: Table) -> None:
    if not table.command[0] or any("\0" in word for word in table.command):
        raise BadTable("`command` must name a program, and no word of it may hold a NUL")


def _require_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_usable = bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise BadTable(f"`webhook` is not a URL: {error}") from error
    if not is_usable or not url.isascii() or not url.isprintable() or " " in url:
        raise BadTable("`webhook` is not a URL")
    if parts.username is not None or parts.password is not None:
        raise BadTable(
            "`webhook` must not carry a user or a password: it is signed with the secret"
        )
    if parts.scheme != "https" and not (
        parts.scheme == "http" and _is_this_machine(parts.hostname or "")
    ):
        raise BadTable(
            "`webhook` must be https; http goes to this machine only (127.0.0.1, ::1, localhost)"
        )


def _is_this_machine(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _name(table: Table) -> str:
    name = table.name or (
        os.path.basename(table.command[0])
        if table.command
        else urlsplit(table.webhook).hostname or ""
    )
    return proper_name(name)


def proper_name(name: str) -> str:
    """Return a name that can be said anywhere, or refuse it."""
    if not name or not _NAME.issuperset(name) or name.startswith(".") or len(name) > _LONGEST_NAME:
        raise BadTable(f"`name` must be up to {_LONGEST_NAME} letters, digits, `.`, `_` and `-`")
    return name


def key_of(table: Secret, *, directory: str) -> bytes:
    """Return the bytes that a webhook is signed with, from wherever the table says they are."""
    if table.secret:
        return _decoded(table.secret, "secret")
    if table.secret_env:
        if table.secret_env not in os.environ:
            raise BadTable(f"`secret_env`: there is no variable {table.secret_env}")
        return _decoded(os.environ[table.secret_env], "secret_env")
    path = os.path.join(directory, os.path.expanduser(table.secret_file))
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return _decoded(file.read(1024), "secret_file")
    except OSError as error:
        raise BadTable(f"`secret_file`: {path}: {error.strerror}") from error


def _decoded(secret: str, key: str) -> bytes:
    """Read a secret; what is wrong is said without saying the secret."""
    text = secret.strip()
    try:
        decoded = base64.b64decode(text.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if not text.startswith(_PREFIX) or len(decoded) not in _KEY_BYTES:
        raise BadTable(f"`{key}`: a secret is whsec_ and 24 to 64 bytes in base64")
    return decoded
