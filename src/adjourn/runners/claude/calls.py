"""Holds the calls of Claude Code until all of their message are known, and answers their hooks.

The calls of a message are put before the policy together.
"""

import time
from collections.abc import Callable, Sequence

import msgspec

from adjourn.core.agent.calls import CallResult, Held, Proposed, cut
from adjourn.core.ask import QuestionAsk
from adjourn.core.call import Call, tool_body
from adjourn.core.errors import AdjournError, AlreadyDone, StoreProblem
from adjourn.core.states import AskState, CallState
from adjourn.ports.drive import Drive
from adjourn.runners.call_batch import Decided, HandedOut, Member, judge_batch
from adjourn.runners.claude import session, words
from adjourn.runners.claude.fingerprint import (
    arguments_in,
    editable,
    fingerprint,
    input_of,
    reads_only,
)
from adjourn.runners.claude.memory import DOCUMENT, ClaudeMemory
from adjourn.runners.claude.protocol import Called, Event, Returned, Said
from adjourn.runners.claude.questions import ASK_USER, as_asked, questions_in, with_answers
from adjourn.runners.claude.turns import LOOK, HookWatch, ModelTurn, Turns
from adjourn.runners.hook import (
    Answer,
    HookRequest,
    WaitingHook,
    allow,
    defer,
    deny,
    deny_and_stop,
)

PATIENCE = 5.0  # seconds that the stream gets to show a call that a hook asks for
LONG_PATIENCE = 30.0  # and the session's file, to show a message that did not stream
PATIENCE_WITH_OTHERS = 600.0  # and other hooks, to end: as much as Claude Code gives them by itself
_MANY = 20  # calls to remember before it is looked whether that is needed
# Bytes of input; the program cannot find a deferred call again that is much larger
LARGEST_DEFERRED = 900_000

# Part of what Claude Code tells a model of a call that a hook kept from running
_HOOK_ERROR = b"hook error"
_DECIDED = frozenset(
    {
        CallState.APPROVED,
        CallState.REJECTED,
        CallState.EXPIRED,
        CallState.CLAIMED,
        CallState.EXECUTING,
        CallState.UNCERTAIN,
    }
)


class Waiting(msgspec.Struct):
    """A hook that waits for its answer, and since when."""

    hook: WaitingHook
    request: HookRequest
    since: float


