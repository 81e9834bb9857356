"""Reads the journal that the injection library writes: what happened to the disk, in order."""

import enum
import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec

_HEAD = struct.Struct("=QQQQQ")
_ENTRY = struct.Struct("=IIIIIIQQQQ")
_MAGIC = 0x6C6E726A6A646101
_BODY = 4096
SIZE = 256 << 20  # a sparse file: only what is written takes memory


class Kind(enum.IntEnum):
    """What an entry tells of; the numbers are those of journal.h."""

    MARK = 1
    WRITE = 2
    TRUNCATE = 3
    CREATE = 4
    MKDIR = 5
    UNLINK = 6
    RENAME = 7
    LINK = 8
    SYNC = 9
    SYNC_ALL = 10


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened. A new size stands in `offset`; a mark's text in `name`."""

    kind: Kind
    pid: int
    inode: int
    offset: int
    dir: int
    name: str
    other_dir: int
    other_name: str
    body: bytes


def make(path: Path) -> None:
    """Make an empty file for a journal to grow in."""
    with path.open("wb") as file:
        file.truncate(SIZE)


def read(path: Path) -> list[Entry]:
    """Return every entry in order; a journal that overflowed is refused."""
    with path.open("rb") as file:
        magic, _, tail, _, full = _HEAD.unpack(file.read(_HEAD.size))
        assert magic == _MAGIC, "no journal was begun"
        assert not full, "the journal is too small for this scenario"
        file.seek(0)
        return list(_entries(file.read(tail)))


def _entries(text: bytes) -> Iterator[Entry]:
    at = _BODY
    while at < len(text):
        size, kind, pid, name_size, other_size, body_size, inode, offset, dir_, other_dir = (
            _ENTRY.unpack_from(text, at)
        )
        name = at + _ENTRY.size
        other = name + name_size
        body = other + other_size
        yield Entry(
            kind=Kind(kind),
            pid=pid,
            inode=inode,
            offset=offset,
            dir=dir_,
            name=text[name:other].decode(errors="surrogateescape"),
            other_dir=other_dir,
            other_name=text[other:body].decode(errors="surrogateescape"),
            body=text[body : body + body_size],
        )
        at += size
