"""Puts together what the library needs inside a run."""

import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import msgspec

from adjourn.clarifications import exchange, log, protocol_files
from adjourn.clarifications.text import read_request
from adjourn.controller.controller import Controller
from adjourn.core import exits
from adjourn.core.ask import Ask, Proposal, Question, QuestionAsk
from adjourn.core.call import (
    DEFAULT_VALUE,
    Approved,
    Call,
    Once,
    arguments_of,
    canonical,
    digest_of,
    tool_body,
)
from adjourn.core.clarification import (
    PHASE,
    Checkpoint,
    Clarification,
    Context,
    Metadata,
    Refusal,
    Request,
    ResumeInstructions,
    WorkState,
    looks,
    read_checkpoint,
)
from adjourn.core.errors import EditIgnored, Misuse, NotInsideARun, Rejected
from adjourn.core.kept_documents import FRAMEWORK, RETURNED, SAVED, TaskDocument
from adjourn.core.states import AskState, CallMove, CallState
from adjourn.core.task import Milliseconds, task_of_run
from adjourn.settings.config import open_redactor
from adjourn.settings.supervision import read_settings
from adjourn.system.machine import now
from adjourn.system.poll import Poll
from adjourn.system.yaml import NotYet
from adjourn.wiring import find_root
from adjourn.wiring.controller import open_controller

TOO_LARGE = protocol_files.LARGEST + 1  # bytes of a file that a script hands over
_LONGEST = 86_400.0
_LOST = "It ran, as a person says; what it returned is lost."

# Sleeps at most so many seconds; says whether something changed in the store
Sleep = Callable[[float], object]


class AskDraft(msgspec.Struct, frozen=True, kw_only=True):
    """What a process says of itself when it needs to know something."""

    blocked_at: str
    reason: str
    work_state: WorkState
    context: Context
    next_phase: str
    estimated_remaining_work: str
    tokens_burned: int


