"""What a command depends on beyond its own bytes: its program and the files that it names, by their digests."""

from collections.abc import Mapping

import msgspec


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What was found on disk when a command was looked at, and what no digest covers, in words."""

    program: str | None = None
    programs: dict[str, str] = {}  # every program that the words name (`core.reading.programs_of`), and where it really is
    files: dict[str, str] = {}  # path to `sha256:…`, or to why there is no digest
    real: dict[str, str] = {}  # directories and paths that the call names, and where each of them really is


NOTHING_SEEN = Surroundings()


def differences(shown: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Say, path by path, how the files found differ from those that were shown."""
    paths = sorted({*shown, *found})
    return [_difference(path, shown.get(path), found.get(path)) for path in paths if shown.get(path) != found.get(path)]


def _difference(path: str, shown: str | None, found: str | None) -> str:
    if shown is None:
        return f"{path} is new: {found}"
    return f"{path} was {shown} and is {found or 'gone'}"
