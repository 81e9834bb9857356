"""Finds the store and the project's policy from a directory upwards, past other users' files."""

import os
import stat
from collections.abc import Collection, Iterator

STORE = ".adjourn"
URLS = ("postgresql://", "postgres://")  # of stores that machines share
ADDRESS = "database.json"  # in the directory of files of a store that machines share


def is_shared(root: str) -> bool:
    """Return whether the store is a database that machines share."""
    return os.path.lexists(os.path.join(root, ADDRESS))


def nearest_store(start: str) -> str | None:
    """Return the nearest store's directory, in `start` or above, that is this user's own."""
    for place in _places_for_a_store(start):
        path = os.path.join(place, STORE)
        if os.path.lexists(path) and not _why_ignored(path):
            return path
    return None


def place_for_a_new_store(start: str) -> str:
    """Return where a new store for `start` belongs.

    At the root of its git repository, else in `start`.
    """
    owners = _trusted_owners(start)
    repositories = (place for place in _places_for_a_store(start) if _is_repository(place, owners))
    return os.path.join(next(repositories, start), STORE)


def repository_of(start: str) -> str | None:
    """Return the root of the git repository around a directory, if there is one."""
    owners = _trusted_owners(start)
    return next((place for place in _upwards(start) if _is_repository(place, owners)), None)


def nearest_policy(name: str, workspace: str) -> str | None:
    """Return the nearest policy file of a project, in a workspace or above.

    It can only tighten, so the walk goes up to the root of the file system. A policy that another
    user put above the workspace is passed over: it could stop all work below it.
    """
    owners = _trusted_owners(workspace)
    for place in _upwards(workspace):
        directory = f"{place.rstrip('/')}/{STORE}"
        if os.path.lexists(f"{directory}/{name}") and os.lstat(directory).st_uid in owners:
            return f"{directory}/{name}"
    return None


def ignored_above(start: str) -> Iterator[tuple[str, str]]:
    """Yield each directory of a store, in `start` or above, that is not used, and why."""
    for place in _upwards(start):
        path = os.path.join(place, STORE)
        if os.path.lexists(path) and (reason := _why_ignored(path)):
            yield path, reason


def _places_for_a_store(start: str) -> Iterator[str]:
    """Yield the directories in which a store for `start` may lie: `start` itself, then upwards.

    The walk ends with the root of a git repository and with the home directory. It does not enter
    another file system, another user's directory, or one that everybody can write, such as /tmp:
    what lies there was not put there for this project.
    """
    yield start  # mostly it is here, and nothing else has to be read
    owners = _trusted_owners(start)
    device = os.stat(start).st_dev
    home = _identity(os.environ.get("HOME", ""))
    below = start
    for place in _upwards(start):
        if place == start:
            continue
        if _is_repository(below, owners) or _identity(below) == home:
            return
        try:
            found = os.stat(place)
        except OSError:
            return
        if found.st_dev != device or found.st_uid not in owners or found.st_mode & stat.S_IWOTH:
            return
        yield place
        below = place


def _upwards(place: str) -> Iterator[str]:
    yield place
    while place.strip("/"):
        place = place.rpartition("/")[0] or "/"
        yield place


def _why_ignored(path: str) -> str:
    """Say why a directory cannot be this user's store; return nothing if it can."""
    found = os.lstat(path)
    if found.st_uid != os.geteuid():
        return f"it belongs to uid {found.st_uid}"
    if found.st_mode & stat.S_IWOTH and not stat.S_ISLNK(found.st_mode):
        return "everybody can write it"
    return ""


def _trusted_owners(start: str) -> Collection[int]:
    """Return whose directories count around `start`.

    This user's, root's, and those of its owner.
    """
    try:
        return {os.geteuid(), 0, os.stat(start).st_uid}
    except OSError:  # a workspace that is gone, or is on another machine
        return {os.geteuid(), 0}


def _is_repository(place: str, owners: Collection[int]) -> bool:
    """Say whether git would take it for one.

    Sandboxes leave an empty .git behind, in /tmp for one.
    """
    path = os.path.join(place, ".git")
    if not os.path.lexists(path) or os.lstat(path).st_uid not in owners:
        return False
    return os.path.isfile(path) or os.path.lexists(os.path.join(path, "HEAD"))


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
