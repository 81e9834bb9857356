"""Listens to one thread.

Collects what Codex asks for until the batch is whole, and notices when it is stuck.
"""

import time
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from adjourn.core.errors import AdjournError
from adjourn.runners.channel import Message, Silent
from adjourn.runners.codex.hook import HOOK
from adjourn.runners.codex.options import CodexSetup
from adjourn.runners.codex.protocol import (
    Harmless,
    Questions,
    Reply,
    Request,
    Strange,
    ThreadItem,
    WantedCall,
    read_request,
)
from adjourn.runners.codex.session import OpenCall, Rollout
from adjourn.runners.codex.usage import CodexUsage, usage_of

_QUIET = 0.3  # seconds without a word after which no further call of the same script is on its way
_BESIDE = 1.0  # the same, of a call of another tool that may run beside this one
_LOOK = 0.05
_PATIENCE = 2.0  # the same, where it cannot be told whether the answer is whole
_REFUSALS = frozenset({400, 401, 403, 404, 422})  # HTTP; the key, the model, the request
_LIMITS = frozenset({"contextWindowExceeded", "sessionBudgetExceeded", "usageLimitExceeded"})
_FINAL = frozenset(  # what the model's server, or Codex itself, would say again to the same request
    {
        "badRequest",
        "contextWindowExceeded",
        "cyberPolicy",
        "misalignmentPolicyViolation",
        "modelNotFound",
        "sandboxError",
        "unauthorized",
    }
)
_ASKED_ABOUT = frozenset({"exec_command", "shell", "shell_command", "apply_patch"})


class Stuck(AdjournError):
    """Codex gets no further, for no fault of the task's."""

    code = "codex_stuck"


class Speaker(Protocol):
    """A thread, as far as one speaks with it."""

    id: str

    def next(self, within: float) -> Message:
        """Return what Codex says next."""
        ...

    def answer(self, reply: Reply) -> None:
        """Answer what it asked."""
        ...


class RequestBatch(msgspec.Struct, frozen=True):
    """All that Codex wants at once, before any of it acts."""

    requests: tuple[WantedCall | Questions, ...]


class ItemEnded(msgspec.Struct, frozen=True):
    """An item has come to its end."""

    item: ThreadItem


class TurnEnded(msgspec.Struct, frozen=True):
    """The model has nothing more to do, or cannot; what is final would end the next turn, too."""

    status: str
    error: str | None = None
    is_final: bool = False
    is_limit: bool = False


Event = RequestBatch | ItemEnded | TurnEnded


class _Error(msgspec.Struct, rename="camel"):
    message: str = ""
    codex_error_info: Any = None


class _TurnFailure(msgspec.Struct, rename="camel"):
    error: _Error
    will_retry: bool = False


class _Turn(msgspec.Struct):
    status: str
    error: _Error | None = None


