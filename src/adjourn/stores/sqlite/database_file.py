"""Notices that another program wrote into the database file, past SQLite.

`cp backup.db adjourn.db` keeps the file and its log. SQLite then reads a mix of two databases, and
does not notice it. In WAL mode only a checkpoint writes into the database file. Ours happen in a
writer's turn, and the file of the queue says what the database file was like afterwards. What is
different then was written by somebody else: by a checkpoint of another program, which the index of
the log tells, or past SQLite.
"""

import os
import struct
from contextlib import suppress
from hashlib import sha256

import apsw
import msgspec

from adjourn.stores.sqlite.database import SqliteConnection
from adjourn.stores.sqlite.directory import HEAD_SIZE, FileState, OpenFiles
from adjourn.system.machine import boot_id

_MAGIC = b"adjourn2"
# What it is, the boot, the epoch, whether a checkpoint has begun, a page and its digest, then the
# state of the file
_NOTE = struct.Struct("<8s36s8s?I32sQQQ8sI100s")


class _Note(msgspec.Struct, frozen=True):
    """What the database file was like when the last turn ended."""

    state: FileState
    boot: bytes = b""
    epoch: bytes = (
        b""  # another one for each database that was put into the place of the one before
    )
    is_checkpointing: bool = False
    # One page that the last checkpoint changed: an older copy of the file has another one
    page: int = 0
    digest: bytes = bytes(32)


class DatabaseFile:
    """The database file of an open store, compared with what is noted of it.

    All but `seems_known` happens in a writer's turn.
    """

    def __init__(self, lock: int, files: OpenFiles) -> None:
        self._lock = lock
        self._files = files
        self._known: _Note | None = None  # as of the last look or the last change of this process
        self._is_overwritten = False

    def seems_known(self) -> bool:
        """Return whether the file is as noted, as far as can be seen without a turn."""
        note = self._read()
        is_as_noted = note is None or self._files.database_stat() == note.state[:3]
        return is_as_noted and not self._is_overwritten

    def is_overwritten(self, db: SqliteConnection) -> bool:
        """Return whether the file holds what does not belong to its log, or to this process.

        To be called when a transaction has begun.
        """
        note, state = self._read(), self._files.database_state()
        is_ours = note and (self._known is None or self._known.epoch == note.epoch)
        if note and is_ours and state == note.state and not self._is_overwritten:
            self._known = note
            return False
        if note is None or note.boot != _boot():
            # Made by an older version; or the note was not on disk when the machine stopped
            self._write(_Note(state, epoch=self._known.epoch if self._known else os.urandom(8)))
            return self._is_overwritten

        # A process that has the file open expects only checkpoints
        is_checkpoint = note.is_checkpointing or state.checkpoint != note.state.checkpoint
        if self._is_overwritten or not is_ours or (self._known and not is_checkpoint):
            self._is_overwritten = True
            return True
        if not self._has_known_pages(note, state):
            # A file without a log, or with one that another program began, is a database of its
            # own: whether it lacks something is told by the trail. A checkpoint that was killed
            # leaves pages that the log has in a newer version: SQLite itself is asked then.
            is_same_log = self._files.frames and state.salts == note.state.salts
            if is_same_log and not note.is_checkpointing:
                return True
            ((damage,),) = db.all("PRAGMA quick_check(1)")
            if damage != "ok":
                raise apsw.CorruptError(damage)
            if not is_checkpoint:
                note = _Note(state, epoch=os.urandom(8))
        self._write(msgspec.structs.replace(note, state=state, is_checkpointing=False))
        return False

    def is_overwritten_since(self) -> bool:
        """Return whether anybody wrote into the file since the transaction began.

        To be called when it was committed. The commit may have begun the log again. That is noted,
        so that nobody takes it for the work of another program.
        """
        assert self._known is not None  # noqa: S101 -- a transaction has begun
        begun, state = self._known.state, self._files.database_state()
        if state.file != begun.file:
            self._is_overwritten = (
                state.salts != begun.salts or state.checkpoint == begun.checkpoint
            )
        if state != begun:
            salts, backfilled = state.checkpoint
            if self._is_overwritten:
                state = begun._replace(salts=salts, backfilled=backfilled)
            self._write(msgspec.structs.replace(self._known, state=state))
        return self._is_overwritten

    def checkpoint(self, db: SqliteConnection) -> bool:
        """Bring the log into the file, and note what the file is like then.

        Return whether it is what the log has made of it. A copy that is written over the file
        meanwhile leaves another first page, or other pages than the log has.
        """
        assert self._known is not None  # noqa: S101 -- a transaction has begun
        heads = {self._known.state.head, (self._files.logged(1) or b"")[:HEAD_SIZE]}
        page, content = self._files.newest_in_log()
        if self.is_overwritten_since():  # the mark of this machine was synced since the commit
            return False
        self._write(msgspec.structs.replace(self._known, is_checkpointing=True))
        db.do("PRAGMA wal_checkpoint(PASSIVE)")
        state = self._files.database_state()
        is_complete = state.backfilled == self._files.frames  # else a reader needs older pages
        if state.head not in heads or (is_complete and not self._files.is_log_in_file()):
            self._is_overwritten = True
            return False
        is_in_file = self._files.content(page) == content  # else a reader needs the older one
        changes = {"page": page, "digest": sha256(content).digest()} if is_in_file else {}
        note = msgspec.structs.replace(self._known, state=state, is_checkpointing=False, **changes)
        self._write(note)
        return True

    def _has_known_pages(self, note: _Note, state: FileState) -> bool:
        """Return whether the file can be what a checkpoint made of the one that was noted.

        A checkpoint leaves a page as it was, or as it is in the log.
        """
        if state.head not in {note.state.head, (self._files.logged(1) or b"")[:HEAD_SIZE]}:
            return False
        if not note.page:
            return True
        logged = self._files.logged(note.page)
        digests = {note.digest, sha256(logged).digest() if logged else note.digest}
        return sha256(self._files.content(note.page)).digest() in digests

    def _read(self) -> _Note | None:
        content = os.pread(self._lock, _NOTE.size, 0)
        if len(content) != _NOTE.size or not content.startswith(_MAGIC):
            return None
        _, boot, epoch, is_checkpointing, page, digest, *state = _NOTE.unpack(content)
        return _Note(FileState(*state), boot, epoch, is_checkpointing, page, digest)

    def _write(self, note: _Note) -> None:
        self._known = note = msgspec.structs.replace(note, boot=_boot())
        fields = (note.boot, note.epoch, note.is_checkpointing, note.page, note.digest)
        with suppress(OSError):  # a full disk; the reader of an older note checks more closely
            os.pwrite(self._lock, _NOTE.pack(_MAGIC, *fields, *note.state), 0)


def _boot() -> bytes:
    try:
        return boot_id().encode().ljust(36)
    except OSError:  # no /proc is mounted here
        return b" " * 36
