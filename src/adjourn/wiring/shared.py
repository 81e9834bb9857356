"""Puts together what machines need that share a store.

The database's address, a place for files, processes, leases.
"""

import os
import socket
import stat
from hashlib import sha256
from urllib.parse import urlsplit

import msgspec

from adjourn.core.ask import Principal
from adjourn.core.authority.scopes import ALL, LOGIN, Rights, Scope
from adjourn.core.errors import Misuse, StoreNotBound, StoreProblem, StoreRefused
from adjourn.core.text.render import command_line
from adjourn.ports.leases import RunLeases
from adjourn.ports.store import Change, View
from adjourn.process.ancestry import enclosing_run
from adjourn.process.supervisors import SupervisorRecord
from adjourn.settings.find_store import ADDRESS, URLS
from adjourn.stores.postgres.schema import ENGINE
from adjourn.stores.postgres.store import LEASE, PostgresStore
from adjourn.stores.postgres.translation import shown
from adjourn.system.files import private_directory, write_whole
from adjourn.system.machine import boot_id, state_directory
from adjourn.wiring.all_stores import register
from adjourn.wiring.authority import FileAuthoriser

NOWHERE = "off"
SCOPES_OF = {
    "adjourn_agent": (Scope.REQUEST,),
    "adjourn_approver": (Scope.REQUEST, Scope.ANSWER, Scope.APPROVE),
    "adjourn_worker": (Scope.REQUEST, Scope.ADMIN),
    "adjourn_server": (Scope.ADMIN,),  # beside those of an approver, which it is
}
"""What each role is trusted with; what of that it can do is for the database to say."""
_OTHERS = 0o077
_KEY_DIGITS = 64
_SECRET = ("password=", "sslpassword=")
SEEN = "seen.json"  # how far the database was when somebody here last looked


