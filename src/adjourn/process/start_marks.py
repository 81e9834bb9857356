"""Marks of calls whose gate was opened, each on disk before that, and found by the call's id.

The store can lose its newest changes: a backup is restored, or its log is removed. The mark stays,
and its name says that the call was started. Only the name is synced, which costs one `fsync` of the
directory. A power cut may take the text of the mark, which says where the files of that start are.
"""

import os
from contextlib import suppress

from adjourn.core.digest import sha256
from adjourn.ports.world import StartMark
from adjourn.system.files import (
    private_directory,
    read_plain,
    sync_directory,
    write_all,
    write_whole,
)

FOLDER = "started"
_DIGITS = 16  # of the call's digest
_LARGEST = 4096  # bytes of a mark
_LONGEST = 120  # bytes of a name that is a call's id


def leave_mark(root: str, call_id: str, mark: StartMark) -> None:
    """Mark a call as started. It is on disk when this returns."""
    folder = os.path.join(root, FOLDER)
    if not os.path.isdir(folder):
        private_directory(folder)
        sync_directory(root)
    path = os.path.join(folder, name_of_mark(call_id))
    text = f"{mark.place}:{mark.digest[:_DIGITS]}".encode()
    try:
        fd = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
    except FileExistsError:  # an earlier start, which the store knows to have failed
        write_whole(path, text)
        return
    try:
        os.fchmod(fd, 0o600)
        write_all(fd, text)
    finally:
        os.close(fd)
    sync_directory(folder)


def read_mark(root: str, call_id: str) -> StartMark | None:
    """Return the newest mark of a call, if it was ever started on this machine."""
    path = os.path.join(root, FOLDER, name_of_mark(call_id))
    content = read_plain(path, largest=_LARGEST)
    if content is None and not os.path.lexists(path):
        return None
    place, _, digest = (content or b"").decode(errors="replace").partition(":")
    return StartMark(place=place if _is_name(place) else "", digest=digest)


def marks_of(root: str, task_ids: set[str]) -> dict[str, StartMark]:
    """Return, by name, the marks of all calls of these tasks that this machine ever started."""
    found: dict[str, StartMark] = {}
    with suppress(FileNotFoundError):
        for name in os.listdir(os.path.join(root, FOLDER)):
            mark = read_mark(root, name) if name.partition(".")[0] in task_ids else None
            if mark:
                found[name] = mark
    return found


def remove_marks(root: str, task_ids: set[str]) -> None:
    """Forget the marks of tasks that were pruned."""
    folder = os.path.join(root, FOLDER)
    with suppress(FileNotFoundError):
        for name in os.listdir(folder):
            if name.partition(".")[0] in task_ids:
                with suppress(OSError):
                    os.unlink(os.path.join(folder, name))


def name_of_mark(call_id: str) -> str:
    """Return the name of a call's mark.

    Its id, unless an agent chose one that is no name for a file.
    """
    if _is_name(call_id):
        return call_id
    return f"{call_id.partition('.')[0]}.{sha256(call_id.encode(errors='surrogatepass')).hex()}"


def _is_name(text: str) -> bool:
    return (
        text.isascii()
        and text.isprintable()
        and "/" not in text
        and 0 < len(text) <= _LONGEST
        and text[0] != "."
    )
