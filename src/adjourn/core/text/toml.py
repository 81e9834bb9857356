"""TOML that people write: its tables, or what is wrong with the text, and where."""

import re
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import msgspec

MOST_PROBLEMS = 100  # of one file; nobody reads more than that
_MOST_PARTS = 16  # of a key; the parser takes a time that grows with the square of them
_BYTE_ORDER_MARK = "\ufeff"  # some editors put it there, and none shows it
_AT = r" \(at (?:line (\d+), column (\d+)|end of document)\)$"


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
    # Slow to import, and seldom needed
    import tomllib

    if text.startswith(_BYTE_ORDER_MARK):
        what = (
            "it begins with a byte order mark, which TOML does not know:"
            " save it as UTF-8 without one"
        )
        raise NotToml(Problem(source=source, line=1, column=1, what=what))
    if line := _overlong_key(text):
        raise NotToml(
            Problem(
                source=source,
                line=line,
                column=1,
                what=f"a key here has more than {_MOST_PARTS} parts",
            )
        )
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NotToml(_syntax(str(error), text, source=source)) from error
    except (RecursionError, ValueError) as error:
        raise NotToml(
            Problem(source=source, line=1, column=1, what=f"it is not TOML: {error}")
        ) from error


def _overlong_key(text: str) -> int:
    """Return the first line that may hold a key of very many parts, or 0."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > _MOST_PARTS and any(
            part.count(".") > _MOST_PARTS for part in _where_keys_are(line)
        ):
            return number
    return 0


def _where_keys_are(line: str) -> list[str]:
    parts = line.split("=")
    return parts if line.lstrip().startswith("[") else parts[:-1]


def _syntax(said: str, text: str, *, source: str) -> Problem:
    found = re.search(_AT, said)
    # only what is wrong has a place

    end = place_of(text, len(text))
    place = TextPlace(int(found[1]), int(found[2])) if found and found[1] else end
    what = said[: found.start()] if found else said
    return Problem(
        source=source, line=place.line, column=place.column, what=f"it is not TOML: {what}"
    )


# --- what a value is ------------------------------------------------------------------------------


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Say that a key means nothing, and which one may have been meant."""
    # Slow to import, and seldom needed
    from difflib import get_close_matches

    names = list(known)
    near = get_close_matches(key, names, n=1)
    hint = (
        f"did you mean `{near[0]}`?"
        if near
        else f"there are {', '.join(f'`{name}`' for name in names)}"
    )
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


Path = tuple[str | int, ...]

# Compiled when a problem is looked for: most policies have none
_SPACE = r"(?:[ \t\r\n]|#[^\n]*)*"
_BLANK = r"[ \t]*"
_BARE = r"[A-Za-z0-9_-]+"
_SCALAR = r"[^,\]}#\n]*"
_STRING = r'(?s)"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\]|\\.)*"|\'[^\']*\''
_ESCAPES = {"u": 6, "U": 10}


class TextPlace(msgspec.Struct, frozen=True):
    """A line and a column, both counted from 1."""

    line: int
    column: int


