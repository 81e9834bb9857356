"""Finds what a command depends on: its program on PATH, and the files in its arguments."""

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from adjourn.core.call import COMMAND, Command, argv_of
from adjourn.core.policy.opening import NOT_PINNED, Surroundings
from adjourn.core.text.render import spelled
from adjourn.system.machine import hinders_looking
from adjourn.system.pinning import (
    DIGEST,
    FileLookup,
    Interpreters,
    can_be_leased,
    digest_of,
    is_out_of_reach,
    name_of,
    opened,
    plan_start,
    steps_to,
)

LARGEST = 256 << 20
MOST = 100
_AT_REST = 2_000_000_000  # nanoseconds
_MOST_KNOWN = 10_000
_BEYOND = f"not covered: only the first {MOST} files are"
_INTERPRETER = (
    r"(?:ba|da|z|k|fi)?sh|python[\d.]*|pypy[\d.]*|node|nodejs|deno|bun|tsx|ts-node"
    r"|ruby|perl|php|lua[\d.]*|Rscript|pwsh|[gmn]?awk|g?sed|g?make|ld-(?:linux|musl).*"
)
_PYTHON = r"python[\d.]*|pypy[\d.]*"
_OURS = "--approval-decision="  # added by adjourn, with a value that names no file


_known: dict[tuple[int, ...], str] = {}


def search_path(first: str | None, inherited: Mapping[str, str]) -> str:
    """Return the PATH of a run's process.

    That of its supervisor, behind the directory with this very adjourn in it.
    """
    path = inherited.get("PATH", os.defpath)
    return os.pathsep.join([first, path]) if first else path


def look_at(
    command: Command, *, path: str, own: str = "", workspace: str | None = None
) -> Surroundings:
    """Return where a command's programs are, and the digests of all files that it depends on.

    These are its programs, their interpreters, and the files that they are given. `own` is this
    very adjourn, which the word `adjourn` means. A call may run elsewhere than in the `workspace`
    of its task: the project is that of the workspace.
    """
    # Seldom needed: most commands only decide
    from adjourn.core.policy.commands import all_steps, named_programs, steps_of

    step = steps_of(COMMAND, {"argv": argv_of(command)})
    steps = [each for each in all_steps(step) if each.words] if step else []
    lookup = FileLookup(command.cwd, path, own=own)
    programs: dict[str, str] = {}
    readers: dict[str, Interpreters] = {}
    found: list[str] = []
    for word in dict.fromkeys(word for each in steps for word in named_programs(each)):
        program = lookup.program(word)
        if program is None:
            continue
        programs[word] = program
        readers[word] = lookup.interpreters(program)
        found += [program, *readers[word].named, *readers[word].searched]
    code = list(found)  # what is run; of the operands, what an interpreter is given
    for each in steps:
        operands = [name for word in each.words[1:] for name in _named(word, lookup)]
        operands += _modules(each.words, lookup)
        found += operands
        code += operands if re.fullmatch(_INTERPRETER, os.path.basename(each.words[0])) else []

    # The same file may be named in several ways; it is opened as it was written, which is how the
    # program will open it.
    files: dict[str, str] = {}
    for file in found:
        files.setdefault(spelled(name_of(lookup.absolute(file))), lookup.absolute(file))
    pinned = _pinned(command.argv, lookup)
    states = {
        name: _state(file, is_pinned=name in pinned) if number < MOST else _BEYOND
        for number, (name, file) in enumerate(files.items())
    }
    root = project_of(workspace or command.cwd)
    is_elsewhere = not _is_below(os.path.realpath(command.cwd), root)
    root = spelled(root)
    outermost = programs.get(command.argv[0])
    return Surroundings(
        program=outermost and spelled(name_of(lookup.absolute(outermost))),
        programs={
            word: spelled(os.path.realpath(lookup.absolute(program)))
            for word, program in programs.items()
        },
        files=states,
        pinned=frozenset(name for name in pinned if states.get(name, "").startswith(DIGEST)),
        root=root,
        content=_content(code, states, lookup, root=root),
        readers={
            word: _real_paths(each.named, lookup) for word, each in readers.items() if each.named
        },
        searched={
            word: _real_paths(each.searched, lookup)
            for word, each in readers.items()
            if each.searched
        },
        near=frozenset(
            word
            for word, program in programs.items()
            if is_elsewhere and not os.path.isabs(program)
        ),
        doubts={
            word: doubt
            for word, each in readers.items()
            if (doubt := _doubt(each, is_elsewhere=is_elsewhere))
        },
    )


def _doubt(readers: Interpreters, *, is_elsewhere: bool) -> str:
    """Return why the interpreters of a script may be others, if so."""
    near = [each for each in readers.searched if is_elsewhere and not os.path.isabs(each)]
    return readers.doubt or (
        f"PATH finds {near[0]} in the directory that it would run in" if near else ""
    )


