"""Takes presses and replies from a Telegram bot, by long polling: no server, no open port."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable

import msgspec

from adjourn.core.ask import QuestionAsk, Verb
from adjourn.core.errors import AdjournError
from adjourn.core.kept_documents import HEARD
from adjourn.hearing.presses import Press, Presses, PressResult
from adjourn.ports.notifier import NotDelivered
from adjourn.ports.store import Change
from adjourn.views.message import fitting_toast

WAIT = 25  # seconds that Telegram holds its answer if there is nothing new
_TOAST = 200  # characters of what one person is told
_PRESS = re.compile(r"([ar0-9]):([a-z0-9]{8,64}):([0-9a-f]{16})?")
_ASK = re.compile(r"(?:Reminder: )?Question ([a-z0-9]{8,64})")
_WHY = "Why is it rejected? Reply to this message; a single - gives no reason."
_REASON = re.compile(re.escape(_WHY) + r"\nask ([a-z0-9]{8,64})")


@runtime_checkable
class BotApi(Protocol):
    """A bot, as the messenger of `notifiers.telegram` has it."""

    bot_id: int
    chat: int | str

    def call(self, method: str, parameters: Mapping[str, Any], *, wait: float = 0) -> Any:
        """Call a method of the Bot API, or raise NotDelivered."""
        ...


class _User(msgspec.Struct):
    id: int


class _Chat(msgspec.Struct):
    id: int
    username: str = ""


class _ShownMessage(msgspec.Struct, rename={"sender": "from"}):
    message_id: int
    chat: _Chat
    sender: _User | None = None
    text: str = ""


class _TextMessage(msgspec.Struct, rename={"sender": "from"}):
    message_id: int
    chat: _Chat
    sender: _User | None = None
    text: str = ""
    reply_to_message: _ShownMessage | None = None


class _CallbackQuery(msgspec.Struct, rename={"sender": "from"}):
    id: str
    sender: _User
    data: str = ""
    message: _ShownMessage | None = None


class Update(msgspec.Struct):
    """One thing that happened to a bot; what we did not ask for is left out."""

    update_id: int
    callback_query: _CallbackQuery | None = None
    message: _TextMessage | None = None


class TelegramListener:
    """Reads a bot's updates one after the other, and decides what they say.

    It owns no state: the store keeps which update comes next, in the transaction that decides. So
    a press that was taken is not taken again, and one that was not comes again.
    """

    def __init__(
        self, bot: BotApi, presses: Presses, *, name: str, log: Callable[..., None]
    ) -> None:
        self._bot = bot
        self._log = log
        self._presses = presses
        self._key = f"{name}:{bot.bot_id}"
        with presses.home.store.read() as view:
            self._next = HEARD.read(view, self._key)

    def take_updates(self, *, goes_on: Callable[[], bool], wait: int = WAIT) -> int:
        """Wait for updates, decide each, and return how many came. Raise NotDelivered."""
        parameters: dict[str, Any] = {
            "timeout": wait,
            "allowed_updates": ["callback_query", "message"],
        }
        if self._next is not None:
            parameters["offset"] = self._next
        found = self._bot.call("getUpdates", parameters, wait=wait)
        try:
            updates = msgspec.convert(found, list[dict[str, Any]])
        except msgspec.ValidationError:
            raise NotDelivered("getUpdates: it answered no list of updates") from None
        count = 0
        for each in updates:
            if not goes_on():
                break
            number = each.get("update_id")
            if not isinstance(number, int) or (self._next is not None and number < self._next):
                continue
            try:
                self._take(msgspec.convert(each, Update))
            except msgspec.ValidationError:
                pass  # what is not of the form is nothing to us
            except (AdjournError, NotDelivered):
                raise  # it comes again
            except Exception as defect:  # noqa: BLE001 -- one update must not keep all others back
                self._log("hear_error", error=f"{type(defect).__name__}: {defect}")
            self._next = number + 1
            count += 1
        return count

    def _take(self, update: Update) -> None:
        def heard(rows: Change) -> None:
            HEARD.keep(rows, update.update_id + 1, self._key)

        if update.callback_query:
            self._take_press(update.callback_query, heard)
        elif update.message and update.message.reply_to_message and update.message.sender:
            self._take_reply(update.message, update.message.reply_to_message, heard)

    def _take_press(self, query: _CallbackQuery, heard: Callable[[Change], None]) -> None:
        said = _PRESS.fullmatch(query.data)
        if not said or not query.message or not self._is_ours(query.message.chat):
            self._answer(query, PressResult(words="This button is not known.", is_refused=True))
            return
        kind, ask_id, digest = said.groups()
        verb = {"a": Verb.APPROVE, "r": Verb.REJECT}.get(kind, Verb.ANSWER)
        press = Press(
            principal=f"telegram:{query.sender.id}",
            ask_id=ask_id,
            verb=verb,
            digest=digest,
            choice=int(kind) if verb is Verb.ANSWER else None,
            handle=f"{query.message.chat.id}/{query.message.message_id}",
        )
        # A rejection comes with the reply in which its reason is; a stranger is refused at once
        if verb is Verb.REJECT and self._presses.could_count(press):
            self._ask_why(query, query.message, ask_id)
            return
        self._answer(query, self._presses.take(press, heard=heard))

    def _ask_why(self, query: _CallbackQuery, shown: _ShownMessage, ask_id: str) -> None:
        prompt = {
            "chat_id": shown.chat.id,
            "text": f"{_WHY}\nask {ask_id}",
            "reply_parameters": {"message_id": shown.message_id},
            "reply_markup": {"force_reply": True, "selective": True},
        }
        try:
            self._bot.call("sendMessage", prompt)
            result = PressResult(words="Reply with the reason.")
        except NotDelivered:
            words = f"The reason could not be asked for. Reject it with: adjourn reject {ask_id}"
            result = PressResult(words=words, is_refused=True)
        self._answer(query, result)

    def _take_reply(
        self, message: _TextMessage, shown: _ShownMessage, heard: Callable[[Change], None]
    ) -> None:
        """Take a reason or an answer: a reply to what this bot itself wrote."""
        is_own = shown.sender is not None and shown.sender.id == self._bot.bot_id
        if not is_own or not self._is_ours(message.chat) or not message.text or not message.sender:
            return
        who = message.sender.id
        if said := _REASON.fullmatch(shown.text):
            reason = None if message.text.strip() == "-" else message.text
            press = Press(
                principal=f"telegram:{who}", ask_id=said[1], verb=Verb.REJECT, text=reason
            )
        elif said := _ASK.fullmatch(shown.text.partition("\n")[0]):
            ask = self._presses.find(said[1])
            if not isinstance(ask, QuestionAsk):
                return
            press = Press(
                principal=f"telegram:{who}", ask_id=said[1], verb=Verb.ANSWER, text=message.text
            )
        else:
            return
        result = self._presses.take(press, heard=heard)
        # Who is refused is told alone, where the bot may write to them; what counts, all may see
        where: dict[str, Any] = {"chat_id": who if result.is_refused else message.chat.id}
        if not result.is_refused:
            where["reply_parameters"] = {"message_id": message.message_id}
        with suppress(NotDelivered):
            self._bot.call("sendMessage", {**where, **_as_code(result.words)})

    def _answer(self, query: _CallbackQuery, result: PressResult) -> None:
        """Tell the person who pressed, and nobody else. It is decided, so a failure is no loss."""
        toast = {
            "callback_query_id": query.id,
            "text": fitting_toast(result.words, limit=_TOAST),
            "show_alert": result.is_refused,
        }
        with suppress(NotDelivered):
            self._bot.call("answerCallbackQuery", toast)

    def _is_ours(self, chat: _Chat) -> bool:
        return self._bot.chat in {chat.id, str(chat.id), f"@{chat.username}"}


def _as_code(text: str) -> dict[str, Any]:
    """Return a text of which Telegram makes no links and no mentions."""
    units = len(text.encode("utf-16-le", "surrogatepass")) // 2
    return {"text": text, "entities": [{"type": "code", "offset": 0, "length": units}]}
