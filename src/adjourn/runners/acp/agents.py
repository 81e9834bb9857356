"""The agents that adjourn knows: how each is started, and what is peculiar about it.

For another agent or version, add a table `[acp.NAME]` to the user's config.
"""

from typing import Any

import msgspec

from adjourn.core.errors import Misuse
from adjourn.ports.runner import ConfigTable


class Agent(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """How one agent is started, and how it differs from what the protocol says."""

    command: tuple[str, ...] = ()
    env: dict[str, str] = {}  # `${NAME}` is taken from the environment when it is used
    login: str = ""  # the method of `authenticate`, where the agent insists on it
    mode: str = ""  # the mode in which it asks: set at the start, and again after a resume
    asks_at_once: bool = False  # it sends all requests of one answer before it waits for a reply
    keeps_shell: bool = False  # its commands share one shell: nobody knows in which directory
    confirms_all: bool = False  # it asks once for all calls that are pending
    is_sandboxed: bool = False  # it asks only about what leaves its own sandbox
    waits_a_minute: bool = False  # a session is erased if it is loaded in the minute of its start
    session_files: str = ""  # where it keeps a session: a pattern below the home, with {session}
    # Only in the user's own table
    title_is_call: bool = False  # what it shows as a title is what it runs, and all that it shows
    trust: bool = False  # nobody has to see that it asks


# As seen with the versions that docs/how-to/acp.md names
OURS = {
    "claude": Agent(command=("claude-agent-acp",), mode="default"),
    "codex": Agent(command=("codex-acp",), mode="read-only", asks_at_once=True, is_sandboxed=True),
    "opencode": Agent(
        command=("opencode", "acp"),
        env={"OPENCODE_PERMISSION": '{"bash":"ask","edit":"ask","webfetch":"ask"}'},
    ),
    "copilot": Agent(command=("copilot", "--acp"), asks_at_once=True),
    "gemini": Agent(
        command=("gemini", "--acp"),
        login="gemini-api-key",
        mode="default",
        waits_a_minute=True,
        session_files=".gemini/tmp/*/chats/session-*{session:.8}*",
    ),
    "qwen": Agent(command=("qwen", "--acp"), mode="default"),
    "vibe": Agent(command=("vibe-acp",), mode="default"),
    "openhands": Agent(command=("openhands", "acp"), confirms_all=True, keeps_shell=True),
    "hermes": Agent(command=("hermes", "acp")),
    "fast-agent": Agent(command=("fast-agent-acp",)),
}


def find_agent(name: str, table: ConfigTable) -> Agent:
    """Return an agent by its name, with what the user's config changes, or raise Misuse."""
    ours, own = OURS.get(name), table.values.get(name)
    if ours is None and own is None:
        known = ", ".join([*OURS, *(each for each in table.values if each not in OURS)])
        raise Misuse(
            f"no ACP agent {name}; known are {known}",
            way_out='adjourn run --runner acp "PROMPT" -- COMMAND [ARGUMENT]...',
        )
    values: dict[str, Any] = msgspec.to_builtins(ours) if ours else {}
    try:
        agent = msgspec.convert({**values, **(own or {})}, Agent)
    except (msgspec.ValidationError, TypeError) as error:
        raise Misuse(
            f"{table.path}: [acp.{name}]: {error}", way_out="adjourn config --help"
        ) from error
    if not agent.command:
        raise Misuse(
            f'{table.path}: [acp.{name}] has no command: write command = ["PROGRAM"]',
            way_out="adjourn config --help",
        )
    return agent
