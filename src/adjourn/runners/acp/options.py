"""How a task's agent is started.

Kept with the task, so that every resume starts it the same way.
"""

import os
from collections.abc import Mapping

import msgspec

from adjourn.core.errors import Misuse
from adjourn.ports.runner import NO_TABLE, ConfigTable
from adjourn.runners.acp.agents import Agent, find_agent
from adjourn.runners.options import refuse_wrong, split

SILENCE = 900.0  # seconds; a model may think for minutes
WAIT = 60.0  # seconds
_GIVEN = ("agent", "command", "mode", "silence", "wait")


class Setup(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How to start an agent for one task."""

    name: str
    agent: Agent
    silence: float = SILENCE  # seconds without a word after which it counts as stuck
    wait: float = WAIT  # seconds that what still runs may take to end when a person is needed


def setup_of(text: str | None) -> Setup:
    """Read a setup as it was kept."""
    return msgspec.json.decode(text or "{}", type=Setup)


def read_options(
    given: Mapping[str, str], environment: Mapping[str, str], table: ConfigTable = NO_TABLE
) -> Setup:
    """Return the setup that options and the user's config ask for."""
    del environment
    if unknown := sorted(given.keys() - set(_GIVEN)):
        raise Misuse(
            f"an ACP agent has no option {unknown[0]}",
            way_out=f"--option with one of {', '.join(_GIVEN[1:])}",
        )
    command = tuple(split(given.get("command", "")))
    if given.get("agent"):
        name, agent = given["agent"], find_agent(given["agent"], table)
        agent = msgspec.structs.replace(agent, command=command or agent.command)
    elif command:
        name, agent = os.path.basename(command[0]), Agent(command=command)
    else:
        raise Misuse(
            "the runner acp needs an agent: its name, or its command after two dashes",
            way_out='adjourn run --runner acp:opencode "PROMPT"',
        )
    if given.get("mode"):
        agent = msgspec.structs.replace(agent, mode=given["mode"])
    amounts = {key: given[key] for key in ("silence", "wait") if key in given}
    refuse_wrong(amounts, Setup, way_out="adjourn run --help")
    setup = msgspec.convert(
        {"name": name, "agent": msgspec.to_builtins(agent), **amounts}, Setup, strict=False
    )
    if setup.silence <= 0 or setup.wait < 0:
        raise Misuse(
            "`silence` must be positive, and `wait` must not be negative",
            way_out=f"--option silence={SILENCE:g}",
        )
    return setup