class InsideRun:
    """A process inside a run, and the store it speaks through."""

    def __init__(
        self,
        controller: Controller,
        *,
        root: str,
        run_id: str,
        verbose: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], Milliseconds] = now,
        sleep: Sleep | None = None,
    ) -> None:
        self._controller = controller
        self._root = root
        self._run_id = run_id
        self._verbose = verbose
        self._clock = clock
        self._now = wall_clock
        self._sleep = sleep
        self._task_id = task_of_run(run_id)

    @classmethod
    @contextmanager
    def open(cls, *, verbose: bool | None = None) -> Generator["InsideRun", None, None]:
        """Open the store of the run that this process is part of."""
        run_id, store = os.environ.get("ADJOURN_RUN_ID"), os.environ.get("ADJOURN_STORE")
        if not run_id or not store:
            raise NotInsideARun(
                "this is not inside a run, so it cannot ask a person",
                way_out="adjourn run -- YOUR-COMMAND",
            )
        root = find_root(store)
        controller = open_controller(root, for_asking=True)
        try:
            yield cls(controller, root=root, run_id=run_id, verbose=verbose)
        finally:
            controller.store.close()

    # --- questions --------------------------------------------------------------------------------

    def ask(self, question: Question, *, linger: float) -> str:
        """Return the answer, or leave."""
        found = self._controller.asks.ask(self._run_id, question)
        if found.is_open and linger:
            self._say(log.WAITING)
            (found,) = self._linger([found], looks(_checked(linger)), start=self._clock()) or [
                found
            ]
        if found.is_open:
            self._say(log.SAVING)
            _leave()
        return _answer(found)

    def clarify(
        self,
        questions: Sequence[Question],
        draft: AskDraft,
        *,
        linger: float | None = None,
        meanwhile: Iterable[Callable[[], object]] = (),
    ) -> dict[str, str]:
        """Return the answers, or leave with a checkpoint.

        It lingers as long as the store says, unless the caller does.
        """
        request = _request(
            questions,
            draft,
            linger=read_settings(self._root).linger if linger is None else _checked(linger),
        )
        exchange.clear_taken(self._controller, self._root, self._task_id)
        clarification, asks = self._controller.asks.clarify(self._run_id, request)
        if any(ask.is_open for ask in asks):
            asks = self.wait_for(clarification, asks, meanwhile)
            if not asks:
                self.write_checkpoint(
                    clarification,
                    Checkpoint(
                        agent_id=self._task_id,
                        work_state=draft.work_state,
                        context=draft.context,
                        resume_instructions=ResumeInstructions(
                            next_phase=draft.next_phase,
                            estimated_remaining_work=draft.estimated_remaining_work,
                        ),
                        metadata=Metadata(tokens_burned=draft.tokens_burned),
                    ),
                )
                _leave()
        return {ask.name: _answer(ask) for ask in asks}

    def wait_for(
        self,
        clarification: Clarification,
        asks: Sequence[QuestionAsk],
        meanwhile: Iterable[Callable[[], object]] = (),
    ) -> list[QuestionAsk]:
        """Write the request, and linger; return the asks once all have an answer, else nothing."""
        protocol_files.write_request(
            self._root, self._task_id, open_redactor().copied(clarification)
        )
        self._say(log.POLLING)
        start = self._clock()
        for work in meanwhile:
            work()
        settled = self._linger(asks, looks(clarification.request.linger), start=start)
        if settled:
            self._say(log.IN_TIME)
        return settled

    def _linger(
        self, asks: Sequence[QuestionAsk], moments: Sequence[float], *, start: float
    ) -> list[QuestionAsk]:
        """Wait for answers: by events, and by a few looks at the response file.

        Return nothing if they did not come.
        """
        ask_ids = [ask.id for ask in asks]
        ear = self._controller.store.listen()
        sleep = self._sleep or Poll(ear).wait
        try:
            for moment in moments:
                if settled := self._settled_before(start + moment, ask_ids, sleep):
                    return settled
                exchange.take_response(
                    self._controller,
                    self._root,
                    self._task_id,
                    refuse=self._refuse,
                    patience=_LONGEST,
                )
            return self._controller.asks.collect(self._run_id, ask_ids)
        finally:
            ear.close()

    def _refuse(self, refusal: Refusal) -> None:
        # Only for this process: others tell the author of the response
        self._say(refusal.sentence)

    def _settled_before(
        self, deadline: float, ask_ids: Sequence[str], sleep: Sleep
    ) -> list[QuestionAsk]:
        while not (settled := self._controller.asks.collect(self._run_id, ask_ids)):
            if self._clock() >= deadline or not sleep(deadline - self._clock()):
                break
        return settled or self._controller.asks.collect(self._run_id, ask_ids)

    def write_checkpoint(self, clarification: Clarification, draft: Checkpoint) -> None:
        """Keep what is to be known when the answers come, and write a copy."""
        self._say(log.NOT_IN_TIME)
        with self._controller.store.read() as view:
            task = view.task(self._task_id)
        exchange.write_checkpoint(
            self._controller, self._root, task, clarification, draft, now=self._now()
        )
        self._say(log.SAVED.format(phase=PHASE))
        self._say(log.EXIT)

    def _say(self, line: str) -> None:
        log.say(line, wanted=self._verbose)

    # --- approvals --------------------------------------------------------------------------------

    @contextmanager
    def approval(self, proposal: Proposal) -> Generator[Approved, None, None]:
        """Hand out an approved call for the length of a block, or leave."""
        found, call = self._controller.asks.propose(self._run_id, proposal)
        if found.is_open:
            _leave()
        if found.state is not AskState.APPROVED:
            raise Rejected(_refusal(found))
        is_edited = call.digest != digest_of(proposal.body)
        approved = Approved(
            found.reply or DEFAULT_VALUE, arguments_of(call.body), is_edited=is_edited
        )
        try:
            yield approved
            _require_look(approved, call)
        except BaseException:
            self._close(call, CallMove.FAIL)
            raise
        self._close(call, CallMove.FINISH)

    def decide(self, proposals: Sequence[Proposal]) -> list[str | None]:
        """Return for each call why it was rejected, or None if it was approved; or leave."""
        found = self._controller.asks.register(self._run_id, proposals)
        if any(ask.is_open for ask in found):
            _leave()
        return [None if ask.state is AskState.APPROVED else _refusal(ask) for ask in found]

    @contextmanager
    def once(self, key: str) -> Generator[Once, None, None]:
        """Hand out a call that was decided under this key, unless it was made before."""
        decided = self._controller.asks.find_named(self._run_id, key)
        if decided is None:
            raise Misuse(f"nobody was asked about the call {key}", way_out="decide it first")
        ask, call = decided
        document = RETURNED.of(call.id)
        kept = self._controller.documents.read(self._task_id, document)
        if kept is not None or call.state is CallState.DONE:
            result = msgspec.json.decode(kept) if kept is not None else _LOST
            yield Once(is_made=True, result=result)
            return
        proposal = Proposal(
            prompt=ask.prompt, tool=call.tool, body=call.body, key=key, is_named=True
        )
        with self.approval(proposal):
            made = Once()
            yield made
            self._controller.documents.keep(
                self._task_id, document, msgspec.json.encode(made.result)
            )

    def _close(self, call: Call, move: CallMove) -> None:
        self._controller.asks.close_call(self._run_id, call, move)

    # --- what a process keeps ---------------------------------------------------------------------

    def save(self, value: Any) -> None:
        """Keep a JSON value for the next run."""
        try:
            body = msgspec.json.encode(value)
        except (TypeError, ValueError) as error:
            raise Misuse(
                f"what is to be saved is not JSON: {error}",
                way_out="save texts, numbers, lists and mappings",
            ) from error
        self._controller.documents.keep(self._task_id, SAVED, body)

    def keep_state(self, state: bytes) -> None:
        """Keep what a framework needs to go on, for the next run of this session."""
        self._controller.documents.keep(self._task_id, self._state_document(), state)

    def kept_state(self) -> bytes | None:
        """Return what a framework kept, if it did since the last restart."""
        return self._controller.documents.read(self._task_id, self._state_document())

    def _state_document(self) -> TaskDocument[bytes]:
        return FRAMEWORK.of(self.session_name)

    @property
    def session_name(self) -> str:
        """The session of the task: a restart begins another."""
        with self._controller.store.read() as view:
            return view.task(self._task_id).session_id

    def load(self, default: Any) -> Any:
        """Return what was kept."""
        body = self._controller.documents.read(self._task_id, SAVED)
        return default if body is None else msgspec.json.decode(body)


