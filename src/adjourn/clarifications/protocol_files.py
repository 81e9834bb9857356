"""Where the files of a clarification lie, and how they are written and read."""

import os
from contextlib import suppress
from hashlib import sha256

import msgspec

from adjourn.clarifications import text
from adjourn.core.clarification import (
    PHASE,
    Clarification,
    Left,
    Refusal,
    Response,
    read_checkpoint,
)
from adjourn.core.documents import ClarificationDoc
from adjourn.core.errors import Misuse
from adjourn.core.scene import Scene
from adjourn.core.text.when import stamp
from adjourn.system.files import (
    OTHER_RESPONSE,
    RESPONSE,
    checkpoint_path,
    clarifications_directory,
    private_directory,
    read_owned,
    write_whole,
)
from adjourn.system.yaml import NotYet

LARGEST = 1 << 20
_LARGEST_CHECKPOINT = 16 << 20


def needed_path(root: str, task_id: str) -> str:
    """Return where a task's request lies."""
    return os.path.join(clarifications_directory(root), f"{task_id}.needed.yaml")


def response_path(root: str, task_id: str) -> str:
    """Return where the response to a task's request is expected."""
    return os.path.join(clarifications_directory(root), f"{task_id}{RESPONSE}")


def refused_path(root: str, task_id: str) -> str:
    """Return where the reason lies for which a task's response was refused."""
    return os.path.join(clarifications_directory(root), f"{task_id}.refused.json")


def other_response_path(root: str, task_id: str) -> str:
    """Return where it is noted that a task's checkpoint names another place for its response."""
    return os.path.join(clarifications_directory(root), f"{task_id}{OTHER_RESPONSE}")


def write_other_response(root: str, task_id: str, path: str) -> None:
    """Note where else an agent expects the response; where that fails, nobody is told."""
    with suppress(OSError, ValueError):
        private_directory(clarifications_directory(root))
        write_whole(other_response_path(root, task_id), os.fsencode(path))


def read_other_response(root: str, task_id: str) -> str | None:
    """Return where else an agent expects its response, if it does."""
    try:
        found = read_owned(other_response_path(root, task_id), largest=LARGEST)
    except Misuse:
        return None
    return os.fsdecode(found.content) if found and b"\0" not in found.content else None


def clarification_doc(root: str, scene: Scene) -> ClarificationDoc | None:
    """Say where the files of a task's clarification are, if it waits for one."""
    asked, task_id = scene.clarification, scene.task.id
    if asked is None:
        return None
    return ClarificationDoc(
        agent_id=task_id,
        request_id=asked.id,
        timestamp=stamp(asked.asked_at),
        clarification_path=needed_path(root, task_id),
        response_path=response_path(root, task_id),
        checkpoint_path=checkpoint_path(root, task_id),
    )


def write_request(root: str, task_id: str, clarification: Clarification) -> None:
    """Write a request, to be answered in a response file."""
    private_directory(clarifications_directory(root))
    content = text.request_text(
        clarification, agent_id=task_id, checkpoint_path=checkpoint_path(root, task_id)
    )
    write_whole(needed_path(root, task_id), content.encode())


def write_response(root: str, task_id: str, answers: dict[str, str], *, at: int) -> bytes:
    """Write answers that came another way, for an agent that reads files; return the content."""
    private_directory(clarifications_directory(root))
    content = text.response_text(
        answers, agent_id=task_id, at=at, checkpoint_path=checkpoint_path(root, task_id)
    ).encode()
    write_whole(response_path(root, task_id), content)
    return content


def write_checkpoint(root: str, task_id: str, content: bytes) -> None:
    """Write a task's checkpoint."""
    path = checkpoint_path(root, task_id)
    private_directory(os.path.dirname(path))
    write_whole(path, content)


def write_refusal(root: str, refusal: Refusal) -> bool:
    """Remember that a response was refused; return whether that is new.

    Where it cannot be written it is new each time.
    """
    if refusal == read_refusal(root, refusal.task_id):
        return False
    with suppress(OSError):
        write_whole(refused_path(root, refusal.task_id), msgspec.json.encode(refusal))
    return True


def read_refusal(root: str, task_id: str) -> Refusal | None:
    """Return why a task's response was refused, as far as that was written."""
    try:
        found = read_owned(refused_path(root, task_id), largest=LARGEST)
        return msgspec.json.decode(found.content, type=Refusal) if found else None
    except (Misuse, msgspec.DecodeError):
        return None


def remove(*paths: str) -> None:
    """Remove files that may not be there.

    One that cannot be removed stops nobody: these are copies.
    """
    for path in paths:
        with suppress(OSError):
            os.unlink(path)


def remove_all(root: str, task_id: str) -> None:
    """Remove every file of a task's clarifications."""
    kinds = (needed_path, response_path, refused_path, other_response_path, checkpoint_path)
    remove(*(path_of(root, task_id) for path_of in kinds))


def tasks_with_response(root: str) -> list[str]:
    """Return the tasks that have a response file."""
    return _tasks_with(root, RESPONSE)


def tasks_with_other_response(root: str) -> list[str]:
    """Return the tasks whose checkpoints name another place for the response."""
    return _tasks_with(root, OTHER_RESPONSE)


def _tasks_with(root: str, ending: str) -> list[str]:
    try:
        names = os.listdir(clarifications_directory(root))
    except OSError:
        return []
    return sorted(name.removesuffix(ending) for name in names if name.endswith(ending))


def response_of(content: bytes, *, task_id: str) -> Response:
    """Read a response, and raise Misuse if it is not to this task."""
    response = text.read_response(content)
    if response.agent_id != task_id:
        raise Misuse("its agent_id is that of another agent", way_out=f"say agent_id: {task_id}")
    return response


def response_digest(root: str, task_id: str) -> bytes | None:
    """Return the digest of a task's response file, if there is one that can be read."""
    try:
        found = read_owned(response_path(root, task_id), largest=LARGEST)
    except Misuse:
        return None
    return sha256(found.content).digest() if found else None


def read_left(root: str, task_id: str) -> Left | None:
    """Return what a process left that wrote the protocol's files itself, if it waits."""
    try:
        found = read_owned(checkpoint_path(root, task_id), largest=_LARGEST_CHECKPOINT)
    except Misuse as error:
        return Left(checkpoint=b"", problem=f"its checkpoint: {error.sentence}")
    if found is None:
        return None
    checkpoint = found.content
    try:
        if read_checkpoint(checkpoint).phase != PHASE:
            return None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Left(checkpoint=checkpoint, problem=f"its checkpoint: {error}")

    # The checkpoint says that it waits: then there is a request, written before
    try:
        found = read_owned(needed_path(root, task_id), largest=LARGEST)
        if found is None:
            raise Misuse("there is no request", way_out="write it before the checkpoint")
        request = text.read_request(found.content)
    except (Misuse, NotYet) as error:
        return Left(checkpoint=checkpoint, problem=f"its request: {error}")
    return Left(checkpoint=checkpoint, request=request, response=response_digest(root, task_id))
