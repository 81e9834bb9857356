"""The only place where a task changes."""

from collections.abc import Sequence
from typing import Required, TypedDict, Unpack

import msgspec

from adjourn.core.ask import Ask, AskKind, Principal, Question, Reply, Verb, Verdict, refuse_settled
from adjourn.core.call import AUTO_APPROVAL, COMMAND, DEFAULT_VALUE, Call, Command, command_body, digest_of, slot_of
from adjourn.core.errors import (
    Ambiguous,
    Conflict,
    Misuse,
    NotAllowed,
    NotFound,
    StaleCheckpoint,
)
from adjourn.core.events import Event
from adjourn.core.identity import ProcessId
from adjourn.core.outcome import Completed, Exit, Failed, Interrupted, Outcome, Standing, Waits, WantsApproval
from adjourn.core.render import visible
from adjourn.core.resumption import PLAIN, Resumption, replies_of
from adjourn.core.scene import Scene
from adjourn.core.states import (
    ENDED,
    AskMove,
    AskState,
    CallMove,
    CallState,
    Move,
    TaskState,
    after,
    allows,
    ask_after,
    call_after,
)
from adjourn.core.task import OnRejection, PauseReason, Run, RunState, Spec, Task, Wish, number_of_run, run_id, task_of_run
from adjourn.ports import (
    Change,
    Clock,
    Ended,
    FindRunner,
    NeverStarted,
    NewId,
    Processes,
    StillRuns,
    Store,
    Turn,
    Vanished,
    View,
)

ADJOURN = "adjourn"
ASKED = "ask:"
LEFT = "left:"

_ASK_MOVES = {Verb.APPROVE: AskMove.APPROVE, Verb.REJECT: AskMove.REJECT, Verb.ANSWER: AskMove.ANSWER}
_KINDS = {Verb.APPROVE: AskKind.APPROVAL, Verb.REJECT: AskKind.APPROVAL, Verb.ANSWER: AskKind.QUESTION}
_VERDICTS = {
    Verdict.IT_RAN: (CallMove.IT_RAN, Move.ACCEPT),
    Verdict.IT_DID_NOT: (CallMove.IT_DID_NOT, Move.PAUSE),
    Verdict.RUN_AGAIN: (CallMove.RUN_AGAIN, Move.SETTLE),
}
_RUN_STATES = {
    Move.COMPLETE: RunState.SUCCEEDED,
    Move.FAIL: RunState.FAILED,
    Move.RETURN: RunState.FAILED,
    Move.WAIT: RunState.WAITING,
    Move.LOSE: RunState.WAITING,
    Move.SETTLE: RunState.WAITING,
    Move.PAUSE: RunState.PAUSED,
    Move.CANCEL: RunState.CANCELED,
}


class Claimed(msgspec.Struct, frozen=True):
    """What a supervisor holds once it may start a run."""

    task: Task
    run: Run
    call: Call


class Asked(TypedDict, total=False):
    """What an ask is about."""

    prompt: Required[str]
    choices: tuple[str, ...]
    key: str
    slot: str
    call: int
    manifest: str | None


