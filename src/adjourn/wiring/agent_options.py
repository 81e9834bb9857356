"""How the built-in agent is set up.

By flag, environment, the user's config, or as it comes; and which of them it was.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from adjourn.core.errors import Misuse
from adjourn.runners.agent.options import Server, Setup, convert, variable
from adjourn.settings.config import Config, read_config

TABLE = "agent"
_MCP = "mcp"  # names a file with servers, in the shape that most programs read
_LARGEST = 1024 * 1024


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One key, what it is set to, and by what."""

    key: str
    value: Any
    origin: str


class _McpFile(msgspec.Struct):
    servers: dict[str, Server] = msgspec.field(name="mcpServers", default_factory=dict[str, Server])


def settings(given: Mapping[str, str]) -> list[Setting]:
    """Return every setting of the agent with its origin; `given` is what a command line says."""
    unknown = sorted(given.keys() - {*Setup.__struct_fields__, _MCP})
    if unknown:
        known = ", ".join(sorted({*Setup.__struct_fields__, _MCP} - {"servers"}))
        raise Misuse(
            f"the agent has no setting {unknown[0]}; it has {known}", way_out="adjourn config"
        )
    config = read_config()
    return [*_values(given, config), *_servers(given, config)]


def _values(given: Mapping[str, str], config: Config) -> Iterator[Setting]:
    table = table_of(config)
    for field in msgspec.structs.fields(Setup):
        if field.name == "servers":
            continue
        key, name = field.name, variable(field.name)
        if key in given:
            yield Setting(key=key, value=given[key], origin="the command line")
        elif name in os.environ:
            yield Setting(key=key, value=os.environ[name], origin=name)
        elif key in table:
            yield Setting(key=key, value=table[key], origin=config.path)
        else:
            default = None if field.default is msgspec.NODEFAULT else field.default
            yield Setting(key=key, value=default, origin="default")


def _servers(given: Mapping[str, str], config: Config) -> Iterator[Setting]:
    """Return the MCP servers: those of the config, and over them those of a file that was named."""
    table = table_of(config)
    found: dict[str, Any] = dict(table.get("servers", {}))
    origins = dict.fromkeys(found, config.path)
    said = given.get(_MCP) or os.environ.get(variable(_MCP))
    path = said or (config.file(_MCP, table=table) if _MCP in table else None)
    if path:
        listed = _read_servers(path)
        found |= listed
        origins |= dict.fromkeys(listed, path)
    yield from (
        Setting(key=f"servers.{name}", value=found[name], origin=origins[name]) for name in found
    )


def table_of(config: Config) -> dict[str, Any]:
    """Return what the user's config says of the agent."""
    known = {*Setup.__struct_fields__, _MCP}
    try:
        table = msgspec.convert(config.content.get(TABLE, {}), dict[str, Any])
    except msgspec.ValidationError:
        raise Misuse(
            f"{config.path}: `{TABLE}` must be a table: write [{TABLE}]", way_out="adjourn config"
        ) from None
    unknown = sorted(table.keys() - known)
    if unknown:
        sentence = f"{config.path}: `[{TABLE}] {unknown[0]}` is unknown; known are {', '.join(sorted(known))}"
        raise Misuse(sentence, way_out="see docs/reference/config.md")
    return table


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


def agent_setup(given: Mapping[str, str]) -> Setup:
    """Return the setup that a new task gets, or say what is wrong with it."""
    found = settings(given)
    servers = {
        each.key.removeprefix("servers."): each.value
        for each in found
        if each.key.startswith("servers.")
    }
    values = {
        each.key: each.value
        for each in found
        if each.value is not None and not each.key.startswith("servers.")
    }
    return convert({**values, "servers": servers})
