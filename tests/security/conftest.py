"""What every attack has: a shell in a directory of its own."""

from tests.e2e.conftest import shell

__all__ = ["shell"]
