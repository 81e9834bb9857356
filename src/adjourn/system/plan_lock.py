"""The lock of the process that executes a plan in a workspace."""

import os

import msgspec

from adjourn.core.digest import sha256
from adjourn.core.task import Milliseconds
from adjourn.system import lock
from adjourn.system.files import private_directory, write_all


class Executor(msgspec.Struct, frozen=True, kw_only=True):
    """What the process that executes a plan writes about itself into its lock file."""

    pid: int
    plan: str
    since: Milliseconds


def hold(root: str, workspace: str, executor: Executor) -> lock.HeldLock | None:
    """Take the lock of a workspace and write the executor into it; None if another has it."""
    private_directory(os.path.join(root, "plans"))
    held = lock.hold_if_free(_path(root, workspace))
    if held:
        os.ftruncate(held.fileno(), 0)
        write_all(held.fileno(), msgspec.json.encode(executor))
    return held


def holder(root: str, workspace: str) -> Executor | None:
    """Return who has the lock of a workspace, as far as that was written yet."""
    try:
        with open(_path(root, workspace), "rb") as file:
            return msgspec.json.decode(file.read(), type=Executor)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _path(root: str, workspace: str) -> str:
    return os.path.join(root, "plans", f"{sha256(os.fsencode(workspace)).hex()[:32]}.lock")
