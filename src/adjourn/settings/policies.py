"""Reads the policies of the user and of the project from their files."""

import os
import stat

from adjourn.core.errors import BadPolicy, Misuse
from adjourn.core.people import Person, Team
from adjourn.core.policy.judgement import Never
from adjourn.core.policy.policy import NO_POLICY, Allowance, Include, Origin, Policy, Source
from adjourn.core.policy.rule import Rule
from adjourn.core.text.render import spelled
from adjourn.core.text.toml import Problem
from adjourn.settings.config import config_directory, config_path
from adjourn.settings.find_store import (
    is_shared,
    nearest_policy,
    nearest_store,
    place_for_a_new_store,
)
from adjourn.settings.policy_text import RULES, Unreadable, read_text, rules_path

POLICY = "policy.toml"
_MOST_FILES = 32

Signature = tuple[int, ...] | None


class FilePolicies:
    """Reads policy files when they are needed, and again only when one of them has changed."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._is_shared = is_shared(root)
        self._kept: dict[str, tuple[dict[str, Signature], Policy]] = {}

    def current(self, workspace: str) -> Policy:
        """Return all rules that hold for a workspace now.

        A few looks at the directory if there are none.
        """
        seen, policy = self._kept.get(workspace, ({}, NO_POLICY))
        users = config_directory()
        found = _origins(
            users, nearest_store(os.getcwd()) if self._is_shared else self._root, workspace
        )
        paths = {*seen, *(origin.path for origin in found), f"{users}/{RULES}"}
        now = {path: _signature(path) for path in paths}
        if not any(now.values()):
            return NO_POLICY
        if seen != now or not seen:
            seen, policy = read_all(found)
            self._kept[workspace] = seen, policy
        return policy


def origins(root: str, workspace: str) -> list[Origin]:
    """Return the files that may hold rules for a workspace, whether they are there or not."""
    home = root
    if is_shared(root):  # the project's policy lies in the project
        here = os.getcwd()
        home = nearest_store(here) or place_for_a_new_store(here)
    return _origins(config_directory(), home, workspace)


def _origins(users: str, home: str | None, workspace: str) -> list[Origin]:
    projects = [os.path.join(home, POLICY)] if home else []
    if (nearest := nearest_policy(POLICY, workspace)) and nearest not in projects:
        projects.append(nearest)
    return [
        Origin(f"{users}/{POLICY}", is_project=False),
        *(Origin(path, is_project=True) for path in projects),
    ]


def _signature(path: str) -> Signature:
    """Return what changes whenever a file does."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return (-(error.errno or 0),)
    return (*_marks(found), *_marks_behind(path)) if stat.S_ISLNK(found.st_mode) else _marks(found)


def _marks(found: os.stat_result) -> tuple[int, ...]:
    return (
        found.st_dev,
        found.st_ino,
        found.st_mtime_ns,
        found.st_ctime_ns,
        found.st_size,
        found.st_mode,
    )


def _marks_behind(link: str) -> tuple[int, ...]:
    try:
        return _marks(os.stat(link))
    except OSError:
        return ()


def read_all(found: list[Origin]) -> tuple[dict[str, Signature], Policy]:
    """Return the policy of these files together, and what they looked like.

    Raise BadPolicy if anything is wrong.
    """
    gathered = gather(found)
    gathered.read_rules()
    gathered.read_people()
    if gathered.problems:
        first, *more = gathered.problems
        others = f" (and {len(more)} more)" if more else ""
        raise BadPolicy(f"{first}{others}", way_out="adjourn policy check")
    return gathered.seen, gathered.policy()


def gather(found: list[Origin], *, required: bool = False) -> "Gathering":
    """Read files and all that they include, and gather what they say and what is wrong."""
    gathered = Gathering()
    for origin in found:
        if _signature(origin.path) is None and not required:
            gathered.seen[origin.path] = None
        else:
            gathered.read(origin)
    return gathered


