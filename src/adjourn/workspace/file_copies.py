"""Copies small texts of the files that a call depends on or changes, for the person who looks."""

import os
import stat
from contextlib import suppress

from adjourn.core.agent.calls import files_of
from adjourn.core.call import COMMAND, Call, arguments_of, command_of
from adjourn.core.policy.locations import directory_of, is_reading, joined, named_files
from adjourn.system.pinning import DIGEST, digest_of_bytes, opened

LARGEST = 64 << 10  # bytes of a file
_MOST = 20  # files of a call
_BY_OTHERS = stat.S_IRGRP | stat.S_IROTH


def copy_texts(call: Call, workspace: str) -> dict[str, str | None]:
    """Return the texts of a call's files as they are now, by the names that the call has for them.

    A file that a call would write may be missing: that is None. What is no text, is large, or is
    private and outside of the workspace is left out. So is what is not the file that was hashed.
    """
    arguments = arguments_of(call.body)
    is_command = call.tool == COMMAND
    hashed = command_of(call.body).files if is_command else files_of(call.body)
    found: dict[str, str | None] = {}
    for path, state in list(hashed.items())[:_MOST]:
        digest = state.partition(" ")[0]
        if digest.startswith(DIGEST):
            content = _read_small(path, workspace)
            if content is not None and digest_of_bytes(content) == digest:
                _take_text(found, path, content)
    if is_command or is_reading(call.tool):
        return found
    base = directory_of(call.tool, arguments, workspace=workspace)
    for _, path in named_files(call.tool, arguments)[:_MOST] if base else ():
        place = joined(base or workspace, path)
        if "\0" in place:
            continue
        if not os.path.lexists(place):
            found[path] = None
            continue
        content = _read_small(place, workspace)
        if content is not None:
            _take_text(found, path, content)
    return found


def _read_small(path: str, workspace: str) -> bytes | None:
    """Return what is in a small regular file that may be copied, or None."""
    with suppress(OSError, ValueError):
        about = os.stat(path)
        is_inside = f"{os.path.realpath(path)}/".startswith(f"{os.path.realpath(workspace)}/")
        is_small = stat.S_ISREG(about.st_mode) and about.st_size <= LARGEST
        # A key or a token that lies elsewhere does not get into the store
        if is_small and (is_inside or about.st_mode & _BY_OTHERS == _BY_OTHERS):
            with opened(path) as fd:
                content = os.read(fd, LARGEST + 1)
            return content if len(content) <= LARGEST else None
    return None


def _take_text(found: dict[str, str | None], path: str, content: bytes) -> None:
    with suppress(UnicodeDecodeError):
        text = content.decode()
        if "\0" not in text:
            found[path] = text
