"""The two programs that every crash test needs, and where the tests live."""

from pathlib import Path

import msgspec

REPOSITORY = Path(__file__).parents[2]


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """The two programs that every crash test needs."""

    library: str
    effect: str
