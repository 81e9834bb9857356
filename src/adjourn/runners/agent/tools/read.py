"""Tools that only look: read_file, list_files, search_files."""

import fnmatch
import os
import re
import stat
from collections.abc import Iterator

from adjourn.runners.agent.tools.bounds import OURS, OutOfBounds, PathBounds
from adjourn.runners.agent.tools.tool import (
    Arguments,
    Tool,
    ToolFailed,
    capped,
    number,
    schema,
    text,
)

_LARGEST = 4 * 1024 * 1024
_LARGEST_SEARCHED = 1024 * 1024
_LINES = 2_000
_ENTRIES = 1_000
_MATCHES = 200
_LONGEST_LINE = 300
_SKIPPED = frozenset({".git", OURS, "node_modules", "__pycache__"})


def read_file(place: PathBounds, arguments: Arguments) -> str:
    """Return lines of a text file, and say where it goes on if that is not all."""
    path = arguments["path"]
    lines = text_of(place, path).splitlines()
    first, count = arguments.get("offset", 1), arguments.get("limit", _LINES)
    shown = lines[first - 1 : first - 1 + count]
    words = capped("\n".join(shown), place.limit, of=path)
    left = len(lines) - (first - 1 + len(shown))
    return (
        f"{words}\n[{left} more lines; go on with offset {first + len(shown)}]"
        if left > 0
        else words
    )


def bytes_of(place: PathBounds, path: str) -> bytes:
    """Return a file's content, or say why it cannot be had."""
    try:
        with place.opened(path) as fd:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise ToolFailed(f"{path} is not a file")
            if found.st_size > _LARGEST:
                raise ToolFailed(f"{path} has {found.st_size} bytes, more than {_LARGEST}")
            return b"".join(iter(lambda: os.read(fd, 1 << 20), b""))
    except OSError as error:
        raise ToolFailed(f"{path}: {error.strerror}") from error


def text_of(place: PathBounds, path: str) -> str:
    """Return a text file's content."""
    content = bytes_of(place, path)
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ToolFailed(f"{path} is not a text in UTF-8 ({len(content)} bytes)") from None


def list_files(place: PathBounds, arguments: Arguments) -> str:
    """Return what is in a directory, or with a pattern all files below it that match."""
    path, pattern = arguments.get("path", "."), arguments.get("pattern")
    root = place.path(path)
    try:
        found = (
            list(_below(place, root, pattern))
            if pattern
            else sorted(_entry(each) for each in os.scandir(root) if each.name != OURS)
        )
    except OSError as error:
        raise ToolFailed(f"{path}: {error.strerror}") from error
    more = f"\n[{len(found) - _ENTRIES} more]" if len(found) > _ENTRIES else ""
    return "\n".join(found[:_ENTRIES]) + more if found else "nothing"


def _entry(entry: "os.DirEntry[str]") -> str:
    return entry.name + ("/" if entry.is_dir(follow_symlinks=False) else "")


def _below(place: PathBounds, root: str, pattern: str) -> Iterator[str]:
    for directory, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in _SKIPPED)
        for name in sorted(files):
            shown = place.shown(os.path.join(directory, name))
            if fnmatch.fnmatch(shown, pattern) or fnmatch.fnmatch(name, pattern):
                yield shown


def search_files(place: PathBounds, arguments: Arguments) -> str:
    """Return the lines that match a regular expression, with file and number."""
    try:
        wanted = re.compile(arguments["pattern"])
    except re.error as error:
        raise ToolFailed(f"the pattern is no regular expression: {error}") from error
    root = place.path(arguments.get("path", "."))
    paths = (
        [place.shown(root)]
        if os.path.isfile(root)
        else _below(place, root, arguments.get("files", "*"))
    )
    found: list[str] = []
    for path in paths:
        found += _matches(place, path, wanted)
        if len(found) >= _MATCHES:
            return "\n".join(found[:_MATCHES]) + f"\n[only the first {_MATCHES} are shown]"
    return "\n".join(found) or "nothing"


def _matches(place: PathBounds, path: str, wanted: "re.Pattern[str]") -> list[str]:
    try:
        if os.path.getsize(place.path(path)) > _LARGEST_SEARCHED:
            return []
        lines = text_of(place, path).splitlines()
    except (ToolFailed, OutOfBounds, OSError):
        return []  # no text, or not ours to read
    return [
        f"{path}:{at}:{line[:_LONGEST_LINE]}"
        for at, line in enumerate(lines, 1)
        if wanted.search(line)
    ]


LOOKING = (
    Tool(
        name="read_file",
        description="Read a text file.",
        schema=schema(
            ["path"],
            path=text("the file"),
            offset=number("the first line to read, counted from 1"),
            limit=number("how many lines to read"),
        ),
        read_only=True,
        act=read_file,
    ),
    Tool(
        name="list_files",
        description="List a directory, or with a pattern all files below it whose path matches.",
        schema=schema(
            path=text("the directory; the workspace if left out"),
            pattern=text("like *.py or src/*.py"),
        ),
        read_only=True,
        act=list_files,
    ),
    Tool(
        name="search_files",
        description="Search files for a regular expression (Python's), line by line.",
        schema=schema(
            ["pattern"],
            pattern=text("the regular expression"),
            path=text("a file, or the directory to search below"),
            files=text("only files whose path matches, like *.py"),
        ),
        read_only=True,
        act=search_files,
    ),
)