class Gathering:
    """What several files say together."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.rules: list[Rule] = []
        self.allowances: tuple[Allowance, ...] = ()
        self.sources: list[Source] = []
        self.seen: dict[str, Signature] = {}
        self._nevers: list[Never] = [Never.PAUSE]
        self._directories: list[str] = []
        self.people: tuple[Person, ...] = ()
        self.teams: tuple[Team, ...] = ()

    def policy(self) -> Policy:
        """Return the policy of all that was read."""
        never = Never.REJECT if Never.REJECT in self._nevers else Never.PAUSE
        return Policy(
            rules=tuple(self.rules),
            allowances=self.allowances,
            never=never,
            directories=tuple(self._directories),
            sources=tuple(self.sources),
            people=self.people,
            teams=self.teams,
        )

    def read_people(self) -> None:
        """Read the people of the user's config, if a rule names some or wants several."""
        if not any(rule.needs_people for rule in self.rules):
            return
        # Most policies name nobody (bench resume)
        from adjourn.settings.people import read_people

        path = config_path()
        self.seen[path] = _signature(path)
        try:
            found = read_people()
        except Misuse as error:
            self.problems.append(
                Problem(source=path, what=error.sentence.removeprefix(f"{path}: "))
            )
            return
        self.people, self.teams = found.people, found.teams

    def read(self, origin: Origin) -> None:
        """Read a file and what it includes."""
        directory = os.path.dirname(origin.path)
        if origin.is_project and os.path.islink(directory):
            what = "it is a symbolic link, and a project's policy may not be behind one"
            self.problems.append(Problem(source=directory, what=what))
        else:
            self._read(origin, within=directory, chain=())

    def read_rules(self) -> None:
        """Read the user's always-allow rules."""
        path = rules_path()
        self.seen[path] = _signature(path)
        if self.seen[path] is not None:
            # A run without always-allow rules starts without it (bench resume)
            from adjourn.settings.allow_rules import read_allowances

            self.allowances = read_allowances(path, self.problems)
            self.sources.append(
                Source(path=spelled(path), kind="rules", rules=len(self.allowances))
            )

    def _read(self, origin: Origin, *, within: str, chain: tuple[str, ...]) -> None:
        # A run without a policy starts without what reads one (bench resume)
        from adjourn.core.policy.policy_file import read_policy

        path = origin.path
        self.seen[path] = _signature(path)
        if len(self.seen) > _MOST_FILES:
            self.problems.append(
                Problem(source=path, what=f"more than {_MOST_FILES} files belong to the policy")
            )
            return
        text = _text(origin, self.problems)
        if text is None:
            return
        content = read_policy(text, source=spelled(path), is_project=origin.is_project)
        self.problems += content.problems
        self.rules += content.rules
        self._nevers.append(content.never)
        self._directories += [os.path.expanduser(path) for path in content.directories]
        self.sources.append(
            Source(
                path=spelled(path),
                kind="project" if origin.is_project else "user",
                rules=len(content.rules),
            )
        )
        for include in content.includes:
            self._include(origin, include, within=within, chain=chain)

    def _include(
        self, origin: Origin, include: Include, *, within: str, chain: tuple[str, ...]
    ) -> None:
        target = os.path.normpath(os.path.join(os.path.dirname(origin.path), include.path))
        if wrong := self._wrong_include(origin, target, within=within, chain=chain):
            self.problems.append(
                Problem(source=origin.path, line=include.line, column=include.column, what=wrong)
            )
        elif target not in self.seen:
            self._read(
                Origin(target, origin.is_project), within=within, chain=(*chain, origin.path)
            )

    def _wrong_include(
        self, origin: Origin, target: str, *, within: str, chain: tuple[str, ...]
    ) -> str:
        files = (*chain, origin.path)
        if target in files:
            circle = " includes ".join([*files[files.index(target) :], target])
            return f"the includes form a circle: {circle}"
        if origin.is_project and _leaves(target, within):
            return f"a project's policy may include only files below {within}"
        return "" if _signature(target) else f"there is no {target}"


def _leaves(target: str, directory: str) -> bool:
    real = os.path.realpath(directory)
    return os.path.realpath(target) != os.path.join(
        real, os.path.relpath(target, directory)
    ) or not target.startswith(directory.rstrip("/") + "/")


def _text(origin: Origin, problems: list[Problem]) -> str | None:
    """Return the text of a file, or say why it cannot be one."""
    try:
        return read_text(origin.path, is_project=origin.is_project)
    except Unreadable as unreadable:
        problems.append(unreadable.problem)
        return None
