"""How a worker works, and how long a process lingers: the keys of `supervision.yaml`."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

import msgspec

from adjourn.core.clarification import BRIEF_POLL_DURATION
from adjourn.core.errors import Misuse
from adjourn.core.task import TRIES
from adjourn.core.text.render import visible
from adjourn.core.text.when import milliseconds

WAY_OUT = "max_active: 4 in .adjourn/supervision.yaml"
_DAY = 86_400

Seconds = Annotated[float, msgspec.Meta(ge=0, le=_DAY)]


class Drain(StrEnum):
    """What a worker does with its runs when it is told to stop."""

    PAUSE = "pause"
    FINISH = "finish"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What can be set for a store."""

    # Below, an idle worker is a busy one
    poll_interval: Annotated[float, msgspec.Meta(ge=0.1, le=_DAY)] = 5.0
    linger: Seconds = BRIEF_POLL_DURATION
    retries: Annotated[int, msgspec.Meta(ge=1, le=100)] = TRIES
    grace: Seconds = 30.0
    max_active: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 4
    drain: Drain = Drain.PAUSE


_SPANS = frozenset({"poll_interval", "linger", "grace"})


def settings_of(named: Mapping[str, object]) -> Settings:
    """Read settings from texts by their names.

    What is not known or makes no sense is refused by its name.
    """
    unknown = [visible(name) for name in named if name not in Settings.__struct_fields__]
    if unknown:
        raise Misuse(
            f"unknown: {', '.join(unknown)}; known: {', '.join(Settings.__struct_fields__)}",
            way_out=WAY_OUT,
        )
    try:
        return msgspec.convert(
            {name: _plain(name, value) for name, value in named.items()}, Settings, strict=False
        )
    except msgspec.ValidationError as error:
        raise Misuse(str(error).replace("$.", ""), way_out=WAY_OUT) from error


def _plain(name: str, value: object) -> object:
    """Return a length of time such as 30s or 5m in seconds, and everything else as it is."""
    if name not in _SPANS or not isinstance(value, str):
        return value
    try:
        return milliseconds(value) / 1000
    except ValueError:
        return value
