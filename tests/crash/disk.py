"""A disk that keeps what was synced, and of the rest what the dice say.

What is synced: a file's bytes and size by fsync of the file; names by fsync of their directory, and
by nothing else. Of what is not synced each 512-byte sector may be in any version that it had since,
each size too, and any operation on names may have reached the disk unless it needs one that did
not. This is more than a journaling filesystem loses, and what POSIX allows.
"""

import os
import random
from pathlib import Path

import msgspec

from tests.crash.journal import Entry, Kind

SECTOR = 512

Slot = tuple[int, str]  # a directory's inode, and a name in it


class File:
    """One file: what is on the disk for certain, and what may be."""

    def __init__(self, body: bytes = b"") -> None:
        self.durable = bytes(body)
        self.current = bytearray(body)
        self.sectors: dict[int, list[tuple[int, bytes]]] = {}
        self.sizes: list[tuple[int, int]] = []

    def write(self, body: bytes, *, at: int, moment: int) -> None:
        """Change bytes in the cache."""
        before = len(self.current)
        if at > before:
            self.current.extend(bytes(at - before))
        self.current[at : at + len(body)] = body
        self._dirty(min(at, before), at + len(body), moment=moment)
        if len(self.current) != before:
            self.sizes.append((moment, len(self.current)))

    def resize(self, size: int, *, moment: int) -> None:
        """Cut the file, or extend it with zeros, in the cache."""
        before = len(self.current)
        del self.current[size:]
        self.current.extend(bytes(size - len(self.current)))
        self._dirty(min(size, before), max(size, before), moment=moment)
        self.sizes.append((moment, size))

    def sync(self) -> None:
        """Make everything durable."""
        if self.sectors or self.sizes:
            self.durable = bytes(self.current)
            self.sectors.clear()
            self.sizes.clear()

    def _dirty(self, begin: int, end: int, *, moment: int) -> None:
        for sector in range(begin // SECTOR, (end + SECTOR - 1) // SECTOR):
            version = bytes(self.current[sector * SECTOR : (sector + 1) * SECTOR]).ljust(
                SECTOR, b"\0"
            )
            self.sectors.setdefault(sector, []).append((moment, version))


class Change(msgspec.Struct, frozen=True):
    """One operation on names: the slots that it fills or empties, all of them or none."""

    moment: int
    slots: tuple[tuple[Slot, int | None], ...]

    def touches(self, slots: set[Slot]) -> bool:
        """Say whether it has a slot in common with `slots`."""
        return any(slot in slots for slot, _ in self.slots)


class Luck(msgspec.Struct, frozen=True, kw_only=True):
    """How a power loss treats what was not synced."""

    until: int  # nothing that happened later is there
    sectors: float  # the share of sectors that are there in their newest version
    names: float  # the share of operations on names that are there
    noise: bool  # a sector that was never written may hold anything


class Disk:
    """A directory tree as the kernel sees it, and as a power loss may leave it."""

    def __init__(self, root: Path) -> None:
        self.root = root.stat().st_ino
        self.files: dict[int, File] = {}
        self.dirs: set[int] = {self.root}
        self.durable: dict[Slot, int] = {}
        self.pending: list[Change] = []
        self._load(root)
        self.current = dict(self.durable)

    def _load(self, dir_: Path) -> None:
        for entry in os.scandir(dir_):
            inode = entry.inode()
            self.durable[dir_.stat().st_ino, entry.name] = inode
            if entry.is_dir(follow_symlinks=False):
                self.dirs.add(inode)
                self._load(Path(entry.path))
            elif entry.is_file(follow_symlinks=False):
                self.files[inode] = File(Path(entry.path).read_bytes())

    # ── What happens ──

    def take(self, entry: Entry, *, moment: int) -> None:
        """Let one entry of the journal happen."""
        match entry.kind:
            case Kind.WRITE:
                self._file(entry.inode).write(entry.body, at=entry.offset, moment=moment)
            case Kind.TRUNCATE:
                self._file(entry.inode).resize(entry.offset, moment=moment)
            case Kind.SYNC:
                self._sync(entry.inode)
            case Kind.SYNC_ALL:
                for inode in (*self.files, *self.dirs):
                    self._sync(inode)
            case Kind.MARK:
                pass
            case _:
                self._take_name(entry, moment=moment)

    def _take_name(self, entry: Entry, *, moment: int) -> None:
        slot = (entry.dir, entry.name)
        match entry.kind:
            case Kind.MKDIR:
                self.dirs.add(entry.inode)
                self._change(moment, (slot, entry.inode))
            case Kind.UNLINK:
                self._change(moment, (slot, None))
            case Kind.RENAME:
                self._change(
                    moment,
                    (slot, None),
                    ((entry.other_dir, entry.other_name), self.current.get(slot)),
                )
            case _:
                self._file(entry.inode)
                self._change(moment, (slot, entry.inode))

    def _file(self, inode: int) -> File:
        return self.files.setdefault(inode, File())

    def _change(self, moment: int, *slots: tuple[Slot, int | None]) -> None:
        self.pending.append(Change(moment, slots))
        _fill(self.current, slots)

    def _sync(self, inode: int) -> None:
        if inode in self.dirs:
            self._sync_names(inode)
        else:
            self._file(inode).sync()

    def _sync_names(self, dir_: int) -> None:
        """Make the directory's names durable, with all that they need.

        A name that was moved here is gone from there.
        """
        needed = {slot for change in self.pending for slot, _ in change.slots if slot[0] == dir_}
        keep: list[Change] = []
        done: list[Change] = []
        for change in reversed(self.pending):
            if change.touches(needed):
                needed.update(slot for slot, _ in change.slots)
                done.append(change)
            else:
                keep.append(change)
        for change in reversed(done):
            _fill(self.durable, change.slots)
        self.pending = keep[::-1]

    # ── What a power loss leaves ──

    def image(self, into: Path, *, luck: Luck, dice: random.Random) -> None:
        """Write into the empty directory `into` what may be on the disk if the power fails now."""
        tree: dict[int, list[tuple[str, int]]] = {}
        for (dir_, name), inode in self._names(luck, dice).items():
            tree.setdefault(dir_, []).append((name, inode))
        self._write_dir(self.root, into, tree, luck=luck, dice=dice)

    def _names(self, luck: Luck, dice: random.Random) -> dict[Slot, int]:
        names = dict(self.durable)
        lost: set[Slot] = set()
        for change in self.pending:
            if change.moment > luck.until or change.touches(lost) or dice.random() >= luck.names:
                lost.update(slot for slot, _ in change.slots)
            else:
                _fill(names, change.slots)
        return names

    def _write_dir(
        self,
        inode: int,
        into: Path,
        tree: dict[int, list[tuple[str, int]]],
        *,
        luck: Luck,
        dice: random.Random,
    ) -> None:
        for name, child in tree.get(inode, ()):
            path = f"{into}/{name}"
            if child in self.dirs:
                os.mkdir(path, 0o700)
                self._write_dir(child, Path(path), tree, luck=luck, dice=dice)
            elif child in self.files and not name.endswith("-shm"):
                # SQLite rebuilds it: it is memory, not a record
                _write(path, survived(self.files[child], luck=luck, dice=dice))


def survived(file: File, *, luck: Luck, dice: random.Random) -> bytes | bytearray:
    """Return what a power loss may leave of a file."""
    if not file.sectors and not file.sizes:
        return file.durable
    sizes = [len(file.durable), *(size for moment, size in file.sizes if moment <= luck.until)]
    size = sizes[-1] if dice.random() < luck.sectors else dice.choice(sizes)
    body = bytearray(file.durable)
    for sector, versions in file.sectors.items():
        kept = _version(versions, luck=luck, dice=dice)
        at = sector * SECTOR
        if kept is None and at >= len(file.durable) and luck.noise:
            kept = dice.randbytes(SECTOR)
        if kept is not None:
            body.extend(bytes(max(0, at + SECTOR - len(body))))
            body[at : at + SECTOR] = kept
    del body[size:]
    body.extend(bytes(size - len(body)))
    return body


def _version(versions: list[tuple[int, bytes]], *, luck: Luck, dice: random.Random) -> bytes | None:
    possible = [version for moment, version in versions if moment <= luck.until]
    if not possible:
        return None
    if dice.random() < luck.sectors:
        return possible[-1]
    chosen = dice.randrange(len(possible))
    return possible[chosen - 1] if chosen else None


def _fill(names: dict[Slot, int], slots: tuple[tuple[Slot, int | None], ...]) -> None:
    for slot, inode in slots:
        if inode is None:
            names.pop(slot, None)
        else:
            names[slot] = inode


def _write(path: str, body: bytes | bytearray) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    while body:
        body = body[os.write(fd, body) :]
    os.close(fd)
