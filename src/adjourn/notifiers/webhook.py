"""Tells a webhook, signed as Standard Webhooks says."""

from collections.abc import Mapping
from typing import Any

import msgspec

from adjourn.core.authority.webhook import signature
from adjourn.notifiers.http_post import HttpPost, usable_url
from adjourn.ports.notifier import (
    NotDelivered,
    NotifierSettings,
    PreparedNotifier,
    read_keys,
)

_TAKEN = range(200, 300)
_MOVED = range(300, 400)


class _WebhookKeys(msgspec.Struct, forbid_unknown_fields=True):
    webhook: str


def prepare(values: Mapping[str, Any], settings: NotifierSettings) -> PreparedNotifier:
    """Return the notifier that a table describes."""
    text = read_keys(values, _WebhookKeys).webhook
    url = usable_url(text, key="webhook")
    return PreparedNotifier(
        notifier=WebhookNotifier(text, key=settings.secret(), timeout=settings.timeout),
        name=url.hostname or "",
        shown=f"{url.scheme}://{url.netloc}/…",
    )


class WebhookNotifier:
    """Posts each document to one URL.

    The receiver has taken it when it answers 2xx; redirects are not followed.
    """

    def __init__(self, url: str, *, key: bytes, timeout: float) -> None:
        self._url = url
        self._key = key
        self._timeout = timeout
        self._http = HttpPost()

    def send(self, notice_id: str, body: bytes, *, at: int) -> None:
        """Post the document; it is signed as Standard Webhooks says."""
        headers = {
            "content-type": "application/json",
            "user-agent": "adjourn",
            "webhook-id": notice_id,
            "webhook-timestamp": str(at // 1000),
            "webhook-signature": signature(self._key, notice_id, body, at=at // 1000),
        }
        status, _ = self._http.post(self._url, body, headers, timeout=self._timeout, most=0)
        if status in _MOVED:
            raise NotDelivered(f"it answered {status}; redirects are not followed")
        if status not in _TAKEN:
            raise NotDelivered(f"it answered {status}")

    def hang_up(self) -> None:
        """Shut the connection if there is one."""
        self._http.hang_up()
