"""What attacks have: a person's shell, and the promise that nothing is left running."""

from tests.e2e.conftest import shell as shell  # noqa: PLC0414 -- a fixture
