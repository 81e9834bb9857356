"""Tools that change files: write_file, edit_file.

They change what the approver saw, and nothing else.
"""

import os
import stat
from contextlib import suppress
from hashlib import sha256

from adjourn.runners.agent.tools.bounds import PathBounds
from adjourn.runners.agent.tools.read import bytes_of, text_of
from adjourn.runners.agent.tools.tool import Arguments, Tool, ToolFailed, capped, schema, text
from adjourn.system.files import write_all

ABSENT = "absent"
_ADDED = ("before", "after", "diff", "real_path")


def prepare_write(place: PathBounds, arguments: Arguments) -> Arguments:
    """Add the digest of what is there now, and what would change, for the person who looks."""
    return _prepared(place, arguments, after=arguments["content"])


def prepare_edit(place: PathBounds, arguments: Arguments) -> Arguments:
    """Add the same to an edit, which must fit exactly one place unless all are meant."""
    return _prepared(place, arguments, after=_edited(text_of(place, arguments["path"]), arguments))


def _prepared(place: PathBounds, arguments: Arguments, *, after: str) -> Arguments:
    path = arguments["path"]
    before = _now(place, path)
    given = {name: value for name, value in arguments.items() if name not in _ADDED}
    digests = {"before": _digest(before), "after": _digest(after.encode())}
    # Where a link leads elsewhere, a person sees both paths, and the diff names the file that would
    # change.
    real = place.path(path)
    is_plain = real == place.plain(path)
    shown = path if is_plain else place.shown(real)
    link = {} if is_plain else {"real_path": shown}
    return given | digests | link | {"diff": _diff(shown, before, after, limit=place.limit)}


def _where(place: PathBounds, arguments: Arguments) -> str:
    """Return the file that a call was shown to write, if its path still leads there."""
    path, real = arguments["path"], place.path(arguments["path"])
    shown = place.plain(arguments.get("real_path") or path)
    if real != shown:
        raise ToolFailed(
            f"{path} leads to {place.shown(real)} now, which is not what was shown; read it again"
        )
    return real


def _diff(path: str, before: bytes | None, after: str, *, limit: int) -> str:
    from difflib import unified_diff  # only when something is about to be written

    old = (before or b"").decode(errors="replace").splitlines(keepends=True)
    new = after.splitlines(keepends=True)
    lines = unified_diff(old, new, fromfile="/dev/null" if before is None else path, tofile=path)
    return capped(
        "".join(line if line.endswith("\n") else f"{line}\n" for line in lines),
        limit,
        of="the diff",
    )


def write_file(place: PathBounds, arguments: Arguments) -> str:
    """Put a file in place, if what is there is still what the approver saw."""
    return _put(place, arguments, arguments["content"])


def edit_file(place: PathBounds, arguments: Arguments) -> str:
    """Replace a text in a file, if the file is still what the approver saw."""
    path = arguments["path"]
    _where(place, arguments)
    if _digest(_now(place, path)) == arguments.get("after"):
        # By this very call, in a process that did not live to tell
        return f"{path} was written already"
    return _put(place, arguments, _edited(text_of(place, path), arguments))


def _edited(words: str, arguments: Arguments) -> str:
    old, new, found = arguments["old"], arguments["new"], words.count(arguments["old"])
    if not old or found == 0:
        raise ToolFailed(f"{arguments['path']} does not hold the text to replace")
    if found > 1 and not arguments.get("all"):
        raise ToolFailed(
            f"{arguments['path']} holds the text to replace {found} times; give more of "
            "it, or say all"
        )
    return words.replace(old, new)


def _now(place: PathBounds, path: str) -> bytes | None:
    return bytes_of(place, path) if os.path.lexists(place.path(path)) else None


def _digest(content: bytes | None) -> str:
    return ABSENT if content is None else f"sha256:{sha256(content).hexdigest()}"


def _put(place: PathBounds, arguments: Arguments, words: str) -> str:
    real = _where(place, arguments)
    path, now = arguments["path"], _now(place, arguments["path"])
    content = words.encode()
    if now == content:
        # By this very call, in a process that did not live to tell
        return f"{path} was written already"
    if _digest(now) != arguments.get("before"):
        raise ToolFailed(f"{path} has changed since the call was proposed; read it again")
    try:
        _replace(real, content)
    except OSError as error:
        raise ToolFailed(f"{path}: {error.strerror}") from error
    return f"{path}: {len(content)} bytes written"


def _replace(real: str, content: bytes) -> None:
    """Put a file in place whole or not at all, with the mode that it had.

    No link on its path is followed.
    """
    name = os.path.basename(real)
    temporary = f".{name[:200]}.adjourn.tmp"
    directory = _directory_without_links(os.path.dirname(real))
    try:
        fd = os.open(
            temporary,
            os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW,
            0o666,
            dir_fd=directory,
        )
        try:
            with suppress(FileNotFoundError):
                # The rename below replaces a link that was put there meanwhile, and does not follow
                # it.
                found = os.stat(name, dir_fd=directory, follow_symlinks=False)
                if stat.S_ISREG(found.st_mode):
                    os.fchmod(fd, stat.S_IMODE(found.st_mode))
            write_all(fd, content)
            os.fsync(fd)
            os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError:
            os.unlink(temporary, dir_fd=directory)
            raise
        finally:
            os.close(fd)
        os.fsync(directory)
    finally:
        os.close(directory)


def _directory_without_links(path: str) -> int:
    """Open a directory step by step from the root, and make what is missing.

    A link on the way is an error.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    directory = os.open("/", flags)
    for part in (part for part in path.split("/") if part):
        above = directory
        try:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=above)
            directory = os.open(part, flags, dir_fd=above)
        finally:
            os.close(above)
    return directory


WRITING = (
    Tool(
        name="write_file",
        description="Write a text file, whole; what was in it is replaced.",
        schema=schema(
            ["path", "content"], path=text("the file"), content=text("all that will be in it")
        ),
        prepare=prepare_write,
        act=write_file,
    ),
    Tool(
        name="edit_file",
        description=(
            "Replace a text in a file. The old text must be in it exactly once, unless all is true."
        ),
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