class CodexConversation:
    """What is said in one thread, from its opening to its end."""

    hears_questions_at_hooks = False

    def __init__(self, thread: Speaker, rollout: Rollout, setup: CodexSetup) -> None:
        self._thread = thread
        self._rollout = rollout
        self._setup = setup
        self._requests: dict[int | str, WantedCall | Questions] = {}
        self._let: dict[str, WantedCall] = {}
        # The items about which Codex has asked a second time, and got the same answer
        self._granted: set[str] = set()
        self._answered: set[str] = set()  # the items of earlier batches
        self._heard_at = time.monotonic()
        self._retries = 0
        self.items: dict[str, ThreadItem] = {}
        self.printed: dict[str, str] = {}  # what commands that still run have printed
        self.message: str | None = None
        self.usage: CodexUsage | None = None

    def next(self, *, patience: float | None = None) -> Event | None:
        """Return what has to be acted on next, or None if nothing comes for so many seconds."""
        silence = self._setup.silence
        while True:
            if self._requests and self._is_whole():
                return self._batch()
            try:
                message = self._thread.next(
                    _LOOK if self._requests else min(patience or silence, silence)
                )
            except Silent:
                if self._is_stuck():
                    raise Stuck(f"Codex said nothing for {silence:g} s") from None
                if patience and not self._requests:
                    return None
                continue
            event = self._take(message)
            if event:
                return event

    def _is_stuck(self) -> bool:
        is_silent = time.monotonic() - self._heard_at >= self._setup.silence - _LOOK
        return (
            is_silent
            and not self._requests
            and not any(item.is_under_way for item in self.items.values())
        )

    def _is_whole(self) -> bool:
        quiet = time.monotonic() - self._heard_at
        self._rollout.read_on()
        known = {request.item for request in self._requests.values()} | self._answered
        unheard = [call for call in self._rollout.open_calls if call.id not in known]
        has_all = self._rollout.answer_is_whole and not any(
            call.name in _ASKED_ABOUT for call in unheard
        )
        return quiet >= (max(map(_delay, unheard), default=0.0) if has_all else _PATIENCE)

    def _batch(self) -> RequestBatch:
        batch = RequestBatch(tuple(self._requests.values()))
        self._answered |= {request.item for request in batch.requests}
        self._requests = {}
        return batch

    def _take(self, message: Message) -> Event | None:
        self._heard_at = time.monotonic()
        if message.method is None:
            return None
        if message.id is not None:
            self._take_request(
                read_request(message, thread=self._thread.id, items=self._not_granted())
            )
            return None
        try:
            return self._take_notice(
                message.method, msgspec.json.decode(message.params, type=dict[str, Any] | None)
            )
        except (LookupError, msgspec.MsgspecError) as error:
            raise AdjournError(
                f"Codex said {message.method} in a way that cannot be read: {error}"
            ) from error

    def _take_request(self, request: Request) -> None:
        match request:
            case Strange() | Harmless():
                self._thread.answer(request.answer())
            case WantedCall(item=item) if item in self._let and request.method != HOOK:
                # A hook is always a call of its own
                self._granted.add(item)
                self._thread.answer(request.answer(yes=self._let.pop(item).covers(request)))
            case Questions(given=dict()) if not self.hears_questions_at_hooks:
                self._thread.answer(request.pass_on())
            case WantedCall() | Questions():
                self._requests[request.request] = request

    def _not_granted(self) -> dict[str, ThreadItem]:
        """Return the items that a request can be about: a grant serves once."""
        return {name: item for name, item in self.items.items() if name not in self._granted}

    def let(self, wanted: Sequence[WantedCall]) -> None:
        """Take note of calls that were let through at their hook.

        When Codex asks once more, it is the same answer.
        """
        self._let |= {each.item: each for each in wanted if each.method == HOOK}

    def _take_notice(self, method: str, params: dict[str, Any] | None) -> Event | None:
        if params is None or params.get("threadId") != self._thread.id:
            return None  # of another thread, or of none
        match method:
            case "item/started":
                item = msgspec.convert(params["item"], ThreadItem)
                self.items[item.id] = item
            case "item/completed":
                return self._take_ended(msgspec.convert(params["item"], ThreadItem))
            case "item/commandExecution/outputDelta":
                self.printed[params["itemId"]] = self.printed.get(params["itemId"], "") + str(
                    params.get("delta", "")
                )
            case "thread/tokenUsage/updated":
                self.usage, self._retries = usage_of(params), 0
            case "serverRequest/resolved":
                self._requests.pop(params["requestId"], None)
            case "error":
                failure = msgspec.convert(params, _TurnFailure)
                if failure.will_retry:
                    self._take_trouble(failure.error.message)
            case "turn/completed":
                turn = msgspec.convert(params["turn"], _Turn)
                error = turn.error or _Error()
                info = error.codex_error_info
                return TurnEnded(
                    status=turn.status,
                    error=error.message or None,
                    is_final=str(info) in _FINAL or _http_status(info) in _REFUSALS,
                    is_limit=str(info) in _LIMITS,
                )
            case _:
                return None
        return None

    def _take_ended(self, item: ThreadItem) -> Event:
        self.items[item.id] = item
        self.printed.pop(item.id, None)
        if item.type == "agentMessage":
            self.message = item.text
        return ItemEnded(item)

    def _take_trouble(self, message: str) -> None:
        """Count what Codex means to try again; it would never give up by itself."""
        self._retries += 1
        if self._retries > self._setup.retries:
            raise Stuck(f"Codex tried {self._retries} times in a row: {message}")


def _http_status(info: object) -> int | None:
    """Return the HTTP status in what Codex says of an error, if it tells one."""
    try:
        details = msgspec.convert(info, dict[str, _Details])
    except msgspec.ValidationError:
        return None
    return next((each.status for each in details.values()), None)


class _Details(msgspec.Struct):
    status: int | None = msgspec.field(name="httpStatusCode", default=None)


def _delay(call: OpenCall) -> float:
    """Return how long the request of an open call may take to come.

    Tools of MCP servers wait for one another, or do not.
    """
    return _QUIET if call.is_cell else _BESIDE