def _is_below(path: str, directory: str) -> bool:
    return f"{path}/".startswith(f"{directory.rstrip('/')}/")


def _real_paths(files: Iterable[str], lookup: FileLookup) -> tuple[str, ...]:
    """Return where files really are."""
    return tuple(spelled(os.path.realpath(lookup.absolute(file))) for file in files)


def _content(
    code: Iterable[str], states: Mapping[str, str], lookup: FileLookup, *, root: str
) -> dict[str, str]:
    """Return the digests of those of the files that belong to the repository."""
    found: dict[str, str] = {}
    for file in code:
        whole = lookup.absolute(file)
        where = spelled(os.path.realpath(whole))
        if where.startswith(f"{root.rstrip('/')}/"):
            found[where] = states[spelled(name_of(whole))].removesuffix(NOT_PINNED)
    return found


def project_of(workspace: str) -> str:
    """Return the root of the repository that a workspace is in.

    The outermost one below the home directory, else itself.
    """
    root = directory = os.path.realpath(workspace)
    home = os.path.realpath(os.path.expanduser("~"))
    while directory not in {home, os.path.dirname(directory)}:
        git = os.path.join(directory, ".git")
        # Codex's sandbox leaves an empty one in /tmp
        if os.path.isfile(git) or os.path.lexists(os.path.join(git, "HEAD")):
            root = directory
        directory = os.path.dirname(directory)
    return root


def _named(word: str, lookup: FileLookup) -> Iterator[str]:
    """Yield the files that a word names, by itself or after an equals sign."""
    if word.startswith(_OURS):
        return
    for name in dict.fromkeys((word, word.partition("=")[2])):
        if name and "\0" not in name and os.path.exists(lookup.absolute(name)):
            yield name


def _modules(words: Sequence[str], lookup: FileLookup) -> Iterator[str]:
    """Yield the files of its directory that `python -m NAME` would run before installed ones."""
    if not re.fullmatch(_PYTHON, os.path.basename(words[0])):
        return
    for option, name in pairwise(words[1:]):
        if re.fullmatch(r"-[A-Za-z]*m", option) and re.fullmatch(r"[\w.]+", name):
            path = name.replace(".", "/")
            for file in (f"{path}.py", f"{path}/__init__.py", f"{path}/__main__.py"):
                if os.path.exists(lookup.absolute(file)):
                    yield file


def _pinned(argv: tuple[str, ...], lookup: FileLookup) -> set[str]:
    """Return, by name, the writable files whose very bytes the start of a command executes."""
    start = plan_start(argv, lookup) if argv else None
    if start is None:
        return set()
    program, script = lookup.absolute(start.program), lookup.absolute(start.script)
    pinned: set[str] = set()
    if not is_out_of_reach(program) and can_be_leased(program):
        pinned.add(spelled(name_of(program)))
    if start.script and not is_out_of_reach(script):
        pinned.add(spelled(name_of(script)))
    return pinned


def _state(file: str, *, is_pinned: bool) -> str:
    """Return a file's digest, or why it has none.

    What is no file is not even opened: that alone may have an effect.
    """
    try:
        about = os.stat(file)
        if stat.S_ISDIR(about.st_mode):
            return "not covered: a directory"
        if not stat.S_ISREG(about.st_mode):
            return "not covered: not a regular file"
        if about.st_size > LARGEST:
            return f"not covered: larger than {LARGEST >> 20} MB"
        if any(step.startswith("/proc/") for step, _ in steps_to(file)):
            # /proc/self/cwd is another directory for us than for the command
            return "not covered: another file for each process"
        out_of_reach = is_out_of_reach(file)
        with opened(file) as fd:
            digest = _kept_digest_of(fd) if out_of_reach else digest_of(fd)
    except OSError as error:
        if hinders_looking(error.errno):
            raise  # the file is as it was: that we cannot read it now must not cost its approval
        return f"not covered: {(error.strerror or 'unreadable').lower()}"
    return digest if is_pinned or out_of_reach else f"{digest}{NOT_PINNED}"


def _kept_digest_of(fd: int) -> str:
    """Return the digest of a file that only root can change; one at rest is read only once.

    Of no other file is a digest kept: a shared mapping changes bytes and leaves the file's times as
    they were.
    """
    before = _version(fd)
    known = _known.get(before)
    if known:
        return known
    digest = digest_of(fd)
    if (
        _version(fd) == before
        and time.time_ns() - before[-1] > _AT_REST
        and len(_known) < _MOST_KNOWN
    ):
        _known[before] = digest
    return digest


def _version(fd: int) -> tuple[int, ...]:
    about = os.fstat(fd)
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns
