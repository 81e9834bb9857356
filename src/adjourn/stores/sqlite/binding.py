"""Ties a store to one machine and one user, by files that are kept outside of it.

For each store the user's state directory has `stores/ID/key.json`, with a secret and the place of
the store, and `stores/ID/seen`, with the newest place of the trail that was acknowledged or acted
on here. The store itself keeps its id and a digest of the secret. A copy of a store, wherever it
came from, has no such files, or is not where they say.
"""

import os
import pwd
import stat
import struct
from contextlib import suppress
from hashlib import sha256
from typing import Protocol

import msgspec

from adjourn.core.errors import StoreNotBound, StoreOlder, StoreProblem
from adjourn.core.text.render import command_line
from adjourn.core.trail.events import GENESIS
from adjourn.system.files import private_directory, sync_directory, write_whole

IDENTITY = "store/identity"  # the name of the store's document with its id
_OTHERS = 0o077
_SMALL = 65_536
_MARK = struct.Struct("<8sQ32s32s")  # what it is, the place, the seal there, the digest of all that
_MAGIC = b"adjourn1"
# Two marks in turn, a sector apart: one that is half written leaves the one before
_SLOTS = (0, 512)


class Home(msgspec.Struct, frozen=True, kw_only=True):
    """Where the user keeps what is known of stores, and the key that was given, if one was."""

    directory: str
    key: str | None = None
    # Whether it is opened to ask from inside a run: a sandbox may hide the directory
    is_for_asking: bool = False


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What a store says of itself."""

    id: str
    digest: str
    made_by: str
    made_at: int


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a store outside of it."""

    secret: str
    path: str
    device: int
    inode: int


class Mark(msgspec.Struct, frozen=True):
    """A place of the trail, and the seal that was there."""

    place: int
    seal: bytes


class SharedDocuments(Protocol):
    """What a store keeps that belongs to no task."""

    def shared_document(self, name: str) -> bytes | None:
        """Return what the store keeps under that name."""
        ...


class Trail(SharedDocuments, Protocol):
    """What has to be known of a store, inside a transaction of it."""

    def trail_head(self) -> tuple[int, bytes]:
        """Return the place and the seal of the newest event."""
        ...

    def seal_at(self, place: int) -> bytes | None:
        """Return the seal of the event at a place, if there is one."""
        ...


