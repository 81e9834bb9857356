"""Tools that change files: write_file, edit_file. They change what the approver saw, and nothing else."""

import os
import stat
from contextlib import suppress

from adjourn.core.digest import sha256
from adjourn.files import sync_directory, write_all
from adjourn.runners.agent.tools.looking import bytes_of, text_of
from adjourn.runners.agent.tools.place import Place
from adjourn.runners.agent.tools.tool import Arguments, Tool, ToolFailed, capped, schema, text

ABSENT = "absent"
_ADDED = ("before", "after", "diff")


def prepare_write(place: Place, arguments: Arguments) -> Arguments:
    """Add the digest of what is there now, and what would change, for the person who looks."""
    return _prepared(place, arguments, after=arguments["content"])


def prepare_edit(place: Place, arguments: Arguments) -> Arguments:
    """Add the same to an edit, which must fit exactly one place unless all are meant."""
    return _prepared(place, arguments, after=_edited(text_of(place, arguments["path"]), arguments))


def _prepared(place: Place, arguments: Arguments, *, after: str) -> Arguments:
    path = arguments["path"]
    before = _now(place, path)
    given = {name: value for name, value in arguments.items() if name not in _ADDED}
    digests = {"before": _digest(before), "after": _digest(after.encode())}
    return given | digests | {"diff": _diff(path, before, after, limit=place.limit)}


def _diff(path: str, before: bytes | None, after: str, *, limit: int) -> str:
    from difflib import unified_diff  # only when something is about to be written

    old = (before or b"").decode(errors="replace").splitlines(keepends=True)
    new = after.splitlines(keepends=True)
    lines = unified_diff(old, new, fromfile="/dev/null" if before is None else path, tofile=path)
    return capped("".join(line if line.endswith("\n") else f"{line}\n" for line in lines), limit, of="the diff")


def write_file(place: Place, arguments: Arguments) -> str:
    """Put a file in place, if what is there is still what the approver saw."""
    return _put(place, arguments, arguments["content"])


def edit_file(place: Place, arguments: Arguments) -> str:
    """Replace a text in a file, if the file is still what the approver saw."""
    path = arguments["path"]
    if _digest(_now(place, path)) == arguments.get("after"):
        return f"{path} was written already"  # by this very call, in a process that did not live to tell
    return _put(place, arguments, _edited(text_of(place, path), arguments))


def _edited(words: str, arguments: Arguments) -> str:
    old, new, found = arguments["old"], arguments["new"], words.count(arguments["old"])
    if not old or found == 0:
        raise ToolFailed(f"{arguments['path']} does not hold the text to replace")
    if found > 1 and not arguments.get("all"):
        raise ToolFailed(f"{arguments['path']} holds the text to replace {found} times; give more of it, or say all")
    return words.replace(old, new)


def _now(place: Place, path: str) -> bytes | None:
    return bytes_of(place, path) if os.path.lexists(place.path(path)) else None


def _digest(content: bytes | None) -> str:
    return ABSENT if content is None else f"sha256:{sha256(content).hex()}"


def _put(place: Place, arguments: Arguments, words: str) -> str:
    path, now = arguments["path"], _now(place, arguments["path"])
    content = words.encode()
    if now == content:
        return f"{path} was written already"  # by this very call, in a process that did not live to tell
    if _digest(now) != arguments.get("before"):
        raise ToolFailed(f"{path} has changed since the call was proposed; read it again")
    try:
        _replace(place.path(path), content)
    except OSError as error:
        raise ToolFailed(f"{path}: {error.strerror}") from error
    return f"{path}: {len(content)} bytes written"


def _replace(real: str, content: bytes) -> None:
    """Put a file in place whole or not at all, with the mode that it had."""
    directory = os.path.dirname(real)
    os.makedirs(directory, exist_ok=True)
    temporary = os.path.join(directory, f".{os.path.basename(real)[:200]}.adjourn.tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        with suppress(FileNotFoundError):
            os.fchmod(fd, stat.S_IMODE(os.stat(real).st_mode))
        write_all(fd, content)
        os.fsync(fd)
        os.rename(temporary, real)
    except OSError:
        os.unlink(temporary)
        raise
    finally:
        os.close(fd)
    sync_directory(directory)


WRITING = (
    Tool(
        name="write_file",
        description="Write a text file, whole; what was in it is replaced.",
        schema=schema(["path", "content"], path=text("the file"), content=text("all that will be in it")),
        prepare=prepare_write,
        act=write_file,
    ),
    Tool(
        name="edit_file",
        description="Replace a text in a file. The old text must be in it exactly once, unless all is true.",
        schema=schema(
            ["path", "old", "new"],
            path=text("the file"),
            old=text("the text to replace, exactly as it is"),
            new=text("the text to put there"),
            all={"type": "boolean", "description": "replace every place"},
        ),
        prepare=prepare_edit,
        act=edit_file,
    ),
)
