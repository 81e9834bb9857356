"""What every fault has: a shell, and the promise that nothing is left running."""

from tests.e2e.conftest import shell

__all__ = ["shell"]
