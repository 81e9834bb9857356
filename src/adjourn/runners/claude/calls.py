"""Holds every call until all calls of its message are known, puts them before the policy together, and answers their hooks."""

import time
from collections.abc import Callable, Sequence

import msgspec

from adjourn.core.agent.calls import CallResult, Held, Proposed, cut
from adjourn.core.ask import Ask
from adjourn.core.call import Call, tool_body
from adjourn.core.errors import AdjournError, AlreadyDone, StoreProblem
from adjourn.core.states import AskState, CallState
from adjourn.ports.drive import Drive
from adjourn.runners.claude import session, words
from adjourn.runners.claude.fingerprint import (
    arguments_in,
    editable,
    fingerprint,
    input_of,
    reads_only,
)
from adjourn.runners.claude.memory import DOCUMENT, Progress
from adjourn.runners.claude.protocol import Called, Event, Returned, Said
from adjourn.runners.claude.questions import ASK_USER, as_asked, questions_in, with_answers
from adjourn.runners.claude.turns import LOOK, Hooks, Turn, Turns
from adjourn.runners.hook import Answer, Asked, Request, allow, defer, deny, deny_and_stop

PATIENCE = 5.0  # seconds that the stream gets to tell of a call that a hook asks for
LONG_PATIENCE = 30.0  # and the session's file, to tell of a message that did not stream
PATIENCE_WITH_OTHERS = 600.0  # and other hooks, to end: as much as Claude Code gives them by itself
_MANY = 20  # calls to remember before it is looked whether that is needed
# Bytes of input; the program cannot find a deferred call again that is much larger
LARGEST_DEFERRED = 900_000

# Part of what Claude Code tells a model of a call that a hook kept from running
_HOOK_ERROR = b"hook error"
_REFUSED = frozenset({CallState.REJECTED, CallState.EXPIRED})
_BEGUN = frozenset({CallState.CLAIMED, CallState.EXECUTING, CallState.UNCERTAIN})


class Waiting(msgspec.Struct):
    """A hook that waits for its answer, and since when."""

    asked: Asked
    request: Request
    since: float


