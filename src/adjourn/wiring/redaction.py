"""Puts together what takes secrets out of copies: the patterns that are built in, and those of the user's config."""

import os
from typing import Any

import msgspec

from adjourn.core.errors import Misuse
from adjourn.core.redact import Redactor
from adjourn.wiring.user_files import config_directory, require_trust

_LARGEST = 1024 * 1024
_MOST = 100
_WAY_OUT = "see docs/how-to/keep-secrets.md"


def open_redactor() -> Redactor:
    """Return what takes secrets out of copies. Where the user's patterns cannot be used, nothing is copied at all."""
    path = os.path.join(config_directory(), "config.toml")
    try:
        with open(path, "rb") as file:
            require_trust(path, os.fstat(file.fileno()))
            return Redactor(_patterns(path, file.read(_LARGEST)))
    except FileNotFoundError:
        return Redactor()
    except NotADirectoryError:
        return Redactor()
    except OSError as error:
        raise Misuse(f"{path}: {error.strerror}", way_out=_WAY_OUT) from error


def _patterns(path: str, content: bytes) -> list[str]:
    import tomllib

    try:
        said: Any = tomllib.loads(content.decode()).get("redact", [])
        patterns = msgspec.convert(said, list[str])
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Misuse(f"{path}: {error}", way_out=_WAY_OUT) from error
    except msgspec.ValidationError:
        raise Misuse(f"{path}: `redact` must be a list of patterns, at the top of the file", way_out=_WAY_OUT) from None
    if len(patterns) > _MOST:
        raise Misuse(f"{path}: `redact` has {len(patterns)} patterns, more than {_MOST}", way_out=_WAY_OUT)
    return patterns
