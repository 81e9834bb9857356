"""Takes presses from Slack by Socket Mode: a WebSocket that this machine opens. No open port."""

import queue
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

from slack_sdk import WebClient
from slack_sdk.errors import SlackClientError
from slack_sdk.socket_mode.builtin import SocketModeClient
from slack_sdk.socket_mode.client import BaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse

from adjourn.core.ask import Verb
from adjourn.hearing.presses import Press, Presses, PressResult
from adjourn.ports.notifier import NotDelivered
from adjourn.views.message import fitting_toast

_LOOK = 1.0  # seconds between two checks for a stop or a lost connection
_LONGEST = 2_000  # characters of what one person is told
_PRESS = re.compile(r"([art0-9]):([a-z0-9]{8,64}):([0-9a-f]{16})?")


@runtime_checkable
class SlackApi(Protocol):
    """A channel, as the messenger of `notifiers.slack` has it."""

    bot_token: str
    app_token: str
    channel: str
    api: str
    timeout: float

    def call(self, method: str, parameters: Mapping[str, Any]) -> Any:
        """Call a method of the Web API, or raise NotDelivered."""
        ...


class SlackListener:
    """Reads what people press, one after the other, and decides it.

    Slack is told that it arrived once it is decided. What is not sees no answer there, and is
    pressed again.
    """

    def __init__(self, slack: SlackApi, presses: Presses, *, log: Callable[..., None]) -> None:
        self._slack = slack
        self._presses = presses
        self._log = log
        self._requests: queue.Queue[SocketModeRequest] = queue.Queue()
        self._client: SocketModeClient | None = None

    def take_updates(self, *, goes_on: Callable[[], bool]) -> int:
        """Wait for presses, decide each, and return how many came. Raise NotDelivered."""
        if self._client is None:
            self._connect()
        count = 0
        while goes_on():
            try:
                request = self._requests.get(timeout=_LOOK)
            except queue.Empty:
                if self._client and not self._client.is_connected():
                    self.close()
                    raise NotDelivered("the connection to Slack is gone") from None
                return count
            answer = self._take(request)
            count += 1
            response = SocketModeResponse(envelope_id=request.envelope_id, payload=answer)
            if self._client:
                with suppress(SlackClientError, OSError):
                    self._client.send_socket_mode_response(response)
        self.close()
        return count

    def close(self) -> None:
        """Close the connection."""
        if self._client:
            self._client.close()
            self._client = None

    def _connect(self) -> None:
        # Its own threads read the connection; a store belongs to one thread, which is ours
        def keep(_client: BaseSocketModeClient, request: SocketModeRequest) -> None:
            self._requests.put(request)

        seconds = int(self._slack.timeout) or 1
        web = WebClient(self._slack.bot_token, f"{self._slack.api}/", timeout=seconds)
        client = SocketModeClient(
            self._slack.app_token, web_client=web, auto_reconnect_enabled=False
        )
        client.socket_mode_request_listeners.append(keep)
        try:
            client.connect()
        except (SlackClientError, OSError, ValueError) as error:
            client.close()
            raise NotDelivered(f"Slack did not answer: {error!s:.200}") from error
        self._client = client

    def _take(self, request: SocketModeRequest) -> dict[str, Any] | None:
        """Decide what a request says; a request of another form is nothing to us."""
        payload = request.payload
        try:
            if payload.get("type") == "block_actions":
                self._take_press(payload)
            elif payload.get("type") == "view_submission":
                self._take_words(payload)
        except (KeyError, IndexError, TypeError, AttributeError):
            self._log("hear_error", error="Slack sent what is not of its form")
        return None

    def _take_press(self, payload: Mapping[str, Any]) -> None:
        said = _PRESS.fullmatch(payload["actions"][0]["value"])
        channel, user = payload["channel"]["id"], payload["user"]["id"]
        if said is None or channel != self._slack.channel:
            return
        kind, ask_id, digest = said.groups()
        verb = {"a": Verb.APPROVE, "r": Verb.REJECT}.get(kind, Verb.ANSWER)
        press = Press(
            principal=f"slack:{user}",
            ask_id=ask_id,
            verb=verb,
            digest=digest,
            choice=int(kind) if kind.isdecimal() else None,
            handle=f"{channel}/{payload['message']['ts']}",
        )
        # What needs words opens a window for them; a stranger is refused at once
        if kind in {"r", "t"} and self._presses.could_count(press):
            self._ask_words(payload["trigger_id"], kind, ask_id)
            return
        self._tell(user, self._presses.take(press))

    def _ask_words(self, trigger: str, kind: str, ask_id: str) -> None:
        asked = "Why is it rejected?" if kind == "r" else "Your answer"
        view = {
            "type": "modal",
            "callback_id": "adjourn",
            "private_metadata": f"{kind}:{ask_id}:",
            "title": {"type": "plain_text", "text": "Reject" if kind == "r" else "Answer"},
            "submit": {"type": "plain_text", "text": "Send"},
            "blocks": [
                {
                    "type": "input",
                    "block_id": "words",
                    "optional": kind == "r",
                    "label": {"type": "plain_text", "text": asked},
                    "element": {
                        "type": "plain_text_input",
                        "action_id": "words",
                        "multiline": True,
                    },
                }
            ],
        }
        with suppress(NotDelivered):  # who sees no window presses again
            self._slack.call("views.open", {"trigger_id": trigger, "view": view})

    def _take_words(self, payload: Mapping[str, Any]) -> None:
        said = _PRESS.fullmatch(payload["view"]["private_metadata"])
        if said is None or payload["view"]["callback_id"] != "adjourn":
            return
        words = payload["view"]["state"]["values"]["words"]["words"].get("value")
        verb = Verb.REJECT if said[1] == "r" else Verb.ANSWER
        user = payload["user"]["id"]
        press = Press(principal=f"slack:{user}", ask_id=said[2], verb=verb, text=words)
        self._tell(user, self._presses.take(press))

    def _tell(self, user: str, result: PressResult) -> None:
        """Tell the person who pressed, and nobody else. It is decided, so a failure is no loss."""
        part = {"type": "text", "text": fitting_toast(result.words, limit=_LONGEST)}
        block = {"type": "rich_text_section", "elements": [part]}
        told = {
            "channel": self._slack.channel,
            "user": user,
            "text": "adjourn",
            "blocks": [{"type": "rich_text", "elements": [block]}],
        }
        with suppress(NotDelivered):
            self._slack.call("chat.postEphemeral", told)
