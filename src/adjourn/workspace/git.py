"""Reads a workspace: the commit that is checked out, and which files changed since a moment.

Git itself is never run: the repository belongs to the agent, and what it configures (fsmonitor,
filters) would run here.
"""

import os
import stat
import time
from collections.abc import Iterator
from itertools import islice

import msgspec

from adjourn.core.task import Milliseconds
from adjourn.system.files import open_regular

MOST_ENTRIES = 20_000
LONGEST = 1.0  # seconds for one look
_SMALL = 4_096
_PACKED = 16 * 1024 * 1024
_LEVELS = 64
_HEX = frozenset("0123456789abcdef")
_HASHES = (40, 64)
_SKIPPED = frozenset({".git", ".adjourn"})


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """What a repository has checked out.

    A branch, and the commit it is at, as far as that can be read.
    """

    ref: str | None
    commit: str | None


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What changed in a workspace, by path from there.

    A directory ends in a slash: something came, went or was renamed in it.
    """

    paths: tuple[str, ...]
    looked_at: int
    is_whole: bool


# --- the commit -----------------------------------------------------------------------------------


def head_of(workspace: str) -> Head | None:
    """Return what the repository around a workspace has checked out, or None."""
    git = _git_directory(workspace)
    content = _read(os.path.join(git, "HEAD")) if git else None
    if git is None or content is None:
        return None
    word, _, ref = content.strip().partition("ref: ")
    if word or not _is_ref(ref):
        return Head(ref=None, commit=_hash(content))

    # A worktree keeps some refs itself, and the others where its repository is
    shared = (_read(os.path.join(git, "commondir")) or "").strip()
    is_path = shared and "\0" not in shared
    common = os.path.normpath(os.path.join(git, shared)) if is_path else git
    for directory in dict.fromkeys((git, common)):
        if commit := _hash(_read(os.path.join(directory, ref)) or ""):
            return Head(ref=ref, commit=commit)
    packed = _read(os.path.join(common, "packed-refs"), most=_PACKED) or ""
    for line in packed.splitlines():
        commit, _, name = line.partition(" ")
        if name == ref:
            return Head(ref=ref, commit=_hash(commit))
    return Head(ref=ref, commit=None)


def _git_directory(workspace: str) -> str | None:
    directory = workspace
    for _ in range(_LEVELS):
        path = os.path.join(directory, ".git")
        try:
            kind = stat.S_IFMT(os.lstat(path).st_mode)
        except (OSError, ValueError):
            kind = 0
        if kind == stat.S_IFDIR:
            return path
        if kind == stat.S_IFREG:  # of a worktree or a submodule: it names the directory
            word, _, target = (_read(path) or "").strip().partition("gitdir: ")
            if word or not target or "\0" in target:
                return None
            return os.path.normpath(os.path.join(directory, target))
        if os.path.dirname(directory) == directory:
            return None
        directory = os.path.dirname(directory)
    return None


def _is_ref(ref: str) -> bool:
    return (
        ref.startswith("refs/")
        and ref.isprintable()
        and not {"", ".", ".."} & set(ref.split("/"))
        and len(ref) < _SMALL
    )


def _hash(text: str) -> str | None:
    word = text.strip()
    return word if len(word) in _HASHES and _HEX.issuperset(word) else None


def _read(path: str, *, most: int = _SMALL) -> str | None:
    content = read_start(path, most=most)
    return None if content is None else content.decode("utf-8", "replace")


def read_start(path: str, *, most: int) -> bytes | None:
    """Return the first bytes of a regular file, or None if it cannot be read."""
    try:
        with open(open_regular(path), "rb") as file:
            return file.read(most)
    except (OSError, ValueError):
        return None


# --- the files ------------------------------------------------------------------------------------


def changed_since(
    workspace: str, moment: Milliseconds, *, most: int = MOST_ENTRIES, seconds: float = LONGEST
) -> Changes:
    """Return what was written, made or removed after a moment, as far as a short walk finds it."""
    deadline = time.monotonic() + seconds
    paths: list[str] = []
    looked_at = 0
    for path, found in entries(workspace):
        if looked_at >= most or time.monotonic() > deadline:
            return Changes(paths=tuple(paths), looked_at=looked_at, is_whole=False)
        looked_at += 1
        if max(found.st_mtime_ns, found.st_ctime_ns) > moment * 1_000_000:
            paths.append(
                os.path.relpath(path, workspace) + ("/" if stat.S_ISDIR(found.st_mode) else "")
            )
    return Changes(paths=tuple(sorted(paths)), looked_at=looked_at, is_whole=True)


def entries(workspace: str) -> Iterator[tuple[str, os.stat_result]]:
    """Walk a tree, never through a symbolic link.

    Of a huge directory no more than one walk covers. What went away meanwhile, or is not ours to
    read, is left out.
    """
    waiting = [workspace]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as listed:
                named = [
                    entry
                    for entry in islice(listed, MOST_ENTRIES + 1)
                    if entry.name not in _SKIPPED
                ]
        except OSError:
            continue
        for entry in named:
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            yield entry.path, found
            if stat.S_ISDIR(found.st_mode):
                waiting.append(entry.path)
