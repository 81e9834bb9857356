"""One-time links and the sessions of browsers. Only hashes are kept: the file lets nobody in."""

import os
from base64 import urlsafe_b64encode
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256

import msgspec

from adjourn.core.task import Milliseconds
from adjourn.system.files import hold_lock, private_directory, write_whole
from adjourn.system.machine import state_directory

LINK_LASTS: Milliseconds = 600_000  # ten minutes
SESSION_LASTS: Milliseconds = 30 * 86_400_000
_FILE, _LOCK, _URL = "sessions.json", "sessions.lock", "url"
_USUAL_URL = "http://127.0.0.1:7373"
_BYTES = 32


class LoginLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link that logs a user in, once."""

    sha256: str
    user: str
    expires_at: Milliseconds


class WebSession(msgspec.Struct, frozen=True, kw_only=True):
    """A browser that is logged in."""

    sha256: str
    user: str
    began_at: Milliseconds
    expires_at: Milliseconds
    how: str  # link or passkey


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    links: tuple[LoginLink, ...] = ()
    sessions: tuple[WebSession, ...] = ()


def make_link(user: str, *, now: Milliseconds) -> str:
    """Return a token that logs a user in once, within ten minutes."""
    token = _new_token()
    link = LoginLink(sha256=_digest(token), user=user, expires_at=now + LINK_LASTS)
    _change(lambda kept: msgspec.structs.replace(kept, links=(*kept.links, link)), now=now)
    return token


def use_link(token: str, *, now: Milliseconds) -> str | None:
    """Return whose link a token is and void it; None if it is unknown, used or too old."""
    digest, found = _digest(token), list[str]()

    def change(kept: _Kept) -> _Kept:
        found.extend(link.user for link in kept.links if link.sha256 == digest)
        links = tuple(link for link in kept.links if link.sha256 != digest)
        return msgspec.structs.replace(kept, links=links)

    _change(change, now=now)
    return found[0] if found else None


def begin_session(user: str, *, how: str, now: Milliseconds) -> str:
    """Return the token of a new session: what the cookie holds, and nothing else knows."""
    token = _new_token()
    session = WebSession(
        sha256=_digest(token), user=user, began_at=now, expires_at=now + SESSION_LASTS, how=how
    )
    _change(lambda kept: msgspec.structs.replace(kept, sessions=(*kept.sessions, session)), now=now)
    return token


def find_session(token: str, *, now: Milliseconds) -> WebSession | None:
    """Return the session of a cookie, if it still lasts."""
    digest = _digest(token)
    return next(
        (each for each in _read().sessions if each.sha256 == digest and now < each.expires_at), None
    )


def end_session(token: str, *, now: Milliseconds) -> None:
    """End the session of a cookie."""
    digest = _digest(token)

    def change(kept: _Kept) -> _Kept:
        left = tuple(each for each in kept.sessions if each.sha256 != digest)
        return msgspec.structs.replace(kept, sessions=left)

    _change(change, now=now)


def end_all_of(user: str, *, now: Milliseconds) -> None:
    """End all sessions of a user and void the links."""

    def change(kept: _Kept) -> _Kept:
        return _Kept(
            links=tuple(link for link in kept.links if link.user != user),
            sessions=tuple(each for each in kept.sessions if each.user != user),
        )

    _change(change, now=now)


def sessions_of(user: str, *, now: Milliseconds) -> list[WebSession]:
    """Return the sessions of a user that last, newest first."""
    found = [each for each in _read().sessions if each.user == user and now < each.expires_at]
    return sorted(found, key=lambda each: -each.began_at)


def note_url(url: str) -> None:
    """Remember where the server is reached, for the links that `adjourn users link` makes."""
    write_whole(os.path.join(_made_directory(), _URL), url.encode())


def noted_url() -> str:
    """Return where the server that was started last is reached."""
    try:
        with open(os.path.join(_directory(), _URL), encoding="utf-8") as file:
            return file.read().strip() or _USUAL_URL
    except (OSError, UnicodeDecodeError):
        return _USUAL_URL


def _new_token() -> str:
    return urlsafe_b64encode(os.urandom(_BYTES)).decode().rstrip("=")


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", "replace")).hexdigest()


def _directory() -> str:
    return os.path.join(state_directory(os.environ), "web")


def _made_directory() -> str:
    os.makedirs(os.path.dirname(_directory()), mode=0o700, exist_ok=True)
    return private_directory(_directory())


_last_read: dict[tuple[str, int, int, int], _Kept] = {}  # every request looks its session up


def _read() -> _Kept:
    path = os.path.join(_directory(), _FILE)
    try:
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            version = path, found.st_ino, found.st_mtime_ns, found.st_size
            kept = _last_read.get(version)
            if kept is None:
                kept = msgspec.json.decode(file.read(), type=_Kept)
                _last_read.clear()
                _last_read[version] = kept
            return kept
    except FileNotFoundError:
        return _Kept()
    except msgspec.MsgspecError:  # nobody is logged in any more, and everybody can log in again
        return _Kept()


def _change(change: Callable[[_Kept], _Kept], *, now: Milliseconds) -> None:
    """Replace what is kept, without what is over; of two who change it one waits."""
    directory = _made_directory()
    with closing(hold_lock(os.path.join(directory, _LOCK))):
        kept = _read()
        kept = _Kept(
            links=tuple(link for link in kept.links if now < link.expires_at),
            sessions=tuple(each for each in kept.sessions if now < each.expires_at),
        )
        write_whole(os.path.join(directory, _FILE), msgspec.json.encode(change(kept)))
