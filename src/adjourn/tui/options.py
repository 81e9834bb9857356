"""What the user's config says of the TUI: the table [tui]."""

from collections.abc import Mapping

import msgspec

from adjourn.core.errors import Misuse
from adjourn.settings.config import has_config, read_config
from adjourn.views.screen_keys import SCREEN_KEYS, ScreenKey, with_keymap

_HELP = "adjourn tui --help"
NARROWEST, WIDEST, STEP = 20, 80, 5  # percent of the width that the list takes


class TuiOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the TUI looks, and which keys it has."""

    theme: str = "ansi-dark"  # the terminal's own colours
    list: int = 40  # percent of the width
    keys: Mapping[str, str] = {}  # keys by the names of their actions

    @property
    def table(self) -> tuple[ScreenKey, ...]:
        """The table of keys with those of the user."""
        return with_keymap(self.keys) if self.keys else SCREEN_KEYS


def read_tui_options(themes: frozenset[str]) -> TuiOptions:
    """Return what [tui] says; what is wrong with it is said with its file and key."""
    if not has_config():
        return TuiOptions()
    config = read_config()
    try:
        options = msgspec.convert(config.content.get("tui", {}), TuiOptions)
        _ = options.table
    except (msgspec.ValidationError, ValueError) as error:
        raise Misuse(f"{config.path}: [tui]: {error}", way_out=_HELP) from None
    if options.theme not in themes:
        known = ", ".join(sorted(themes))
        raise Misuse(
            f"{config.path}: [tui] theme {options.theme!r} is unknown; known are {known}",
            way_out=_HELP,
        )
    if not NARROWEST <= options.list <= WIDEST:
        raise Misuse(
            f"{config.path}: [tui] list must be between {NARROWEST} and {WIDEST}", way_out=_HELP
        )
    return options
