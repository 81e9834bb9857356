"""A shim as its supervisor sees it: what to run, the gate, the signals, the result."""

from typing import Literal

import msgspec

from adjourn.core.identity import ProcessId

MIB = 1024 * 1024


class ShimFailed(Exception):
    """The shim could not be made ready; nothing of it runs."""


class GateShut(Exception):
    """The shim was gone before its gate opened: the child never ran and never will."""


class ShimSpec(msgspec.Struct, frozen=True, kw_only=True):
    """All that a shim needs to know to run one child."""

    run_dir: str
    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    interrupt: int = 2
    grace: float = 5.0
    output_cap: int = 16 * MIB
    grant: bytes = b""
    use_cgroup: bool = True


class ShimResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of the child, as its shim wrote it down."""

    started: bool
    exit_code: int | None = None
    signal: int | None = None
    error: str | None = None
    interrupted: bool = False
    killed: Literal["grace", "second interrupt", "kill"] | None = None
    began_at: int | None = None  # milliseconds since the epoch
    ended_at: int | None = None
    stdout_bytes: int = 0
    stdout_left_out: int = 0
    stderr_bytes: int = 0
    stderr_left_out: int = 0
    survivors: int = 0


class Shim:
    """A living or dead shim, held by its pidfd."""

    identity: ProcessId

    def fileno(self) -> int:
        """Return the pidfd; it polls readable once the shim is gone."""
        raise NotImplementedError

    def open_gate(self) -> None:
        """Let the child start; raise GateShut if the shim is provably gone, so that it never will."""
        raise NotImplementedError

    def shut_gate(self) -> None:
        """Make sure that the child never starts, unless the gate was opened before."""
        raise NotImplementedError

    def interrupt(self) -> None:
        """Have one interrupt forwarded to the child; the second call kills its tree."""
        raise NotImplementedError

    def kill(self) -> None:
        """Have the child's whole tree killed at once."""
        raise NotImplementedError

    def wait(self, timeout: float | None) -> bool:
        """Wait until the shim is gone, or `timeout` seconds; say whether it is gone."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the shim; one whose gate was never opened then ends without starting its child."""
        raise NotImplementedError


def adopt(run_dir: str, identity: ProcessId) -> Shim | None:
    """Return the shim that another supervisor started, if that very process still lives."""
    raise NotImplementedError


def read_result(run_dir: str) -> ShimResult | None:
    """Return what the shim wrote down, or None if it has not (yet)."""
    raise NotImplementedError
