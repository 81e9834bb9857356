"""Where the files of a clarification lie, and how they are put there and read.

Nothing that is not a plain small file.
"""

import errno
import os
import stat
from contextlib import suppress

import msgspec

from adjourn.core.clarification import (
    PHASE,
    Clarification,
    Left,
    Refusal,
    Request,
    Response,
    read_checkpoint,
)
from adjourn.core.digest import sha256
from adjourn.core.errors import Misuse
from adjourn.system.files import private_directory, write_whole
from adjourn.system.yaml import NotYet

LARGEST = 1 << 20
_LARGEST_CHECKPOINT = 16 << 20
_FOLDER = "clarifications"
_ENDING = ".response.yaml"


def needed_path(root: str, task_id: str) -> str:
    """Return where a task's request lies."""
    return os.path.join(root, _FOLDER, f"{task_id}.needed.yaml")


def response_path(root: str, task_id: str) -> str:
    """Return where the response to a task's request is looked for."""
    return os.path.join(root, _FOLDER, f"{task_id}{_ENDING}")


def checkpoint_path(root: str, task_id: str) -> str:
    """Return where a task's checkpoint lies."""
    return os.path.join(root, "checkpoints", f"{task_id}.checkpoint.json")


def refused_path(root: str, task_id: str) -> str:
    """Return where it is noted that a task's response was refused, and why."""
    return os.path.join(root, _FOLDER, f"{task_id}.refused.json")


def is_used(root: str) -> bool:
    """Say whether anybody ever asked by these files here."""
    return os.path.isdir(os.path.join(root, _FOLDER))


def all_paths(root: str, task_id: str) -> list[str]:
    """Return where all the files of a task's clarification lie."""
    return [
        kind(root, task_id) for kind in (needed_path, response_path, refused_path, checkpoint_path)
    ]


# --- writing --------------------------------------------------------------------------------------


def write_request(root: str, task_id: str, clarification: Clarification) -> None:
    """Put a request where whoever answers looks for it.

    An answer to an earlier one is not one to this.
    """
    from adjourn.clarifications import text  # most runs leave no files

    private_directory(os.path.join(root, _FOLDER))
    content = text.request_text(
        clarification, agent_id=task_id, checkpoint_path=checkpoint_path(root, task_id)
    )
    write_whole(needed_path(root, task_id), content.encode())


def write_response(root: str, task_id: str, answers: dict[str, str], *, at: int) -> bytes:
    """Write down answers that came another way, for an agent that reads files.

    Return what the file says.
    """
    from adjourn.clarifications import text  # most runs leave no files

    private_directory(os.path.join(root, _FOLDER))
    content = text.response_text(
        answers, agent_id=task_id, at=at, checkpoint_path=checkpoint_path(root, task_id)
    ).encode()
    write_whole(response_path(root, task_id), content)
    return content


def write_checkpoint(root: str, task_id: str, content: bytes) -> None:
    """Put a checkpoint in its place."""
    private_directory(os.path.join(root, "checkpoints"))
    write_whole(checkpoint_path(root, task_id), content)


def note_refusal(root: str, refusal: Refusal) -> bool:
    """Remember that a response was refused; say whether that is news.

    Where it cannot be noted it stays news.
    """
    if refusal == noted_refusal(root, refusal.task_id):
        return False
    with suppress(OSError):
        write_whole(refused_path(root, refusal.task_id), msgspec.json.encode(refusal))
    return True


def noted_refusal(root: str, task_id: str) -> Refusal | None:
    """Return what was noted of a task's response."""
    try:
        found = read_plain(refused_path(root, task_id))
        return msgspec.json.decode(found.content, type=Refusal) if found else None
    except (Misuse, msgspec.DecodeError):
        return None


def remove(*paths: str) -> None:
    """Take files away that may not be there.

    What cannot be taken away holds up nobody: these are copies.
    """
    for path in paths:
        with suppress(OSError):
            os.unlink(path)


# --- reading --------------------------------------------------------------------------------------


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A file that somebody wrote: what it says, and whose it is."""

    content: bytes
    owner: int


def read_plain(path: str, *, largest: int = LARGEST) -> Found | None:
    """Return a file if it is there.

    A link, a pipe, a device or something huge is refused without being read.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        why = (
            "it is a symbolic link"
            if error.errno == errno.ELOOP
            else f"it cannot be opened: {error.strerror}"
        )
        raise Misuse(why, way_out="put a plain file there") from error
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            raise Misuse("it is not a plain file", way_out="put a plain file there")
        if about.st_size > largest:
            raise Misuse(f"it has {about.st_size} bytes, more than {largest}", way_out="write less")
        with open(fd, "rb", closefd=False) as file:
            content = file.read(largest + 1)
    finally:
        os.close(fd)
    if len(content) > largest:
        raise Misuse(f"it has more than {largest} bytes", way_out="write less")
    return Found(content=content, owner=about.st_uid)


def tasks_with_response(root: str) -> list[str]:
    """Return the tasks for which a response file lies there."""
    try:
        names = os.listdir(os.path.join(root, _FOLDER))
    except OSError:
        return []
    return sorted(name.removesuffix(_ENDING) for name in names if name.endswith(_ENDING))


def response_of(content: bytes, *, task_id: str) -> Response:
    """Read a response and insist that it is to this task."""
    from adjourn.clarifications import text  # most runs leave no files

    response = text.read_response(content)
    if response.agent_id != task_id:
        raise Misuse("its agent_id is that of another agent", way_out=f"say agent_id: {task_id}")
    return response


def left_by(root: str, task_id: str) -> Left | None:
    """Return what a process left that wrote the protocol's files by itself, if it says that it waits."""
    try:
        found = read_plain(checkpoint_path(root, task_id), largest=_LARGEST_CHECKPOINT)
    except Misuse as error:
        return Left(checkpoint=b"", problem=f"its checkpoint: {error.sentence}")
    if found is None:
        return None
    try:
        if read_checkpoint(found.content).phase != PHASE:
            return None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Left(checkpoint=found.content, problem=f"its checkpoint: {error}")
    return _with_request(root, task_id, found.content)


def _with_request(root: str, task_id: str, checkpoint: bytes) -> Left:
    try:
        return Left(
            checkpoint=checkpoint,
            request=_request(root, task_id),
            response=response_digest(root, task_id),
        )
    except (Misuse, NotYet) as error:
        return Left(checkpoint=checkpoint, problem=f"its request: {error}")


def response_digest(root: str, task_id: str) -> bytes | None:
    """Return the digest of the response that lies there for a task, if one does and can be read."""
    try:
        found = read_plain(response_path(root, task_id))
    except Misuse:
        return None
    return sha256(found.content) if found else None


def _request(root: str, task_id: str) -> Request:
    from adjourn.clarifications import text  # most runs leave no files

    found = read_plain(needed_path(root, task_id))
    if found is None:
        raise Misuse("there is none", way_out="write it before the checkpoint")
    return text.read_request(found.content)