class Holding:
    """All calls of one run."""

    def __init__(self, drive: Drive, progress: Progress, *, paths: Callable[[], list[str]]) -> None:
        self._drive = drive
        self._paths = paths  # where the session's file may be
        self.progress = progress
        self.turns = Turns()
        self._hooks = Hooks()
        self._waiting: list[Waiting] = []
        # By Claude Code's id: the calls that were judged and may run, or may not
        self._held: dict[str, Held] = {}
        # What may run now, and the call that was handed out for it
        self._allowed: dict[str, Call | None] = {}
        self._of_subagents: set[str] = set()
        self._asked: set[str] = set()  # all calls whose hooks have reached us
        self._said = ""
        self.is_pausing = False
        self.is_stopping = False
        self.has_run_unasked: str | None = None
        # A call that came to nothing because its hook did not reach us, and none did since
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

    def add(self, asked: Asked) -> None:
        """Take in a hook that asks."""
        if asked.request is not None:
            self._asked.add(asked.request.tool_use_id)
            self.unheard = None
            self._waiting.append(Waiting(asked, asked.request, time.monotonic()))

    def keep(self, **changes: object) -> None:
        """Keep what the next run has to know."""
        self.progress = msgspec.structs.replace(self.progress, **changes)
        self._drive.keep(DOCUMENT, msgspec.json.encode(self.progress))

    def drop(self) -> None:
        """Answer nobody any more, which is a no."""
        for waiting in self._waiting:
            waiting.asked.drop()
        self._waiting.clear()

    # --- what goes out ----------------------------------------------------------------------------

    def answer(self) -> float | None:
        """Answer the hooks that can be answered now.

        Return in how many seconds to look again, if any is left.
        """
        now = time.monotonic()
        rests = [
            rest for waiting in list(self._waiting) if (rest := self._answered(waiting, now)) > 0
        ]
        return min(rests, default=None)

    def _answered(self, waiting: Waiting, now: float) -> float:
        rest = self._rest(waiting, now)
        if rest > 0:
            return rest
        is_last = not self._hooks.others_run(waiting=len(self._waiting))
        if not is_last and now < waiting.since + PATIENCE_WITH_OTHERS:
            return LOOK
        self._waiting.remove(waiting)
        answer = (
            self._answer_to(waiting.request)
            if is_last
            else deny(words.broken("another hook of its settings does not end"))
        )
        self._hooks.answer(waiting.asked.answer(answer))
        return 0.0

    def _rest(self, waiting: Waiting, now: float) -> float:
        request = waiting.request
        turn = self.turns.turn_of(request.tool_use_id)
        if turn and request.agent_id is None:
            if not turn.streams and not turn.is_settled:
                self._look_for_the_rest(turn, is_late=now > waiting.since + LONG_PATIENCE)
            return turn.rest()
        is_known = request.agent_id is not None or request.tool_use_id == self.progress.deferred
        return 0.0 if is_known else max(0.0, waiting.since + PATIENCE - now)

    def _look_for_the_rest(self, turn: Turn, *, is_late: bool) -> None:
        """Find out what else is in a message that did not stream.

        It is told call by call, and nothing says which is the last.
        """
        if calls := session.calls_of(turn.message, self._paths()):
            self.turns.complete(turn, calls)
        turn.is_abandoned = is_late and not turn.is_stopped

    def _answer_to(self, request: Request) -> Answer:
        try:
            return self._judged(request)
        except StoreProblem:
            raise  # that is not for the model to deal with
        except AdjournError as error:
            return deny(words.broken(error.sentence))

    def _judged(self, request: Request) -> Answer:
        if request.session_id != self.progress.session:
            return deny(words.broken("it is a call of another session"))
        if request.agent_id is not None:
            return self._answer_to_subagent(request)
        if request.tool_use_id == self.progress.deferred and not self.turns.turn_of(
            request.tool_use_id
        ):
            return self._answer_to_deferred(request)
        turn = self.turns.turn_of(request.tool_use_id)
        if turn is None or turn.is_abandoned:
            return deny(words.broken("it is not known which other calls belong to it"))
        if not turn.is_judged:
            self._decide(turn, request)
        return self._answer_to_member(request)

    # --- a batch ----------------------------------------------------------------------------------

    def _decide(self, turn: Turn, request: Request) -> None:
        """Put all calls of a message before the policy, in one moment."""
        asked = {waiting.request.tool_use_id: waiting.request for waiting in self._waiting} | {
            request.tool_use_id: request
        }
        requests = [
            _as_asked(called, asked.get(called.call), like=request) for called in turn.calls
        ]
        found = self._found_again(requests, turn.calls)
        new = [each for each in requests if found[each.tool_use_id] is None]
        for each, held in zip(new, self._proposed(new), strict=True):
            found[each.tool_use_id] = held
        self._held |= {name: held for name, held in found.items() if held}
        waits = [each for each in requests if _needs_a_person(found[each.tool_use_id])]
        if waits:
            self._pause(requests, leader=waits[0])
        turn.is_judged = True

    def _proposed(self, requests: Sequence[Request]) -> list[Held]:
        """Have the policy judge calls that nobody decided yet.

        Questions are asked; they have no effect to be judged.
        """
        calls = [request for request in requests if request.tool_name != ASK_USER]
        judged = iter(
            self._drive.propose([self._proposal(request) for request in calls]) if calls else []
        )
        return [
            self._ask(request) if request.tool_name == ASK_USER else next(judged)
            for request in requests
        ]

    def _proposal(self, request: Request) -> Proposed:
        arguments = arguments_in(request, workspace=self._drive.task.spec.workspace)
        return Proposed(
            tool=request.tool_name,
            body=tool_body(request.tool_name, arguments),
            label=request.tool_use_id,
            words=self._said or None,
            read_only=reads_only(request, workspace=self._drive.task.spec.workspace),
            editable=editable(arguments),
        )

    def _found_again(
        self, requests: Sequence[Request], calls: Sequence[Called]
    ) -> dict[str, Held | None]:
        """Find the calls that were decided while they were held, where the model makes them again.

        Each counts once.
        """
        found: dict[str, Held | None] = {}
        left = [
            held
            for name in self.progress.untold
            if (held := self._drive.held(name)) and _is_decided(held)
        ]
        for request, called in zip(requests, calls, strict=True):
            raw = msgspec.structs.replace(request, tool_input=called.arguments)
            held = self._same_among(left, request) or self._same_among(left, raw)
            found[request.tool_use_id] = held
            left = [other for other in left if other is not held]
        return found

    def _same_among(self, decided: Sequence[Held], request: Request) -> Held | None:
        """Return the call that this is.

        As it was made at first, or as a person has changed it and the model was told.
        """
        mark = fingerprint(request, workspace=self._drive.task.spec.workspace)
        names = {name for name, other in self.progress.untold.items() if other == mark}
        same = (
            held
            for held in decided
            if held.call and (held.call.tool_call_id in names or held.call.digest == mark)
        )
        return next(same, None)

    def _pause(self, requests: Sequence[Request], *, leader: Request) -> None:
        """Write down what is held, and that the session stops at the first call that needs a person."""
        workspace = self._drive.task.spec.workspace
        calls = {
            each.tool_use_id: held.call
            for each in requests
            if (held := self._held.get(each.tool_use_id)) and held.call
        }
        named = [
            (calls[each.tool_use_id].tool_call_id, each)
            for each in requests
            if each.tool_use_id in calls
        ]
        marks = {name: fingerprint(each, workspace=workspace) for name, each in named}
        self.keep(
            deferred=leader.tool_use_id if _fits(leader) else None,
            calls={name: call.tool_call_id for name, call in calls.items()},
            untold={
                name: mark
                for name, mark in self.progress.untold.items()
                if self._still_counts(name)
            }
            | marks,
        )
        self.is_pausing = True

    def _still_counts(self, name: str) -> bool:
        """Say whether the model may still make a call that was held.

        One that was taken back is asked for anew.
        """
        held = self._drive.held(name)
        return (
            held is not None
            and held.call is not None
            and held.call.state is not CallState.WITHDRAWN
        )

    def _answer_to_member(self, request: Request) -> Answer:
        if self.is_pausing:
            is_leader = request.tool_use_id == self.progress.deferred
            return defer() if is_leader else deny_and_stop(words.HELD)
        held = self._held[request.tool_use_id]
        return self._fate(request, held)

    # --- one call ---------------------------------------------------------------------------------

    def _fate(self, request: Request, held: Held, *, context: str | None = None) -> Answer:
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

    def _let_read(self, request: Request, *, context: str | None) -> Answer:
        """Let through what only reads, if it still does.

        What ran before it in its message may have put a link in its way.
        """
        if not reads_only(request, workspace=self._drive.task.spec.workspace):
            return deny(words.broken("it would look at something else than when it was judged"))
        return self._let_through(request, None, request.tool_input, context=context)

    def _hand_out(self, request: Request, held: Held, *, context: str | None) -> Answer:
        assert held.call is not None  # noqa: S101 -- whoever calls this has looked
        try:
            handed = self._drive.hand_out(held.call)
        except AlreadyDone:
            return deny(words.begun(held.call))
        if handed is None:  # it is not what was approved any more, and a person is asked again
            return self._asked_again(request)
        self._use_up(handed)
        if request.agent_id is None:
            self._note_made(request.tool_use_id, handed)
        context = "\n".join(filter(None, (words.edited(held), context))) or None
        return self._let_through(request, handed, input_of(handed.body), context=context)

    def _let_through(
        self,
        request: Request,
        call: Call | None,
        arguments: dict[str, object],
        *,
        context: str | None,
    ) -> Answer:
        self._allowed[request.tool_use_id] = call
        return allow(arguments, context=context)

    def _note_made(self, name: str, call: Call) -> None:
        """Remember a call before it is made.

        A session that is killed forgets what it has not written yet.
        """
        if len(self.progress.made) >= _MANY:
            self.forget_shown(session.read(self.progress.session, self._paths()) or b"")
        self.keep(made=self.progress.made | {name: call.tool_call_id})

    def forget_shown(self, content: bytes) -> None:
        """Forget the calls of which the session itself knows what came."""
        made = {
            name: ours
            for name, ours in self.progress.made.items()
            if not session.shows_end_of(name, content)
        }
        if made != self.progress.made:
            self.keep(made=made)

    def _asked_again(self, request: Request) -> Answer:
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
        if name in self.progress.untold:
            self.keep(
                untold={
                    other: mark for other, mark in self.progress.untold.items() if other != name
                }
            )

    # --- a session that goes on -------------------------------------------------------------------

    def _answer_to_deferred(self, request: Request) -> Answer:
        """Answer the call that the session had stopped at, by what was decided meanwhile."""
        if request.tool_name == ASK_USER:
            mark = fingerprint(request, workspace=self._drive.task.spec.workspace)
            return self._proposed_anew(request, context=self.news(but=mark))
        held = self._drive.held(self.progress.calls.get(request.tool_use_id, ""))
        if held is None or held.call is None or held.call.state is CallState.WITHDRAWN:
            return self._proposed_anew(request)
        # What was decided would be done by another tool: the session's file was changed
        if held.call.tool != request.tool_name:
            return self._proposed_anew(request)
        if held.call.state is CallState.PENDING:
            self.is_pausing = True
            return defer()
        return self._fate(request, held, context=self.news(but=held.call.tool_call_id))

    def _proposed_anew(self, request: Request, *, context: str | None = None) -> Answer:
        """Ask again for a call whose ask was taken back, by an interrupt or a change of what it would do."""
        held = self._proposed([request])[0]
        self._held[request.tool_use_id] = held
        if not _needs_a_person(held):
            return self._fate(request, held, context=context)
        self._pause([request], leader=request)
        return self._answer_to_member(request)

    def news(self, *, but: str = "") -> str | None:
        """Tell the model what became of all that was held, but for the call of that name or the questions of that fingerprint."""
        names = [name for name in self.progress.untold if name != but]
        held = [each for name in names if (each := self._drive.held(name))]
        answered = self._answered_questions() if self.progress.questions else {}
        marks = [mark for mark in self.progress.questions if mark != but]
        answers = [
            answered[key]
            for mark in marks
            for key in self.progress.questions[mark]
            if key in answered
        ]
        return words.news(held, answers) if held or answers else None

    def _answered_questions(self) -> dict[str, Ask]:
        return {
            ask.key: ask for ask in self._drive.asks() if ask.key and ask.state is AskState.ANSWERED
        }

    def made_before(self) -> str | None:
        """Tell the model what became of the calls that its session does not show."""
        lines = [
            words.made_before(name, held)
            for name, ours in self.progress.made.items()
            if (held := self._drive.held(ours))
        ]
        return "\n".join([words.MADE, *lines]) if lines else None

    # --- questions --------------------------------------------------------------------------------

    def _ask(self, request: Request) -> Held:
        """Ask a person what the model wants to know, or find the answers.

        The first that is open stands for all.
        """
        asks = self._asks(request)
        return Held(ask=next((ask for ask in asks if ask.is_open), asks[0] if asks else None))

    def _asks(self, request: Request) -> list[Ask]:
        asked = questions_in(request.tool_input)
        return [
            self._drive.ask(as_asked(each, key))
            for each, key in zip(asked, self._keys(request, len(asked)), strict=True)
        ]

    def _keys(self, request: Request, count: int) -> tuple[str, ...]:
        """Return the names of questions: those that they were asked under before, or new ones."""
        mark = fingerprint(request, workspace=self._drive.task.spec.workspace)
        if mark not in self.progress.questions:
            first = self.progress.asked + 1
            keys = tuple(f"q{number}" for number in range(first, first + count))
            self.keep(
                asked=self.progress.asked + count, questions=self.progress.questions | {mark: keys}
            )
        return self.progress.questions[mark]

    def _with_answers(self, request: Request, *, context: str | None) -> Answer:
        mark = fingerprint(request, workspace=self._drive.task.spec.workspace)
        keys = self.progress.questions.get(mark, ())
        answered = self._answered_questions()
        if not keys or any(key not in answered for key in keys):
            return deny(words.UNANSWERED)
        self.keep(
            questions={
                other: kept for other, kept in self.progress.questions.items() if other != mark
            }
        )
        arguments = with_answers(request.tool_input, [answered[key] for key in keys])
        return self._let_through(request, None, arguments, context=context)

    # --- subagents --------------------------------------------------------------------------------

    def _answer_to_subagent(self, request: Request) -> Answer:
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
        if returned.call == self.progress.deferred and not self.is_stopping:
            self.keep(deferred=None)
        if returned.call not in self._allowed:
            self.has_run_unasked = self.has_run_unasked or (
                None if returned.is_error else returned.call
            )
            if (
                returned.is_error
                and returned.call not in self._asked
                and _HOOK_ERROR in returned.content
            ):
                self.unheard = returned.call
            return
        call = self._allowed[returned.call]
        self._allowed[returned.call] = None  # the stream may tell of one result twice
        if call:
            output, left_out = cut(_text_of(returned.content))
            self._drive.close(
                call, CallResult(ok=not returned.is_error, output=output, left_out=left_out)
            )

    @property
    def has_no_hold(self) -> bool:
        """Whether the session has begun without our hooks, so that nothing would hold its calls."""
        return self._hooks.are_off

    @property
    def has_open_calls(self) -> bool:
        """Whether a call was handed out of which nobody heard what became of it."""
        return any(self._allowed.values())

    def close_subagents(self) -> None:
        """Write down that the calls of subagents have ended.

        A session that ended well has heard of all of them, we have not.
        """
        for name in self._of_subagents:
            if call := self._allowed.get(name):
                self._allowed[name] = None
                self._drive.close(
                    call, CallResult(ok=True, output="(only a subagent was told what came of it)")
                )


class _Text(msgspec.Struct):
    text: str = ""


def _text_of(content: bytes) -> str:
    """Return the text of a result, which may be a text or a list of blocks."""
    try:
        read = msgspec.json.decode(content, type=str | list[_Text])
    except msgspec.DecodeError:
        return content.decode(errors="replace")
    return read if isinstance(read, str) else "\n".join(block.text for block in read)


def _as_asked(called: Called, asked: Request | None, *, like: Request) -> Request:
    """Return what the hook says of a call, or what the stream says where the hook has not asked yet."""
    if asked:
        return asked
    return Request(
        session_id=like.session_id,
        cwd=like.cwd,
        tool_name=called.tool,
        tool_input=called.arguments,
        tool_use_id=called.call,
    )


def _needs_a_person(held: Held | None) -> bool:
    return held is not None and held.ask is not None and held.ask.is_open


def _is_decided(held: Held) -> bool:
    return held.call is not None and held.call.state in {CallState.APPROVED, *_REFUSED, *_BEGUN}


def _fits(request: Request) -> bool:
    return len(msgspec.json.encode(request.tool_input)) < LARGEST_DEFERRED