def proposal_of(
    prompt: str,
    *,
    tool: str,
    arguments: Mapping[str, object],
    key: str | None = None,
    expires_after: Milliseconds | None = None,
    schema: Mapping[str, Any] | None = None,
    editable: bool = False,
) -> Proposal:
    """Return what a process puts before a person.

    Arguments that break their own schema are refused at once.
    """
    body = tool_body(tool, arguments)
    if schema is not None:
        # Most calls bring no schema
        from adjourn.core.edit.argument_schema import problems, require_schema

        require_schema(schema)
        for problem in problems(arguments_of(body), schema):
            raise Misuse(
                f"the arguments of {tool} break their schema: {problem}",
                way_out="give others, or another schema",
            )
    kept = canonical(schema or {}) if editable else None
    return Proposal(
        prompt=prompt,
        tool=tool,
        body=body,
        key=key or digest_of(body),
        expires_after=expires_after,
        editable=kept,
    )


def _require_look(approved: Approved, call: Call) -> None:
    if approved.is_ignored:
        sentence = (
            f"call {call.id} was approved with other arguments, and the block did not look at them"
        )
        raise EditIgnored(sentence, way_out="make the call with approved.arguments")


def read_request_of(content: bytes, *, name: str) -> Request:
    """Read the request that a script hands over."""
    try:
        _require_size(content)
        return read_request(content)
    except (Misuse, NotYet) as error:
        raise Misuse(f"{name}: {error}", way_out="adjourn clarify --help") from error


def _require_size(content: bytes) -> None:
    if len(content) >= TOO_LARGE:
        raise Misuse(f"it has more than {protocol_files.LARGEST} bytes", way_out="write less")


def draft_of(request: Request, checkpoint: bytes | None) -> AskDraft:
    """Return what a request and a checkpoint say of the work so far."""
    _require_size(checkpoint or b"")
    try:
        kept = read_checkpoint(checkpoint) if checkpoint else Checkpoint(agent_id="")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Misuse(f"the checkpoint: {error}", way_out="adjourn clarify --help") from error
    work = kept.work_state
    if not work.parallel_work_available:
        work = msgspec.structs.replace(work, parallel_work_available=request.parallel_work)
    return AskDraft(
        blocked_at=request.blocked_at,
        reason=request.reason,
        work_state=work,
        context=kept.context,
        next_phase=kept.resume_instructions.next_phase,
        estimated_remaining_work=kept.resume_instructions.estimated_remaining_work,
        tokens_burned=kept.metadata.tokens_burned,
    )


def _request(questions: Sequence[Question], draft: AskDraft, *, linger: float) -> Request:
    keys = [question.key for question in questions]
    if not keys or len(set(keys)) < len(keys):
        raise Misuse(
            "a clarification has at least one question, and each a key of its own",
            way_out="name each question once",
        )
    return Request(
        questions=tuple(questions),
        blocked_at=draft.blocked_at,
        reason=draft.reason,
        parallel_work=tuple(draft.work_state.parallel_work_available),
        linger=linger,
    )


def _checked(linger: float) -> float:
    if not 0 <= linger <= _LONGEST:
        raise Misuse(
            f"linger is {linger}, not a number of seconds within a day",
            way_out="linger 30, 60 or 300 seconds",
        )
    return linger


def _answer(ask: QuestionAsk) -> str:
    answer = ask.answer
    if answer is None:
        raise Rejected(_refusal(ask))
    return answer


def _refusal(ask: Ask) -> str:
    settled = ask.settlement
    if settled is None or settled.state is AskState.EXPIRED:
        return "nobody settled it in time"
    return f"{settled.state} by {settled.by}" + (f": {settled.reply}" if settled.reply else "")


def _leave() -> NoReturn:
    raise SystemExit(exits.PAUSED)
