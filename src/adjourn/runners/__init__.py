"""The registry of runners: one entry per kind, with everything that adjourn knows about it.

Other packages bring theirs as an entry point of the group `adjourn.runners`: its name is the
runner's, and it names a `RunnerKind` of adjourn.ports.runner.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import overload

from adjourn.core.errors import Misuse
from adjourn.core.policy.judgement import Effect
from adjourn.core.task import SESSION_RUNNER
from adjourn.ports.runner import RunnerKind, load
from adjourn.ports.world import Runner
from adjourn.runners.command import CommandRunner
from adjourn.runners.driver import DriverRunner

GROUP = "adjourn.runners"

OURS = {
    "command": RunnerKind(name="command"),
    # Holds a question that belongs to no task: it has no process, and nobody can start one
    SESSION_RUNNER: RunnerKind(name=SESSION_RUNNER, is_startable=False),
    "agent": RunnerKind(
        name="agent",
        driver="adjourn.runners.agent.driver:BuiltInAgent",
        options="adjourn.runners.agent.options:read_options",
        limits="adjourn.runners.agent.options:with_limits",
        config_table="agent",
        is_read_only=True,
        makes_calls=False,
    ),
    "claude": RunnerKind(
        name="claude",
        driver="adjourn.runners.claude.driver:ClaudeDriver",
        options="adjourn.runners.claude.options:read_options",
        session_check="adjourn.runners.claude.check:check_session",
        transcript="adjourn.runners.claude.check:read_transcript",
        doctor="adjourn.runners.claude.check:diagnose",
    ),
    "acp": RunnerKind(
        name="acp",
        driver="adjourn.runners.acp.driver:AcpDriver",
        options="adjourn.runners.acp.options:read_options",
        session_check="adjourn.runners.acp.check:check_session",
        doctor="adjourn.runners.acp.check:diagnose",
        config_table="acp",
        has_agents=True,
    ),
    "codex": RunnerKind(
        name="codex",
        driver="adjourn.runners.codex.driver:CodexDriver",
        options="adjourn.runners.codex.options:read_options",
        session_check="adjourn.runners.codex.check:check_session",
        transcript="adjourn.runners.codex.check:read_transcript",
        doctor="adjourn.runners.codex.check:diagnose",
    ),
}
COMMAND = OURS["command"].name
DEFAULT_AGENT = OURS["agent"].name


def find_kind(name: str) -> RunnerKind:
    """Return everything about the runner of that name, or raise Misuse."""
    base, colon, _ = name.partition(":")
    kind = OURS.get(base) or _installed(base)
    if kind is None or (colon and not kind.has_agents):
        raise Misuse(f"no runner {name}", way_out="adjourn run --help")
    return kind


def _installed(name: str) -> RunnerKind | None:
    """Return the runner that another package brings, if one does."""
    # Most programs never ask: it takes as long as all else that `adjourn run` imports.
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP, name=name):
        kind = entry.load()
        if not isinstance(kind, RunnerKind) or kind.name != name:
            raise Misuse(
                f"the entry point {entry.value} is not a RunnerKind named {name}",
                way_out=f"pip uninstall {entry.dist.name if entry.dist else name}",
            )
        return kind
    return None


class RunnerNames(Sequence[str]):
    """The names of all runners, ours first. Other packages are asked only if none of ours fits."""

    def __init__(self, *, of_agents: bool = False) -> None:
        self._ours = [
            kind.name
            for kind in OURS.values()
            if kind.is_startable and (kind.driver or not of_agents)
        ]

    @cached_property
    def _all(self) -> list[str]:
        from importlib.metadata import entry_points  # as above

        others = {entry.name for entry in entry_points(group=GROUP)} - OURS.keys()
        return [*self._ours, *sorted(others)]

    def __contains__(self, name: object) -> bool:
        base, colon, agent = str(name).partition(":")
        if colon:
            return bool(agent) and base in OURS and OURS[base].has_agents
        return name in self._ours or name in self._all

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...
    def __getitem__(self, at: int | slice) -> str | Sequence[str]:
        return self._all[at]

    def __len__(self) -> int:
        return len(self._all)


def find_runner(name: str) -> Runner:
    """Return what the controller has to know of the runner of that name."""
    kind = find_kind(name)
    if kind.exits:
        runner: Runner = load(kind.exits)()
        return runner
    if not kind.driver:
        return CommandRunner()
    return DriverRunner(
        effect=Effect.READ_ONLY if kind.is_read_only else Effect.UNKNOWN,
        needs_session=kind.has_session,
        makes_calls=kind.makes_calls,
    )


def runs_own_calls(name: str) -> bool:
    """Return whether the agent of that runner makes the calls that are let through itself."""
    kind = find_kind(name)
    return bool(kind.driver) and kind.makes_calls
