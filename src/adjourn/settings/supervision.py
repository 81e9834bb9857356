"""Reads `supervision.yaml`."""

import os

from adjourn.core.errors import Misuse
from adjourn.core.settings import WAY_OUT, Settings, settings_of
from adjourn.system.files import read_owned

_NAME = "supervision.yaml"
_LARGEST = 64 * 1024


def read_settings(root: str) -> Settings:
    """Return what is set for a store: the defaults where nothing is.

    What is not known is an error that names it.
    """
    path = os.path.join(root, _NAME)
    if not os.path.lexists(path):
        return Settings()
    # Most stores have no such file, and YAML is slow to import
    from adjourn.system.yaml import NotYet, read_mapping

    try:
        found = read_owned(path, largest=_LARGEST)
        return settings_of(read_mapping(found.content) if found else {})
    except (Misuse, NotYet) as error:
        raise Misuse(f"{path}: {error}", way_out=WAY_OUT) from error
