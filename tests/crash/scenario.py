"""What a crash scenario is, and the verdict on one kill point of it."""

import importlib
from typing import Any, Protocol

import msgspec

from tests.crash.inject import Aim
from tests.crash.stage import Ran, Stage


class Scenario(Protocol):
    """A story with one step that may be killed anywhere."""

    def setup(self, stage: Stage) -> None:
        """Bring the world to where the step begins.

        Played once, then copied for each kill point.
        """
        ...

    def step(self, stage: Stage) -> int:
        """Do what may be killed, in a process of its own, and return its exit code."""
        ...

    def aftermath(self, stage: Stage, ran: Ran) -> list[str]:
        """Play the next commands, and return a sentence for each promise that was broken."""
        ...


class Point(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One kill point of one scenario, named `module:attribute`."""

    scenario: str
    aim: Aim


class Verdict(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What came of one kill point."""

    point: Point
    killed: bool
    what: str = ""
    calls: int = 0
    trace: str = ""
    seconds: float = 0.0
    broken: list[str] = []


class Fault(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The harness itself failed."""

    trace: str


def find(name: str) -> Any:
    """Return the scenario or story called `module:attribute`."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)
