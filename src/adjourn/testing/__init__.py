"""A memory store, and contract suites for those who write a store, a runner or a notifier."""

from contextlib import suppress

with suppress(ImportError):  # the memory store works without pytest
    import pytest

    # pytest explains a failed assertion only in modules that it was told about in time.
    pytest.register_assert_rewrite(
        *(f"{__name__}.{suite}_contract" for suite in ("runner", "notifier")),
        *(f"{__name__}.store_{part}" for part in ("records", "finding", "trail")),
    )
