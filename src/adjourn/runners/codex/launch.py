"""All that is needed to start Codex for a run, by whichever of its two ways in."""

import os
import re
from collections.abc import Callable, Mapping
from functools import cached_property

from adjourn.runners.channel import Channel, Dialect
from adjourn.runners.codex import hook, program
from adjourn.runners.codex.hook import WaitingHooks
from adjourn.runners.codex.options import CodexSetup
from adjourn.runners.driver import StopRequest
from adjourn.runners.hook import proof_of
from adjourn.runners.installed import start_argv

COMPLAINTS = "codex.stderr"
_NEWEST = 4_000  # characters
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_HEAD = re.compile(r"^\S+Z +[A-Z]+ +[\w:]+: ")  # when it was said, how loud, and by which part
# What it says, and means nothing here
_BESIDE = re.compile(r"^(Stack backtrace:|\d+: |WARNING: )|could not find bubblewrap")


class Launch:
    """Starts Codex: the program, its settings, its hook, and where it all lies."""

    def __init__(
        self,
        setup: CodexSetup,
        *,
        workspace: str,
        environment: Mapping[str, str],
        place: str,
        adjourn: str,
        bind: Callable[[], None],
        interrupts: StopRequest,
    ) -> None:
        self.setup = setup
        self.workspace = workspace
        self.environment = environment
        self.place = place
        # The hook's line has only its digest: everybody can read command lines
        self.seal = os.urandom(16).hex()
        self.hook = hook.hook_command(adjourn, proof_of(self.seal))
        self.bind = bind
        self.interrupts = interrupts
        self.is_rehearsed = False

    @cached_property
    def binary(self) -> str:
        """The program itself."""
        return program.binary(self.setup, self.environment, workspace=self.workspace)

    @property
    def settings(self) -> list[str]:
        """What a person set, and after it what adjourn insists on."""
        return [
            *self.setup.arguments,
            *program.overrides(self.setup, self.workspace),
            "-c",
            hook.override(self.hook),
        ]

    @property
    def complaints(self) -> str:
        """The file that gets what Codex writes to its stderr."""
        return os.path.join(self.place, COMPLAINTS)

    @property
    def complaint(self) -> str:
        """The last thing that Codex complained of, if anything."""
        try:
            with open(self.complaints, encoding="utf-8", errors="replace") as file:
                lines = [
                    _COLOUR.sub("", line).strip() for line in file.read()[-_NEWEST:].splitlines()
                ]
        except FileNotFoundError:
            return ""
        said = [_HEAD.sub("", line) for line in lines if line and not _BESIDE.search(line)]
        return said[-1] if said else ""

    def start(
        self,
        *words: str,
        hooks: WaitingHooks,
        is_spoken_to: bool = True,
        also: Mapping[str, str] | None = None,
    ) -> Channel:
        """Start the program with these words, and also with these variables."""
        path = self.environment.get("PATH", os.defpath)
        return Channel(
            [*start_argv(self.binary, path=path, workspace=self.workspace), *words],
            name="Codex",
            cwd=self.workspace,
            env={**self.environment, **(also or {})},
            complaints=self.complaints,
            bind=self.bind,
            source=hooks,
            interrupts=self.interrupts,
            dialect=Dialect(is_spoken_to=is_spoken_to),
        )
