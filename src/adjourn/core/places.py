"""Where in a TOML text things stand: the parser of the standard library says what, and not where."""

import re

import msgspec

Path = tuple[str | int, ...]

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]*")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\]|\\.)*"|\'[^\']*\'',
    re.DOTALL,
)
_ESCAPES = {"u": 6, "U": 10}


class Place(msgspec.Struct, frozen=True):
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

    def of_key(self, path: Path) -> Place:
        """Return where a key begins, or the nearest that is known of what holds it."""
        return self._place(self._known(self._keys, path))

    def of_value(self, path: Path, *, offset: int | None = None) -> Place:
        """Return where a value begins, or a character inside a value that is a string."""
        start = self._known(self._values, path)
        return self._place(start if offset is None else self._inside(start, offset))

    def _known(self, places: dict[Path, int], path: Path) -> int:
        for end in range(len(path), 0, -1):
            for known in (places, self._keys, self._values):
                if path[:end] in known:
                    return known[path[:end]]
        return 0

    def _place(self, at: int) -> Place:
        return place_of(self._text, at)

    def _inside(self, start: int, offset: int) -> int:
        """Return where a character of a string stands, past its quotes and the escapes before it."""
        quote = self._text[start : start + 1]
        if quote not in {'"', "'"}:
            return start
        width = 3 if self._text[start : start + 3] == quote * 3 else 1
        at = start + width + (width > 1 and self._text[start + 3 : start + 4] == "\n")
        for _ in range(offset):
            at += _ESCAPES.get(self._text[at + 1], 2) if quote == '"' and self._text[at] == "\\" else 1
        return at

    # --- walking ---------------------------------------------------------------------------------------------------

    def _walk(self) -> None:
        table: Path = ()
        while self._skip(_SPACE) < len(self._text):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)

    def _skip(self, expression: re.Pattern[str]) -> int:
        found = expression.match(self._text, self._at)
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
            parts.append(self._text[start : self._at].strip("\"'") if is_quoted else self._text[start : self._at])
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


def place_of(text: str, at: int) -> Place:
    """Return the place of a character."""
    return Place(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))
