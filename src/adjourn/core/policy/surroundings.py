"""What a command depends on beyond its own bytes.

Its program and the files that it names, by their digests.
"""

from collections.abc import Mapping

import msgspec


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What was found on disk when a command was looked at, and what no digest covers, in words."""

    program: str | None = None
    # Every program that the words name (`core.reading.programs_of`), and where it really is
    programs: dict[str, str] = {}
    files: dict[str, str] = {}  # path to `sha256:…`, or to why there is no digest
    # Directories and paths that the call names, and where each of them really is
    real: dict[str, str] = {}
    # Those of the files whose very bytes adjourn itself starts
    pinned: frozenset[str] = frozenset()
    root: str | None = None  # of the repository that the task's workspace is in
    # Programs found in the directory that the command would run in, outside of the root
    near: frozenset[str] = frozenset()
    # Of the repository's own programs and scripts, by where they really are: their digests
    content: dict[str, str] = {}
    # By a program's word: where the interpreters that its script names really are
    readers: dict[str, tuple[str, ...]] = {}
    searched: dict[str, tuple[str, ...]] = {}  # the same, of those that `env` finds on PATH
    doubts: dict[str, str] = {}  # by a program's word: why its interpreters may be others


# Behind the digest of a file that is opened once more by its path, after the last look
NOT_PINNED = " (not pinned)"


NOTHING_SEEN = Surroundings()


def without_pins(seen: Surroundings) -> Surroundings:
    """Return the same surroundings for somebody who starts the command without adjourn.

    An agent that makes its own calls.
    """
    files = {
        path: f"{found}{NOT_PINNED}" if path in seen.pinned else found
        for path, found in seen.files.items()
    }
    return msgspec.structs.replace(seen, files=files, pinned=frozenset())


def unpinned(files: Mapping[str, str]) -> list[str]:
    """Return the files that were hashed and cannot be pinned."""
    return sorted(path for path, found in files.items() if found.endswith(NOT_PINNED))


def differences(shown: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Say, path by path, how the files found differ from those that were shown."""
    paths = sorted({*shown, *found})
    return [
        _difference(path, shown.get(path), found.get(path))
        for path in paths
        if shown.get(path) != found.get(path)
    ]


def _difference(path: str, shown: str | None, found: str | None) -> str:
    if shown is None:
        return f"{path} is new: {found}"
    return f"{path} was {shown} and is {found or 'gone'}"
