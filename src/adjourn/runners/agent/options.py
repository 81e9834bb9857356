"""The options of the built-in agent: by flag, environment, the user's config, or by default.

They are kept with the task, so that every resume has the same.
"""

import os
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from adjourn.core.errors import Misuse
from adjourn.core.text.render import visible
from adjourn.ports.runner import ConfigTable
from adjourn.runners.options import refuse_wrong

PROVIDERS = ("openai", "anthropic")  # those that may have a server of one's own
INSTRUCTIONS = (
    "You work in a directory on a person's machine, through the tools that you are "
    "given. Paths are relative to that directory. "
    "A person may have to approve a call; a call that was not approved gives "
    "TOOL_CALL_REJECTED, with the reason below it if "
    "there is one: do not try to get round it."
)
FINISH = (
    " When the work is done, call finish. "
    "Words without a tool call reach a person, who will answer."
)


class OnText(StrEnum):
    """What words without a tool call are: the request for an answer, or the end."""

    PAUSE = "pause"
    COMPLETE = "complete"


class Server(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An MCP server: a program to start, or an address.

    `${NAME}` in it is taken from the environment when it is used.
    """

    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str | None = None
    headers: dict[str, str] = {}


class AgentSetup(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The whole configuration of an agent, but for secrets: those stay in the environment."""

    model: str
    base_url: str | None = None
    key_variable: str | None = None  # which environment variable holds the key
    instructions: str = INSTRUCTIONS
    on_text: OnText = OnText.PAUSE
    max_steps: int = 100  # since the last resume
    max_tokens: int | None = None  # of the whole task
    max_cost: float | None = None  # US dollars, of the whole task
    compact: bool = True  # whether a conversation that is too long is summarised
    timeout: float = 600.0  # seconds for one answer of the model
    tries: int = 5
    stream: bool = True
    clarify: bool = False
    output_limit: int = 30_000  # how many characters of a result the model gets
    servers: dict[str, Server] = {}
    functions: bool = True
    input_price: float | None = None  # US dollars for a million tokens
    output_price: float | None = None


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One key, its value, and where that comes from."""

    key: str
    value: Any
    origin: str


class _McpFile(msgspec.Struct):
    servers: dict[str, Server] = msgspec.field(name="mcpServers", default_factory=dict[str, Server])


_MCP = "mcp"  # names a file with servers, in the shape that most programs read
_PROVIDER = re.compile(r"[a-z][a-z0-9-]*")
_LARGEST = 1024 * 1024
_NO_LIMIT = "none"
_KNOWN = frozenset({*AgentSetup.__struct_fields__, _MCP})


def read_options(
    given: Mapping[str, str], environment: Mapping[str, str], table: ConfigTable
) -> AgentSetup:
    """Return the setup that a new task gets, or raise Misuse."""
    values: dict[str, Any] = {"servers": {}}
    for setting in settings(given, environment, table):
        group, _, name = setting.key.partition(".")
        if name:
            values[group][name] = setting.value
        elif setting.value is not None:
            values[group] = setting.value
    return convert(values)


def settings(
    given: Mapping[str, str], environment: Mapping[str, str], table: ConfigTable
) -> Iterator[Setting]:
    """Yield every setting of the agent with its origin; `given` is the command line's."""
    for origin, keys in (("", given), (table.path, table.values)):
        if unknown := sorted(keys.keys() - _KNOWN):
            raise _unknown_key(unknown[0], origin)

    for field in msgspec.structs.fields(AgentSetup):
        key, name = field.name, _variable(field.name)
        if key == "servers":
            continue
        if key in given:
            yield Setting(key=key, value=given[key], origin="the command line")
        elif name in environment:
            yield Setting(key=key, value=environment[name], origin=name)
        elif key in table.values:
            yield Setting(key=key, value=table.values[key], origin=table.path)
        else:
            default = None if field.default is msgspec.NODEFAULT else field.default
            yield Setting(key=key, value=default, origin="default")

    # The MCP servers of the config, and over them those of a file that was named
    found: dict[str, Any] = dict(table.values.get("servers", {}))
    origins = dict.fromkeys(found, table.path)
    path = given.get(_MCP) or environment.get(_variable(_MCP)) or _file_in(table)
    if path:
        listed = _read_servers(path)
        found |= listed
        origins |= dict.fromkeys(listed, path)
    for name, server in found.items():
        yield Setting(key=f"servers.{name}", value=server, origin=origins[name])


def _unknown_key(key: str, path: str) -> Misuse:
    if not path:
        known = ", ".join(sorted(_KNOWN - {"servers"}))
        return Misuse(f"the agent has no setting {key}; it has {known}", way_out="adjourn config")
    known = ", ".join(sorted(_KNOWN))
    return Misuse(
        f"{path}: `[agent] {key}` is unknown; known are {known}",
        way_out="adjourn config",
    )


def _variable(key: str) -> str:
    """Name the environment variable that sets a key."""
    return f"ADJOURN_AGENT_{key.upper()}"


def _file_in(table: ConfigTable) -> str | None:
    if _MCP not in table.values:
        return None
    named = table.values[_MCP]
    if not isinstance(named, str) or not named or "\0" in named:
        raise Misuse(
            f"{table.path}: `{_MCP}` must be the path of a file", way_out="adjourn notify --check"
        )
    return os.path.join(os.path.dirname(table.path), os.path.expanduser(named))


def _read_servers(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            listed = msgspec.json.decode(file.read(_LARGEST), type=_McpFile).servers
    except OSError as error:
        raise Misuse(f"{path}: {error.strerror}", way_out="adjourn config") from error
    except msgspec.DecodeError as error:
        raise Misuse(
            f"{path}: {error}", way_out='write {"mcpServers": {"NAME": {"command": "…"}}}'
        ) from error
    return {name: msgspec.to_builtins(server) for name, server in listed.items()}


def convert(values: Mapping[str, object]) -> AgentSetup:
    """Make a setup of values that may be texts still, or say which of them means nothing."""
    provider, _, name = str(values.get("model") or "").partition(":")
    if not _PROVIDER.fullmatch(provider) or not name:
        known = " or ".join(f"{known}:NAME" for known in PROVIDERS)
        said = (
            f"the model {visible(str(values['model']))} is not {known}, or PROVIDER:NAME of another"
            if values.get("model")
            else "no model is named"
        )
        raise Misuse(said, way_out=f'adjourn run --model {PROVIDERS[0]}:NAME "PROMPT"')
    refuse_wrong(
        {name: value for name, value in values.items() if name != "servers"},
        AgentSetup,
        way_out="adjourn config",
    )
    try:
        setup = msgspec.convert(values, AgentSetup, strict=False)
    except msgspec.ValidationError as error:
        raise Misuse(f"the agent's settings: {error}", way_out="adjourn config") from error
    if setup.base_url and provider not in PROVIDERS:
        raise Misuse(
            f"base_url is only for {' and '.join(PROVIDERS)}; {provider} has settings of its own",
            way_out=f"adjourn run --model openai:{visible(name)} --base-url URL PROMPT",
        )
    if setup.max_cost is not None and setup.base_url and setup.input_price is None:
        raise Misuse(
            "max_cost needs the price of a model on a server of your own",
            way_out="adjourn run --option input_price=3 --option output_price=15 …",
        )
    return setup


def with_limits(body: bytes, given: Mapping[str, str]) -> bytes:
    """Return a setup with other limits; `none` takes a limit away."""
    values: dict[str, Any] = msgspec.to_builtins(decoded(body))
    for key, value in given.items():
        if value != _NO_LIMIT:
            values[key] = value
        elif key == "max_steps":
            raise Misuse("max_steps is a number of steps", way_out="adjourn resume --help")
        else:
            values.pop(key, None)
    return msgspec.json.encode(convert(values))


def decoded(body: bytes) -> AgentSetup:
    """Read a setup back."""
    return msgspec.json.decode(body, type=AgentSetup)
