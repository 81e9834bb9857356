"""The tokens of the HTTP API, each with what it may do. Only the hash of a token is kept."""

import os
import re
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from typing import Literal
from zlib import crc32

import msgspec

from adjourn.core.authority.scopes import Rights, Scope
from adjourn.core.errors import Misuse
from adjourn.core.task import Milliseconds
from adjourn.settings.config import config_directory, config_path, require_trust
from adjourn.system.files import hold_lock, private_directory, write_whole

_FILE = "tokens.json"
_LOCK = "tokens.lock"
_PREFIX = "adj_"
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BYTES, _BODY, _CHECK = 32, 43, 6  # of chance; and characters
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")


class ApiToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Somebody who calls the HTTP API, or an agent that speaks MCP over HTTP."""

    name: str
    kind: Literal["token", "agent"] = "token"
    scopes: tuple[Scope, ...] = ()
    is_person: bool = False  # a person holds it
    also: tuple[str, ...] = ()  # other names of that person
    sha256: str
    at: str
    by: str
    expires_at: Milliseconds | None = None

    @property
    def principal(self) -> str:
        """The name under which its holder acts."""
        return f"{self.kind}:{self.name}"

    def is_over(self, now: Milliseconds) -> bool:
        """Whether its time is over."""
        return self.expires_at is not None and self.expires_at <= now


class _Tokens(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    tokens: tuple[ApiToken, ...] = ()


def tokens_path(owner: int | None = None) -> str:
    """Return where the tokens of a user are written down."""
    return os.path.join(os.path.dirname(config_path(owner)), _FILE)


def read_tokens(owner: int | None = None) -> tuple[ApiToken, ...]:
    """Return all tokens; a file that others could have written is refused."""
    path = tokens_path(owner)
    try:
        with open(path, "rb") as file:
            require_trust(path, os.fstat(file.fileno()), owner=owner)
            return msgspec.json.decode(file.read(), type=_Tokens).tokens
    except FileNotFoundError:
        return ()
    except (OSError, msgspec.MsgspecError) as error:
        raise Misuse(
            f"{path} cannot be read: {error}", way_out=f"mv {path} {path}.old, then adjourn tokens"
        ) from None


def change_tokens(change: Callable[[tuple[ApiToken, ...]], tuple[ApiToken, ...]]) -> None:
    """Replace the tokens by changed ones; of two who change them one waits."""
    os.makedirs(os.path.dirname(config_directory()), exist_ok=True)
    directory = private_directory(config_directory())
    with closing(hold_lock(os.path.join(directory, _LOCK))):
        tokens = change(read_tokens())
        content = msgspec.json.format(msgspec.json.encode(_Tokens(tokens=tokens)), indent=2)
        write_whole(tokens_path(), content + b"\n")


def rights_of_token(name: str, *, owner: int, now: Milliseconds) -> Rights | None:
    """Return what the token of that name may do, or None if it is unknown or expired."""
    for token in read_tokens(owner):
        if token.kind == "token" and token.name == name and not token.is_over(now):
            return Rights(
                scopes=frozenset(token.scopes), is_person=token.is_person, also=token.also
            )
    return None


# --- the secret itself ----------------------------------------------------------------------------


def require_name(name: str) -> str:
    """Return the name of a token, or refuse an invalid one."""
    if not _NAME.fullmatch(name):
        raise Misuse(
            f"{name!r} is not a name: letters, digits, `.`, `_` and `-`, at most 32",
            way_out="adjourn tokens add ci --scope request",
        )
    return name


def new_secret() -> str:
    """Return a new token: chance, and a checksum by which scanners of secrets know it."""
    body = _spelled(int.from_bytes(os.urandom(_BYTES)), _BODY)
    return f"{_PREFIX}{body}{_spelled(crc32(body.encode()), _CHECK)}"


def is_secret(text: str) -> bool:
    """Return whether a text is a token at all; a mistyped one is not."""
    body, check = text[len(_PREFIX) : -_CHECK], text[-_CHECK:]
    return (
        text.startswith(_PREFIX)
        and len(body) == _BODY
        and text.isascii()
        and check == _spelled(crc32(body.encode()), _CHECK)
    )


def digest_of_token(secret: str) -> str:
    """Return the hash by which a token is kept."""
    return sha256(secret.encode()).hexdigest()


def _spelled(number: int, length: int) -> str:
    digits = ""
    for _ in range(length):
        number, rest = divmod(number, len(_DIGITS))
        digits = _DIGITS[rest] + digits
    return digits
