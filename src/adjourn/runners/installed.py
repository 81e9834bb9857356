"""Finds the programs that a runner starts, as the user names them, and asks for their version.

It never finds a program of the workspace.
"""

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence

from adjourn.core.agent.calls import SessionCheck
from adjourn.core.errors import AdjournError

_SYSTEM = "/usr/bin:/bin"
_FIRST_LINE = 4096
_SECONDS = 20  # that a program may take to print its version


def find_program(name: str, *, path: str, workspace: str) -> str | None:
    """Return the absolute path of a program, or None if it is not found.

    A name is looked up on PATH. Entries that are relative, or lead into the workspace, do not
    count: the repository would choose what runs, before anybody was asked. A person who
    wants such a program names it by its whole path.
    """
    if os.path.isabs(name):
        if os.path.realpath(name) != os.path.normpath(name) and name.startswith(
            ("/proc/", "/dev/")
        ):
            raise AdjournError(
                f"{name} is no fixed place of a program",
                way_out="name the program by its whole path",
            )
        return name if _can_run(name) else None
    if "/" in name:
        whole = os.path.normpath(os.path.join(workspace, name))
        raise AdjournError(
            f"{name} is a relative path: it is not run", way_out=f"--option program={whole}"
        )
    root = _root_of(workspace)
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder, name)
        if os.path.isabs(folder) and _can_run(candidate) and not _is_inside(candidate, root):
            return candidate
    return None


def start_argv(program: str, *, path: str, workspace: str) -> list[str]:
    """Return the arguments that start a program.

    A script that has `env` find its interpreter could find one of the workspace.
    """
    try:
        with open(program, "rb") as file:
            line = file.read(_FIRST_LINE).split(b"\n", 1)[0]
    except OSError:
        return [program]
    words = os.fsdecode(line.removeprefix(b"#!")).split() if line.startswith(b"#!") else []
    if len(words) < 2 or os.path.basename(words[0]) != "env":  # noqa: PLR2004 -- env, and what it finds
        return [program]
    rest = words[2:] if words[1] == "-S" else words[1:]
    interpreter = (
        find_program(rest[0], path=path, workspace=workspace)
        if rest and "=" not in rest[0]
        else None
    )
    if interpreter is None:
        raise AdjournError(
            f"{program} needs {' '.join(rest)}, which is not installed", way_out="adjourn doctor"
        )
    return [interpreter, *rest[1:], program]


def find_tool(name: str, *, path: str, workspace: str) -> str:
    """Return a tool of the system, first from where systems have it."""
    return find_program(name, path=f"{_SYSTEM}:{path}", workspace=workspace) or name


def print_of(argv: Sequence[str], *options: str) -> subprocess.CompletedProcess[str]:
    """Run an installed program with an option that makes it print something and exit.

    Raise OSError, ValueError or TimeoutExpired if it cannot be run, or does not exit.
    """
    return subprocess.run(
        [*argv, *options],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def check_program(
    name: str,
    *,
    before: str,
    starts: bool,
    find: Callable[[], list[str]],
    version: Callable[[list[str]], str],
) -> SessionCheck:
    """Check that a program is still there, and that its version is one that adjourn can use.

    `before` is the version that the task has used. Only who is about to start the program
    `starts` it to ask for its version.
    """
    since = f"; it was {before} when the task left" if before else ""
    try:
        argv = find()
        if not starts:
            says = f"{argv[-1]}{since}; its version is checked when it starts"
        else:
            now = version(argv)
            says = f"{name} {now}{since if before != now else ''}"
    except AdjournError as error:
        return SessionCheck(thing="program", fine=False, says=error.sentence)
    return SessionCheck(thing="program", fine=True, says=says)


def _can_run(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _root_of(workspace: str) -> str:
    """Return the repository that a workspace is part of.

    One that is a whole home holds the user's own programs too.
    """
    home = os.path.realpath(os.path.expanduser("~"))
    for folder in _upwards(os.path.realpath(workspace)):
        if folder in {home, "/"}:
            break
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
    return os.path.realpath(workspace)


def _upwards(folder: str) -> Iterator[str]:
    yield folder
    while folder != "/":
        folder = os.path.dirname(folder)
        yield folder


def _is_inside(path: str, root: str) -> bool:
    """Whether a file, or what it links to, lies in the repository.

    In a workspace that is a whole home nothing does.
    """
    if root in {"/", os.path.realpath(os.path.expanduser("~"))}:
        return False
    return any(
        each == root or each.startswith(f"{root}/")
        for each in (os.path.abspath(path), os.path.realpath(path))
    )
