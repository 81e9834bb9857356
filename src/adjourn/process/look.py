"""Looks at what a command depends on: the program that PATH finds, and the files that its words name."""

import os
import stat
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager

from adjourn.core.call import COMMAND, Command, argv_of
from adjourn.core.digest import sha256
from adjourn.core.surroundings import Surroundings
from adjourn.process.shortage import hinders_looking

LARGEST = 256 << 20
MOST = 100
_CHUNK = 1 << 20
_SMALL = 1 << 20
_AT_REST = 2_000_000_000  # nanoseconds
_MOST_KNOWN = 10_000
_INTERPRETERS = 3  # a script's interpreter may be a script, and `env` names yet another program
_SHEBANG = 4096
_BEYOND = f"not covered: only the first {MOST} files are"
_OURS = "--approval-decision="  # added by adjourn, with a value that names no file


_known: dict[tuple[int, ...], str] = {}


def search_path(first: str | None, inherited: Mapping[str, str]) -> str:
    """Return the PATH of a run's process: that of its supervisor, behind this very adjourn."""
    path = inherited.get("PATH", os.defpath)
    return os.pathsep.join([first, path]) if first else path


def look_at(command: Command, *, path: str) -> Surroundings:
    """Return where a command's programs are, and digests: of them, of what interprets them, of the files that they are given."""
    from adjourn.core.reading import all_steps, named_programs, steps_of  # seldom needed: most commands only decide

    step = steps_of(COMMAND, {"argv": argv_of(command)})
    steps = [each for each in all_steps(step) if each.words] if step else []
    commands = [each.words for each in steps]
    place = Place(command.cwd, path)
    programs = {word: program for each in steps for word in named_programs(each) if (program := place.program(word))}
    found = [file for program in programs.values() for file in place.interpreted(program)]
    found += [file for words in commands for word in words[1:] for file in place.named(word)]
    files = list(dict.fromkeys(found))
    outermost = programs.get(command.argv[0])
    return Surroundings(
        program=outermost and _spelled(outermost),
        programs={name: _spelled(os.path.realpath(program)) for name, program in programs.items()},
        files={_spelled(file): _state(file) if number < MOST else _BEYOND for number, file in enumerate(files)},
    )


class Place:
    """Where words mean files: a working directory and a PATH."""

    def __init__(self, cwd: str, path: str) -> None:
        self._cwd = cwd
        self._path = path.split(os.pathsep)

    def program(self, word: str) -> str | None:
        """Return the file that an exec of that word would start, if there is one."""
        places = [""] if "/" in word else self._path
        files = (os.path.normpath(os.path.join(self._cwd, place, word)) for place in places)
        return next((file for file in files if os.path.isfile(file) and os.access(file, os.X_OK)), None)

    def interpreted(self, program: str) -> Iterator[str]:
        """Yield a program, and the chain of programs that would read it."""
        for _ in range(_INTERPRETERS):
            yield program
            words = _shebang(program)
            if words and os.path.basename(words[0]) == "env" and len(words) > 1:
                yield words[0]
                words = [word for word in words[1].split() if not word.startswith("-") and "=" not in word]
            found = self.program(words[0]) if words else None
            if found is None:
                return
            program = found

    def named(self, word: str) -> Iterator[str]:
        """Yield the files that a word names, by itself or after an equals sign."""
        if word.startswith(_OURS):
            return
        for name in dict.fromkeys((word, word.partition("=")[2])):
            file = os.path.normpath(os.path.join(self._cwd, name))
            if name and os.path.exists(file):
                yield file


def _shebang(program: str) -> list[str]:
    """Return the interpreter that a script names in its first line, and the one argument it may give it."""
    try:
        with _opened(program) as fd:
            head = os.read(fd, _SHEBANG)
    except OSError as error:
        if hinders_looking(error.errno):
            raise
        return []
    if not head.startswith(b"#!"):
        return []
    return os.fsdecode(head[2:].split(b"\n", 1)[0]).strip().split(maxsplit=1)


def _state(file: str) -> str:
    """Return a file's digest, or why it has none. What is no file is not even opened: that alone may have an effect."""
    try:
        about = os.stat(file)
        if stat.S_ISDIR(about.st_mode):
            return "not covered: a directory"
        if not stat.S_ISREG(about.st_mode):
            return "not covered: not a regular file"
        return _digest(file) if about.st_size <= LARGEST else f"not covered: larger than {LARGEST >> 20} MB"
    except OSError as error:
        if hinders_looking(error.errno):
            raise  # the file is as it was: that we cannot read it now must not cost its approval
        return f"not covered: {(error.strerror or 'unreadable').lower()}"


def _digest(file: str) -> str:
    with _opened(file) as fd:
        return _digest_of(fd)


@contextmanager
def _opened(file: str) -> Generator[int, None, None]:
    """Lend a file to read from, without any effect that an open alone may have."""
    fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        yield fd
    finally:
        os.close(fd)


def _digest_of(fd: int) -> str:
    """Return the digest of a file; one that lies still and has not changed since this process read it is not read again.

    The kernel alone sets the time of the last change. Two changes within its grain have the same: a young file is read anew.
    """
    before = _version(fd)
    known = _known.get(before)
    if known:
        return known
    digest = _read(fd, before[2])
    if _version(fd) == before and time.time_ns() - before[-1] > _AT_REST and len(_known) < _MOST_KNOWN:
        _known[before] = digest
    return digest


def _version(fd: int) -> tuple[int, ...]:
    about = os.fstat(fd)
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def _read(fd: int, size: int) -> str:
    return f"sha256:{sha256(os.read(fd, _SMALL)).hex() if size < _SMALL else _digest_of_much(fd)}"


def _digest_of_much(fd: int) -> str:
    from hashlib import sha256 as fast  # OpenSSL's: slow to load, five times as fast

    digest = fast()
    while chunk := os.read(fd, _CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def _spelled(path: str) -> str:
    """Return a path as JSON can hold it."""
    return path.encode("utf-8", "backslashreplace").decode()
