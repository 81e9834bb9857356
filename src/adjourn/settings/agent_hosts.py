"""The hosts that `adjourn setup` made known, each with the hash of its secret."""

import os
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256

import msgspec

from adjourn.core.errors import Misuse
from adjourn.settings.config import config_directory, require_trust
from adjourn.system.files import hold_lock, private_directory, write_whole

_FILE = "agents.json"
_LOCK = "agents.lock"


class AgentHost(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A host that starts `adjourn mcp`."""

    name: str
    kind: str  # claude or codex
    secret_sha256: str
    at: str


class _Hosts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    hosts: tuple[AgentHost, ...] = ()


def hosts_path() -> str:
    """Return where the hosts are written down."""
    return os.path.join(config_directory(), _FILE)


def read_hosts() -> tuple[AgentHost, ...]:
    """Return all hosts; a file that others could have written is refused."""
    path = hosts_path()
    try:
        with open(path, "rb") as file:
            require_trust(path, os.fstat(file.fileno()))
            return msgspec.json.decode(file.read(), type=_Hosts).hosts
    except FileNotFoundError:
        return ()
    except (OSError, msgspec.MsgspecError) as error:
        raise Misuse(
            f"{path} cannot be read: {error}", way_out=f"mv {path} {path}.old, then adjourn setup"
        ) from None


def find_host(name: str) -> AgentHost | None:
    """Return the host of that name, if there is one."""
    return next((host for host in read_hosts() if host.name == name), None)


def change_hosts(change: Callable[[tuple[AgentHost, ...]], tuple[AgentHost, ...]]) -> None:
    """Replace the hosts by changed ones; of two who change them one waits."""
    os.makedirs(os.path.dirname(config_directory()), exist_ok=True)
    directory = private_directory(config_directory())
    with closing(hold_lock(os.path.join(directory, _LOCK))):
        hosts = change(read_hosts())
        content = msgspec.json.format(msgspec.json.encode(_Hosts(hosts=hosts)), indent=2)
        write_whole(hosts_path(), content + b"\n")


def digest_of_secret(secret: str) -> str:
    """Return the hash by which a secret is kept."""
    return sha256(secret.encode()).hexdigest()
