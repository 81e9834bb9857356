"""Listens to one session: joins updates to calls, and collects what the agent asks for."""

import time
from collections import deque
from typing import Any

import msgspec

from adjourn.core.errors import AdjournError
from adjourn.core.text.json_text import decode_unambiguous
from adjourn.runners.acp.options import Setup
from adjourn.runners.acp.protocol import (
    AgentCall,
    Id,
    Permission,
    Stopped,
    Usage,
    WantedCall,
    fields_of,
    wanted_call,
)
from adjourn.runners.acp.session import AgentSession
from adjourn.runners.channel import Message, RpcError, Silent

PERMISSION = "session/request_permission"
ELICITATION = "elicitation/create"
_QUIET = 0.1  # seconds without a word after which no further request of the same answer comes
_BATCH = 1.5  # the same, where an agent sends all at once, or a person is needed anyway
_LOOK = 0.05


class Stuck(AdjournError):
    """The agent gets no further, for no fault of the task's."""

    code = "agent_stuck"


class Elicitation(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the agent wants to know before it goes on."""

    request: Id
    message: str = ""
    fields: dict[str, Any] = {}


class RequestBatch(msgspec.Struct, frozen=True):
    """All that the agent wants at once, before any of it acts."""

    requests: tuple[WantedCall | Elicitation, ...]


class CallEnded(msgspec.Struct, frozen=True):
    """The agent says how a call ended."""

    call: AgentCall


class ModeChanged(msgspec.Struct, frozen=True):
    """The session is in another mode."""

    mode: str


class TurnEnded(msgspec.Struct, frozen=True):
    """The model has nothing more to do, or cannot."""

    reason: str
    error: RpcError | None = None


class Spoke(msgspec.Struct, frozen=True):
    """The agent has said something to its user."""

    text: str


Event = RequestBatch | CallEnded | ModeChanged | TurnEnded | Spoke


class _Elicited(msgspec.Struct, rename="camel"):
    message: str = ""
    mode: str = "form"
    requested_schema: dict[str, Any] = {}


class Conversation:
    """What is said in one session from its opening to its end."""

    def __init__(self, session: AgentSession, setup: Setup) -> None:
        self._session = session
        self._setup = setup
        self._requests: dict[Id, Permission | Elicitation] = {}
        self._events: deque[Event] = deque()
        self._turn = 0
        self._heard_at = time.monotonic()
        self._text = ""
        self._asked: set[str] = set()  # the calls that the agent asked about
        self.calls: dict[str, AgentCall] = {}
        self.message: str | None = None
        self.has_begun = False  # whether anything came of the newest prompt
        self.has_result = False  # whether the turn said or did something
        self.usage = Usage()
        self.cost: float | None = None

    def begin_turn(self, text: str) -> None:
        """Let the model go on with these words."""
        self.has_begun = self.has_result = False
        self._turn = self._session.begin_turn(text)

    def was_asked(self, call: AgentCall) -> bool:
        """Say whether the agent asked before it made a call."""
        return call.tool_call_id in self._asked

    def next(self, *, patience: float | None = None) -> Event | None:
        """Return what has to be acted on next, or None if nothing comes for so many seconds."""
        silence = self._setup.silence
        while True:
            if self._events:
                return self._events.popleft()
            if self._requests and self._is_whole(_QUIET):
                return self._batch()
            try:
                message = self._session.next(
                    _LOOK if self._requests else min(patience or silence, silence)
                )
            except Silent:
                if self._is_stuck():
                    raise Stuck(f"{self._setup.name} said nothing for {silence:g} s") from None
                if patience and not self._requests:
                    return None
                continue
            self._take(message)

    def gather(self, batch: RequestBatch) -> RequestBatch:
        """Wait for what else the agent asks for at once, since a person is needed anyway."""
        began = time.monotonic()
        while not self._is_whole(_BATCH) and time.monotonic() < began + _BATCH:
            try:
                self._take(self._session.next(_LOOK))
            except Silent:
                continue
        return RequestBatch((*batch.requests, *self._batch().requests))

    def _is_stuck(self) -> bool:
        is_silent = time.monotonic() - self._heard_at >= self._setup.silence - _LOOK
        runs = any(each.status == "in_progress" for each in self.calls.values())
        return is_silent and not self._requests and not runs

    def _is_whole(self, quiet: float) -> bool:
        """Say whether all requests that belong together have come, each with what it is about."""
        waited = time.monotonic() - self._heard_at
        is_told = all(
            isinstance(each, Elicitation) or self._joined(each).shows_something
            for each in self._requests.values()
        )
        long = self._setup.agent.asks_at_once or not is_told
        return waited >= (_BATCH if long else quiet)

    def _joined(self, asked: Permission) -> AgentCall:
        """Return a call with what its updates told before it was asked about."""
        call = asked.tool_call
        known = self.calls.get(call.tool_call_id)
        return known.joined(call) if known else call

    def _batch(self) -> RequestBatch:
        found: list[WantedCall | Elicitation] = []
        for request, asked in self._requests.items():
            if isinstance(asked, Elicitation):
                found.append(asked)
                continue
            call = self._joined(asked)
            calls = [call]
            if self._setup.agent.confirms_all and not call.shows_something:
                calls = [*(each for each in self.calls.values() if self._waits(each)), call]
            self._asked |= {each.tool_call_id for each in calls}
            found.append(wanted_call(request, asked, calls, agent=self._setup.agent))
        self._requests = {}
        return RequestBatch(tuple(found))

    def _waits(self, call: AgentCall) -> bool:
        return call.status in {"pending", None} and not self.was_asked(call)

    def _take(self, message: Message) -> None:
        self._heard_at = time.monotonic()
        if message.method is None:
            if message.id == self._turn:
                self._end_turn(message)
        elif message.id is not None:
            self._take_request(message.id, message)
        elif message.method == "session/update":
            self._take_update(message)

    def _end_turn(self, message: Message) -> None:
        self._flush()
        if message.error:
            self._events.append(TurnEnded("error", message.error))
            return
        try:
            stopped = msgspec.json.decode(message.result, type=Stopped)
        except msgspec.MsgspecError as error:
            raise AdjournError(
                f"{self._setup.name} ended its turn in a way that cannot be read: {error}"
            ) from error
        self.usage = stopped.usage or self.usage
        self._events.append(TurnEnded(stopped.stop_reason))

    def _take_request(self, request: Id, message: Message) -> None:
        """Take a request, or refuse it at once: the agent waits for nothing that nobody knows."""
        self.has_begun = True
        try:
            params = decode_unambiguous(bytes(message.params), type=dict[str, Any])
            is_ours = params.get("sessionId") == self._session.id
            if message.method == PERMISSION and is_ours:
                self._flush()
                self._requests[request] = msgspec.convert(params, Permission)
                return
            if message.method == ELICITATION and is_ours:
                asked = msgspec.convert(params, _Elicited)
                if asked.mode == "form":
                    fields = msgspec.convert(
                        asked.requested_schema.get("properties", {}), dict[str, Any]
                    )
                    self._requests[request] = Elicitation(
                        request=request, message=asked.message, fields=fields
                    )
                    return
                self._session.answer(request, {"action": "decline"})
                return
        except (msgspec.MsgspecError, TypeError):
            pass
        self._session.refuse(request)

    def _take_update(self, message: Message) -> None:
        try:
            params = decode_unambiguous(bytes(message.params), type=dict[str, Any])
            update = msgspec.convert(params.get("update"), dict[str, Any])
            if params.get("sessionId") != self._session.id:
                return
            match update.get("sessionUpdate"):
                case "agent_message_chunk":
                    block = msgspec.convert(update.get("content"), dict[str, Any])
                    text = block.get("text")
                    if isinstance(text, str) and text:
                        self.has_begun = self.has_result = True
                        self._text += text
                case "agent_thought_chunk":
                    self.has_begun = True
                case "tool_call" | "tool_call_update":
                    self._take_call(msgspec.convert(update, AgentCall))
                case "current_mode_update":
                    self._events.append(ModeChanged(str(update.get("currentModeId"))))
                case "usage_update":
                    cost = fields_of(update.get("cost"))
                    if cost.get("currency") == "USD":
                        self.cost = float(cost["amount"])
                case _:
                    pass
        except (msgspec.MsgspecError, LookupError, TypeError, ValueError):
            return  # nothing that is told there lets a call run

    def _take_call(self, call: AgentCall) -> None:
        self.has_begun = True
        self._flush()
        known = self.calls.get(call.tool_call_id)
        had_ended = known is not None and known.has_ended
        self.calls[call.tool_call_id] = joined = known.joined(call) if known else call
        if joined.has_ended and not had_ended:
            self.has_result = True
            self._events.append(CallEnded(joined))

    def _flush(self) -> None:
        """Take the chunks of a message for whole."""
        if self._text.strip():
            self.message = self._text.strip()
            self._events.append(Spoke(self.message))
        self._text = ""
