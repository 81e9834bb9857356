"""Pins what a command starts: the bytes that were hashed are executed (decision 0069).

The check before the gate and the child behind it use the same functions, so that both mean the same
file.
"""

import errno
import fcntl
import os
import re
import signal
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import NamedTuple

from adjourn.system.machine import hinders_looking

DIGEST = "sha256:"
LARGEST_SCRIPT = 1 << 20  # bytes of a shell script that is handed over in memory
SCRIPT_FD = 99  # where the shell finds them: out of the way of what scripts open themselves
_OWN = "adjourn"
_CHUNK = 1 << 20
_SMALL = 1 << 20
_SHEBANG = 250  # bytes; the kernel reads 256
_MOST_READERS = 6  # a script's interpreter may be a script
_MOST_LINKS = 40
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_MFD_NOEXEC_SEAL = 0x8
_SPELLED_BYTE = r"\\u(dc[89a-f][0-9a-f])"  # a byte of a path that is not UTF-8

_SHELLS = frozenset({"sh", "dash", "bash"})
_SHELL_OPTIONS = r"-[efu]+"
# What a script does that would show it that it was sourced, or that asks for its own process by
# name.
_LOOKS_AT_ITSELF = (
    rb"(?m)BASH_|FUNCNAME|\bcaller\b|\bRETURN\b|^return\b|\([ \t]*return\b|/proc/(?:self|\$)"
    rb"|\$\{!|\$\{?_\b|\b(?:pidof|pgrep|pkill|killall|ps)\b|\0"
)


class Start(NamedTuple):
    """A start whose bytes can be pinned."""

    # The path of what is executed: the command's own program, or the shell that reads its script
    program: str
    argv: tuple[str, ...]  # the words that it gets
    script: str = ""  # the path of the shell script whose bytes it reads from SCRIPT_FD


class Interpreters(NamedTuple):
    """The programs that would read a script, and those that would read these.

    Those that it names, those that `env` finds on PATH, and why there may be others.
    """

    named: list[str]
    searched: list[str]
    doubt: str = ""


class FileLookup:
    """Finds files as an exec would: from a working directory and on a PATH."""

    def __init__(self, cwd: str, path: str, *, own: str = "") -> None:
        self.cwd = cwd
        self._path = path.split(os.pathsep)
        self._own = own

    def program(self, word: str) -> str | None:
        """Return the path that an exec of that word would use, as it was written, or None."""
        for path in self.candidates(word):
            absolute = self.absolute(path)
            if os.path.isfile(absolute) and os.access(absolute, os.X_OK):
                return path
        return None

    def candidates(self, word: str) -> Iterator[str]:
        """Yield the paths that an exec of that word would try."""
        if "/" in word:
            yield word
        elif word == _OWN and self._own:
            yield self._own
        elif word:
            yield from (os.path.join(folder, word) for folder in self._path)

    def absolute(self, path: str) -> str:
        """Return a path that is absolute, and otherwise as it was written."""
        return os.path.join(self.cwd, path)

    def interpreters(self, program: str) -> Interpreters:
        """Return the interpreters of a script; none for any other program."""
        named: list[str] = []
        searched: list[str] = []
        while words := shebang(self.absolute(program)):
            if len(named) >= _MOST_READERS:
                return Interpreters(named, searched, "its interpreters are nested too deep")
            program = words[0]
            named.append(program)
            if os.path.basename(program) == "env":
                word = _started_by_env(words[1] if len(words) > 1 else "")
                reader = self.program(word) if word else None
                if reader is None:
                    return Interpreters(
                        named, searched, f"what `{' '.join(words)}` starts was not found"
                    )
                searched.append(reader)
                program = reader
            if _starts_another(program):
                return Interpreters(
                    named, searched, f"what `{' '.join(words)}` starts was not found"
                )
        return Interpreters(named, searched)


def _starts_another(interpreter: str) -> bool:
    """Return whether an interpreter is a wrapper, which finds on PATH what it starts."""
    # Seldom needed: most interpreters are looked at once, and most commands only decide
    from adjourn.core.policy.commands import is_starter

    names = {os.path.basename(interpreter), os.path.basename(os.path.realpath(interpreter))}
    return any(is_starter(name) for name in names - {"env"})


