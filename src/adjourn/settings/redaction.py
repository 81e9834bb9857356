"""Puts together what takes secrets out of copies.

The patterns that are built in, and those of the user's config.
"""

import re

import msgspec

from adjourn.core.errors import Misuse
from adjourn.core.redact import Redactor
from adjourn.settings.config import Config, read_config
from adjourn.system.machine import store_key

_MOST = 100
_LEAD = 64  # characters of a key: enough to know it by
_WAY_OUT = "see docs/how-to/keep-secrets.md"


def open_redactor() -> Redactor:
    """Return what takes secrets out of copies.

    Where the user's patterns cannot be used, nothing is copied at all.
    """
    return Redactor(_patterns(read_config()) + _key_patterns())


def _key_patterns() -> list[str]:
    """Return what finds the key of the store, if one was given."""
    key = store_key() or ""
    return [re.escape(key[:_LEAD]) + (r"\S*" if len(key) > _LEAD else "")] if key else []


def _patterns(config: Config) -> list[str]:
    try:
        patterns = msgspec.convert(config.content.get("redact", []), list[str])
    except msgspec.ValidationError:
        raise Misuse(
            f"{config.path}: `redact` must be a list of patterns, at the top of the file",
            way_out=_WAY_OUT,
        ) from None
    if len(patterns) > _MOST:
        raise Misuse(
            f"{config.path}: `redact` has {len(patterns)} patterns, more than {_MOST}",
            way_out=_WAY_OUT,
        )
    return patterns
