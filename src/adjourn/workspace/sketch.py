"""Sketches of a workspace: enough of each file to count changed lines later, without a copy.

Git is never run: the repository belongs to the agent, and what it configures would run here.
"""

import os
import stat
import time
from array import array
from collections import Counter
from hashlib import sha256
from zlib import crc32

import msgspec

from adjourn.core.diffstat import Diffstat, FileChange, by_path
from adjourn.core.task import Milliseconds
from adjourn.core.text.render import spelled
from adjourn.workspace.git import MOST_ENTRIES, entries, read_start

_LONGEST = 2.0  # seconds for one look
_LARGEST = 1 << 20  # of a file whose lines are counted
_MOST_LINES = 500_000  # of all files together


class Sketch(msgspec.Struct, frozen=True, array_like=True):
    """One file: when it changed last, its size, its digest, and a checksum of each line."""

    changed: int
    size: int
    digest: bytes = b""
    lines: bytes | None = None  # None where it is not text, or too large


class Sketches(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace at one moment."""

    at: Milliseconds
    files: dict[str, Sketch]
    is_whole: bool


def sketch_of(workspace: str, *, seconds: float = _LONGEST) -> Sketches:
    """Sketch the files of a workspace, for at most so many seconds."""
    began = time.time_ns() // 1_000_000
    deadline = time.monotonic() + seconds
    lines_left = _MOST_LINES
    files: dict[str, Sketch] = {}
    for path, found in entries(workspace):
        if len(files) >= MOST_ENTRIES or time.monotonic() > deadline:
            return Sketches(at=began, files=files, is_whole=False)
        if not stat.S_ISREG(found.st_mode):
            continue
        changed = max(found.st_mtime_ns, found.st_ctime_ns)
        sketch = Sketch(changed, found.st_size)
        content = read_start(path, most=_LARGEST) if found.st_size <= _LARGEST else None
        if content is not None:
            lines = content.splitlines()
            lines_left -= len(lines)
            checksums: bytes | None = None
            if b"\0" not in content and lines_left >= 0:
                checksums = array("I", map(crc32, lines)).tobytes()
            sketch = Sketch(changed, found.st_size, sha256(content).digest(), checksums)
        files[spelled(os.path.relpath(path, workspace))] = sketch
    return Sketches(at=began, files=files, is_whole=True)


def encoded(sketches: Sketches) -> bytes:
    """Encode sketches."""
    return msgspec.msgpack.encode(sketches)


def decoded(body: bytes) -> Sketches:
    """Decode sketches."""
    return msgspec.msgpack.decode(body, type=Sketches)


def compare(before: Sketches, now: Sketches) -> Diffstat:
    """Return what changed between two sketches; where one was cut short, only what is certain."""
    changes: list[FileChange] = []
    for path, new in now.files.items():
        old = before.files.get(path)
        if old is None and not before.is_whole and new.changed < (before.at + 1) * 1_000_000:
            continue  # it may have been there: the first look did not come so far
        if old is None or _differ(old, new):
            changes.append(_change(path, old, new))
    if now.is_whole:
        changes += [
            _change(path, old, None) for path, old in before.files.items() if path not in now.files
        ]
    return Diffstat(files=by_path(changes), is_whole=before.is_whole and now.is_whole)


def rebase(before: Sketches, left: Sketches, now: Sketches) -> Sketches:
    """Return what was there before a task, as if others had made their changes before it.

    `left` is the workspace as the task left it, `now` as it finds it again. A file that both have
    changed stays as it was before the task: it is the task's. A look that was cut short tells
    nothing of what is missing in it.
    """
    if not (left.is_whole and now.is_whole):
        return before
    files = dict(before.files)
    for path in left.files.keys() | now.files.keys():
        first, old, new = (each.files.get(path) for each in (before, left, now))
        if not _differ(old, new) or _differ(first, old):
            continue
        if new is None:
            files.pop(path, None)
        else:
            files[path] = new
    return Sketches(at=before.at, files=files, is_whole=before.is_whole)


def _differ(old: Sketch | None, new: Sketch | None) -> bool:
    if old is None or new is None:
        return old is not new
    if old.digest and new.digest:
        return old.digest != new.digest
    return (old.size, old.changed) != (new.size, new.changed)


def _change(path: str, old: Sketch | None, new: Sketch | None) -> FileChange:
    before, after = _lines(old), _lines(new)
    counts: dict[str, int] = {}
    if before is not None and after is not None:
        counts = {
            "lines_added": (after - before).total(),
            "lines_removed": (before - after).total(),
        }
    return FileChange(
        path=path,
        what="added" if old is None else "removed" if new is None else "changed",
        **counts,
    )


def _lines(sketch: Sketch | None) -> Counter[int] | None:
    if sketch is None:
        return Counter()
    return None if sketch.lines is None else Counter(array("I", sketch.lines))
