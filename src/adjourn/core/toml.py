"""TOML that people write: its tables, or what is wrong with the text, and where."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

_MOST_PARTS = 16  # of a key; the parser takes a time that grows with the square of them
_BYTE_ORDER_MARK = "\ufeff"  # some editors put it there, and none shows it
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a file, and where; the line is 0 where that is the file as a whole."""

    source: str
    line: int = 0
    column: int = 0
    what: str

    def __str__(self) -> str:
        place = f":{self.line}:{self.column}" if self.line else ""
        return f"{self.source}{place}: {self.what}"


class NotToml(Exception):
    """The text is not TOML at all, or too much of it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.what)
        self.problem = problem


def tables_of(text: str, *, source: str) -> dict[str, Any]:
    """Return what a text says, or raise NotToml with the place where it says nothing."""
    import tomllib

    if text.startswith(_BYTE_ORDER_MARK):
        what = "it begins with a byte order mark, which TOML does not know: save it as UTF-8 without one"
        raise NotToml(Problem(source=source, line=1, column=1, what=what))
    if line := _overlong_key(text):
        raise NotToml(Problem(source=source, line=line, column=1, what=f"a key here has more than {_MOST_PARTS} parts"))
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NotToml(_syntax(str(error), text, source=source)) from error
    except (RecursionError, ValueError) as error:
        raise NotToml(Problem(source=source, line=1, column=1, what=f"it is not TOML: {error}")) from error


def _overlong_key(text: str) -> int:
    """Return the first line that may hold a key of very many parts, or 0."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > _MOST_PARTS and any(part.count(".") > _MOST_PARTS for part in _where_keys_are(line)):
            return number
    return 0


def _where_keys_are(line: str) -> list[str]:
    parts = line.split("=")
    return parts if line.lstrip().startswith("[") else parts[:-1]


def _syntax(said: str, text: str, *, source: str) -> Problem:
    found = _AT.search(said)
    from adjourn.core.places import Place, place_of  # only what is wrong has a place

    end = place_of(text, len(text))
    place = Place(int(found[1]), int(found[2])) if found and found[1] else end
    what = said[: found.start()] if found else said
    return Problem(source=source, line=place.line, column=place.column, what=f"it is not TOML: {what}")


# --- what a value is -------------------------------------------------------------------------------------------------------


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Say that a key means nothing, and which one may have been meant."""
    from difflib import get_close_matches

    names = list(known)
    near = get_close_matches(key, names, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(f'`{name}`' for name in names)}"
    return f"unknown key `{key}`: {hint}"


def as_list(given: Any) -> list[Any] | None:
    """Return a list, or None for anything else."""
    try:
        return msgspec.convert(given, list[Any])
    except msgspec.ValidationError:
        return None


def as_table(given: Any) -> dict[str, Any] | None:
    """Return a table, or None for anything else."""
    try:
        return msgspec.convert(given, dict[str, Any])
    except msgspec.ValidationError:
        return None


def as_tables(given: Any) -> list[dict[str, Any]] | None:
    """Return a list of tables, or None for anything else."""
    try:
        return msgspec.convert(given, list[dict[str, Any]])
    except msgspec.ValidationError:
        return None
