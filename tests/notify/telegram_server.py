"""A stand-in for Telegram's Bot API: it keeps to the rules of the real one that matter to us."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import Any

BOT = 7001
TOKEN = f"{BOT}:AAsecret-of-the-bot"
CHAT = -1001
Json = dict[str, Any]


class TelegramServer:
    """One bot and one chat. `press` and `reply` are what people do on their phones."""

    def __init__(self) -> None:
        self.changed = Condition()
        self.messages: dict[int, Json] = {}
        self.updates: list[Json] = []
        self.answers: list[Json] = []
        self.edits: list[int] = []
        self.polls: list[int | None] = []  # the offset of each getUpdates
        self.is_away = False
        # Called with each method and its result, before whoever called hears of it
        self.on_call: Callable[[str, Any], None] = lambda _method, _result: None
        self._numbers = 100
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
                token, _, method = self.path.removeprefix("/bot").partition("/")
                status, answer = outer.answer(token, method, body)
                content = json.dumps(answer).encode()
                try:
                    self.send_response(status)
                    self.send_header("content-length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)
                except OSError:
                    self.close_connection = True  # whoever asked has been killed

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the name that it overrides
                del format, args

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, request: Any, client_address: Any) -> None:
                del request, client_address  # whoever asked has been killed

        self.server = Server(("127.0.0.1", 0), Handler)
        self.api = f"http://127.0.0.1:{self.server.server_address[1]}"
        self._thread = Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self.is_away = True
        with self.changed:
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()

    # --- what the Bot API does --------------------------------------------------------------------

    def answer(self, token: str, method: str, body: Json) -> tuple[int, Json]:
        if self.is_away:
            return 502, {"ok": False, "error_code": 502, "description": "Bad Gateway"}
        if token != TOKEN:
            return 401, {"ok": False, "error_code": 401, "description": "Unauthorized"}
        with self.changed:
            try:
                result = getattr(self, f"_{method}")(body)
            except _BadRequest as error:
                return 400, {"ok": False, "error_code": 400, "description": f"Bad Request: {error}"}
            self.changed.notify_all()
        self.on_call(method, result)
        return 200, {"ok": True, "result": result}

    def _sendMessage(self, body: Json) -> Json:  # noqa: N802 -- the method's own name
        _check(body)
        self._numbers += 1
        message = {
            "message_id": self._numbers,
            "chat": {"id": body["chat_id"], "type": "supergroup"},
            "from": {"id": BOT, "is_bot": True},
            "text": body["text"],
            "entities": body.get("entities", []),
            "reply_markup": body.get("reply_markup", {}),
        }
        self.messages[self._numbers] = message
        return message

    def _editMessageText(self, body: Json) -> Json:  # noqa: N802 -- the method's own name
        _check(body)
        message = self.messages.get(body["message_id"])
        if message is None:
            raise _BadRequest("message to edit not found")
        new = {"text": body["text"], "reply_markup": body.get("reply_markup", {})}
        if all(message[key] == value for key, value in new.items()):
            raise _BadRequest("message is not modified: the same content")
        message.update(new)
        self.edits.append(body["message_id"])
        return message

    def _answerCallbackQuery(self, body: Json) -> bool:  # noqa: N802 -- the method's own name
        if len(body.get("text", "")) > 200:
            raise _BadRequest("MESSAGE_TOO_LONG")
        self.answers.append(body)
        return True

    def _getUpdates(self, body: Json) -> list[Json]:  # noqa: N802 -- the method's own name
        offset = body.get("offset")
        self.polls.append(offset)
        self.changed.notify_all()
        if offset is not None:  # what is below is confirmed, and gone
            self.updates = [each for each in self.updates if each["update_id"] >= offset]
        self.changed.wait_for(lambda: self.updates or self.is_away, timeout=body.get("timeout", 0))
        return self.updates[:100]

    # --- what people do ---------------------------------------------------------------------------

    def press(self, message_id: int, label: str, *, user: int) -> str:
        """Press a button; return the id of the press, under which it is answered."""
        return self.press_shown(self.messages[message_id], label, user=user)

    def press_shown(
        self, message: Json, label: str | None, *, user: int, data: str | None = None
    ) -> str:
        """Press a button of a message as a phone shows it, which may be out of date."""
        with self.changed:
            sent = data if label is None else buttons(message)[label]
            content = {"data": sent, "message": dict(message)}
            return self._update(user, "callback_query", content, "id")

    def reply(self, message_id: int, text: str, *, user: int) -> None:
        with self.changed:
            shown = dict(self.messages[message_id])
            self._numbers += 1
            self._update(
                user,
                "message",
                {
                    "message_id": self._numbers,
                    "chat": shown["chat"],
                    "text": text,
                    "reply_to_message": shown,
                },
            )

    def _update(self, user: int, kind: str, content: Json, key: str | None = None) -> str:
        self._numbers += 1
        number = str(self._numbers)
        content = {**content, "from": {"id": user}, **({key: number} if key else {})}
        self.updates.append({"update_id": self._numbers, kind: content})
        self.changed.notify_all()
        return number

    def until(self, ready: Any, *, what: str, timeout: float = 60) -> Any:
        """Wait until something holds of what the bot did; return it."""
        with self.changed:
            found = self.changed.wait_for(ready, timeout=timeout)
        assert found, f"{what}: {self.messages} {self.answers}"
        return found

    def answer_to(self, press: str) -> Json | None:
        return next((each for each in self.answers if each["callback_query_id"] == press), None)

    def of_ask(self, ask_id: str) -> list[Json]:
        return [each for each in self.messages.values() if ask_id in each["text"]]


class _BadRequest(Exception):
    pass


def _check(body: Json) -> None:
    text = body["text"]
    units = len(text.encode("utf-16-le")) // 2
    if not 0 < units <= 4096:
        raise _BadRequest("message is too long")
    if body.get("parse_mode"):
        raise _BadRequest("nobody here may have Telegram parse the text")
    for entity in body.get("entities", []):
        if entity["offset"] < 0 or entity["offset"] + entity["length"] > units:
            raise _BadRequest("entity beyond the text")
    for row in body.get("reply_markup", {}).get("inline_keyboard", []):
        for button in row:
            if len(button.get("callback_data", "x").encode()) > 64:
                raise _BadRequest("BUTTON_DATA_INVALID")


def buttons(message: Json) -> dict[str, str]:
    """Return the labels of a message's buttons, and what each sends."""
    rows = message["reply_markup"].get("inline_keyboard", [])
    return {button["text"]: button["callback_data"] for row in rows for button in row}


@contextmanager
def telegram() -> Iterator[TelegramServer]:
    server = TelegramServer()
    try:
        yield server
    finally:
        server.close()
