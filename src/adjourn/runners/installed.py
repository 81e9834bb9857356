"""Finds the programs that a runner starts by itself.

As the user names them, and never one of the workspace.
"""

import os
from collections.abc import Iterator

from adjourn.core.errors import AdjournError

_SYSTEM = "/usr/bin:/bin"
_FIRST_LINE = 4096


def find_program(name: str, *, path: str, workspace: str) -> str | None:
    """Return the absolute path of a program, or None if there is none.

    A name is looked up on PATH. Entries that are relative, or lead into the workspace, do not
    count: whoever wrote the repository would choose what runs, before anybody was asked. Whoever
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


def start_words(program: str, *, path: str, workspace: str) -> list[str]:
    """Return the words that start a program.

    A script that has `env` find its interpreter would take the workspace's.
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
