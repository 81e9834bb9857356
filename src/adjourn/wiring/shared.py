"""Puts together what machines need that share a store: the database's address, a place for files, processes, leases."""

import os
import socket
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

import msgspec

from adjourn.core.digest import sha256
from adjourn.core.errors import Misuse, StoreProblem, StoreRefused
from adjourn.core.render import prose
from adjourn.files import private_directory, write_whole
from adjourn.ports.leases import Heart
from adjourn.ports.store import Store
from adjourn.process.identity import boot_id
from adjourn.process.supervisors import About
from adjourn.stores.postgres.database import shown
from adjourn.stores.postgres.install import ENGINE
from adjourn.stores.postgres.store import LEASE, PostgresStore
from adjourn.wiring import ADDRESS

_OTHERS = 0o077
SEEN = "seen.json"  # how far the database was when somebody here last looked


class Address(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where the database is; where to listen, if a pooler stands before it; and how long a lease lasts."""

    url: str
    listen: str | None = None
    lease: float = LEASE


def place_for(url: str) -> str:
    """Return where this machine keeps the files of a shared store: one directory for each database and user of it."""
    parts = urlsplit(url)
    name = f"{parts.username or ''}@{parts.hostname or ''}:{parts.port or ''}{parts.path}?{parts.query}"
    home = os.environ.get("XDG_STATE_HOME", "")
    base = home if os.path.isabs(home) else os.path.join(os.path.expanduser("~"), ".local", "state")
    place = os.path.join(base, "adjourn", sha256(name.encode("utf-8", "surrogateescape")).hex()[:16])
    _keep_address(place, Address(url=url, listen=os.environ.get("ADJOURN_LISTEN") or None, lease=_lease()))
    return place


def _lease() -> float:
    try:
        length = float(os.environ.get("ADJOURN_LEASE") or LEASE)
    except ValueError:
        length = 0.0
    if not 3 <= length <= 3600:  # noqa: PLR2004 -- from what a slow network allows to what anybody waits for
        raise Misuse("ADJOURN_LEASE is a number of seconds from 3 to 3600", way_out="unset ADJOURN_LEASE")
    return float(int(length))  # the engine counts whole seconds: no shim may count on more than it does


def _keep_address(place: str, address: Address) -> None:
    """Write down where the database is, for the processes of its runs: they are told the place, and no password."""
    content = msgspec.json.encode(address)
    path = os.path.join(place, ADDRESS)
    try:
        if not os.path.lexists(path) or _content(path) != content:
            os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
            private_directory(place)
            write_whole(path, content)
    except OSError as error:
        raise StoreProblem(
            f"{place} cannot be used: {error.strerror}", way_out="set XDG_STATE_HOME to a directory of yours"
        ) from error


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def address_of(place: str) -> Address:
    """Return where the database of a place is. What others could have written leads nowhere: it could lead to their database."""
    path = os.path.join(place, ADDRESS)
    try:
        found = os.lstat(path)
        if found.st_uid != os.geteuid() or found.st_mode & _OTHERS or not stat.S_ISREG(found.st_mode):
            raise StoreRefused(f"{path} is not yours alone: it is not followed", way_out=f"look at it, then: chmod 600 {path}")
        return msgspec.json.decode(_content(path), type=Address)
    except (OSError, msgspec.DecodeError) as error:
        raise StoreProblem(f"{place}/{ADDRESS} cannot be read: {error}", way_out="name the store by its URL once") from error


def open_shared(place: str) -> PostgresStore:
    """Open the database of a place."""
    address = address_of(place)
    seen = os.path.join(place, SEEN)
    return PostgresStore(address.url, listen_url=address.listen, lease=address.lease, seen=seen, say=_say)


def _say(sentence: str) -> None:
    """Tell whoever waits at a terminal, or reads what it said, why nothing happens."""
    with suppress(OSError, ValueError):
        sys.stderr.write(f"adjourn: {prose(sentence)}\n")
        sys.stderr.flush()


def log_waits(store: Store, log: Callable[..., None]) -> None:
    """Have a worker tell of waits as it tells of everything else."""
    if isinstance(store, PostgresStore) and store.patience:
        store.patience.say = lambda sentence: log("store_slow", error=sentence)


def described(place: str) -> str:
    """Return which database it is, without its password, and which engine it has."""
    return f"{shown(address_of(place).url)} (Absurd {ENGINE})"


def start_heart(place: str, about: About, *, supervisor: str) -> Heart:
    """Begin to say that a supervisor is alive."""
    from adjourn.pulse import Pulse
    from adjourn.stores.postgres.leases import PostgresLeases

    address = address_of(place)
    leases = PostgresLeases(
        address.url, length=address.lease, machine=boot_id(), host=socket.gethostname(), about=msgspec.json.encode(about)
    )
    return Pulse(leases, supervisor=supervisor)


def living_everywhere(place: str) -> dict[str, About]:
    """Return the supervisors of all machines, and what each says of itself."""
    store = open_shared(place)
    try:
        rows = store.supervisors()
    finally:
        store.close()
    return {name: msgspec.structs.replace(msgspec.json.decode(body, type=About), host=host) for name, host, body in rows}
