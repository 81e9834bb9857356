"""Where a call would run and what it would write: directories, the sandbox, the paths of files."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from adjourn.core.call import Json, exact_word
from adjourn.core.policy.commands import SHELL_TOOLS, all_steps, steps_of
from adjourn.core.policy.pattern import read_pattern
from adjourn.core.policy.shell import Words
from adjourn.core.text.render import visible

NOT_TOLD = "not told"  # what a driver puts in the place of something that its agent keeps to itself
ANY_DEPTH = "**"  # in a pattern of directories: any number of them, also none
PATCH_TOOL = "apply_patch"

_DIRECTORIES = ("cwd", "(cwd)", "workdir", "working_directory", "workingDirectory")
_FILES = ("file_path", "notebook_path", "path")
# These tools of Claude Code take paths from the root; it does not matter in which directory they
# are called.
_TAKES_WHOLE_PATHS = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Read", "Write"})

# The sandboxes that a person chooses for Codex. Everything else that it says there is a way out of
# them.
_SANDBOXES = ("danger-full-access", "read-only", "workspace-write")


# --- directories ----------------------------------------------------------------------------------


def joined(base: str, path: str) -> str:
    """Return a path counted from a directory."""
    if path.startswith("/"):
        return path
    return base if path in {"", "."} else f"{base.rstrip('/')}/{path}"


def directory_of(tool: str, arguments: Mapping[str, Json], *, workspace: str) -> str | None:
    """Return the directory that a call would run in, links not followed.

    None if nobody can tell.
    """
    directory = workspace
    if tool in _TAKES_WHOLE_PATHS:
        return directory
    for key in _DIRECTORIES:
        given = arguments.get(key)
        if given is None:
            continue
        word = exact_word(given)
        # Some take `..` off a path by its words, the kernel follows links first: it can mean two
        # directories.
        if word is None or word == NOT_TOLD or word.startswith("~") or ".." in word.split("/"):
            return None
        directory = joined(directory, word)
    return directory


# Options by which a program works in another directory, whatever the program.
_MOVES = (
    "--chdir",
    "--cwd",
    "--directory",
    "--git-dir",
    "--project-directory",
    "--work-tree",
    "--working-directory",
    "-chdir",
)
# The same for programs of which `-C`, or another short word, means that and nothing else.
_MOVES_OF: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("cargo", "git", "gmake", "go", "make", "ninja", "tar"), ("-C",)),
    "gradle": ("-p", "--project-dir"),
    "npm": ("-C", "--prefix"),
    "pnpm": ("-C", "--dir", "--prefix"),
    "poetry": ("-C", "-P", "--project"),
    "uv": ("--project",),
}


def moves_in(words: Words) -> Iterator[tuple[int, str | None]]:
    """Yield each directory that options of a command lead to, and the index of its word."""
    options = (*_MOVES, *_MOVES_OF.get(words[0].rpartition("/")[2], ())) if words else ()
    for at, word in enumerate(words[1:], start=1):
        for option in options:
            if word == option:
                yield at + 1, words[at + 1] if at + 1 < len(words) else None
            elif word.startswith(f"{option}="):
                yield at, word[len(option) + 1 :]
            elif (
                not option.startswith("--") and len(option) == len("-C") and word.startswith(option)
            ):
                yield at, word[len(option) :]


def matches_directory(pattern: str, directory: str, *, workspace: str) -> bool:
    """Return whether a directory fits a pattern, relative to the workspace or absolute."""
    if pattern.startswith("/"):
        return _fits(_parts(pattern), _parts(directory))
    inside = relative(directory, workspace)
    return inside is not None and _fits(_parts(pattern), _parts(inside))


def relative(path: str, directory: str) -> str | None:
    """Return a path as it is counted from a directory above it, `.` for that itself.

    None if it is elsewhere.
    """
    if path == directory:
        return "."
    above = directory.rstrip("/") + "/"
    return path[len(above) :] if path.startswith(above) else None


@lru_cache(maxsize=1024)
def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part not in {"", "."})


def _fits(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == ANY_DEPTH:
        return any(_fits(pattern[1:], parts[start:]) for start in range(len(parts) + 1))
    is_first = bool(parts) and read_pattern(pattern[0]).matches(parts[0])
    return is_first and _fits(pattern[1:], parts[1:])


# --- the sandbox ----------------------------------------------------------------------------------


def leaves_sandbox(tool: str, arguments: Mapping[str, Json]) -> bool:
    """Say whether a call asks to run outside of the sandbox that its agent keeps."""
    if any(
        arguments.get(name) for name in ("dangerouslyDisableSandbox", "with_escalated_permissions")
    ):
        return True
    if arguments.get("sandbox_permissions") not in (None, "", "use_default"):
        return True
    return (
        tool.casefold() in SHELL_TOOLS and arguments.get("sandbox", "read-only") not in _SANDBOXES
    )


# --- files ----------------------------------------------------------------------------------------

_PATCHED = ("*** Add File: ", "*** Delete File: ", "*** Update File: ", "*** Move to: ")


def named_files(tool: str, arguments: Mapping[str, Json]) -> list[tuple[str, str]]:
    """Return the files that a call names, each with the argument by which a rule speaks of it.

    A patch names several. To a rule, each of them is the argument `path`.
    """
    if tool == PATCH_TOOL:
        return [("path", path) for path in dict.fromkeys(_patched(arguments))]
    if tool.casefold() in SHELL_TOOLS:
        text = arguments.get("command")
        is_patch = isinstance(text, str) and "*** Begin Patch" in text
        return (
            [("path", path) for path in dict.fromkeys(_patched({"patch": text}))]
            if is_patch
            else []
        )
    return [
        (key, given) for key in _FILES if isinstance(given := arguments.get(key), str) and given
    ]


def _patched(arguments: Mapping[str, Json]) -> Iterator[str]:
    match arguments.get("patch"):
        case str(text):
            for line in text.splitlines():
                head = next((head for head in _PATCHED if line.strip().startswith(head)), None)
                if head:
                    yield line.strip()[len(head) :].strip()
        case _:
            pass
    changes = arguments.get("changes")
    for change in changes if isinstance(changes, Sequence) else ():
        path = change.get("path") if isinstance(change, Mapping) else None
        if isinstance(path, str):
            yield path


_READING = frozenset(
    {"glob", "grep", "list_files", "ls", "notebookread", "read", "read_file", "search_files"}
)


def is_reading(tool: str) -> bool:
    """Return whether a tool only reads the files that it names."""
    return tool.casefold() in _READING


def named_paths(tool: str, arguments: Mapping[str, Json], *, workspace: str) -> list[str]:
    """Return the paths of a call that may be links: its directory, those of its options, its files.

    The workspace itself is not among them. Nothing is looked up.
    """
    directory = directory_of(tool, arguments, workspace=workspace)
    base = directory or workspace
    step = steps_of(tool, arguments)
    words = [each.words for each in all_steps(step)] if step else []
    moves = [joined(base, path) for each in words for _, path in moves_in(each) if path is not None]
    files = [joined(base, path) for _, path in named_files(tool, arguments)]
    return [path for path in dict.fromkeys((base, *moves, *files)) if path != workspace]


_LEADS_TO = "leads to "


def links_among(
    tool: str, arguments: Mapping[str, Json], real: Mapping[str, str], *, workspace: str
) -> dict[str, str]:
    """Return the files of a call that are behind links, each with where it really is."""
    base = directory_of(tool, arguments, workspace=workspace) or workspace
    found = {given: joined(base, given) for _, given in named_files(tool, arguments)}
    return {
        given: f"{_LEADS_TO}{real[path]}"
        for given, path in found.items()
        if path in real and _parts(real[path]) != _parts(path)
    }


def links_in(files: Mapping[str, str]) -> dict[str, str]:
    """Return what was found out about links, of all that was found out about files."""
    return {path: found for path, found in files.items() if found.startswith(_LEADS_TO)}


# --- what an approval does not cover --------------------------------------------------------------


def uncovered(tool: str, arguments: Mapping[str, Json], *, workspace: str) -> list[str]:
    """Return which files a command names that no digest covers, in words."""
    step = steps_of(tool, arguments)
    if step is None:
        return []
    found: list[str] = []
    if directory_of(tool, arguments, workspace=workspace) is None:
        found.append("files that it names, because it is not known in which directory it runs")
    for each in all_steps(step):
        found += [f"files that its shell text names ({why})" for why in each.unread]
        found += [
            f"files that it names in {visible(path)}"
            for _, path in moves_in(each.words)
            if path and path != "."
        ]
    return list(dict.fromkeys(found))
