"""Reads `supervision.yaml`."""

import os

from adjourn.core.errors import Misuse
from adjourn.core.settings import WAY_OUT, Settings, settings_of

_NAME = "supervision.yaml"
_LARGEST = 64 * 1024


def read_settings(root: str) -> Settings:
    """Return what is set for a store: the defaults where nothing is.

    What is not known is an error that names it.
    """
    path = os.path.join(root, _NAME)
    if not os.path.lexists(path):
        return Settings()
    from adjourn.clarifications.files import read_plain
    from adjourn.system.yaml import NotYet, read_mapping

    try:
        found = read_plain(path, largest=_LARGEST)
        return settings_of(read_mapping(found.content) if found else {})
    except (Misuse, NotYet) as error:
        raise Misuse(f"{path}: {error}", way_out=WAY_OUT) from error
