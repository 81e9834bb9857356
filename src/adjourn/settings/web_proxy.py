"""The proxy that logs people in for `adjourn serve`: who it is, and its header."""

import msgspec

from adjourn.core.errors import Misuse
from adjourn.ports.notifier import BadTable, read_keys
from adjourn.settings.config import read_config

_HOW = 'proxy_uid = 33 and proxy_header = "X-Forwarded-User" in [web] of config.toml'
WEB_KEYS = {
    "proxy_uid": "The user id as which the proxy runs. Its header counts only on a unix socket"
    " (`serve --listen unix:PATH`) whose other end is a process of this user.",
    "proxy_header": "The header in which the proxy names the user, as `adjourn users` knows them.",
}
"""What each key means, for the reference."""


class WebTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A proxy that is trusted to say who somebody is."""

    proxy_uid: int
    proxy_header: str


def read_web_table() -> WebTable | None:
    """Return the proxy that the config trusts, if it names one."""
    config = read_config()
    content = config.content.get("web")
    if content is None:
        return None
    try:
        table = read_keys(content, WebTable)
    except BadTable as error:
        raise Misuse(f"{config.path}: [web]: {error}", way_out=_HOW) from error
    is_header = table.proxy_header.isascii() and table.proxy_header.replace("-", "").isalnum()
    if not is_header or table.proxy_uid < 0:
        raise Misuse(f"{config.path}: [web]: `proxy_header` must be a header's name", way_out=_HOW)
    return table
