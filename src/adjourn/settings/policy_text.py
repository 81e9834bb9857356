"""Reads the text of a file that may hold rules, if it can be trusted."""

import os

from adjourn.core.text.toml import Problem
from adjourn.settings.config import config_directory
from adjourn.system.files import NotRegular, is_trusted, open_regular

RULES = "rules.toml"
_LARGEST = 1024 * 1024


def rules_path() -> str:
    """Return where the user's always-allow rules are."""
    return os.path.join(config_directory(), RULES)


class Unreadable(Exception):
    """A file cannot hold rules, or could be anybody's."""

    def __init__(self, path: str, what: str, *, line: int = 0, column: int = 0) -> None:
        super().__init__(what)
        self.problem = Problem(source=path, line=line, column=column, what=what)


def read_text(path: str, *, is_project: bool) -> str:
    """Return the text of a plain file of a fitting size.

    A user's file must be the user's own, a project's no link.
    """
    try:
        fd = open_regular(path, follow_links=not is_project)
    except NotRegular as error:
        raise Unreadable(path, "it is not a plain file") from error
    except OSError as error:
        raise Unreadable(path, _reason(error, path)) from error
    try:
        found = os.fstat(fd)
        if found.st_size > _LARGEST:
            raise Unreadable(path, f"it has {found.st_size:,} bytes, and {_LARGEST:,} are the most")
        if not is_project and not is_trusted(found):
            raise Unreadable(path, "it can be written by others, so what it says is not followed")
        return _decoded(path, b"".join(iter(lambda: os.read(fd, _LARGEST), b"")))
    finally:
        os.close(fd)


def _reason(error: OSError, path: str) -> str:
    if os.path.islink(path) and not os.path.exists(path):
        return "it is a symbolic link that leads nowhere"
    return (
        "it is a symbolic link, and a project's policy may not be one"
        if os.path.islink(path)
        else str(error.strerror)
    )


def _decoded(path: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = (
            len(
                content[content.rfind(b"\n", 0, error.start) + 1 : error.start].decode(
                    errors="replace"
                )
            )
            + 1
        )
        raise Unreadable(path, "it is not UTF-8", line=line, column=column) from error
