"""Shows asks in a Slack channel, with buttons. Presses come by Socket Mode: no open port."""

from collections.abc import Mapping
from typing import Any

import msgspec

from adjourn.notifiers.http_post import HttpPost, usable_url
from adjourn.ports.notifier import (
    BadTable,
    Buttons,
    Message,
    NotDelivered,
    NotifierSettings,
    PreparedNotifier,
    read_keys,
)
from adjourn.views.message import choice_labels, fitting_text

API = "https://slack.com/api"
_LIMIT = 3_000  # characters of a block's text
_OK = 200
_GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})


class SlackTable(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The keys of `[notify.slack]`."""

    channel: str
    bot_token_file: str = ""
    bot_token_env: str = ""
    app_token_file: str = ""
    app_token_env: str = ""
    approvers: dict[str, str] = {}
    api: str = API


class _SlackKeys(msgspec.Struct, forbid_unknown_fields=True):
    slack: SlackTable


class _Answer(msgspec.Struct):
    """What the Web API answers."""

    ok: bool = False
    error: str = ""
    channel: Any = None
    ts: str = ""


def prepare(values: Mapping[str, Any], settings: NotifierSettings) -> PreparedNotifier:
    """Return the messenger that a table describes."""
    table = read_keys(values, _SlackKeys).slack
    usable_url(table.api, key="api")
    if not table.channel.isalnum() or not table.channel.isascii():
        raise BadTable("`channel` must be the id of a channel, as in C0123456789")
    bot_token = settings.read_token(table.bot_token_file, table.bot_token_env)
    has_app = bool(table.app_token_file or table.app_token_env)
    app_token = settings.read_token(table.app_token_file, table.app_token_env) if has_app else ""
    for token in filter(None, (bot_token, app_token)):
        if not token.isascii() or not token.isprintable() or " " in token:
            raise BadTable("a token of Slack is one word of ASCII")
    messenger = SlackMessenger(
        bot_token,
        app_token=app_token,
        channel=table.channel,
        api=table.api.rstrip("/"),
        timeout=settings.timeout,
    )
    return PreparedNotifier(
        notifier=messenger,
        name="slack",
        shown=f"Slack channel {table.channel}",
        hears="slack" if app_token else None,
    )


class SlackMessenger:
    """Posts to one channel and changes what it posted, by the Web API."""

    columns = 72

    def __init__(
        self, bot_token: str, *, app_token: str, channel: str, api: str, timeout: float
    ) -> None:
        self.bot_id = channel
        self.bot_token = bot_token
        self.app_token = app_token
        self.channel = channel
        self.api = api
        self.timeout = timeout
        self._http = HttpPost()

    def send_message(self, message: Message) -> str | None:
        """Post a message with its buttons, and return where it is."""
        content = _content(message, has_buttons=bool(self.app_token))
        answer = self.call("chat.postMessage", {"channel": self.channel, **content})
        return f"{self.channel}/{answer.ts}"

    def update_message(self, handle: str, message: Message) -> None:
        """Put another text and other buttons, or none, into a message."""
        channel, _, ts = handle.partition("/")
        content = _content(message, has_buttons=bool(self.app_token))
        try:
            self.call("chat.update", {"channel": channel, "ts": ts, **content})
        except NotDelivered as refusal:
            if str(refusal).rpartition(" ")[2] not in _GONE:
                raise

    def call(self, method: str, parameters: Mapping[str, Any]) -> _Answer:
        """Call a method of the Web API, or raise NotDelivered."""
        headers = {
            "content-type": "application/json; charset=utf-8",
            "authorization": f"Bearer {self.bot_token}",
            "user-agent": "adjourn",
        }
        status, content = self._http.post(
            f"{self.api}/{method}", msgspec.json.encode(parameters), headers, timeout=self.timeout
        )
        try:
            answer = msgspec.json.decode(content, type=_Answer)
        except msgspec.MsgspecError:
            raise NotDelivered(f"{method}: it answered {status}, not as Slack does") from None
        if status != _OK or not answer.ok:
            raise NotDelivered(f"{method}: it answered {status}: {answer.error[:200]}")
        return answer

    def hang_up(self) -> None:
        """Shut the connection if there is one."""
        self._http.hang_up()


def _content(message: Message, *, has_buttons: bool) -> dict[str, Any]:
    """Return a message's text and buttons.

    All text is preformatted rich text, of which Slack parses nothing: no mrkdwn, mention or link.
    What stands in `text` is shown where blocks are not; Slack reads it, so it is escaped.
    """
    text, is_whole = fitting_text(message, limit=_LIMIT)
    part = {"type": "text", "text": text}
    blocks: list[dict[str, Any]] = [
        {
            "type": "rich_text",
            "elements": [{"type": "rich_text_preformatted", "elements": [part]}],
        }
    ]
    shown = message.buttons if has_buttons else None
    if shown and (elements := _elements(shown, is_whole=is_whole)):
        blocks.append({"type": "actions", "elements": elements})
    subject = message.subject
    for character, written in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        subject = subject.replace(character, written)
    return {
        "text": subject,
        "blocks": blocks,
        "mrkdwn": False,
        "parse": "none",
        "link_names": False,
        "unfurl_links": False,
        "unfurl_media": False,
    }


def _elements(buttons: Buttons, *, is_whole: bool) -> list[dict[str, Any]]:
    of = f"{buttons.ask_id}:{buttons.digest or ''}"
    found: list[tuple[str, str]] = []
    if buttons.can_approve and is_whole:
        found.append(("Approve", "a"))
    if buttons.can_reject:
        found.append(("Reject…", "r"))
    found += [(label, str(number)) for number, label in enumerate(choice_labels(buttons))]
    if buttons.takes_text:
        found.append(("Answer…", "t"))
    return [
        {
            "type": "button",
            "action_id": f"adjourn_{kind}",
            "text": {"type": "plain_text", "text": label, "emoji": False},
            "value": f"{kind}:{of}",
        }
        for label, kind in found
    ]
