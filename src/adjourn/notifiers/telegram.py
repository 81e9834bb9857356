"""Shows asks in a Telegram chat, with buttons. It needs no server and no open port."""

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

API = "https://api.telegram.org"
_LIMIT = 4_096  # UTF-16 units of a message's text
_OK = 200
_GONE = ("message to edit not found", "message can't be edited", "message is not modified")


class TelegramTable(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The keys of `[notify.telegram]`."""

    chat: int | str
    token_file: str = ""
    token_env: str = ""
    approvers: dict[str, str] = {}
    api: str = API


class _TelegramKeys(msgspec.Struct, forbid_unknown_fields=True):
    telegram: TelegramTable


class _Answer(msgspec.Struct):
    """What the Bot API answers."""

    ok: bool = False
    result: Any = None
    description: str = ""
    error_code: int = 0


class _SentChat(msgspec.Struct):
    id: int


class _Sent(msgspec.Struct):
    message_id: int
    chat: _SentChat


def prepare(values: Mapping[str, Any], settings: NotifierSettings) -> PreparedNotifier:
    """Return the messenger that a table describes."""
    table = read_keys(values, _TelegramKeys).telegram
    usable_url(table.api, key="api")
    token = settings.read_token(table.token_file, table.token_env)
    bot, _, secret = token.partition(":")
    if not bot.isdecimal() or not secret or not token.isascii() or not token.isprintable():
        raise BadTable("the token of a Telegram bot is a number, a colon and a secret")
    messenger = TelegramMessenger(
        token, chat=table.chat, api=table.api.rstrip("/"), timeout=settings.timeout
    )
    return PreparedNotifier(
        notifier=messenger, name="telegram", shown=f"Telegram chat {table.chat}", hears="telegram"
    )


class TelegramMessenger:
    """Sends to one chat and edits what it sent, by the Bot API."""

    columns = 40

    def __init__(self, token: str, *, chat: int | str, api: str, timeout: float) -> None:
        self.bot_id = int(token.partition(":")[0])
        self.chat = chat
        self._token = token
        self._api = api
        self._timeout = timeout
        self._http = HttpPost()

    def send_message(self, message: Message) -> str | None:
        """Send a message with its buttons, and return where it is."""
        sent = self.call("sendMessage", {"chat_id": self.chat, **_content(message)})
        found = msgspec.convert(sent, _Sent)
        return f"{found.chat.id}/{found.message_id}"

    def update_message(self, handle: str, message: Message) -> None:
        """Put another text and other buttons, or none, into a message."""
        chat, _, number = handle.partition("/")
        try:
            where = {"chat_id": int(chat), "message_id": int(number)}
            self.call("editMessageText", {**where, **_content(message)})
        except NotDelivered as refusal:
            if not any(words in str(refusal) for words in _GONE):
                raise

    def call(self, method: str, parameters: Mapping[str, Any], *, wait: float = 0) -> Any:
        """Call a method of the Bot API; `wait` is for how long the server may hold its answer.

        Raise NotDelivered, without the token.
        """
        url = f"{self._api}/bot{self._token}/{method}"
        body = msgspec.json.encode(parameters)
        headers = {"content-type": "application/json", "user-agent": "adjourn"}
        status, content = self._http.post(url, body, headers, timeout=self._timeout + wait)
        try:
            answer = msgspec.json.decode(content, type=_Answer)
        except msgspec.MsgspecError:
            raise NotDelivered(f"{method}: it answered {status}, not as a bot's API does") from None
        if status != _OK or not answer.ok:
            raise NotDelivered(f"{method}: it answered {status}: {answer.description[:200]}")
        return answer.result

    def hang_up(self) -> None:
        """Shut the connection if there is one."""
        self._http.hang_up()


def _content(message: Message) -> dict[str, Any]:
    """Return a message's text and buttons.

    All of the text is one stretch of code, in which Telegram makes no links, mentions, hashtags or
    commands of what it finds. Its offsets count in UTF-16.
    """
    text, is_whole = fitting_text(message, limit=_LIMIT, size=_units)
    rows = _keyboard(message.buttons, is_whole=is_whole) if message.buttons else []
    return {
        "text": text,
        "entities": [{"type": "pre", "offset": 0, "length": _units(text)}],
        "link_preview_options": {"is_disabled": True},
        "reply_markup": {"inline_keyboard": rows},
    }


def _keyboard(buttons: Buttons, *, is_whole: bool) -> list[list[dict[str, str]]]:
    """Return the rows of buttons; what each sends back has at most 64 bytes."""
    of = f"{buttons.ask_id}:{buttons.digest or ''}"
    row: list[dict[str, str]] = []
    if buttons.can_approve and is_whole:
        row.append({"text": "Approve", "callback_data": f"a:{of}"})
    if buttons.can_reject:
        row.append({"text": "Reject…", "callback_data": f"r:{of}"})
    choices = [
        [{"text": label, "callback_data": f"{number}:{of}"}]
        for number, label in enumerate(choice_labels(buttons))
    ]
    return [*([row] if row else []), *choices]


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