class Address(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where the database is, and how it is to be used."""

    url: str
    listen: str | None = None  # where to listen, if a pooler stands before it; empty: nowhere
    inside: str | None = None  # the URL of processes inside a run, if they have one of their own
    lease: float = LEASE


def place_for(url: str) -> str:
    """Return where this machine keeps the files of a shared store.

    One directory for each database and user of it.
    """
    place = os.path.join(
        state_directory(os.environ),
        sha256(_identity(url).encode("utf-8", "surrogateescape")).hexdigest()[:16],
    )
    _keep_address(place, _address(url, _former(place) or Address(url=url)))
    return place


def _identity(url: str) -> str:
    """Return what tells databases and their users apart.

    Passwords change, and are no part of it.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise Misuse(
            "ADJOURN_STORE is not a valid PostgreSQL URL",
            way_out="ADJOURN_STORE=postgresql://USER@HOST/DATABASE",
        ) from None
    user, _, hosts = parts.netloc.rpartition("@")
    query = [word for word in parts.query.split("&") if not word.startswith(_SECRET)]
    return f"{user.partition(':')[0]}@{hosts}{parts.path}?{'&'.join(query)}"


def _former(place: str) -> Address | None:
    try:
        return address_of(place)
    except StoreRefused:
        raise
    except StoreProblem:
        return None  # missing, or not understood


def _address(url: str, former: Address) -> Address:
    """Return what the environment says.

    What it does not mention stays: a short command takes nothing from a worker.
    """
    listen = os.environ.get("ADJOURN_LISTEN")
    inside = os.environ.get("ADJOURN_INSIDE")
    for name, value in (
        ("ADJOURN_LISTEN", listen if listen != NOWHERE else ""),
        ("ADJOURN_INSIDE", inside),
    ):
        if value and not value.startswith(URLS):
            raise Misuse(f"{name} is a postgresql:// URL", way_out=f"unset {name}")
    return Address(
        url=url,
        listen=former.listen if listen is None else "" if listen == NOWHERE else listen or None,
        inside=former.inside if inside is None else inside or None,
        lease=_lease(former.lease),
    )


def _lease(former: float) -> float:
    try:
        length = float(os.environ.get("ADJOURN_LEASE") or former)
    except ValueError:
        length = 0.0
    if not 3 <= length <= 3600:  # noqa: PLR2004 -- from what a slow network allows to what anybody waits for
        raise Misuse(
            "ADJOURN_LEASE is a number of seconds from 3 to 3600", way_out="unset ADJOURN_LEASE"
        )
    # The engine counts whole seconds: no shim may count on more than it does
    return float(int(length))


def _keep_address(place: str, address: Address) -> None:
    """Write down where the database is, for the processes of its runs.

    They are told the place, and no password.
    """
    content = msgspec.json.encode(address)
    path = os.path.join(place, ADDRESS)
    try:
        if not os.path.lexists(path) or _content(path) != content:
            os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
            private_directory(place)
            write_whole(path, content)
    except OSError as error:
        raise StoreProblem(
            f"{place} cannot be used: {error.strerror}",
            way_out="set XDG_STATE_HOME to a directory of yours",
        ) from error


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def address_of(place: str) -> Address:
    """Return where the database of a place is.

    What others could have written leads nowhere: it could lead to their database.
    """
    path = os.path.join(place, ADDRESS)
    try:
        found = os.lstat(path)
        if (
            found.st_uid != os.geteuid()
            or found.st_mode & _OTHERS
            or not stat.S_ISREG(found.st_mode)
        ):
            raise StoreRefused(
                f"{path} is not yours alone: it is not followed",
                way_out=f"look at it, then: chmod 600 {path}",
            )
        content = _content(path)
        if not _is_own_place(place) and not os.path.lexists(_trust_mark(place, content)):
            raise StoreNotBound(
                f"{path} was not written here by you: "
                "it is not followed, and no server gets your password",
                way_out=command_line(["adjourn", "store", "adopt", "--store", place]),
            )
        return msgspec.json.decode(content, type=Address)
    except (OSError, msgspec.DecodeError) as error:
        raise StoreProblem(
            f"{place}/{ADDRESS} cannot be read: {error}", way_out="name the store by its URL once"
        ) from error


def _is_own_place(place: str) -> bool:
    """Say whether a directory is one that we made ourselves, in the user's state directory."""
    return os.path.dirname(os.path.realpath(place)) == os.path.realpath(state_directory(os.environ))


def _trust_mark(place: str, content: bytes) -> str:
    """Return the file in the user's state directory that marks an address elsewhere as ours.

    It is for these bytes in this very directory: a copy has another inode.
    """
    of = f"{os.stat(place).st_ino}\0".encode() + content
    return os.path.join(state_directory(os.environ), "addresses", sha256(of).hexdigest())


def trust_address(place: str, content: bytes | None = None) -> None:
    """Follow from now on the address that a directory has, or is about to get.

    We write it, or a person accepted it.
    """
    mark = _trust_mark(place, content or _content(os.path.join(place, ADDRESS)))
    try:
        os.makedirs(os.path.dirname(mark), mode=0o700, exist_ok=True)
        write_whole(mark, b"")
    except OSError as error:
        sentence = f"{mark} cannot be written: {error.strerror}"
        raise StoreProblem(
            sentence, way_out="set XDG_STATE_HOME to a directory of yours"
        ) from error


def untrusted_url(place: str) -> str | None:
    """Return where an address leads that is not followed, without its password, or None."""
    try:
        address_of(place)
    except StoreNotBound:
        return str(
            shown(msgspec.json.decode(_content(os.path.join(place, ADDRESS)), type=Address).url)
        )
    return None


def open_shared(place: str, *, as_worker: bool = False) -> PostgresStore:
    """Open the database of a place.

    Inside a run with the URL that is meant for that, unless a part of adjourn asks.
    """
    address = address_of(place)
    seen = os.path.join(place, SEEN)
    if address.inside and not as_worker and enclosing_run():
        # The URL to listen at is the worker's: where a pooler made that necessary, a process
        # inside checks the store instead.
        listen = None if address.listen is None else ""
        store = PostgresStore(address.inside, listen_url=listen, lease=address.lease, seen=seen)
    else:
        store = PostgresStore(
            address.url, listen_url=address.listen, lease=address.lease, seen=seen
        )
    store.on_first_change = lambda: register(place, str(shown(address.url)))
    key = os.environ.get("ADJOURN_RUN_KEY", "")
    if not as_worker and len(key) == _KEY_DIGITS and not set(key) - set("0123456789abcdef"):
        store.key = key
    return store


class DatabaseAuthoriser(FileAuthoriser):
    """Knows the caller by the login of the database, and everybody else by the user's config."""

    def __init__(self, place: str, store: PostgresStore) -> None:
        super().__init__(place)
        self._store = store

    def caller(self) -> str:
        """Return the login that the database let in."""
        return f"{LOGIN}{self._store.login[0]}"

    def rights(self, by: Principal) -> Rights:
        """Return what somebody may do.

        What a login may is for its roles to say, where there are roles.
        """
        if not by.name.startswith(LOGIN):
            return super().rights(by)
        roles = (
            self._store.login[1]
            if by.name == self.caller()
            else self._store.roles_of(by.name.removeprefix(LOGIN))
        )
        return Rights(
            scopes=ALL
            if roles is None
            else frozenset(scope for role in roles for scope in SCOPES_OF.get(role, ()))
        )

    def require_outside(self, view: View, by: Principal, verb: str) -> None:
        """Refuse a decision from what is, or may be, part of a run of this machine."""
        # Most commands start without it (bench start)
        from adjourn.wiring.authority import require_outside_here

        del view
        require_outside_here(self._root, by, verb)

    def note_place(self, tx: Change, by: Principal) -> None:
        """Remember nothing: a login decides from anywhere."""


def described(place: str) -> str:
    """Return which database it is, without its password, and which engine it has."""
    return f"{named(place)} (Absurd {ENGINE})"


def named(place: str) -> str:
    """Return which database it is, without its password."""
    return str(shown(address_of(place).url))


def is_read_only(place: str) -> bool:
    """Say whether the database can be looked at and no more."""
    store = open_shared(place)
    try:
        return store.is_read_only
    finally:
        store.close()


def described_rights(place: str) -> str:
    """Return who we are there, and how the database tells those who decide from those who ask."""
    store = open_shared(place)
    try:
        name, roles = store.login
    finally:
        store.close()
    levels = f"L0 for what db:{name} started, else L1"
    if roles is None:
        return f"{levels}: every login may decide; `adjourn store roles` tells them apart"
    return f"{levels}: this login has {', '.join(sorted(roles)) or 'no role of adjourn'}"


def start_leases(place: str, about: SupervisorRecord, supervisor: str) -> RunLeases:
    """Begin to say that a supervisor is alive."""
    # Only shared stores need it: its packages are optional
    from adjourn.stores.postgres.leases import PostgresLeases

    # Only shared stores need it: its packages are optional
    from adjourn.supervision.lease_renewal import LeaseRenewal

    address = address_of(place)
    leases = PostgresLeases(
        address.url,
        length=address.lease,
        machine=boot_id(),
        host=socket.gethostname(),
        about=msgspec.json.encode(about),
    )
    return LeaseRenewal(leases, supervisor=supervisor)


def living_everywhere(place: str) -> dict[str, SupervisorRecord]:
    """Return the supervisors of all machines, and what each says of itself."""
    store = open_shared(place)
    try:
        rows = store.supervisors()
    finally:
        store.close()
    return {
        name: msgspec.structs.replace(msgspec.json.decode(body, type=SupervisorRecord), host=host)
        for name, host, body in rows
    }
