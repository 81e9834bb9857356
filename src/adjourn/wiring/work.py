"""Makes the part of a task's spec that says what is to be done."""

import os
from collections.abc import Sequence
from importlib import import_module
from typing import Any, TypedDict

import msgspec

from adjourn.core.errors import Misuse
from adjourn.core.task import OnRejection


class Work(TypedDict, total=False):
    """What is to be done, by whom, and what a rejection does."""

    runner: str
    argv: tuple[str, ...]
    prompt: str
    setup: str
    on_rejection: OnRejection


def command_work(argv: Sequence[str]) -> Work:
    """Return the work of running a command."""
    return Work(runner="command", argv=tuple(argv))


def prompt_work(runner: str, prompt: str, options: Sequence[str] = ()) -> Work:
    """Return the work of having an agent work on a prompt; a runner's settings are checked before anything is recorded."""
    if not prompt.strip():
        raise Misuse("the prompt is empty", way_out=f'adjourn run --runner {runner} "PROMPT"')
    given = options_of(options)
    setup = msgspec.json.encode(_setup(runner, given)).decode()
    return Work(runner=runner, argv=("adjourn", f"_{runner}"), prompt=prompt, setup=setup, on_rejection=OnRejection.TELL)


def _setup(runner: str, given: dict[str, str]) -> object:
    if runner == "agent":
        from adjourn.wiring.agent_settings import agent_setup

        return agent_setup(given)
    read_setup: Any = import_module(f"adjourn.runners.{runner}.setup").read_setup
    return read_setup(given, os.environ)


def options_of(words: Sequence[str]) -> dict[str, str]:
    """Read what is said as KEY=VALUE."""
    return dict(_option(each) for each in words)


def _option(words: str) -> tuple[str, str]:
    key, equals, value = words.partition("=")
    if not equals or not key:
        raise Misuse(f"--option takes KEY=VALUE, not {words}", way_out="adjourn run --help")
    return key, value
