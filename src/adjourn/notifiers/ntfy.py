"""Shows asks by ntfy, with buttons that call back: every reader of the topic may decide."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec

from adjourn.notifiers.http_post import HttpPost, usable_url
from adjourn.ports.notifier import (
    BadTable,
    Message,
    NotDelivered,
    NotifierSettings,
    PreparedNotifier,
    read_keys,
)
from adjourn.views.message import choice_labels, defused, fitting_text

SERVER = "https://ntfy.sh"
_LIMIT = 4_096  # bytes of a message
_TITLE = 250
_MOST_ACTIONS = 3
_TAKEN = range(200, 300)
_LONGEST_TOPIC = 64
_TOPIC = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


class NtfyTable(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The keys of `[notify.ntfy]`."""

    topic: str
    url: str = SERVER
    token_file: str = ""
    token_env: str = ""
    public_url: str = ""
    person: str = ""


class _NtfyKeys(msgspec.Struct, forbid_unknown_fields=True):
    ntfy: NtfyTable


def prepare(values: Mapping[str, Any], settings: NotifierSettings) -> PreparedNotifier:
    """Return the messenger that a table describes."""
    table = read_keys(values, _NtfyKeys).ntfy
    url = usable_url(table.url, key="url")
    if not table.topic or not _TOPIC.issuperset(table.topic) or len(table.topic) > _LONGEST_TOPIC:
        raise BadTable("`topic` must be up to 64 letters, digits, `_` and `-`")
    if table.public_url:
        usable_url(table.public_url, key="public_url")
    token = ""
    if table.token_file or table.token_env:
        token = settings.read_token(table.token_file, table.token_env)
    return PreparedNotifier(
        notifier=NtfyMessenger(table.url, topic=table.topic, token=token, timeout=settings.timeout),
        name="ntfy",
        shown=f"{url.scheme}://{url.netloc}/{table.topic}",
        public_url=table.public_url.rstrip("/") or None,
    )


class NtfyMessenger:
    """Publishes to one topic. One notification for each ask: what comes later replaces it."""

    columns = 40

    def __init__(self, url: str, *, topic: str, token: str, timeout: float) -> None:
        self._url = url
        self._topic = topic
        self._token = token
        self._timeout = timeout
        self._http = HttpPost()

    def send_message(self, message: Message) -> str | None:
        """Publish a message with its buttons; a server of ntfy 2.16 can change it later."""
        handle = f"adjourn-{message.buttons.ask_id}" if message.buttons else None
        self._publish(message, handle)
        return handle

    def update_message(self, handle: str, message: Message) -> None:
        """Publish what is shown in the place of an earlier message."""
        self._publish(message, handle)

    def _publish(self, message: Message, handle: str | None) -> None:
        text, is_whole = fitting_text(message, limit=_LIMIT, size=_size)
        document: dict[str, Any] = {
            "topic": self._topic,
            "title": defused(f"{message.subject}: {message.title}")[:_TITLE],
            "message": text,
            "actions": _actions(message, is_whole=is_whole),
        }
        if handle:
            document["sequence_id"] = handle
        if message.link:
            document["click"] = message.link
        headers = {"content-type": "application/json", "user-agent": "adjourn"}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        body = msgspec.json.encode(document | {"message": defused(text)})
        status, _ = self._http.post(self._url, body, headers, timeout=self._timeout)
        if status not in _TAKEN:
            raise NotDelivered(f"it answered {status}")

    def hang_up(self) -> None:
        """Shut the connection if there is one."""
        self._http.hang_up()


def _actions(message: Message, *, is_whole: bool) -> list[dict[str, Any]]:
    """Return at most three buttons. Each posts, and what it posts is decided by the server."""
    if not message.link:
        return []
    buttons, found = message.buttons, list[dict[str, Any]]()
    if buttons and buttons.can_approve and is_whole:
        found.append(_post(message.link, "Approve", verb="approve", digest=buttons.digest or ""))
    if buttons and buttons.can_reject:
        found.append(_post(message.link, "Reject", verb="reject"))
    if buttons and len(buttons.choices) <= _MOST_ACTIONS:
        found += [
            _post(message.link, label, verb="answer", choice=str(number))
            for number, label in enumerate(choice_labels(buttons))
        ]
    if len(found) < _MOST_ACTIONS:
        found.append({"action": "view", "label": "Open", "url": message.link})
    return found


def _post(link: str, label: str, **form: str) -> dict[str, Any]:
    return {
        "action": "http",
        "label": label,
        "url": link,
        "method": "POST",
        "headers": {"Content-Type": "application/x-www-form-urlencoded"},
        "body": urlencode(form),
        "clear": True,
    }


def _size(text: str) -> int:
    return len(defused(text).encode())