class Binding:
    """One store as its user knows it."""

    def __init__(self, root: str, home: Home) -> None:
        self._root = os.path.realpath(root)
        self._home = home
        self._id: str | None = None  # once it was found to be ours
        self._seen: int | None = None  # the file with the mark, while a transaction is open
        self._may_write = False
        self._slot = 0  # where the next mark is written

    # --- whether it is ours -----------------------------------------------------------------------

    def require(self, trail: Trail) -> None:
        """Refuse a store that is not bound to its directory, or lacks what was acknowledged."""
        if self._id is None:
            self._id = self._bound(trail)
        self._open_mark(self._mark_path(self._id))
        mark = self._read_mark()
        if mark is None:
            raise self._older("what this machine has seen of it is lost or damaged")
        if mark.place and trail.seal_at(mark.place) != mark.seal:
            head, _ = trail.trail_head()
            missing = f"its last {mark.place - head}" if mark.place > head else "at least one"
            raise self._older(
                f"{missing} of the {mark.place} events that this machine has seen are missing"
            )

    def _bound(self, trail: Trail) -> str:
        """Return the id of a store that is ours, or refuse it.

        The right key binds it, however it came here.
        """
        identity = identity_in(trail)
        if identity is None:
            raise self._not_bound(
                "it has no identity: an older adjourn, or another program, made it"
            )
        kept = self._read_key(identity.id)
        is_known = kept is not None and _digest(identity.id, kept.secret) == identity.digest
        here = os.stat(self._root)
        if kept and is_known and _is_here(kept, self._root, here):
            if (kept.path, kept.device) != (
                self._root,
                here.st_dev,
            ) and not self._home.is_for_asking:
                # It was moved, or the machine was started again
                self._write_key(identity.id, kept.secret)
            return identity.id
        secret = _secret_of(self._home.key, identity.id) if self._home.key else ""
        if secret and _digest(identity.id, secret) == identity.digest:
            self._write_key(identity.id, secret)
            if not os.path.lexists(self._mark_path(identity.id)):
                self._make_mark(identity.id, Mark(*trail.trail_head()))
            return identity.id
        if kept and is_known:
            raise self._not_bound(f"it is a copy of {kept.path}")
        raise self._not_bound("it was not made here by you, or your state directory is another")

    def _not_bound(self, why: str) -> StoreNotBound:
        return StoreNotBound(
            f"{self._root} is not bound to this machine and user: {why}. "
            "It can be looked at; nothing in it is started or decided",
            way_out=command_line(["adjourn", "store", "adopt", "--store", self._root]),
        )

    def _older(self, why: str) -> StoreOlder:
        return StoreOlder(
            f"{self._root} was restored from a backup, or lost its log: {why}. "
            "What ran since then could run a second "
            "time. It can be looked at; nothing in it is started or decided",
            way_out=command_line(["adjourn", "store", "accept", "--store", self._root]),
        )

    # --- how it becomes ours ----------------------------------------------------------------------

    def bind(self, *, at: int, mark: Mark) -> bytes:
        """Keep a new id and secret for the store, durably.

        Return what the store has to keep of it.
        """
        name = os.urandom(16).hex()
        secret = _secret_of(self._home.key, name) if self._home.key else os.urandom(32).hex()
        self._make_mark(name, mark)
        self._write_key(name, secret)
        self._id = name
        try:
            user = pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:
            user = f"uid {os.geteuid()}"
        made_by = f"{user}@{os.uname().nodename}"
        identity = Identity(id=name, digest=_digest(name, secret), made_by=made_by, made_at=at)
        return msgspec.json.encode(identity)

    def forget(self, identity: Identity | None) -> None:
        """Drop what is kept of a former identity, if it is of this very directory."""
        kept = self._read_key(identity.id) if identity else None
        if identity and kept and _is_here(kept, self._root, os.stat(self._root)):
            with suppress(OSError):  # what stays is a secret of a store that is there no more
                os.unlink(os.path.join(self._place(identity.id), "key.json"))
                os.unlink(self._mark_path(identity.id))
                os.rmdir(self._place(identity.id))

    # --- how far it was ---------------------------------------------------------------------------

    def missing(self, trail: Trail) -> Mark | None:
        """Return the mark that a store of ours lacks, if it lacks it.

        Place 0 means that nobody knows.
        """
        self._id = self._id or self._bound(trail)
        self._open_mark(self._mark_path(self._id))
        mark = self._read_mark()
        self.release()
        if mark is None:
            return Mark(0, GENESIS)
        return mark if mark.place and trail.seal_at(mark.place) != mark.seal else None

    def require_gate(self) -> None:
        """Refuse to let a call start where that cannot be written down first."""
        if self._seen is None or not self._may_write:
            path = self._mark_path(self._id) if self._id else self._home.directory
            raise StoreProblem(
                f"{path} cannot be written from here: a call starts only after that was written",
                way_out="start it outside of the sandbox",
            )

    def note(self, mark: Mark, *, durably: bool) -> None:
        """Write down the newest place that was committed.

        It is on disk when this returns, if it has to be.
        """
        if self._seen is None or not self._may_write:
            return  # it only asks, in a sandbox; the next commit makes up for it
        try:
            os.pwrite(self._seen, _encoded(mark), self._slot)
            if durably:
                os.fdatasync(self._seen)
        except OSError as error:
            raise _unwritable(self._mark_path(self._id or ""), error) from error

    def release(self) -> None:
        """Let go of what is open during a transaction."""
        if self._seen is not None:
            os.close(self._seen)
        self._seen = None

    def reset(self, mark: Mark) -> None:
        """Take the store as it is from now on."""
        if self._id is not None:
            self._make_mark(self._id, mark)

    def _open_mark(self, path: str) -> None:
        self.release()
        flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            self._seen, self._may_write = os.open(path, os.O_RDWR | flags), True
        except FileNotFoundError:
            return
        except OSError as error:
            if not self._home.is_for_asking:
                raise _unwritable(path, error) from error
            self._seen, self._may_write = os.open(path, os.O_RDONLY | flags), False

    def _read_mark(self) -> Mark | None:
        """Return the newest mark that is whole; the other slot is the next to be written."""
        content = (_private_content(self._seen) if self._seen is not None else None) or b""
        marks = {
            slot: mark for slot in _SLOTS if (mark := _decoded(content[slot : slot + _MARK.size]))
        }
        newest = max(marks, key=lambda slot: marks[slot].place, default=None)
        if newest is None:
            return None
        self._slot = _SLOTS[1] if newest == _SLOTS[0] else _SLOTS[0]
        return marks[newest]

    def _make_mark(self, name: str, mark: Mark) -> None:
        self._write(name, "seen", _encoded(mark).ljust(_SLOTS[1] + _MARK.size, b"\0"))

    # --- files ------------------------------------------------------------------------------------

    def _place(self, name: str) -> str:
        return os.path.join(self._home.directory, "stores", name)

    def _mark_path(self, name: str) -> str:
        return os.path.join(self._place(name), "seen")

    def _read_key(self, name: str) -> Kept | None:
        return read_kept(self._place(name)) if name.isalnum() else None

    def _write_key(self, name: str, secret: str) -> None:
        here = os.stat(self._root)
        kept = Kept(secret=secret, path=self._root, device=here.st_dev, inode=here.st_ino)
        self._write(name, "key.json", msgspec.json.encode(kept))

    def _write(self, name: str, file: str, content: bytes) -> None:
        """Write a file about a store; the directories above it are private and on disk, too."""
        path = os.path.join(self._place(name), file)
        missing = [self._place(name)]
        try:
            while not os.path.isdir(above := os.path.dirname(missing[-1])):
                missing.append(above)
            for each in reversed(missing):
                private_directory(each)
                sync_directory(os.path.dirname(each))
            write_whole(path, content)
        except OSError as error:
            raise _unwritable(path, error) from error