class ClaudeHeldCalls:
    """All calls of one run."""

    def __init__(
        self, drive: Drive, memory: ClaudeMemory, *, paths: Callable[[], list[str]]
    ) -> None:
        self._drive = drive
        self._paths = paths  # where the session's file may be
        self.memory = memory
        self.turns = Turns()
        self._hooks = HookWatch()
        self._waiting: list[Waiting] = []
        # By Claude Code's id: the calls that were judged and may run, or may not
        self._held: dict[str, Held] = {}
        self._let_through: set[str] = set()  # what may run now, or has run
        self._handed_out = HandedOut(drive)
        self._of_subagents: set[str] = set()
        self._asked: set[str] = set()  # all calls whose hooks have reached us
        self._said = ""
        self.is_pausing = False
        self.is_stopping = False
        self.has_run_unasked: str | None = None
        # A call that failed because its hook did not reach us, if none did since
        self.unheard: str | None = None

    # --- what comes in ----------------------------------------------------------------------------

    def hear(self, event: Event) -> None:
        """Take in what the stream tells."""
        self.turns.hear(event)
        self._hooks.hear(event)
        match event:
            case Said(text=text):
                self._said = text
            case Returned():
                self._close(event)
            case _:
                pass

    def add(self, hook: WaitingHook) -> None:
        """Take in a hook that asks."""
        if hook.request is not None:
            self._asked.add(hook.request.tool_use_id)
            self.unheard = None
            self._waiting.append(Waiting(hook, hook.request, time.monotonic()))

    def keep(self, **changes: object) -> None:
        """Keep what the next run has to know."""
        self.memory = msgspec.structs.replace(self.memory, **changes)
        self._drive.keep(DOCUMENT, msgspec.json.encode(self.memory))

    def drop(self) -> None:
        """Answer nobody any more, which is a no."""
        for waiting in self._waiting:
            waiting.hook.drop()
        self._waiting.clear()

    # --- what goes out ----------------------------------------------------------------------------

    def answer(self) -> float | None:
        """Answer the hooks that can be answered now.

        Return in how many seconds to look again, if any is left.
        """
        now, rests = time.monotonic(), list[float]()
        for waiting in list(self._waiting):
            rest = self._rest(waiting, now)
            # Of several hooks that change a call, the one that ends last is right: ours waits
            is_last = not self._hooks.others_run(waiting=len(self._waiting))
            if rest <= 0 and not is_last and now < waiting.since + PATIENCE_WITH_OTHERS:
                rest = LOOK
            if rest > 0:
                rests.append(rest)
                continue
            self._waiting.remove(waiting)
            if is_last:
                answer = self._answer_to(waiting.request)
            else:
                answer = deny(words.broken("another hook of its settings does not end"))
            self._hooks.answer(waiting.hook.answer(answer))
        return min(rests, default=None)

    def _rest(self, waiting: Waiting, now: float) -> float:
        """Return in how many seconds a call can be judged: all of its message must be known."""
        request = waiting.request
        turn = self.turns.turn_of(request.tool_use_id)
        if turn and request.agent_id is None:
            if not turn.streams and not turn.is_settled:
                self._look_for_the_rest(turn, is_late=now > waiting.since + LONG_PATIENCE)
            return turn.rest()
        is_known = request.agent_id is not None or request.tool_use_id == self.memory.deferred
        return 0.0 if is_known else max(0.0, waiting.since + PATIENCE - now)

    def _look_for_the_rest(self, turn: ModelTurn, *, is_late: bool) -> None:
        """Find out what else is in a message that did not stream.

        It is told call by call, and nothing says which is the last.
        """
        if calls := session.calls_of(turn.message, self._paths()):
            self.turns.complete(turn, calls)
        turn.is_abandoned = is_late and not turn.is_stopped

    def _answer_to(self, request: HookRequest) -> Answer:
        try:
            return self._judge(request)
        except StoreProblem:
            raise  # that is not for the model to deal with
        except AdjournError as error:
            return deny(words.broken(error.sentence))

    def _judge(self, request: HookRequest) -> Answer:
        if request.session_id != self.memory.session:
            return deny(words.broken("it is a call of another session"))
        if request.agent_id is not None:
            return self._answer_to_subagent(request)
        turn = self.turns.turn_of(request.tool_use_id)
        if turn is None and request.tool_use_id == self.memory.deferred:
            return self._answer_to_deferred(request)
        if turn is None or turn.is_abandoned:
            return deny(words.broken("it is not known which other calls belong to it"))
        if not turn.is_judged:
            self._decide(turn, request)
        return self._answer_to_member(request)

    # --- a batch ----------------------------------------------------------------------------------

    def _decide(self, turn: ModelTurn, request: HookRequest) -> None:
        """Put all calls of a message before the policy, in one moment."""
        asked = {waiting.request.tool_use_id: waiting.request for waiting in self._waiting}
        asked[request.tool_use_id] = request
        requests = [_as_asked(each, asked.get(each.call), like=request) for each in turn.calls]

        # What was decided is found by the input as the hook has it, or as the model wrote it
        pairs = zip(requests, turn.calls, strict=True)
        inputs = [(each, called) for each, called in pairs if each.tool_name != ASK_USER]
        members = [
            Member(
                self._proposal(each),
                (
                    self._fingerprint(each),
                    self._fingerprint(msgspec.structs.replace(each, tool_input=called.arguments)),
                ),
            )
            for each, called in inputs
        ]
        held = judge_batch(self._drive, members, decided=self._decided())
        names = [each.tool_use_id for each, _ in inputs]
        self._held |= dict(zip(names, held, strict=True))

        # Questions are asked; they have no effect to be judged
        asks = {
            each.tool_use_id: self._ask(each) for each in requests if each.tool_name == ASK_USER
        }
        self._held |= asks
        waits = [each for each in requests if _needs_a_person(self._held[each.tool_use_id])]
        if waits:
            self._pause(requests, leader=waits[0])
        turn.is_judged = True

    def _decided(self) -> list[Decided]:
        """Return what was decided while it was held, and the model was told to repeat.

        The model may make a call as at first, or as a person has changed it.
        """
        found = [(mark, self._drive.held(name)) for name, mark in self.memory.untold.items()]
        return [
            Decided(held, frozenset({mark, held.call.digest}))
            for mark, held in found
            if held and held.call and held.call.state in _DECIDED
        ]

    def _fingerprint(self, request: HookRequest) -> str:
        return fingerprint(request, workspace=self._drive.task.spec.workspace)

    def _proposal(self, request: HookRequest) -> Proposed:
        arguments = arguments_in(request, workspace=self._drive.task.spec.workspace)
        return Proposed(
            tool=request.tool_name,
            body=tool_body(request.tool_name, arguments),
            label=request.tool_use_id,
            words=self._said or None,
            read_only=reads_only(request, workspace=self._drive.task.spec.workspace),
            editable=editable(arguments),
        )

    def _pause(self, requests: Sequence[HookRequest], *, leader: HookRequest) -> None:
        """Keep what is held, and that the session stops at the first call that needs a person."""
        calls = {
            each.tool_use_id: held.call.tool_call_id
            for each in requests
            if (held := self._held.get(each.tool_use_id)) and held.call
        }
        # A call that was withdrawn is asked for again
        counts = {
            name: mark
            for name, mark in self.memory.untold.items()
            if (held := self._drive.held(name))
            and held.call
            and held.call.state is not CallState.WITHDRAWN
        }
        marks = {
            calls[each.tool_use_id]: self._fingerprint(each)
            for each in requests
            if each.tool_use_id in calls
        }
        can_be_found = len(msgspec.json.encode(leader.tool_input)) < LARGEST_DEFERRED
        self.keep(
            deferred=leader.tool_use_id if can_be_found else None,
            calls=calls,
            untold=counts | marks,
        )
        self.is_pausing = True

    def _answer_to_member(self, request: HookRequest) -> Answer:
        if self.is_pausing:
            is_leader = request.tool_use_id == self.memory.deferred
            return defer() if is_leader else deny_and_stop(words.HELD)
        return self._fate(request, self._held[request.tool_use_id])

    # --- one call ---------------------------------------------------------------------------------

    def _fate(self, request: HookRequest, held: Held, *, context: str | None = None) -> Answer:
        """Answer a call by what was decided of it."""
        if request.tool_name == ASK_USER:
            return self._with_answers(request, context=context)
        if held.call is None:
            return self._let_read(request, context=context)
        match held.call.state:
            case CallState.APPROVED:
                return self._hand_out(request, held, context=context)
            case CallState.REJECTED | CallState.EXPIRED:
                self._use_up(held.call)
                return deny(held.rejection, context=context)
            case CallState.DONE | CallState.FAILED:
                return deny(words.carried_out(held), context=context)
            case _:
                return deny(words.begun(held.call), context=context)

    def _let_read(self, request: HookRequest, *, context: str | None) -> Answer:
        """Let through what only reads, if it still does.

        What ran before it in its message may have put a link in its way.
        """
        if not reads_only(request, workspace=self._drive.task.spec.workspace):
            return deny(words.broken("it would look at something else than when it was judged"))
        self._let_through.add(request.tool_use_id)
        return allow(request.tool_input, context=context)

    def _hand_out(self, request: HookRequest, held: Held, *, context: str | None) -> Answer:
        assert held.call is not None  # noqa: S101 -- the caller has checked
        try:
            handed = self._handed_out.hand_out(request.tool_use_id, held.call)
        except AlreadyDone:
            return deny(words.begun(held.call))
        if handed is None:  # it is not what was approved any more, and a person is asked again
            return self._ask_again(request)
        self._use_up(handed)
        if request.agent_id is None:
            self._note_made(request.tool_use_id, handed)
        self._let_through.add(request.tool_use_id)
        context = "\n".join(filter(None, (words.edited(held), context))) or None
        return allow(input_of(handed.body), context=context)

    def _note_made(self, name: str, call: Call) -> None:
        """Remember a call before it is made.

        A session that is killed forgets what it has not written yet.
        """
        if len(self.memory.made) >= _MANY:
            self.forget_shown(session.read(self.memory.session, self._paths()) or b"")
        self.keep(made=self.memory.made | {name: call.tool_call_id})

    def forget_shown(self, content: bytes) -> None:
        """Forget the calls of which the session itself knows what came."""
        made = {
            name: ours
            for name, ours in self.memory.made.items()
            if not session.shows_end_of(name, content)
        }
        if made != self.memory.made:
            self.keep(made=made)

    def _ask_again(self, request: HookRequest) -> Answer:
        newest = next(
            held
            for held in reversed(self._drive.batch())
            if held.call and held.call.state is CallState.PENDING
        )
        assert newest.call is not None  # noqa: S101 -- just looked at
        self._held[request.tool_use_id] = newest
        self._pause([request], leader=request)
        return self._answer_to_member(request)

    def _use_up(self, call: Call) -> None:
        """Forget a decision that was used: each serves once."""
        name = call.tool_call_id
        if name in self.memory.untold:
            self.keep(
                untold={other: mark for other, mark in self.memory.untold.items() if other != name}
            )

    # --- a session that goes on -------------------------------------------------------------------

    def _answer_to_deferred(self, request: HookRequest) -> Answer:
        """Answer the call that the session had stopped at, by what was decided meanwhile."""
        if request.tool_name == ASK_USER:
            return self._propose_anew(request, context=self.news(but=self._fingerprint(request)))
        held = self._drive.held(self.memory.calls.get(request.tool_use_id, ""))
        if held is None or held.call is None or held.call.state is CallState.WITHDRAWN:
            return self._propose_anew(request)
        # What was decided would be done by another tool: the session's file was changed
        if held.call.tool != request.tool_name:
            return self._propose_anew(request)
        if held.call.state is CallState.PENDING:
            self.is_pausing = True
            return defer()
        return self._fate(request, held, context=self.news(but=held.call.tool_call_id))

    def _propose_anew(self, request: HookRequest, *, context: str | None = None) -> Answer:
        """Ask again for a call whose ask was taken back, by an interrupt or a change."""
        if request.tool_name == ASK_USER:
            held = self._ask(request)
        else:
            (held,) = self._drive.propose([self._proposal(request)])
        self._held[request.tool_use_id] = held
        if not _needs_a_person(held):
            return self._fate(request, held, context=context)
        self._pause([request], leader=request)
        return self._answer_to_member(request)

    def news(self, *, but: str = "") -> str | None:
        """Tell the model how all held calls ended, except that call or those questions."""
        names = [name for name in self.memory.untold if name != but]
        held = [each for name in names if (each := self._drive.held(name))]
        answered = self._answered_questions() if self.memory.questions else {}
        marks = [mark for mark in self.memory.questions if mark != but]
        answers = [
            answered[key]
            for mark in marks
            for key in self.memory.questions[mark]
            if key in answered
        ]
        return words.news(held, answers) if held or answers else None

    def _answered_questions(self) -> dict[str, QuestionAsk]:
        return {
            ask.key: ask
            for ask in self._drive.asks()
            if isinstance(ask, QuestionAsk) and ask.key and ask.state is AskState.ANSWERED
        }

    def made_before(self) -> str | None:
        """Tell the model how the calls ended that its session does not show."""
        lines = [
            words.made_before(name, held)
            for name, ours in self.memory.made.items()
            if (held := self._drive.held(ours))
        ]
        return "\n".join([words.MADE, *lines]) if lines else None

    # --- questions --------------------------------------------------------------------------------

    def _ask(self, request: HookRequest) -> Held:
        """Ask a person what the model wants to know, or find the answers.

        The first that is open stands for all.
        """
        asks = self._asks(request)
        return Held(ask=next((ask for ask in asks if ask.is_open), asks[0] if asks else None))

    def _asks(self, request: HookRequest) -> list[QuestionAsk]:
        asked = questions_in(request.tool_input)
        return [
            self._drive.ask(as_asked(each, key))
            for each, key in zip(asked, self._keys(request, len(asked)), strict=True)
        ]

    def _keys(self, request: HookRequest, count: int) -> tuple[str, ...]:
        """Return the names of questions: those that they were asked under before, or new ones."""
        mark = self._fingerprint(request)
        if mark not in self.memory.questions:
            first = self.memory.asked + 1
            keys = tuple(f"q{number}" for number in range(first, first + count))
            self.keep(
                asked=self.memory.asked + count, questions=self.memory.questions | {mark: keys}
            )
        return self.memory.questions[mark]

    def _with_answers(self, request: HookRequest, *, context: str | None) -> Answer:
        mark = self._fingerprint(request)
        keys = self.memory.questions.get(mark, ())
        answered = self._answered_questions()
        if not keys or any(key not in answered for key in keys):
            return deny(words.UNANSWERED)
        self.keep(
            questions={
                other: kept for other, kept in self.memory.questions.items() if other != mark
            }
        )
        arguments = with_answers(request.tool_input, [answered[key] for key in keys])
        self._let_through.add(request.tool_use_id)
        return allow(arguments, context=context)

    # --- subagents --------------------------------------------------------------------------------

    def _answer_to_subagent(self, request: HookRequest) -> Answer:
        """Let a subagent do what needs nobody.

        A call that it defers would be lost without a word.
        """
        if request.tool_name == ASK_USER or not self._drive.lets_run(self._proposal(request)):
            return deny(words.SUBAGENT)
        held = self._drive.propose([self._proposal(request)])[0]
        self._of_subagents.add(request.tool_use_id)
        return deny(words.SUBAGENT) if _needs_a_person(held) else self._fate(request, held)

    # --- what came of it --------------------------------------------------------------------------

    def _close(self, returned: Returned) -> None:
        """Write down what a call gave back.

        One that gave something and was never let through has run past the hook.
        """
        # An interrupted call is asked for again
        if returned.call == self.memory.deferred and not self.is_stopping:
            self.keep(deferred=None)
        if returned.call in self._let_through:
            output, left_out = cut(_text_of(returned.content))
            result = CallResult(ok=not returned.is_error, output=output, left_out=left_out)
            self._handed_out.close(returned.call, result)
        elif not returned.is_error:
            self.has_run_unasked = self.has_run_unasked or returned.call
        elif returned.call not in self._asked and _HOOK_ERROR in returned.content:
            self.unheard = returned.call

    @property
    def has_no_hold(self) -> bool:
        """Whether the session has begun without our hooks, so that nothing would hold its calls."""
        return self._hooks.are_off

    @property
    def has_open_calls(self) -> bool:
        """Whether any handed-out call has no result yet."""
        return bool(self._handed_out.calls)

    def close_subagents(self) -> None:
        """Write down that the calls of subagents have ended.

        A session that ended well has heard of all of them, we have not.
        """
        result = CallResult(ok=True, output="(only a subagent was told what came of it)")
        for name in self._of_subagents:
            self._handed_out.close(name, result)


class _Text(msgspec.Struct):
    text: str = ""


def _text_of(content: bytes) -> str:
    """Return the text of a result, which may be a text or a list of blocks."""
    try:
        read = msgspec.json.decode(content, type=str | list[_Text])
    except msgspec.DecodeError:
        return content.decode(errors="replace")
    return read if isinstance(read, str) else "\n".join(block.text for block in read)


def _as_asked(called: Called, asked: HookRequest | None, *, like: HookRequest) -> HookRequest:
    """Return what the hook says of a call, or the stream if the hook has not asked yet."""
    if asked:
        return asked
    return HookRequest(
        session_id=like.session_id,
        cwd=like.cwd,
        tool_name=called.tool,
        tool_input=called.arguments,
        tool_use_id=called.call,
    )


def _needs_a_person(held: Held | None) -> bool:
    return held is not None and held.ask is not None and held.ask.is_open