class Controller:
    """Applies the rules. Every surface and every supervisor calls it; nothing else writes to the store."""

    def __init__(self, store: Store, *, clock: Clock, new_id: NewId, find_runner: FindRunner, processes: Processes) -> None:
        self._store = store
        self._clock = clock
        self._new_id = new_id
        self._find_runner = find_runner
        self._processes = processes

    @property
    def store(self) -> Store:
        """The store, for reading."""
        return self._store

    # --- what there is ---------------------------------------------------------------------------------------------

    def find(self, text: str) -> Task:
        """Return the task that an id, a checkpoint id, or a unique prefix of either names."""
        with self._store.read() as view:
            wanted = text.partition(".")[0]
            found = view.tasks_like(wanted) if wanted else []
            if wanted in found:
                return view.task(wanted)
            return view.task(_the_one(found, text, thing="task", way_out="adjourn tasks"))

    def find_ask(self, text: str) -> Ask:
        """Return the ask that an id or a unique prefix names."""
        with self._store.read() as view:
            return view.ask(_the_one(view.asks_like(text) if text else [], text, thing="ask", way_out="adjourn inbox"))

    def scene(self, task_id: str) -> Scene:
        """Return a task with its last run and the asks of it, as of one moment."""
        with self._store.read() as view:
            task = view.task(task_id)
            run = view.run(task_id, task.runs) if task.runs else None
            asks = tuple(view.asks_of_run(task_id, task.runs))
            calls = {ask.call: view.call(task_id, ask.call) for ask in asks if ask.call}
            children = self._standing(view, task, run).open_children if run and task.state is TaskState.WAITING else ()
            return Scene(task=task, run=run, asks=asks, calls=calls, waiting_on=children)

    def require_newest(self, text: str, task: Task) -> None:
        """Refuse a checkpoint that was left behind: what it stands for has been decided, or has changed."""
        if task.id.startswith(text.partition(".")[0]):
            return
        with self._store.read() as view:
            run = view.run_of_checkpoint(text)
            newest = next((run for run in reversed(view.runs(task.id)) if run.checkpoint_id), None)
        if run and newest and run.number != newest.number:
            sentence = f"checkpoint {run.checkpoint_id} is not the newest of task {task.id}"
            raise StaleCheckpoint(sentence, way_out=f"adjourn resume {newest.checkpoint_id}")

    # --- a task begins ---------------------------------------------------------------------------------------------

    def start(self, spec: Spec, *, by: Principal, key: str | None = None) -> Task:
        """Queue a new task. Inside a run, the n-th start with the same key returns the n-th task of that key."""
        with self._store.change() as tx:
            if spec.parent_run and key:
                return self._start_child(tx, spec, by=by, key=key)
            return self._create(tx, spec, by=by)

    def _create(self, tx: Change, spec: Spec, *, by: Principal, slot: str | None = None) -> Task:
        now = self._clock()
        task = Task(
            id=self._new_id(),
            spec=spec,
            state=TaskState.QUEUED,
            session_id=self._new_id(),
            created_at=now,
            updated_at=now,
            slot=slot,
        )
        call = self._first_call(task, by=by.name)
        task = msgspec.structs.replace(task, calls=1, next_call=1)
        tx.add_task(task)
        tx.add_call(call)
        self._tell(tx, task.id, "task_created", by=by.name, parent=spec.parent_run)
        return task

    def _start_child(self, tx: Change, spec: Spec, *, by: Principal, key: str) -> Task:
        parent, run = self._running(tx, spec.parent_run or "")
        slot = slot_of(parent.session_id, key, 1 + tx.count_turns(run.id, key))
        child = tx.task_in_slot(slot) or self._create(tx, spec, by=by, slot=slot)
        tx.add_turn(Turn(run_id=run.id, key=key, thing=child.id))
        return child

    def leave_open(self, parent_run: str, child: Task) -> None:
        """Remember that a run was told that the task it started is not done."""
        with self._store.change() as tx:
            _, run = self._running(tx, parent_run)
            tx.add_turn(Turn(run_id=run.id, key=f"{LEFT}{child.id}", thing=child.id, left_open=True))

    def _first_call(self, task: Task, *, by: str) -> Call:
        body = command_body(Command(argv=task.spec.argv, cwd=task.spec.workspace))
        return self._new_call(task, body=body, state=CallState.APPROVED, by=by)

    def _new_call(self, task: Task, *, body: bytes, state: CallState, by: str | None, ask: int | None = None) -> Call:
        return Call(
            task_id=task.id,
            number=task.calls + 1,
            tool=COMMAND,
            body=body,
            digest=digest_of(body),
            nonce=self._new_id(),
            state=state,
            approved_by=by,
            ask=ask,
        )

    # --- a run begins ----------------------------------------------------------------------------------------------

    def claim(self, task_id: str, *, supervisor: str) -> Claimed:
        """Take a queued task for one run. Of many who try, one gets it."""
        with self._store.change() as tx:
            task = tx.task(task_id)
            state = after(task.state, Move.START)
            call = tx.call(task.id, task.next_call or 0)
            claimed = msgspec.structs.replace(call, state=call_after(call.state, CallMove.CLAIM), claimed_by=supervisor)
            tx.save_call(call, claimed)
            run = self._new_run(tx, task, call=call.number, supervisor=supervisor)
            tx.add_run(run)
            started = self._save(tx, task, state=state, runs=run.number)
            self._tell(tx, started.id, "run_claimed", run=run.number, call=call.number)
            return Claimed(task=started, run=run, call=claimed)

    def _new_run(self, tx: Change, task: Task, *, call: int, supervisor: str) -> Run:
        now = self._clock()
        run = Run(
            task_id=task.id,
            number=task.runs + 1,
            state=RunState.RUNNING,
            call=call,
            supervisor=supervisor,
            session_id=task.session_id,
            created_at=now,
            updated_at=now,
        )
        if not task.runs:
            return run
        last = tx.run(task.id, task.runs)
        if last.session_id == task.session_id:
            return msgspec.structs.replace(run, resumed_from=last.number)
        tx.save_run(last, msgspec.structs.replace(last, superseded_by=run.number, updated_at=now, version=last.version + 1))
        return msgspec.structs.replace(run, restart_of=last.number)

    def execute(self, run: Run, *, shim: ProcessId) -> Run:
        """Write down that the gate is about to open. From here on only a result or a person moves the call."""
        with self._store.change() as tx:
            task, current = self._running(tx, run.id)
            call = self._move_call(tx, task, current.call, CallMove.EXECUTE)
            executing = self._save_run(tx, current, shim=shim)
            self._tell(tx, task.id, "call_executing", run=run.number, call=call.number, digest=call.digest, pid=shim.pid)
            return executing

    # --- a run ends ------------------------------------------------------------------------------------------------

    def finish(self, run: Run, exit: Exit) -> Task:  # noqa: A002 -- the word for it
        """Record how a run ended, and what that means for its task."""
        with self._store.change() as tx:
            task, current = self._running(tx, run.id)
            outcome = self._find_runner(task.spec.runner).meaning(exit, self._standing(tx, task, current))
            ended = self._save_run(tx, current, exit_code=exit.code, signal=exit.signal)
            return self._conclude(tx, task, ended, outcome)

    def release(self, run: Run, *, why: str) -> Task:
        """Give back a run whose call provably did not start."""
        with self._store.change() as tx:
            task, current = self._running(tx, run.id)
            if task.wish:
                return self._interrupt(tx, task, current)
            self._move_call(tx, task, current.call, CallMove.RELEASE)
            return self._end_run(tx, task, current, Move.RETURN, message=why, next_call=current.call)

    def lose(self, run: Run) -> Task:
        """Ask a person what became of a call whose process vanished without a result."""
        with self._store.change() as tx:
            task, current = self._running(tx, run.id)
            self._withdraw_asks(tx, task)
            self._move_call(tx, task, current.call, CallMove.LOSE)
            prompt = f"run {current.number} ended without a trace: did its command run to the end?"
            _, asked = self._open_ask(tx, task, current, AskKind.UNCERTAIN, prompt=prompt, call=current.call)
            return self._end_run(tx, asked, current, Move.LOSE, reason=PauseReason.INPUT_REQUIRED, message="lost without a trace")

    def _standing(self, view: View, task: Task, run: Run) -> Standing:
        turns = view.turns_left_open(run.id)
        asks = [view.ask(turn.thing) for turn in turns if turn.key.startswith(ASKED)]
        children = [view.task(turn.thing) for turn in turns if turn.key.startswith(LEFT)]
        approval = self._ask_about(view, view.call(task.id, run.call))
        return Standing(
            open_asks=tuple(ask.id for ask in asks if ask.is_open),
            settled_asks=any(not ask.is_open for ask in asks),
            open_children=tuple(child.id for child in children if child.state not in ENDED),
            ended_children=any(child.state in ENDED for child in children),
            was_approved=approval is not None and approval.kind is AskKind.APPROVAL,
            approved_manifest=approval.manifest if approval else None,
        )

    def _ask_about(self, view: View, call: Call) -> Ask | None:
        return view.ask_numbered(call.task_id, call.ask) if call.ask else None

    def _conclude(self, tx: Change, task: Task, run: Run, outcome: Outcome) -> Task:
        if task.wish is Wish.CANCEL and isinstance(outcome, Waits | WantsApproval):
            outcome = Interrupted()  # it left by itself, but nobody wants it back
        match outcome:
            case Completed(message=message):
                self._move_call(tx, task, run.call, CallMove.FINISH)
                return self._end_run(tx, task, run, Move.COMPLETE, message=message)
            case Failed(reason=reason):
                self._withdraw_asks(tx, task)
                self._move_call(tx, task, run.call, CallMove.FAIL)
                return self._end_run(tx, task, run, Move.FAIL, message=reason)
            case Waits():
                self._move_call(tx, task, run.call, CallMove.FINISH)
                return self._wait(tx, task, run)
            case WantsApproval(manifest=manifest):
                self._move_call(tx, task, run.call, CallMove.FINISH)
                return self._ask_for_approval(tx, task, run, manifest=manifest)
            case Interrupted():
                return self._interrupt(tx, task, run)

    def _wait(self, tx: Change, task: Task, run: Run) -> Task:
        if self._is_blocked(tx, task, run):
            return self._end_run(tx, task, run, Move.WAIT, reason=PauseReason.INPUT_REQUIRED)
        call = self._next_call(tx, task, by=ADJOURN)
        return self._end_run(tx, task, run, Move.SETTLE, reason=PauseReason.INPUT_REQUIRED, next_call=call.number)

    def _is_blocked(self, view: View, task: Task, run: Run) -> bool:
        standing = self._standing(view, task, run)
        return bool(standing.open_children) or bool(view.open_asks_of(task.id))

    def _ask_for_approval(self, tx: Change, task: Task, run: Run, *, manifest: str | None) -> Task:
        body = command_body(approved_command(task.spec, DEFAULT_VALUE))
        call = self._new_call(task, body=body, state=CallState.PENDING, by=None, ask=task.asks + 1)
        tx.add_call(call)
        counted = self._save(tx, task, calls=call.number)
        prompt = f"exit code {run.exit_code}"
        _, asked = self._open_ask(tx, counted, run, AskKind.APPROVAL, prompt=prompt, call=call.number, manifest=manifest)
        return self._end_run(tx, asked, run, Move.WAIT, reason=PauseReason.TOOL_APPROVAL_REQUIRED)

    def _interrupt(self, tx: Change, task: Task, run: Run) -> Task:
        self._withdraw_asks(tx, task)
        self._move_call(tx, task, run.call, CallMove.FAIL)
        if task.wish is Wish.CANCEL:
            return self._end_run(tx, task, run, Move.CANCEL, message="canceled")
        return self._end_run(tx, task, run, Move.PAUSE, reason=PauseReason.USER_INTERRUPT)

    def _end_run(
        self,
        tx: Change,
        task: Task,
        run: Run,
        move: Move,
        *,
        reason: PauseReason | None = None,
        message: str | None = None,
        next_call: int | None = None,
    ) -> Task:
        self._save_run(
            tx,
            run,
            state=_RUN_STATES[move],
            shim=None,
            message=message,
            checkpoint_id=self._new_id() if reason or move is Move.COMPLETE else None,
            paused_at=self._clock() if reason else None,
            pause_reason=reason,
        )
        ended = self._save(
            tx,
            task,
            state=after(task.state, move),
            message=message,
            wish=None,
            next_call=next_call,
            calls=max(task.calls, next_call or 0),
        )
        self._tell(tx, ended.id, f"run_{move}", run=run.number, exit_code=run.exit_code, signal=run.signal)
        self._wake_parent(tx, ended)
        return ended

    # --- inside a run ----------------------------------------------------------------------------------------------

    def ask(self, run_id: str, question: Question) -> Ask:
        """Register a question of a running process, or return it with its answer. The n-th with a key is the n-th ask."""
        key = f"{ASKED}{question.key}"
        with self._store.change() as tx:
            task, run = self._running(tx, run_id)
            slot = slot_of(task.session_id, key, 1 + tx.count_turns(run.id, key))
            ask = self._earlier_ask(tx, question, slot=slot)
            if ask is None:
                asked = Asked(prompt=question.prompt, choices=question.choices, key=question.key, slot=slot)
                ask, _ = self._open_ask(tx, task, run, AskKind.QUESTION, **asked)
            tx.add_turn(Turn(run_id=run.id, key=key, thing=ask.id, left_open=ask.is_open))
            return ask

    def _earlier_ask(self, tx: Change, question: Question, *, slot: str) -> Ask | None:
        ask = tx.ask_in_slot(slot)
        if ask and ask.is_open and (ask.prompt, ask.choices) != (question.prompt, question.choices):
            self._withdraw(tx, ask)
            return None
        return ask

    def _open_ask(self, tx: Change, task: Task, run: Run, kind: AskKind, **what: Unpack[Asked]) -> tuple[Ask, Task]:
        ask = Ask(
            id=self._new_id(),
            task_id=task.id,
            number=task.asks + 1,
            run=run.number,
            kind=kind,
            created_at=self._clock(),
            **what,
        )
        tx.add_ask(ask)
        self._tell(tx, task.id, "ask_opened", ask=ask.id, ask_kind=kind.value, call=ask.call)
        return ask, self._save(tx, task, asks=ask.number)

    def _running(self, view: View, name: str) -> tuple[Task, Run]:
        task = view.task(task_of_run(name))
        run = view.run(task.id, number_of_run(name))
        if run.state is not RunState.RUNNING:
            sentence = f"run {run.id} has ended: it is {run.state}"
            raise Conflict(sentence, way_out=f"adjourn show {task.id}")
        return task, run

    # --- a person replies ------------------------------------------------------------------------------------------

    def decide(self, replies: Sequence[Reply], *, by: Principal) -> list[Ask]:
        """Record replies, all or none. The first reply to an ask wins; everyone else is told who, when and what."""
        with self._store.change() as tx:
            settled = [self._reply(tx, reply, by=by) for reply in replies]
            for task_id in dict.fromkeys(ask.task_id for ask in settled):
                self._go_on(tx, tx.task(task_id), by=by)
            return settled

    def authorise(self, by: Principal, verb: str) -> None:
        """Refuse whoever may not do this."""
        if by.inside_run:
            sentence = f"{verb} is refused inside a run: what runs under adjourn may ask, never decide"
            raise NotAllowed(sentence, way_out="decide from a terminal of your own")

    def _reply(self, tx: Change, reply: Reply, *, by: Principal) -> Ask:
        self.authorise(by, reply.verb)
        ask = tx.ask(reply.ask_id)
        self._fits(tx, ask, reply)
        if reply.verb is not Verb.ANSWER:
            self._decide_call(tx, ask, reply, by=by)
        return self._settle_ask(tx, ask, _ASK_MOVES[reply.verb], text=reply.text, by=by.name)

    def _fits(self, view: View, ask: Ask, reply: Reply) -> None:
        if not ask.is_open:
            refuse_settled(ask)
        if ask.kind is not _KINDS.get(reply.verb):
            raise Misuse(f"ask {ask.id} is of the kind {ask.kind}: {reply.verb} does not fit it", way_out=_proper_verb(ask))
        if ask.choices and reply.verb is Verb.ANSWER and reply.text not in ask.choices:
            raise Misuse(f"ask {ask.id} takes one of: {', '.join(ask.choices)}", way_out=_proper_verb(ask))
        if reply.digest and ask.call and view.call(ask.task_id, ask.call).digest != reply.digest:
            raise Conflict("the call is not the one that was shown", way_out=f"adjourn show {ask.task_id}")

    def _decide_call(self, tx: Change, ask: Ask, reply: Reply, *, by: Principal) -> None:
        task = tx.task(ask.task_id)
        if reply.verb is Verb.REJECT:
            self._move_call(tx, task, ask.call or 0, CallMove.REJECT)
            return
        body = command_body(approved_command(task.spec, reply.text or DEFAULT_VALUE))
        self._move_call(tx, task, ask.call or 0, CallMove.APPROVE, body=body, digest=digest_of(body), approved_by=by.name)

    def _settle_ask(self, tx: Change, ask: Ask, move: AskMove, *, text: str | None, by: str) -> Ask:
        settled = msgspec.structs.replace(
            ask, state=ask_after(ask.state, move), reply=text, settled_by=by, settled_at=self._clock()
        )
        tx.save_ask(ask, settled)
        self._tell(tx, ask.task_id, f"ask_{settled.state}", by=by, ask=ask.id, call=ask.call)
        return settled

    def _go_on(self, tx: Change, task: Task, *, by: Principal) -> Task:
        """Queue a waiting task whose last ask was settled, or fail it where a rejection does that."""
        if task.state is not TaskState.WAITING:
            return task
        rejected = next((ask for ask in tx.asks_of_run(task.id, task.runs) if ask.state is AskState.REJECTED), None)
        if rejected and task.spec.on_rejection is OnRejection.FAIL:
            return self._refuse(tx, task, rejected, by=by)
        if self._is_blocked(tx, task, tx.run(task.id, task.runs)):
            return task
        return self._enqueue(tx, task, Move.SETTLE, by=by.name)

    def _refuse(self, tx: Change, task: Task, rejected: Ask, *, by: Principal) -> Task:
        self._withdraw_asks(tx, task)
        reason = f"rejected by {rejected.settled_by}" + (f": {rejected.reply}" if rejected.reply else "")
        failed = self._save(tx, task, state=after(task.state, Move.REFUSE), message=reason)
        self._tell(tx, failed.id, "task_refused", by=by.name, ask=rejected.id)
        self._wake_parent(tx, failed)
        return failed

    def _enqueue(self, tx: Change, task: Task, move: Move, *, by: str) -> Task:
        call = self._next_call(tx, task, by=by)
        queued = self._save(
            tx,
            task,
            state=after(task.state, move),
            message=None,
            wish=None,
            next_call=call.number,
            calls=max(task.calls, call.number),
        )
        self._tell(tx, queued.id, f"task_{move}", by=by, call=call.number, digest=call.digest)
        return queued

    def _next_call(self, tx: Change, task: Task, *, by: str) -> Call:
        """Return the call to run next: the one that was approved, else the task's own command once more."""
        approved = tx.calls_in(task.id, CallState.APPROVED)
        if approved:
            return approved[-1]
        call = self._first_call(task, by=by)
        tx.add_call(call)
        return call

    def settle(self, task_id: str, call_number: int, verdict: Verdict, *, by: Principal) -> Task:
        """Take a person's word on what became of an uncertain call."""
        self.authorise(by, Verb.SETTLE)
        with self._store.change() as tx:
            task = tx.task(task_id)
            ask = self._uncertain_ask(tx, task, call_number)
            call_move, move = _VERDICTS[verdict]
            call = self._move_call(tx, task, call_number, call_move)
            self._settle_ask(tx, ask, AskMove.SETTLE, text=verdict, by=by.name)
            message = f"{by.name} says of {call.tool_call_id}: {verdict}"
            next_call = call_number if move is Move.SETTLE else None
            settled = self._save(tx, task, state=after(task.state, move), message=message, next_call=next_call)
            self._tell(tx, settled.id, "call_settled", by=by.name, call=call_number, verdict=verdict.value)
            self._wake_parent(tx, settled)
            return settled

    def _uncertain_ask(self, view: View, task: Task, call_number: int) -> Ask:
        call = view.call(task.id, call_number)
        asks = [ask for ask in view.asks_of_run(task.id, task.runs) if ask.kind is AskKind.UNCERTAIN]
        if not asks or asks[-1].call != call_number:
            raise Conflict(f"call {call.id} is {call.state}, not uncertain", way_out=f"adjourn show {task.id}")
        return asks[-1] if asks[-1].is_open else refuse_settled(asks[-1])

    # --- a person moves a task -------------------------------------------------------------------------------------

    def resume(self, task_id: str, resumption: Resumption = PLAIN, *, by: Principal) -> Task:
        """Take the replies that a resume carries, and queue the task if nothing is left to settle."""
        with self._store.change() as tx:
            task = tx.task(task_id)
            replies = replies_of(resumption, tx.asks_of_run(task.id, task.runs))
            if replies:
                for reply in replies:
                    self._reply(tx, reply, by=by)
                return self._go_on(tx, tx.task(task_id), by=by)
            return self._resume_plainly(tx, task, by=by)

    def _resume_plainly(self, tx: Change, task: Task, *, by: Principal) -> Task:
        if task.state in {TaskState.QUEUED, TaskState.WAITING}:
            return task
        if not allows(task.state, Move.RESUME):
            raise Conflict(f"task {task.id} is {task.state}: there is nothing to resume", way_out=_way_on(task))
        return self._enqueue(tx, task, Move.RESUME, by=by.name)

    def restart(self, task_id: str, *, by: Principal, workspace: str) -> Task:
        """Queue a task from nothing, with a new session. Its history stays."""
        with self._store.change() as tx:
            task = tx.task(task_id)
            after(task.state, Move.RESTART)
            self._require_certainty(tx, task)
            self._withdraw_asks(tx, task)
            self._withdraw_calls(tx, task)
            spec = msgspec.structs.replace(task.spec, workspace=workspace)
            fresh = self._save(tx, task, spec=spec, session_id=self._new_id())
            return self._enqueue(tx, fresh, Move.RESTART, by=by.name)

    def _require_certainty(self, view: View, task: Task) -> None:
        for call in view.calls_in(task.id, CallState.UNCERTAIN):
            raise Conflict(f"call {call.id} may have run", way_out=f"adjourn settle {call.id} it-ran|it-did-not|run-again")

    def cancel(self, task_id: str, *, by: Principal) -> Task:
        """End a task; a running one is told to stop and ends when its process has."""
        return self._stop(task_id, Wish.CANCEL, by=by)

    def pause(self, task_id: str, *, by: Principal) -> Task:
        """Pause a task; a running one is told to stop and is paused when its process has."""
        return self._stop(task_id, Wish.PAUSE, by=by)

    def _stop(self, task_id: str, wish: Wish, *, by: Principal) -> Task:
        move = Move(wish)
        with self._store.change() as tx:
            task = tx.task(task_id)
            state = after(task.state, move)
            if task.state is TaskState.WAITING and move is Move.PAUSE:
                raise Conflict(f"task {task.id} is waiting: no process of it runs", way_out=f"adjourn show {task.id}")
            if task.wish is Wish.CANCEL:
                raise Conflict(f"task {task.id} is being canceled", way_out=f"adjourn wait {task.id}")
            if task.state is TaskState.RUNNING:
                wished = self._save(tx, task, wish=wish)
                self._tell(tx, wished.id, f"{wish}_requested", by=by.name)
                return wished
            if move is Move.CANCEL:
                self._require_certainty(tx, task)
                self._withdraw_asks(tx, task)
                self._withdraw_calls(tx, task)
            stopped = self._save(tx, task, state=state, message=f"{state} by {by.name}", next_call=None)
            self._tell(tx, stopped.id, f"task_{state}", by=by.name)
            self._wake_parent(tx, stopped)
            return stopped

    def forget(self, task_id: str, *, by: Principal) -> None:
        """Drop an ended task from the store; the digests of its events stay."""
        with self._store.change() as tx:
            task = tx.task(task_id)
            if task.state not in ENDED:
                raise Conflict(
                    f"task {task.id} is {task.state}: only ended tasks are pruned", way_out=f"adjourn cancel {task.id}"
                )
            parent = self._parent(tx, task)
            if parent and parent.state not in ENDED:
                raise Conflict(f"task {parent.id} started it and still needs it", way_out=f"adjourn show {parent.id}")
            self._tell(tx, task.id, "task_pruned", by=by.name)
            tx.forget_task(task_id)

    # --- what a dead supervisor left -------------------------------------------------------------------------------

    def recover(self) -> list[Task]:
        """Settle every run whose supervisor is gone: adopt nothing, start nothing, lose nothing."""
        with self._store.read() as view:
            running = [(task, view.run(task.id, task.runs)) for task in view.running()]
        orphans = [run for _, run in running if not self._processes.supervisor_lives(run.supervisor)]
        return [task for run in orphans if (task := self._recover_run(run.task_id, run.number))]

    def _recover_run(self, task_id: str, number: int) -> Task | None:
        # Read again: the supervisor may have written between our first look and its death.
        with self._store.read() as view:
            run = view.run(task_id, number)
        if run.state is not RunState.RUNNING:
            return None
        try:
            return self._settle_orphan(run)
        except Conflict:
            return None  # another command settled it first

    def _settle_orphan(self, run: Run) -> Task | None:
        if run.shim is None:
            return self.release(run, why="its supervisor died before the gate opened")
        match self._processes.shim_state(run.id, run.shim):
            case NeverStarted():
                return self.release(run, why="its supervisor died before the gate opened")
            case Ended(exit=exit):
                return self.finish(run, exit)
            case Vanished():
                return self.lose(run)
            case StillRuns() | _:
                return None

    # --- the small steps all of these are made of ------------------------------------------------------------------

    def _save(self, tx: Change, task: Task, **changes: object) -> Task:
        new = msgspec.structs.replace(task, updated_at=self._clock(), version=task.version + 1, **changes)
        tx.save_task(task, new)
        return new

    def _save_run(self, tx: Change, run: Run, **changes: object) -> Run:
        new = msgspec.structs.replace(run, updated_at=self._clock(), version=run.version + 1, **changes)
        tx.save_run(run, new)
        return new

    def _move_call(self, tx: Change, task: Task, number: int, move: CallMove, **changes: object) -> Call:
        call = tx.call(task.id, number)
        if move is CallMove.RELEASE:
            changes["claimed_by"] = None
        moved = msgspec.structs.replace(call, state=call_after(call.state, move), version=call.version + 1, **changes)
        tx.save_call(call, moved)
        return moved

    def _withdraw_asks(self, tx: Change, task: Task) -> None:
        for ask in tx.open_asks_of(task.id):
            self._withdraw(tx, ask)

    def _withdraw(self, tx: Change, ask: Ask) -> None:
        self._settle_ask(tx, ask, AskMove.WITHDRAW, text=None, by=ADJOURN)
        if ask.call and tx.call(ask.task_id, ask.call).state is CallState.PENDING:
            self._move_call(tx, tx.task(ask.task_id), ask.call, CallMove.WITHDRAW)

    def _withdraw_calls(self, tx: Change, task: Task) -> None:
        for call in tx.calls_in(task.id, CallState.APPROVED):
            self._move_call(tx, task, call.number, CallMove.WITHDRAW)

    def _wake_parent(self, tx: Change, task: Task) -> None:
        """Queue the task that left because this one was not done."""
        parent = self._parent(tx, task)
        if task.state not in ENDED or parent is None or parent.state is not TaskState.WAITING:
            return
        if any(turn.thing == task.id for turn in tx.turns_left_open(run_id(parent.id, parent.runs))):
            self._go_on(tx, parent, by=Principal(name=ADJOURN))

    def _parent(self, view: View, task: Task) -> Task | None:
        """Return the task in whose run this one was started, unless it was pruned or lives in another store."""
        if task.parent_task is None:
            return None
        try:
            return view.task(task.parent_task)
        except NotFound:
            return None

    def _tell(self, tx: Change, task_id: str, kind: str, *, by: str = ADJOURN, **facts: str | int | None) -> None:
        known: dict[str, str | int | None] = {name: fact for name, fact in facts.items() if fact is not None}
        tx.append(Event(task_id=task_id, kind=kind, by=by, at=self._clock(), facts=known))


def approved_command(spec: Spec, value: str) -> Command:
    """Return the command that an approval with that value starts."""
    decision = (f"--approval-decision={value}",) if spec.decision_arg else ()
    return Command(argv=(*spec.argv, *decision), cwd=spec.workspace, env={AUTO_APPROVAL: value})


def _the_one(found: list[str], text: str, *, thing: str, way_out: str) -> str:
    if len(found) == 1:
        return found[0]
    if not found:
        raise NotFound(f"no {thing} is called {visible(text) or '(nothing)'}", way_out=way_out)
    raise Ambiguous(f"several {thing}s begin with {visible(text)}: {', '.join(found)}", way_out=way_out)


def _way_on(task: Task) -> str:
    verb = "wait" if task.state is TaskState.RUNNING else "restart"
    return f"adjourn {verb} {task.id}"


def _proper_verb(ask: Ask) -> str:
    match ask.kind:
        case AskKind.APPROVAL:
            return f"adjourn approve {ask.id}"
        case AskKind.QUESTION:
            return f"adjourn answer {ask.id} TEXT"
        case AskKind.UNCERTAIN:
            return f"adjourn settle {ask.task_id}.tc_{ask.call} it-ran|it-did-not|run-again"
