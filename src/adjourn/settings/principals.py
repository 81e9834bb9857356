"""Whom the config of a store's owner lets decide, beside the owner."""

from typing import Any

import msgspec

from adjourn.core.ask import Principal
from adjourn.core.authority.scopes import AGENT_SCOPES, NONE, Rights, Scope
from adjourn.core.errors import Misuse, NotFound
from adjourn.ports.notifier import BadTable, read_keys
from adjourn.settings.config import Config, read_config
from adjourn.settings.notify import (
    Secret,
    approvers_in,
    key_of,
    links_in,
    proper_name,
    require_secret,
)
from adjourn.settings.people import read_people

_DECIDES = frozenset({Scope.ANSWER, Scope.APPROVE})
_HOW = "adjourn decide --help"
_PRESSING = frozenset({"telegram", "slack", "link"})


class PrincipalTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Somebody beside the owner who may do something."""

    name: str
    scopes: tuple[Scope, ...]
    also: tuple[str, ...] = ()


class WebhookTable(Secret, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Somebody who decides by signed requests."""

    name: str
    scopes: tuple[Scope, ...] = ()


PRINCIPAL_KEYS = {
    "name": (
        "Who: `uid:1001` for a user of this machine, `key:anna` for the signer `anna` in"
        " the allowed signers, `agent:claude` for a host that speaks MCP, `web:anna` or"
        " `passkey:anna` for a user of `adjourn serve`."
    ),
    "scopes": (
        "What for: a list of `request`, `answer`, `approve` and `admin`. An empty list takes"
        " everything away."
    ),
    "also": (
        "Other names of the same person, such as `uid:1000`: where the requester may not approve,"
        " the same person under another name may not either."
    ),
}
WEBHOOK_KEYS = {
    "name": (
        "What to call it: letters, digits, `.`, `_` and `-`. Its decisions are recorded as"
        " `webhook:NAME`."
    ),
    "scopes": "What its requests may do: a list of `answer` and `approve`. Without it, nothing.",
    "secret": (
        "What its requests are signed with: `whsec_` and 24 to 64 bytes in base64. It needs this"
        " or one of the next two."
    ),
    "secret_env": "The environment variable that holds the secret.",
    "secret_file": (
        "The file that holds the secret; a relative path begins at the config's directory."
    ),
}
FILE_KEYS = {
    "allowed_signers": "The file of those whose signatures count, in the format of `ssh-keygen`. "
    "Without it, `allowed_signers` beside the config.",
    "revoked_signers": "The file of keys whose signatures count no more: public keys, one per "
    "line, or a KRL. "
    "Without it, `revoked_signers` beside the config, if that is there.",
}
"""What each key means, for the reference."""


def rights_in(config: Config, by: Principal) -> Rights:
    """Return what a config lets somebody do who is not its owner."""
    if by.name.startswith("webhook:"):
        return _rights_of_webhook(config, by.name.removeprefix("webhook:"))
    return _rights_of(config, by)


def rights_of_user(config: Config, by: Principal, *, owner: int) -> Rights:
    """Return what a config lets somebody do who logs in to the web, or signs with a passkey.

    A [[principal]] of that name decides; otherwise the scopes that `adjourn users add` was given.
    """
    for table in principals(config):
        if table.name == by.name:
            return Rights(scopes=frozenset(table.scopes), also=table.also)
    # Only who decides in a browser needs it
    from adjourn.settings.web_users import find_user

    user = find_user(by.name.partition(":")[2], owner)
    if user is None:
        return NONE
    both = (f"web:{user.name}", f"passkey:{user.name}")  # two ways in of one person
    return Rights(scopes=frozenset(user.scopes), also=both)


def agent_scopes(config: Config, by: Principal) -> frozenset[Scope]:
    """Return what a config lets an agent do: to start, answer and approve, or less.

    A table may name a host (`agent:claude`) and is about all connections of that name, too.
    """
    names = {by.name, by.name.partition("#")[0]}
    for table in principals(config):
        if table.name in names:
            return frozenset(table.scopes) & AGENT_SCOPES
    return AGENT_SCOPES


def _rights_of(config: Config, by: Principal) -> Rights:
    # Signers are known by the allowed signers, and those who press buttons by the approvers
    rights = Rights(scopes=_DECIDES) if by.kind == "key" else NONE
    if by.kind in _PRESSING:
        rights = _rights_of_presser(config, by)
    for table in principals(config):
        if table.name == by.name:
            scopes, also = frozenset(table.scopes), (*rights.also, *table.also)
            return msgspec.structs.replace(rights, scopes=scopes, also=also)
    return rights


def _rights_of_presser(config: Config, by: Principal) -> Rights:
    """Return what somebody may do who presses a button, or has a link of a message.

    All other names of the same person go along: as any of them, they may be the requester.
    """
    if by.kind == "link":
        links = links_in(config)
        name = by.name.removeprefix("link:")
        is_known, person = name in links, links.get(name)
    else:
        person = approvers_in(config).get(by.name)
        is_known = person is not None
    if not is_known:
        return NONE
    people = read_people(config).people
    own = next((each.principals for each in people if each.name == person), ())
    return Rights(
        scopes=_DECIDES,
        also=tuple(each for each in own if each != by.name),
        is_person=person is not None,
    )


def _rights_of_webhook(config: Config, name: str) -> Rights:
    found = next((table for table in webhooks(config) if table.name == name), None)
    return Rights(scopes=frozenset(found.scopes) & _DECIDES) if found else NONE


def principals(config: Config) -> list[PrincipalTable]:
    """Return whom a config names; what is wrong is said with table and key."""
    return [
        _table(config, "principal", number, each)
        for number, each in enumerate(config.tables("principal"), start=1)
    ]


def webhooks(config: Config) -> list[WebhookTable]:
    """Return the webhooks that may decide."""
    return [
        _webhook(config, number, each)
        for number, each in enumerate(config.tables("webhook"), start=1)
    ]


def _table(config: Config, key: str, number: int, content: Any) -> PrincipalTable:
    try:
        return read_keys(content, PrincipalTable)
    except BadTable as error:
        raise _wrong(config, key, number, str(error)) from error


def _webhook(config: Config, number: int, content: Any) -> WebhookTable:
    try:
        table = read_keys(content, WebhookTable)
        proper_name(table.name)
        require_secret(table)
    except BadTable as error:
        raise _wrong(config, "webhook", number, str(error)) from error
    return table


def secret_of_webhook(name: str) -> bytes:
    """Return the secret of a webhook's signatures, from the config of the user who runs this."""
    config = read_config()
    for number, table in enumerate(webhooks(config), start=1):
        if table.name == name:
            try:
                return key_of(table, directory=config.directory)
            except BadTable as error:
                raise _wrong(config, "webhook", number, str(error)) from error
    raise NotFound(f"{config.path} has no [[webhook]] of that name", way_out=_HOW)


def _wrong(config: Config, key: str, number: int, what: str) -> Misuse:
    return Misuse(f"{config.path}: [[{key}]] number {number}: {what}", way_out=_HOW)
