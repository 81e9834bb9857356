"""Tells by apprise, which knows more than a hundred services. It only tells: there is no button."""

import logging
from collections.abc import Mapping
from typing import Any

import apprise
import msgspec

from adjourn.ports.notifier import (
    BadTable,
    NotDelivered,
    NotifierSettings,
    PreparedNotifier,
    read_keys,
)


class _AppriseKeys(msgspec.Struct, forbid_unknown_fields=True):
    apprise: tuple[str, ...]


class _Notice(msgspec.Struct):
    text: str


def prepare(values: Mapping[str, Any], settings: NotifierSettings) -> PreparedNotifier:
    """Return the notifier that a table describes. Its URLs hold secrets, and are not shown."""
    del settings
    logging.getLogger("apprise").setLevel(logging.CRITICAL)  # its words may hold a URL
    told = apprise.Apprise()
    for number, url in enumerate(read_keys(values, _AppriseKeys).apprise, start=1):
        if not told.add(url):
            raise BadTable(f"`apprise`: apprise does not know URL number {number}")
    if not len(told):
        raise BadTable("`apprise` must be a list of URLs")
    names = sorted({str(service.service_name) for service in told})
    return PreparedNotifier(
        notifier=AppriseNotifier(told), name="apprise", shown=f"apprise: {', '.join(names)}"
    )


class AppriseNotifier:
    """Hands the text of a notice to apprise, as plain text: nothing of it is parsed."""

    def __init__(self, told: "apprise.Apprise") -> None:
        self._told = told

    def send(self, notice_id: str, body: bytes, *, at: int) -> None:
        """Return when all services have taken it; apprise has its own time limits."""
        del notice_id, at  # both are in the document
        text = msgspec.json.decode(body, type=_Notice).text
        title, _, rest = text.partition("\n")
        is_taken = self._told.notify(
            body=rest or title, title=title, body_format=apprise.NotifyFormat.TEXT
        )
        if not is_taken:
            raise NotDelivered("apprise could not tell all of its services")

    def hang_up(self) -> None:
        """Do nothing: apprise cannot be broken off, and ends within its own time limits."""
