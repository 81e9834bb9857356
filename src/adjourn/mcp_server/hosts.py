"""Who is at the other end: a host that shows its secret, or a connection that has only a name."""

import hmac
import os
import re
from collections.abc import MutableMapping

from adjourn.core.authority.scopes import AGENT
from adjourn.core.errors import Misuse, NotAllowed
from adjourn.system.machine import AGENT_SECRET

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")


def principal_of(name: str, environment: MutableMapping[str, str]) -> str:
    """Return the name of the principal, and take the secret out of the environment.

    A host whose secret is known is `agent:NAME` in every session. Anybody else is that only for
    this one connection: what it started it may decide, and nobody can come back as it.
    """
    secret = environment.pop(AGENT_SECRET, "")
    if not _NAME.fullmatch(name):
        raise Misuse(
            f"--as {name!r} is not a name: letters, digits, `.`, `_` and `-`, at most 32",
            way_out="adjourn mcp --as claude",
        )
    if not secret:
        return f"{AGENT}:{name}#{os.urandom(6).hex()}"
    # Only hosts that `setup` made known have one
    from adjourn.settings.agent_hosts import digest_of_secret, find_host

    host = find_host(name)
    if host is None or not hmac.compare_digest(host.secret_sha256, digest_of_secret(secret)):
        raise NotAllowed(
            f"the secret of the host {name} is not the one that `adjourn setup` gave it",
            way_out=f"adjourn setup {host.kind if host else 'claude'}",
        )
    return f"{AGENT}:{name}"