def name_of(path: str) -> str:
    """Return an absolute path as the kernel walks it.

    `..` leads out of where a link leads, not back to where it stands.
    """
    return os.path.realpath(path) if ".." in path.split("/") else os.path.normpath(path)


def is_out_of_reach(path: str) -> bool:
    """Return whether only root could put other bytes at an absolute path.

    Then the path alone pins them, unless we are root.
    """
    if 0 in (os.geteuid(), os.getuid()):
        return False
    try:
        return all(is_roots_alone(about) for _, about in steps_to(path))
    except OSError:
        return False


def is_roots_alone(about: os.stat_result) -> bool:
    """Return whether only root can write a file or a directory.

    A link cannot be written, only replaced.
    """
    can_be_written = not stat.S_ISLNK(about.st_mode) and about.st_mode & _WRITABLE_BY_OTHERS
    return about.st_uid == 0 and not can_be_written


def steps_to(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield each directory, link and file on the way to an absolute path, as the kernel walks it.

    A link before its target.
    """
    parts = path.split("/")[::-1]
    current, links = "/", 0
    while parts:
        part = parts.pop()
        if part == "..":
            current = os.path.dirname(current)
        step = current if part in {"", ".", ".."} else os.path.join(current, part)
        about = os.lstat(step)
        yield step, about
        if not stat.S_ISLNK(about.st_mode):
            current = step
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, "too many links")
        target = os.readlink(step)
        current = "/" if target.startswith("/") else current
        parts += target.split("/")[::-1]


def paths_of(name: str) -> list[str]:
    """Return the files that `spelled` gives that name.

    Where it has a backslash, there may be two.
    """
    other = re.sub(_SPELLED_BYTE, lambda found: chr(int(found[1], 16)), name)
    return [path for path in dict.fromkeys((name, other)) if os.path.lexists(path)] or [name]


# --- files ----------------------------------------------------------------------------------------


@contextmanager
def opened(path: str) -> Generator[int, None, None]:
    """Lend a file to read from, without any effect that an open alone may have."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        yield fd
    finally:
        os.close(fd)


def digest_of(fd: int) -> str:
    """Return the digest of what is in a file now."""
    if os.fstat(fd).st_size < _SMALL:
        return digest_of_bytes(os.pread(fd, _SMALL, 0))
    from hashlib import sha256 as fast  # OpenSSL's: slow to load, five times as fast

    digest, at = fast(), 0
    while chunk := os.pread(fd, _CHUNK, at):
        digest.update(chunk)
        at += len(chunk)
    return f"{DIGEST}{digest.hexdigest()}"


def digest_of_bytes(content: bytes) -> str:
    """Return the digest of these bytes, as it is written down."""
    return f"{DIGEST}{sha256(content).hexdigest()}"


def shebang(program: str) -> list[str]:
    """Return the interpreter in a script's first line, and the one argument that it may have."""
    try:
        with opened(program) as fd:
            head = os.read(fd, _SHEBANG)
    except OSError as error:
        if hinders_looking(error.errno):
            raise
        return []
    return _shebang_of(head)


def _shebang_of(head: bytes) -> list[str]:
    if not head.startswith(b"#!"):
        return []
    return os.fsdecode(head[2:_SHEBANG].split(b"\n", 1)[0]).strip(" \t").split(maxsplit=1)


def _started_by_env(argument: str) -> str:
    """Return the program that env starts for a shebang's argument, or "" where that is unsure."""
    if not argument.startswith("-"):
        return argument if "=" not in argument else ""
    words = argument.split()
    if words[0] != "-S" or any(letter in argument for letter in "\\\"'$#"):
        return ""
    named = [word for word in words[1:] if "=" not in word or word.startswith("PATH=")]
    return named[0] if named and "=" not in named[0] and not named[0].startswith("-") else ""


def _is_native(head: bytes) -> bool:
    """Return whether the kernel itself runs a program, and hands it to no interpreter."""
    with opened("/proc/self/exe") as fd:
        own = os.read(fd, 20)
    # ELF, of the same class, for the same machine
    return head[:5] == own[:5] and head[18:20] == own[18:20]


# --- how a command is started ---------------------------------------------------------------------


def plan_start(argv: tuple[str, ...], files: FileLookup) -> Start | None:
    """Return how to start a command so that its bytes are pinned.

    None if it can only be started by its path.
    """
    program = files.program(argv[0])
    if program is None:
        return None
    try:
        with opened(files.absolute(program)) as fd:
            head = os.read(fd, _SHEBANG)
    except OSError:
        return None
    words = _shebang_of(head)
    if words:
        return _start_of_script(program, words, argv[1:], files)
    if not _is_native(head):
        return None
    # `sh apply.sh`: the shell gets the script as if the script itself had been started.
    is_shell = os.path.basename(argv[0]) in _SHELLS
    if is_shell and len(argv) > 1 and not argv[1].startswith(("-", "+")):
        start = _start_by_shell(program, argv[0], "", argv[1], argv[2:], files)
        if start:
            return start
    return Start(program, argv)


def _start_of_script(
    program: str, words: list[str], arguments: tuple[str, ...], files: FileLookup
) -> Start | None:
    argument = words[1] if len(words) > 1 else ""
    if os.path.basename(words[0]) != "env":
        return _start_by_shell(words[0], words[0], argument, program, arguments, files)
    name = _started_by_env(argument) if not argument.startswith("-") else ""
    shell = files.program(name) if name else None
    return _start_by_shell(shell, name, "", program, arguments, files) if shell else None


def _start_by_shell(
    shell: str, name: str, options: str, script: str, arguments: tuple[str, ...], files: FileLookup
) -> Start | None:
    """Return how a shell reads the pinned bytes of a script, which still sees its own name."""
    real = os.path.basename(os.path.realpath(files.absolute(shell)))
    if (
        real not in _SHELLS
        or os.path.basename(name) not in _SHELLS
        or (options and not re.fullmatch(_SHELL_OPTIONS, options))
    ):
        return None
    try:
        text = read_script(files.absolute(script))
    except OSError:
        return None
    if len(text) > LARGEST_SCRIPT or re.search(_LOOKS_AT_ITSELF, text):
        return None
    # bash reads ~/.bashrc for `-c` where it takes itself to be started by sshd; a script never
    # does.
    settings = ("--norc",) if real == os.path.basename(name) == "bash" else ()
    first = (*settings, *([options] if options else ()), "-c", f". /proc/self/fd/{SCRIPT_FD}")
    return Start(shell, (name, *first, script, *arguments), script)


def read_script(path: str) -> bytes:
    """Return the bytes of a script; of one that is too large, enough to tell that it is."""
    with opened(path) as fd:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        content = b""
        while len(content) <= LARGEST_SCRIPT and (chunk := os.read(fd, _CHUNK)):
            content += chunk
        return content


def lease(fd: int) -> None:
    """Keep writers out of a file until its descriptor is closed.

    BlockingIOError means that somebody has it open for writing. The kernel makes a writer wait, and
    breaks the lease after `fs.lease-break-time`, 45 s. Its notice must not end this process.
    """
    fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)


def is_leased(fd: int) -> bool:
    """Return whether nobody has asked for the file since it was leased, or was let in."""
    return fcntl.fcntl(fd, fcntl.F_GETLEASE) == fcntl.F_RDLCK


def can_be_leased(path: str) -> bool:
    """Return whether this user can lease a file: may, on its file system, and nobody writes it.

    NFS 4 gives the same answer for a file that it cannot lease as others do for one that is being
    written.
    """
    try:
        with opened(path) as fd:
            lease(fd)
    except OSError:
        return False
    return True


def in_memory(content: bytes) -> int:
    """Return a descriptor of a copy that nobody can change any more."""
    try:
        fd = os.memfd_create("script", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING | _MFD_NOEXEC_SEAL)
    except OSError:  # an older kernel does not know the last flag
        fd = os.memfd_create("script", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    left = memoryview(content)
    while left:
        left = left[os.write(fd, left) :]
    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def marks_of(name: str) -> list[int]:
    """Return what changes whenever a file does, or another takes its place.

    The file by its name as it is spelled.
    """
    marks: list[int] = []
    for path in paths_of(name):
        try:
            about = os.stat(path)
        except OSError:
            continue
        marks += [about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns]
    return marks
