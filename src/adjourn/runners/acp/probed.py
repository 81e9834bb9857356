"""What probes have shown: which agents ask before they act. Kept in the user's state directory."""

import os
from collections.abc import Mapping
from enum import StrEnum
from hashlib import sha256

import msgspec

from adjourn.core.call import canonical
from adjourn.core.errors import AdjournError
from adjourn.runners.acp.options import Setup
from adjourn.system.machine import state_directory

_FILE = "acp-probes.json"


class Seen(StrEnum):
    """What an agent did when it was told to do something that has an effect."""

    ASKS = "asks"
    ACTS = "acts without asking"
    REFUSES = "did not do it, and did not ask"


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of one version of an agent."""

    name: str
    version: str
    at: float  # seconds of the clock
    verdicts: dict[str, Seen]  # by what it was told to do
    is_sandboxed: bool = False

    @property
    def is_fine(self) -> bool:
        """Whether it asked about a command, or its sandbox held it, and did nothing unasked."""
        command = self.verdicts.get("command")
        is_held = command is Seen.ASKS or (self.is_sandboxed and command is Seen.REFUSES)
        return is_held and Seen.ACTS not in self.verdicts.values()


def probe_key(setup: Setup) -> str:
    """Return what a probe is kept under: another command, environment or mode is another agent."""
    agent = setup.agent
    return sha256(canonical([list(agent.command), agent.env, agent.mode, agent.login])).hexdigest()


def read_probes(environment: Mapping[str, str]) -> dict[str, Probe]:
    """Return all probes, by their keys."""
    try:
        with open(os.path.join(state_directory(environment), _FILE), "rb") as file:
            return msgspec.json.decode(file.read(), type=dict[str, Probe])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError):
        return {}  # none counts that cannot be read


def keep_probe(environment: Mapping[str, str], setup: Setup, probe: Probe) -> None:
    """Keep a probe in the place of an older one."""
    directory = state_directory(environment)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    path = os.path.join(directory, _FILE)
    probes = {**read_probes(environment), probe_key(setup): probe}
    draft = f"{path}.{os.getpid()}"
    with open(draft, "wb") as file:
        file.write(msgspec.json.encode(probes))
    os.replace(draft, path)


def require_probed(setup: Setup, version: str, environment: Mapping[str, str]) -> None:
    """Refuse an agent under a gate unless it was seen to ask, or the user's config trusts it."""
    if setup.agent.trust:
        return
    probe = read_probes(environment).get(probe_key(setup))
    way_out = f"adjourn doctor --agent {setup.name}"
    if probe is None:
        raise AdjournError(
            f"{setup.name} was not probed: nobody has seen that it asks before it acts",
            way_out=way_out,
        )
    if probe.version != version:
        raise AdjournError(
            f"{setup.name} was probed at version {probe.version or 'unknown'},"
            f" and this is {version or 'unknown'}",
            way_out=way_out,
        )
    if not probe.is_fine:
        seen = "; ".join(f"{what}: {verdict}" for what, verdict in probe.verdicts.items())
        raise AdjournError(
            f"{setup.name} does not ask before it acts ({seen}): a gate would hold nothing",
            way_out=f"trust = true in [acp.{setup.name}] of the config, if that is what you want",
        )
