"""Puts together what explains a judgement: the policies that hold, and a look at what the call depends on."""

from collections.abc import Mapping
from typing import Any

import msgspec

from adjourn.core.call import COMMAND, Command, Json
from adjourn.core.judging import Explanation, explain
from adjourn.core.policy import Policy
from adjourn.core.reading import SHELL_TOOLS, words_of
from adjourn.core.surroundings import NOTHING_SEEN, Surroundings
from adjourn.core.task import Milliseconds
from adjourn.core.whereabouts import directory_of, named_paths
from adjourn.wiring.judging import observe, resolve
from adjourn.wiring.policies import FilePolicies, Origin, origins


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """A judgement with all that led to it, and the files that could have."""

    tool: str
    explanation: Explanation
    policy: Policy
    origins: tuple[Origin, ...]


def explained(
    root: str, workspace: str, tool: str, arguments: Mapping[str, Any], *, task: str | None = None, now: Milliseconds
) -> Explained:
    """Judge a call in a workspace, and say what led to it."""
    policy = FilePolicies(root).current(workspace)
    seen = look_around(tool, arguments, workspace)
    explanation = explain(policy, tool, arguments, surroundings=seen, workspace=workspace, task=task, now=now)
    return Explained(tool=tool, explanation=explanation, policy=policy, origins=tuple(origins(root, workspace)))


def look_around(tool: str, arguments: Mapping[str, Json], workspace: str) -> Surroundings:
    """Find the programs of a call, be it a command or a shell text of another tool."""
    named = named_paths(tool, arguments, workspace=workspace)
    real = {path: resolve(path) for path in (workspace, *named)} if named else {}
    is_command = tool == COMMAND or tool.casefold() in SHELL_TOOLS
    words = words_of(tool, arguments) if is_command else ()
    directory = directory_of(tool, arguments, workspace=workspace) or workspace
    seen = observe(Command(argv=words, cwd=directory), workspace) if words else NOTHING_SEEN
    return msgspec.structs.replace(seen, real=real)