def read_kept(place: str) -> Kept | None:
    """Return what is kept of the store that a directory of the state directory is about.

    What somebody else can have written or read is as good as nothing.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        fd = os.open(os.path.join(place, "key.json"), flags)
    except OSError:
        return None
    try:
        content = _private_content(fd)
    finally:
        os.close(fd)
    try:
        return msgspec.json.decode(content, type=Kept) if content else None
    except msgspec.DecodeError:
        return None


def identity_in(store: SharedDocuments) -> Identity | None:
    """Return what a store says of itself, if it says something that makes sense."""
    body = store.shared_document(IDENTITY)
    try:
        return msgspec.json.decode(body, type=Identity) if body else None
    except msgspec.DecodeError:
        return None


def _is_here(kept: Kept, path: str, here: os.stat_result) -> bool:
    """Say whether a directory is the one that was recorded.

    A copy has another inode. A directory that was moved keeps its inode and its device; one that
    stayed keeps its inode and its path, and may get another device number when the machine starts.
    A snapshot has the inode alone.
    """
    return kept.inode == here.st_ino and (kept.path == path or kept.device == here.st_dev)


def _secret_of(key: str, name: str) -> str:
    """Return the secret of one store that a key stands for.

    A reader learns nothing about other stores.
    """
    return sha256(
        b"adjourn store secret\0" + name.encode() + b"\0" + key.encode("utf-8", "surrogateescape")
    ).hexdigest()


def _digest(name: str, secret: str) -> str:
    return sha256(b"adjourn store digest\0" + name.encode() + b"\0" + secret.encode()).hexdigest()


def _encoded(mark: Mark) -> bytes:
    head = _MAGIC + struct.pack("<Q", mark.place) + mark.seal
    return head + sha256(head).digest()


def _decoded(content: bytes) -> Mark | None:
    if len(content) != _MARK.size:
        return None
    magic, place, seal, digest = _MARK.unpack(content)
    return (
        Mark(place, seal) if magic == _MAGIC and digest == sha256(content[:-32]).digest() else None
    )


def _private_content(fd: int) -> bytes | None:
    found = os.fstat(fd)
    is_ours = (
        stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & _OTHERS
    )
    return os.pread(fd, _SMALL, 0) if is_ours else None


def _unwritable(path: str, error: OSError) -> StoreProblem:
    sentence = (
        f"{path} cannot be written: {error.strerror}. "
        "It says which stores are yours and how far they were"
    )
    return StoreProblem(
        sentence, way_out="make it writable, or set XDG_STATE_HOME to a directory of yours"
    )
