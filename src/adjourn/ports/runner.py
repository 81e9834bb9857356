"""What a runner is: one kind of work, and the driver that starts, resumes and stops its agent."""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Protocol

import msgspec

from adjourn.core.agent.calls import SessionCheck
from adjourn.core.errors import Misuse
from adjourn.core.task import Spec
from adjourn.ports.drive import Drive

TYPE_CHECKING = False

if TYPE_CHECKING:  # starting is a hot path
    from adjourn.core.agent.transcript import Message


class AgentDriver(Protocol):
    """Runs one agent in one run. The process of the run is all its own.

    The replies of people are in the store: its `Drive` returns them.
    """

    def start(self) -> int:
        """Start the agent with the task's prompt; return the exit code that says how it ended."""
        ...

    def resume(self, ref: str) -> int:
        """Go on in the agent's session of that name, with the replies that came meanwhile.

        Return the exit code that says how it ended.
        """
        ...

    def interrupt(self) -> None:
        """Stop the agent so that it can be resumed; `start` or `resume` then returns INTERRUPTED.

        It is called by a signal handler, between any two steps of the driver.
        """
        ...

    def kill(self) -> None:
        """End the agent at once: the store has failed, and nothing can be recorded."""
        ...


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """What a driver has to know of the process that it runs in."""

    environment: Mapping[str, str]
    adjourn: str  # the program that hooks start
    die_with_us: Callable[[], None]  # for `preexec_fn`: the child is killed when the driver dies


class ConfigTable(msgspec.Struct, frozen=True, kw_only=True):
    """The table that the user's config has for a runner, and the file that it stands in."""

    path: str = ""
    values: dict[str, Any] = {}


NO_TABLE = ConfigTable()


class LeftSession(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a session that a task has left, to check whether it can be resumed."""

    of: str  # the task's own session: after a restart there is another
    ref: str | None  # the provider's name of it
    documents: Callable[[str], bytes | None]  # what the task keeps
    environment: Mapping[str, str]
    starts: bool  # whether the program may be started, to ask for its version


class RunnerKind(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that adjourn knows about one kind of runner.

    Its parts are named as `module:attribute`, and imported when they are used.
    """

    name: str  # as `--runner` and plans say it
    driver: str = ""  # makes the AgentDriver; without one it is a plain command
    options: str = ""  # reads and checks `--option`, before anything is recorded
    config_table: str = ""  # which table of the user's config `options` gets
    limits: str = ""  # returns kept options with other limits, where a resume may change them
    session_check: str = ""  # checks that a session outside of the store can go on
    transcript: str = ""  # reads the conversation from files of the agent's own
    doctor: str = ""  # returns what the installed program can do, or None without one
    exits: str = ""  # makes the Runner of ports/world that knows what its exits mean, if not ours
    # Whether its process only reads: whatever has an effect is started by adjourn
    is_read_only: bool = False
    has_agents: bool = False  # whether `NAME:AGENT` names one of several agents that it can run
    makes_calls: bool = True  # whether the agent makes the calls that are let through itself
    is_startable: bool = True  # whether `run` and plans may name it

    @property
    def has_session(self) -> bool:
        """Whether its session lies outside of the store, in files of the agent's own."""
        return bool(self.session_check)

    @property
    def is_gated_by_default(self) -> bool:
        """Whether its calls wait for approval unless somebody says otherwise.

        An agent of others makes its calls itself: nothing but the gate stands before them.
        """
        return bool(self.driver) and self.makes_calls

    @property
    def argv(self) -> tuple[str, ...]:
        """The command that starts its driver."""
        return ("adjourn", "_drive", self.name)

    def make_driver(self, drive: Drive, host: Host) -> AgentDriver:
        """Return the driver of a run."""
        driver: AgentDriver = load(self.driver)(drive, host)
        return driver

    def read_options(
        self, given: Mapping[str, str], environment: Mapping[str, str], table: ConfigTable
    ) -> msgspec.Struct:
        """Return the options that a new task keeps, or raise Misuse."""
        options: msgspec.Struct = load(self.options)(given, environment, table)
        return options

    def with_limits(self, setup: bytes, given: Mapping[str, str]) -> bytes:
        """Return kept options with other limits, or raise Misuse."""
        if not self.limits:
            flag = f"--{next(iter(given)).replace('_', '-')}"
            raise Misuse(
                f"{flag} is a limit of the built-in agent, and this task runs {self.name}",
                way_out="adjourn resume --help",
            )
        changed: bytes = load(self.limits)(setup, given)
        return changed

    def check_session(self, spec: Spec, session: LeftSession) -> Iterator[SessionCheck]:
        """Say what a resume needs, and whether it is there. It changes nothing."""
        found: Iterator[SessionCheck] = load(self.session_check)(spec, session)
        return found

    def read_transcript(self, spec: Spec, session: LeftSession) -> "list[Message]":
        """Return the conversation as its agent keeps it; nothing if nobody can read it."""
        found: list[Message] = load(self.transcript)(spec, session) if self.transcript else []
        return found

    def diagnose(self, environment: Mapping[str, str], *, workspace: str) -> str | None:
        """Say what the installed program can do, or None if it is not installed."""
        says: str | None = load(self.doctor)(environment, workspace=workspace)
        return says


def load(name: str) -> Any:
    """Import what is named as `module:attribute`."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)
