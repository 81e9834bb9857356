"""Puts together what takes secrets out of copies.

The patterns that are built in, and those of the user's config.
"""

import re

import msgspec

from adjourn.core.errors import Misuse
from adjourn.core.redact import Redactor
from adjourn.settings.config import read_config
from adjourn.system.machine import store_key

_MOST = 100
_LEAD = 64  # characters of a key: enough to know it by
_WAY_OUT = "see docs/how-to/keep-secrets.md"


def open_redactor() -> Redactor:
    """Return what takes secrets out of copies.

    Where the user's patterns cannot be used, nothing is copied at all.
    """
    config = read_config()
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
    if key := store_key():  # the store's own is a secret, too
        patterns.append(re.escape(key[:_LEAD]) + (r"\S*" if len(key) > _LEAD else ""))
    return Redactor(patterns)