class Places:
    """Finds keys and values in a text that the parser has accepted."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._keys: dict[Path, int] = {}
        self._values: dict[Path, int] = {}
        self._counts: dict[Path, int] = {}
        self._walk()

    def of_key(self, path: Path) -> TextPlace:
        """Return where a key begins, or the nearest that is known of what holds it."""
        return self._place(self._known(self._keys, path))

    def of_value(self, path: Path, *, offset: int | None = None) -> TextPlace:
        """Return where a value begins, or a character inside a value that is a string."""
        start = self._known(self._values, path)
        return self._place(start if offset is None else self._inside(start, offset))

    def _known(self, places: dict[Path, int], path: Path) -> int:
        for end in range(len(path), 0, -1):
            for known in (places, self._keys, self._values):
                if path[:end] in known:
                    return known[path[:end]]
        return 0

    def _place(self, at: int) -> TextPlace:
        return place_of(self._text, at)

    def _inside(self, start: int, offset: int) -> int:
        """Return where a character of a string is, past its quotes and the escapes before it."""
        quote = self._text[start : start + 1]
        if quote not in {'"', "'"}:
            return start
        width = 3 if self._text[start : start + 3] == quote * 3 else 1
        at = start + width + (width > 1 and self._text[start + 3 : start + 4] == "\n")
        for _ in range(offset):
            at += (
                _ESCAPES.get(self._text[at + 1], 2)
                if quote == '"' and self._text[at] == "\\"
                else 1
            )
        return at

    # --- walking ----------------------------------------------------------------------------------

    def _walk(self) -> None:
        table: Path = ()
        while self._skip(_SPACE) < len(self._text):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)

    def _skip(self, expression: str) -> int:
        found = re.compile(expression).match(self._text, self._at)
        self._at = found.end() if found else self._at + 1  # always on, whatever it is
        return self._at

    def _header(self) -> Path:
        start = self._at
        is_one_of_many = self._text.startswith("[[", start)
        self._at += 1 + is_one_of_many
        path = self._numbered(self._key())
        if is_one_of_many:
            self._counts[path] = self._counts.get(path, -1) + 1
            path = (*path, self._counts[path])
        self._keys[path] = start
        self._at = min(len(self._text), self._at + 1 + is_one_of_many)
        return path

    def _numbered(self, key: Path) -> Path:
        """Put in which of many tables is meant: always the last one so far."""
        path: Path = ()
        for number, part in enumerate(key):
            path = (*path, part)
            if path in self._counts and number < len(key) - 1:
                path = (*path, self._counts[path])
        return path

    def _key(self) -> Path:
        parts: list[str] = []
        while True:
            self._skip(_BLANK)
            start = self._at
            is_quoted = self._text[start : start + 1] in {'"', "'"}
            self._skip(_STRING if is_quoted else _BARE)
            parts.append(
                self._text[start : self._at].strip("\"'")
                if is_quoted
                else self._text[start : self._at]
            )
            self._skip(_BLANK)
            if self._text[self._at : self._at + 1] != ".":
                return tuple(parts)
            self._at += 1

    def _pair(self, table: Path) -> None:
        start = self._at
        path = (*table, *self._key())
        self._keys[path] = start
        self._at += 1
        self._skip(_BLANK)
        self._value(path)

    def _value(self, path: Path) -> None:
        self._values[path] = self._at
        match self._text[self._at : self._at + 1]:
            case "[":
                self._array(path)
            case "{":
                self._inline(path)
            case '"' | "'":
                self._skip(_STRING)
            case _:
                self._skip(_SCALAR)

    def _array(self, path: Path) -> None:
        self._at += 1
        number = 0
        while self._skip(_SPACE) < len(self._text) and self._text[self._at] != "]":
            if self._text[self._at] == ",":
                self._at += 1
                number += 1
            else:
                self._value((*path, number))
        self._at += 1

    def _inline(self, path: Path) -> None:
        self._at += 1
        while self._skip(_SPACE) < len(self._text) and self._text[self._at] != "}":
            if self._text[self._at] == ",":
                self._at += 1
            else:
                self._pair(path)
        self._at += 1


def place_of(text: str, at: int) -> TextPlace:
    """Return the place of a character."""
    return TextPlace(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))


class TableReader:
    """Reads the tables of one file, and gathers what is wrong, with line and column."""

    def __init__(self, text: str, tables: dict[str, Any], *, source: str) -> None:
        self._tables = tables
        self._source = source
        self._problems: list[Problem] = []
        self._file_text = text

    @cached_property
    def _places(self) -> Places:
        """Where everything stands; worked out only when something is to be told."""
        return Places(self._file_text)

    def _wrong(self, place: TextPlace, what: str) -> None:
        if len(self._problems) <= MOST_PROBLEMS:
            self._problems.append(
                Problem(source=self._source, line=place.line, column=place.column, what=what)
            )

    def _wrong_value(self, path: Path, what: str, *, offset: int | None = None) -> None:
        self._wrong(self._places.of_value(path, offset=offset), what)

    def _in_order(self) -> tuple[Problem, ...]:
        found = sorted(self._problems, key=lambda problem: (problem.line, problem.column))
        return tuple(found[:MOST_PROBLEMS])
