"""Forks shims from a small process that has neither store nor threads."""

from typing import Self

from adjourn.process.shim import Shim, ShimSpec


class ForkServer:
    """The supervisor's end of the fork server."""

    @classmethod
    def start(cls) -> Self:
        """Fork the server; call it before the store is opened or a thread exists."""
        raise NotImplementedError

    def fork_shim(self, spec: ShimSpec) -> Shim:
        """Return a shim that is ready and waits at its gate, or raise ShimFailed with nothing left running."""
        raise NotImplementedError

    def close(self) -> None:
        """Let the server go; shims that live are not disturbed."""
        raise NotImplementedError
