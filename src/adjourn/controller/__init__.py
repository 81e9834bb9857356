"""The only place where a task changes."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cached_property

import msgspec

from adjourn.controller import endings, histories, inside, openings, trust
from adjourn.controller.steps import ADJOURN, LEFT, Steps, parent_of, standing_of, state_after
from adjourn.core.ask import Ask, AskKind, Principal, Proposal, Question, Reply, Verb, Verdict, refuse_settled
from adjourn.core.call import COMMAND, Call, command_of, digest_of, grant_of, slot_of
from adjourn.core.clarification import Clarification, Request
from adjourn.core.errors import (
    AdjournError,
    Ambiguous,
    Conflict,
    Item,
    Misuse,
    MoveRefused,
    NotFound,
    NothingRecorded,
    Outdated,
    StaleCheckpoint,
    StoreProblem,
)
from adjourn.core.identity import ProcessId
from adjourn.core.judgement import Effect
from adjourn.core.opening import Obstacle, Opening, OwnAsk, Way
from adjourn.core.outcome import Exit
from adjourn.core.receipt import Receipt
from adjourn.core.render import command_line, visible
from adjourn.core.resumption import PLAIN, Resumption, replies_of
from adjourn.core.scene import Scene
from adjourn.core.signed import LIFETIME, Decision, Signed
from adjourn.core.states import ENDED, AskMove, AskState, CallMove, CallState, Move, TaskState, allows
from adjourn.core.task import TRIES, Milliseconds, Run, RunState, Spec, Task, Wish
from adjourn.core.when import stamp
from adjourn.ports import (
    Authoriser,
    Clock,
    Ended,
    FindRunner,
    Gate,
    NeverStarted,
    NewId,
    Processes,
    Signatures,
    StillRuns,
    Store,
    Turn,
    Vanished,
    View,
)

_LONGEST_VALUE = 4096

_ASK_MOVES = {Verb.APPROVE: AskMove.APPROVE, Verb.REJECT: AskMove.REJECT, Verb.ANSWER: AskMove.ANSWER}
_KINDS = {Verb.APPROVE: AskKind.APPROVAL, Verb.REJECT: AskKind.APPROVAL, Verb.ANSWER: AskKind.QUESTION}
_SNOOZING = {True: "ask_snoozed", False: "ask_woken"}
_VERDICTS = {
    Verdict.IT_RAN: (CallMove.IT_RAN, Move.ACCEPT),
    Verdict.IT_DID_NOT: (CallMove.IT_DID_NOT, Move.PAUSE),
    Verdict.RUN_AGAIN: (CallMove.RUN_AGAIN, Move.SETTLE),
}


class Claimed(msgspec.Struct, frozen=True):
    """What a supervisor holds once it may start a run."""

    task: Task
    run: Run
    call: Call

    @property
    def grant(self) -> bytes:
        """The proof of an approval that the process can read once, or nothing where nobody approved."""
        return grant_of(self.call) if self.call.ask else b""


class Controller:
    """Applies the rules. Every surface and every supervisor calls it; nothing else writes to the store."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        new_id: NewId,
        find_runner: FindRunner,
        processes: Processes,
        open_gate: Callable[[], Gate],
        authoriser: Authoriser,
        signatures: Signatures,
    ) -> None:
        self._store = store
        self._open_gate = open_gate
        self._trust = trust.Trust(authoriser, signatures)
        self._clock = clock
        self._new_id = new_id
        self._find_runner = find_runner
        self._processes = processes

    @property
    def store(self) -> Store:
        """The store, for reading."""
        return self._store

    @cached_property
    def _gate(self) -> Gate:
        """What judges commands; made when the first is judged, for most who open a store only decide."""
        return self._open_gate()

    @contextmanager
    def _steps(self) -> Generator[Steps, None, None]:
        with self._store.change() as tx:
            yield Steps(tx, now=self._clock(), new_id=self._new_id)

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
            return view.ask(_named_ask(view, text))

    def find_asks(self, texts: Sequence[str]) -> list[str]:
        """Return the ids of the asks that ids or unique prefixes name, each once; of several, one that names none is kept."""
        with self._store.read() as view:
            if len(texts) == 1:
                return [_named_ask(view, texts[0])]
            return list(dict.fromkeys(_named_if_any(view, text) for text in texts))

    def scene(self, task_id: str) -> Scene:
        """Return a task with its last run and the asks of it, as of one moment."""
        with self._store.read() as view:
            task = view.task(task_id)
            run = view.run(task_id, task.runs) if task.runs else None
            asks = tuple(view.asks_of_run(task_id, task.runs))
            calls = {ask.call: view.call(task_id, ask.call) for ask in asks if ask.call}
            children = standing_of(view, task, run).open_children if run and task.state is TaskState.WAITING else ()
            return Scene(task=task, run=run, asks=asks, calls=calls, waiting_on=children, **histories.of_asks(view, asks, calls))

    def require_newest(self, text: str, task: Task) -> None:
        """Refuse a checkpoint that was left behind: what it stands for has been decided, or has changed."""
        with self._store.read() as view:
            _require_newest(view, task, named=text)

    # --- a task begins ---------------------------------------------------------------------------------------------

    def start(self, spec: Spec, *, by: Principal, key: str | None = None, supervisor: str | None = None) -> Task:
        """Queue a new task. Inside a run, the n-th start with the same key returns the n-th task of that key.

        For a supervisor that means to run it itself it is claimed in the same moment: no worker sees it in the queue.
        """
        self.authorise(by, "start")
        opening = self._gate.opening(spec)
        with self._steps() as step:
            spec = openings.under_policy(step, spec, opening)
            if spec.parent_run and key:
                task = self._start_child(step, spec, opening, by=by, key=key)
            else:
                task = self._create(step, spec, opening, by=by)
            return self._taken(step, task, supervisor, is_judged=opening.way is Way.RUN and not task.runs)

    def _create(self, step: Steps, spec: Spec, opening: Opening, *, by: Principal, slot: str | None = None) -> Task:
        runs = opening.way is Way.RUN
        task = Task(
            id=step.new_id(),
            spec=spec,
            state=TaskState.QUEUED,
            session_id=step.new_id(),
            created_at=step.now,
            updated_at=step.now,
            calls=1 if runs else 0,
            next_call=1,
            slot=slot,
        )
        step.tx.add_task(task)
        step.tell(task.id, "task_created", by=by.name, parent=spec.parent_run, judged=opening.told)
        if not runs:
            return openings.enter(step, task, opening, by=by.name)
        uncounted = msgspec.structs.replace(task, calls=0)
        step.new_call(uncounted, opening.command, state=CallState.APPROVED, by=openings.let_through_by(opening, by.name))
        return task

    def _start_child(self, step: Steps, spec: Spec, opening: Opening, *, by: Principal, key: str) -> Task:
        parent, run = step.running(spec.parent_run or "")
        slot = slot_of(parent.session_id, key, 1 + step.tx.count_turns(run.id, key))
        child = step.tx.task_in_slot(slot) or self._create(step, spec, opening, by=by, slot=slot)
        step.tx.add_turn(Turn(run_id=run.id, key=key, thing=child.id))
        return child

    def leave_open(self, parent_run: str, child: Task) -> None:
        """Remember that a run was told that the task it started is not done."""
        with self._steps() as step:
            _, run = step.running(parent_run)
            step.tx.add_turn(Turn(run_id=run.id, key=f"{LEFT}{child.id}", thing=child.id, left_open=True))

    # --- a run begins ----------------------------------------------------------------------------------------------

    def claim(self, task_id: str, *, supervisor: str) -> Claimed | Task:
        """Take a queued task for one run. Of many who try, one gets it; if what was let through has changed, nobody does."""
        seen, obstacle = self._look_ahead(task_id)
        with self._steps() as step:
            task = step.tx.task(task_id)
            state_after(task, Move.START)
            if step.tx.call(task.id, task.next_call or 0) != seen:
                raise Outdated(f"task {task.id} changed while its command was looked at", way_out=f"adjourn show {task.id}")
            return openings.stop(step, task, obstacle) if obstacle else self._claim(step, task, supervisor)

    def _claim(self, step: Steps, task: Task, supervisor: str) -> Claimed:
        state = state_after(task, Move.START)
        call = step.move_call(task.id, task.next_call or 0, CallMove.CLAIM, claimed_by=supervisor)
        run = step.new_run(task, call=call.number, supervisor=supervisor)
        started = step.save(task, state=state, runs=run.number)
        step.tx.hold(run)
        step.tell(started.id, "run_claimed", run=run.number, call=call.number)
        return Claimed(task=started, run=run, call=call)

    def _taken(self, step: Steps, task: Task, supervisor: str | None, *, is_judged: bool = False) -> Task:
        """Claim a task that was queued just now, if somebody means to run it and nothing stands in the way."""
        if supervisor is None or task.state is not TaskState.QUEUED:
            return task
        call = step.tx.call(task.id, task.next_call or 0)
        obstacle = None if is_judged else self._obstacle(step.tx, task, call)
        return openings.stop(step, task, obstacle) if obstacle else self._claim(step, task, supervisor).task

    def claimed(self, task_id: str, *, supervisor: str) -> Claimed | None:
        """Return what a supervisor has claimed and not yet started, if it has."""
        with self._store.read() as view:
            task = view.task(task_id)
            run = view.run(task_id, task.runs) if task.state is TaskState.RUNNING else None
            if run is None or run.supervisor != supervisor or run.shim:
                return None
            return Claimed(task=task, run=run, call=view.call(task_id, run.call))

    def _look_ahead(self, task_id: str) -> tuple[Call, Obstacle | None]:
        """Look at the call that a queued task is to run, outside of any transaction: files may be large."""
        with self._store.read() as view:
            task = view.task(task_id)
            state_after(task, Move.START)
            call = view.call(task.id, task.next_call or 0)
            return call, self._obstacle(view, task, call)

    def _obstacle(self, view: View, task: Task, call: Call) -> Obstacle | None:
        """Say what keeps a call that was let through from starting: other bytes, a signature, files or policies."""
        return self._trust.obstacle(view, task, call) or self._gate.obstacle(view, task, call)

    def execute(self, run: Run, *, shim: ProcessId) -> Run:
        """Write down that the gate is about to open. From here on only a result or a person moves the call."""
        with self._steps() as step:
            task, current = step.held(run)
            step.tx.hold(current)  # anew: what was claimed may have waited for its shim
            call = step.move_call(task.id, current.call, CallMove.EXECUTE)
            executing = step.save_run(current, shim=shim)
            step.tell(task.id, "call_executing", run=run.number, call=call.number, digest=call.digest, pid=shim.pid)
            return executing

    def adopt(self, run: Run, *, supervisor: str) -> Run:
        """Take over a run whose supervisor is gone; of many who try, one gets it."""
        with self._steps() as step:
            task, current = step.running(run.id)
            if current != run:
                raise Conflict(f"run {run.id} was taken over by somebody else", way_out=f"adjourn show {task.id}")
            step.tx.wrest(current, only_if_over=self._processes.supervisor_lives(run.supervisor))
            call = step.tx.call(task.id, run.call)
            step.tx.save_call(call, msgspec.structs.replace(call, claimed_by=supervisor, version=call.version + 1))
            adopted = step.save_run(current, supervisor=supervisor)
            step.tx.hold(adopted)
            step.tell(task.id, "run_adopted", run=run.number)
            return adopted

    # --- a run ends ------------------------------------------------------------------------------------------------

    def finish(self, run: Run, exit: Exit) -> Task:  # noqa: A002 -- the word for it
        """Record how a run ended, and what that means for its task."""
        own = self._own_ask(run, exit)
        with self._steps() as step:
            return self._finish(step, *step.held(run), exit, own)

    def _finish(self, step: Steps, task: Task, current: Run, exit: Exit, own: OwnAsk) -> Task:  # noqa: A002 -- the word for it
        if exit.left and inside.is_known(step.tx, task, exit.left):
            exit = msgspec.structs.replace(exit, left=None)  # noqa: A001 -- the word for it
        if exit.left and exit.may_leave_asks:
            inside.register_left(step, task, current, exit.left)
            task = step.tx.task(task.id)
        outcome = self._find_runner(task.spec.runner).meaning(exit, standing_of(step.tx, task, current))
        ended = step.save_run(current, exit_code=exit.code, signal=exit.signal)
        return endings.conclude(step, task, ended, outcome, own)

    def _own_ask(self, run: Run, exit: Exit) -> OwnAsk:  # noqa: A002 -- the word for it
        """Look at what a process that wants its own command approved depends on."""
        if not exit.wants_a_person:
            return OwnAsk()
        with self._store.read() as view:
            if view.turns_left_open(run.id):
                return OwnAsk()  # it waits for answers, or for another task
            return self._gate.own_ask(view, view.task(run.task_id))

    def release(self, run: Run, *, why: str) -> Task:
        """Give back a run whose call provably did not start."""
        with self._steps() as step:
            return endings.release(step, *step.held(run), why=why)

    def fail_to_start(self, run: Run, *, why: str, tries: int = TRIES) -> Task:
        """Give back a run that could not be started; after some tries, fail its task."""
        with self._steps() as step:
            return endings.fail_to_start(step, *step.held(run), why=why, tries=tries)

    def lose(self, run: Run, *, tries: int = TRIES) -> Task:
        """Ask a person what became of a call whose process vanished, unless the policy says that a second run does no harm."""
        with self._steps() as step:
            return self._lose(step, *step.held(run), tries=tries)

    def _lose(self, step: Steps, task: Task, current: Run, *, tries: int = TRIES) -> Task:
        call = step.tx.call(task.id, current.call)
        if self._gate.effect(step.tx, task, call) is not Effect.UNKNOWN and task.tries + 1 < tries:
            return endings.fail_to_start(step, task, current, why="it vanished without a trace", tries=tries)
        return endings.lose(step, task, current)

    # --- inside a run ----------------------------------------------------------------------------------------------

    def ask(self, run_id: str, question: Question) -> Ask:
        """Register a question of a running process, or return it with its answer. The n-th with a key is the n-th ask."""
        with self._steps() as step:
            found, _ = inside.ask(step, *step.running(run_id), question)
            return found

    def clarify(self, run_id: str, request: Request) -> tuple[Clarification, list[Ask]]:
        """Register the questions of a running process, all in one moment, or return them with their answers."""
        with self._steps() as step:
            return inside.register(step, *step.running(run_id), request)

    def collect(self, run_id: str, ask_ids: Sequence[str]) -> list[Ask]:
        """Return asks to the running process that waits for them, if all are settled; else nothing."""
        with self._steps() as step:
            _, run = step.running(run_id)
            return inside.collect(step, run, ask_ids)

    def propose(self, run_id: str, proposal: Proposal) -> tuple[Ask, Call]:
        """Put a call of a running process before a person; an approved one is handed out to it, once."""
        with self._steps() as step:
            task, run = step.running(run_id)
            judgement = self._gate.judge(step.tx, task, proposal.tool, proposal.body)
            return inside.propose(step, task, run, proposal, judgement, check=self._trust.require_genuine)

    def close_call(self, run_id: str, call: Call, move: CallMove) -> None:
        """Take a process's word on what became of the call that it was handed."""
        with self._steps() as step:
            task, run = step.running(run_id)
            step.move_call(task.id, call.number, move)
            step.tell(task.id, "call_closed", run=run.number, call=call.number, move=move.value)

    def keep(self, task_id: str, name: str, body: bytes | None) -> None:
        """Keep a document of a task: what its process saved, its checkpoint, or which response was taken."""
        with self._steps() as step:
            step.tx.keep_document(task_id, name, body)

    def kept(self, task_id: str, name: str) -> bytes | None:
        """Return a document of a task."""
        with self._store.read() as view:
            return view.document(task_id, name)

    def answers(self, task_id: str) -> dict[str, str] | None:
        """Return the answers to a task's newest clarification, or None while it has none or is not answered whole."""
        with self._store.read() as view:
            clarification = inside.clarification_of(view, task_id)
            asks = [view.ask(ask_id) for ask_id in clarification.asks] if clarification else []
        if not asks or any(ask.state is not AskState.ANSWERED for ask in asks):
            return None
        return {ask.key or ask.id: ask.reply or "" for ask in asks}

    # --- a person replies ------------------------------------------------------------------------------------------

    def decide(self, replies: Sequence[Reply], *, by: Principal) -> list[Ask]:
        """Record replies, all or none. The first reply to an ask wins; everyone else is told who, when and what."""
        looked_at = [self._looked_at(reply) for reply in replies]
        with self._steps() as step:
            return self._decide(step, looked_at, by=by)

    def edited(self, ask_id: str, arguments: bytes) -> Call:
        """Return an open ask's call with other arguments, and the files that it would then depend on; nothing is recorded."""
        from adjourn.controller.edits import changed  # seldom: most calls are approved as they are

        with self._store.read() as view:
            ask = view.ask(ask_id)
            if not ask.is_open:
                refuse_settled(ask)
            task, call = view.task(ask.task_id), view.call(ask.task_id, ask.call or 0)
            return changed(view, task, call, arguments, look=self._gate.look)[0]

    def _looked_at(self, reply: Reply) -> Reply:
        """Look at the files of an edited command outside of the transaction, unless whoever edited it has."""
        if reply.files is not None or reply.edited is None:
            return reply
        call = self.edited(reply.ask_id, reply.edited)
        return msgspec.structs.replace(reply, files=command_of(call.body).files if call.tool == COMMAND else {})

    def respond(self, task_id: str, replies: Sequence[Reply], *, digest: bytes, by: Principal) -> list[Ask]:
        """Record the answers of a response file, and which file that was: however often it is seen, it counts once."""
        with self._steps() as step:
            if step.tx.document(task_id, inside.RESPONSE) == digest:
                return []  # somebody took it in this very moment
            step.tx.keep_document(task_id, inside.RESPONSE, digest)
            return self._decide(step, replies, by=by)

    def decide_signed(self, signed: Sequence[Signed], *, carried_by: Principal) -> list[Ask]:
        """Record decisions that somebody signed, all or none; the same ones once more change nothing."""
        proven = [self._trust.signed_reply(each, carried_by=carried_by) for each in signed]
        with self._steps() as step:
            settled = [self._reply_signed(step, each, *proof) for each, proof in zip(signed, proven, strict=True)]
            return self._gone_on(step, settled)

    def _reply_signed(self, step: Steps, signed: Signed, by: Principal, decision: Decision) -> Ask:
        self.authorise(by, decision.reply.verb)
        known = trust.known_before(step, signed, decision)
        if known:
            return known
        trust.admit(step, decision)
        ask = self._reply(step, decision.reply, by=by)
        trust.keep_signature(step, ask, signed, decision)
        return ask

    def decide_once(self, name: str, fingerprint: bytes, replies: Sequence[Reply], *, by: Principal) -> list[Ask]:
        """Record replies that came under a name that serves once; the same ones once more change nothing."""
        self.authorise(by, replies[0].verb)
        with self._steps() as step:
            kept = step.tx.shared_document(name)
            if kept is None:
                step.tx.keep_shared_document(name, fingerprint)
                return self._decide(step, replies, by=by)
            if kept != fingerprint:
                raise Conflict("that id was used for another decision", way_out="send it with an id of its own")
            return [step.tx.ask(reply.ask_id) for reply in replies]

    def decision_on(self, reply: Reply, *, lifetime: int = LIFETIME) -> Decision:
        """Return what a person signs to give that reply."""
        looked_at = self._looked_at(reply)
        with self._store.read() as view:
            return trust.decision_on(view, looked_at, now=self._clock(), lifetime=lifetime)

    def receipts(self, asks: Sequence[Ask]) -> list[Receipt]:
        """Return the proof of replies that were recorded."""
        with self._store.read() as view:
            return trust.receipts(view, asks)

    def _decide(self, step: Steps, replies: Sequence[Reply], *, by: Principal) -> list[Ask]:
        step.tx.hold_asks([reply.ask_id for reply in replies])
        return self._gone_on(step, self._all_or_none(step, replies, by=by))

    def _gone_on(self, step: Steps, settled: list[Ask]) -> list[Ask]:
        for task_id, by in {ask.task_id: ask.settled_by for ask in settled}.items():
            step.go_on(step.tx.task(task_id), by=by or ADJOURN)
        return settled

    def _all_or_none(self, step: Steps, replies: Sequence[Reply], *, by: Principal) -> list[Ask]:
        """Take every reply, or refuse all of them with what is wrong with each."""
        tried = [self._tried(step, reply, by=by) for reply in replies]
        settled = [one for one in tried if isinstance(one, Ask)]
        if len(settled) == len(replies):
            return settled
        if len(replies) == 1 and isinstance(tried[0], AdjournError):
            raise tried[0]
        raise NothingRecorded.of([_item(reply, came) for reply, came in zip(replies, tried, strict=True)])

    def _tried(self, step: Steps, reply: Reply, *, by: Principal) -> Ask | AdjournError:
        """Take a reply, or return why not: whoever gets an error must not let the transaction end well."""
        try:
            return self._reply(step, reply, by=by)
        except StoreProblem:
            raise
        except AdjournError as error:
            return error

    def authorise(self, by: Principal, verb: str) -> None:
        """Refuse whoever may not do this."""
        self._trust.authorise(by, verb)

    def _reply(self, step: Steps, reply: Reply, *, by: Principal) -> Ask:
        self.authorise(by, reply.verb)
        ask = step.tx.ask(reply.ask_id)
        self._fits(step.tx, ask, reply)
        level = self._trust.weigh(step.tx, ask, reply.verb, by=by)
        if reply.verb is not Verb.ANSWER:
            self._decide_call(step, ask, reply, by=by)
        return step.settle_ask(ask, _ASK_MOVES[reply.verb], text=reply.text, by=by.name, level=level)

    def _fits(self, view: View, ask: Ask, reply: Reply) -> None:
        if not ask.is_open:
            refuse_settled(ask)
        if ask.kind is not _KINDS.get(reply.verb):
            raise Misuse(f"ask {ask.id} is of the kind {ask.kind}: {reply.verb} does not fit it", way_out=_proper_verb(ask))
        if ask.choices and reply.verb is Verb.ANSWER and reply.text not in ask.choices:
            choices = ", ".join(visible(choice) for choice in ask.choices)
            raise Misuse(f"ask {ask.id} takes one of: {choices}", way_out=_proper_verb(ask))
        if ask.gate and reply.verb is Verb.APPROVE and reply.text is not None:
            raise Misuse(f"ask {ask.id} takes no value: its command has not started yet", way_out=_proper_verb(ask))
        if reply.verb is Verb.APPROVE and len((reply.text or "").encode()) > _LONGEST_VALUE:
            raise Misuse(
                f"a value may have {_LONGEST_VALUE:,} bytes: the process gets it in its environment", way_out=_proper_verb(ask)
            )
        if reply.digest and ask.call and view.call(ask.task_id, ask.call).digest != reply.digest:
            raise Conflict("the call is not the one that was shown", way_out=f"adjourn show {ask.task_id}")

    def _decide_call(self, step: Steps, ask: Ask, reply: Reply, *, by: Principal) -> None:
        call = step.tx.call(ask.task_id, ask.call or 0)
        if reply.verb is Verb.REJECT:
            step.move(call, CallMove.REJECT)
            return
        if reply.edited is not None:
            from adjourn.controller.edits import edit  # seldom: most calls are approved as they are

            call = edit(step, step.tx.task(ask.task_id), call, reply, by=by.name)
        if trust.runs_as_shown(ask, call, reply):
            step.move(call, CallMove.APPROVE, approved_by=by.name)
            return
        body = trust.body_to_run(step.tx.task(ask.task_id), ask, call, reply)
        step.move(call, CallMove.APPROVE, body=body, digest=digest_of(body), approved_by=by.name)

    def snooze(self, ask_ids: Sequence[str], *, until: Milliseconds | None, by: Principal) -> list[Ask]:
        """Hide open asks from the inbox until a moment, or no longer; all or none. They expire when they would have expired."""
        self.authorise(by, "snooze")
        with self._steps() as step:
            if until is not None and until <= step.now:
                raise Misuse(f"{stamp(until)} is over", way_out="name a time that is still to come")
            step.tx.hold_asks(ask_ids)
            return [self._snooze(step, step.tx.ask(ask_id), until=until, by=by) for ask_id in dict.fromkeys(ask_ids)]

    def _snooze(self, step: Steps, ask: Ask, *, until: Milliseconds | None, by: Principal) -> Ask:
        if not ask.is_open:
            refuse_settled(ask)
        snoozed = msgspec.structs.replace(ask, snoozed_until=until)
        step.tx.save_ask(ask, snoozed)
        step.tell(ask.task_id, _SNOOZING[until is not None], by=by.name, ask=ask.id, until=until)
        return snoozed

    def settle(self, task_id: str, call_number: int, verdict: Verdict, *, by: Principal) -> Task:
        """Take a person's word on what became of an uncertain call."""
        self.authorise(by, Verb.SETTLE)
        with self._steps() as step:
            task = step.tx.task(task_id)
            ask = self._uncertain_ask(step.tx, task, call_number)
            call_move, move = _VERDICTS[verdict]
            call_number = ask.call or call_number
            call = step.move_call(task.id, call_number, call_move)
            for begun in step.tx.calls_in(task.id, CallState.UNCERTAIN):  # what the lost run had been handed
                step.move(begun, call_move if call_move is CallMove.IT_RAN else CallMove.IT_DID_NOT)
            level = self._trust.weigh(step.tx, ask, Verb.SETTLE, by=by)
            step.settle_ask(ask, AskMove.SETTLE, text=verdict, by=by.name, level=level)
            message = f"{by.name} says of {call.tool_call_id}: {verdict}"
            next_call = call_number if move is Move.SETTLE else None
            settled = step.save(task, state=state_after(task, move), message=message, next_call=next_call)
            step.tell(settled.id, "call_settled", by=by.name, call=call_number, verdict=verdict.value)
            step.wake_parent(settled)
            return settled

    def _uncertain_ask(self, view: View, task: Task, call_number: int) -> Ask:
        call = view.call(task.id, call_number)
        asks = [ask for ask in view.asks_of_run(task.id, task.runs) if ask.kind is AskKind.UNCERTAIN]
        if not asks or (asks[-1].call != call_number and call.state is not CallState.UNCERTAIN):
            raise Conflict(f"call {call.id} is {call.state}, not uncertain", way_out=f"adjourn show {task.id}")
        return asks[-1] if asks[-1].is_open else refuse_settled(asks[-1])

    # --- a person moves a task -------------------------------------------------------------------------------------

    def resume(
        self,
        task_id: str,
        resumption: Resumption = PLAIN,
        *,
        by: Principal,
        named: str | None = None,
        supervisor: str | None = None,
    ) -> Task:
        """Take the replies that a resume carries, and queue the task if nothing is left to settle, or claim it at once.

        A checkpoint by which it was `named` must be the newest at the very moment of the decision.
        """
        verb = Verb.APPROVE if resumption.decides else Verb.ANSWER if resumption.answers_something else "resume"
        self.authorise(by, verb)
        with self._steps() as step:
            task = step.tx.task(task_id)
            _require_newest(step.tx, task, named=named or task_id)
            replies = replies_of(resumption, step.tx.asks_of_run(task.id, task.runs))
            if replies:
                for reply in replies:
                    self._reply(step, reply, by=by)
                return self._taken(step, step.go_on(step.tx.task(task_id), by=by.name), supervisor)
            return self._taken(step, self._resume_plainly(step, task, by=by), supervisor)

    def _resume_plainly(self, step: Steps, task: Task, *, by: Principal) -> Task:
        if task.state in {TaskState.QUEUED, TaskState.WAITING}:
            return task
        if not allows(task.state, Move.RESUME):
            raise Conflict(f"task {task.id} is {task.state}: there is nothing to resume", way_out=_way_on(task))
        return self._queue(step, task, Move.RESUME, by=by)

    def _queue(self, step: Steps, task: Task, move: Move, *, by: Principal) -> Task:
        """Queue a task that a person wants to go on. A command that needs approval needs a new one: none is used twice."""
        opening = self._gate.opening_again(step.tx, task)
        is_unspent = any(call.tool == COMMAND for call in step.tx.calls_in(task.id, CallState.APPROVED))
        if is_unspent or (opening.way is Way.RUN and not opening.is_gated):
            return step.enqueue(task, move, by=by.name)
        return openings.enter(step, step.requeue(task, move, by=by.name), opening, by=by.name)

    def restart(self, task_id: str, *, by: Principal, workspace: str, supervisor: str | None = None) -> Task:
        """Queue a task from nothing, with a new session, or claim it at once. Its history stays."""
        with self._steps() as step:
            task = step.tx.task(task_id)
            self._trust.authorise(by, "restart", task)
            state_after(task, Move.RESTART)
            self._require_certainty(step.tx, task)
            step.withdraw_asks(task)
            step.withdraw_calls(task)
            step.cancel_children(task)
            for name in inside.DOCUMENTS:
                step.tx.keep_document(task.id, name, None)
            spec = msgspec.structs.replace(task.spec, workspace=workspace)
            fresh = step.save(task, spec=spec, session_id=self._new_id())
            return self._taken(step, self._queue(step, fresh, Move.RESTART, by=by), supervisor)

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
        with self._steps() as step:
            task = step.tx.task(task_id)
            self._trust.authorise(by, wish, task)
            state = state_after(task, move)
            if task.state is TaskState.WAITING and move is Move.PAUSE:
                raise Conflict(f"task {task.id} is waiting: no process of it runs", way_out=f"adjourn show {task.id}")
            if task.wish is Wish.CANCEL:
                raise Conflict(f"task {task.id} is being canceled", way_out=f"adjourn wait {task.id}")
            if task.state is TaskState.RUNNING:
                wished = step.save(task, wish=wish)
                step.tell(wished.id, f"{wish}_requested", by=by.name)
                return wished
            if move is Move.CANCEL:
                self._require_certainty(step.tx, task)
                step.withdraw_asks(task)
                step.withdraw_calls(task)
                step.cancel_children(task)
            stopped = step.save(task, state=state, message=f"{state} by {by.name}", next_call=None)
            step.tell(stopped.id, f"task_{state}", by=by.name)
            step.wake_parent(stopped)
            return stopped

    def give_up(self, task_id: str, *, why: str) -> Task:
        """Fail a queued task that can never be started."""
        with self._steps() as step:
            task = step.tx.task(task_id)
            if task.state is not TaskState.QUEUED:
                raise MoveRefused(f"task {task.id} is {task.state}: somebody else has it", way_out=_way_on(task))
            state = state_after(task, Move.FAIL)
            step.withdraw_calls(task)
            failed = step.save(task, state=state, message=why, next_call=None)
            step.tell(failed.id, "task_failed")
            step.wake_parent(failed)
            return failed

    def forget(self, task_id: str, *, by: Principal) -> None:
        """Drop an ended task from the store; the digests of its events stay."""
        self.authorise(by, "prune")
        with self._steps() as step:
            task = step.tx.task(task_id)
            if task.state not in ENDED:
                raise Conflict(
                    f"task {task.id} is {task.state}: only ended tasks are pruned", way_out=f"adjourn cancel {task.id}"
                )
            parent = parent_of(step.tx, task)
            if parent and parent.state not in ENDED:
                raise Conflict(f"task {parent.id} started it and still needs it", way_out=f"adjourn show {parent.id}")
            step.tell(task.id, "task_pruned", by=by.name)
            step.tx.forget_task(task_id)

    # --- what a dead supervisor left -------------------------------------------------------------------------------

    def recover(self) -> list[Task]:
        """Settle every run whose supervisor is gone, and every ask whose time is over: start nothing, lose nothing."""
        settled = [task for run in self.orphans() if (task := self._recover_run(run.task_id, run.number))]
        return settled + self._expire()

    def orphans(self) -> list[Run]:
        """Return the runs whose supervisor is gone."""
        with self._store.read() as view:
            running = [view.run(task.id, task.runs) for task in view.running()]
            abandoned = {run.id for run in view.abandoned()}
        return [run for run in running if run.id in abandoned or not self._processes.supervisor_lives(run.supervisor)]

    def _expire(self) -> list[Task]:
        with self._store.read() as view:
            if not view.expired_asks(now=self._clock()):
                return []
        with self._steps() as step:
            expired = [step.settle_ask(ask, AskMove.EXPIRE, text=None, by=ADJOURN) for ask in step.tx.expired_asks(now=step.now)]
            for ask in expired:
                if ask.call:
                    step.move_call(ask.task_id, ask.call, CallMove.EXPIRE)
            return [step.go_on(step.tx.task(task_id), by=ADJOURN) for task_id in dict.fromkeys(ask.task_id for ask in expired)]

    def _recover_run(self, task_id: str, number: int) -> Task | None:
        # Read again: the supervisor may have written between our first look and its death.
        with self._store.read() as view:
            run = view.run(task_id, number)
        if run.state is not RunState.RUNNING:
            return None
        try:
            return self._settle_orphan(run)
        except (Conflict, Misuse):
            return None  # another command settled it first, or its runner is not installed here

    def _settle_orphan(self, run: Run) -> Task | None:
        state = self._processes.shim_state(run.id, run.shim) if run.shim else NeverStarted()
        if isinstance(state, StillRuns):
            return None
        own = self._own_ask(run, state.exit) if isinstance(state, Ended) else OwnAsk()
        lives = self._processes.supervisor_lives(run.supervisor)
        with self._steps() as step:
            task, current = step.running(run.id)
            step.tx.wrest(current, only_if_over=lives)
            match state:
                case NeverStarted():
                    return endings.release(step, task, current, why="its supervisor died before the gate opened")
                case Ended(exit=exit):
                    return self._finish(step, task, current, exit, own)
                case Vanished() | _:
                    return self._lose(step, task, current)


def _item(reply: Reply, came: Ask | AdjournError) -> Item:
    if isinstance(came, Ask):
        return Item(reply.ask_id, result=f"would be {came.state}", error=None)
    return Item(reply.ask_id, result="refused", error=came)


def _the_one(found: list[str], text: str, *, thing: str, way_out: str) -> str:
    if len(found) == 1:
        return found[0]
    if not found:
        raise NotFound(f"no {thing} is called {visible(text) or '(nothing)'}", way_out=way_out)
    raise Ambiguous(f"several {thing}s begin with {visible(text)}: {', '.join(found)}", way_out=way_out)


def _named_if_any(view: View, text: str) -> str:
    try:
        return _named_ask(view, text)
    except NotFound:
        return text  # refused with what else is wrong, when the others are decided


def _named_ask(view: View, text: str) -> str:
    return _the_one(view.asks_like(text) if text else [], text, thing="ask", way_out="adjourn inbox")


def _require_newest(view: View, task: Task, *, named: str) -> None:
    if task.id.startswith(named.partition(".")[0]):
        return
    run = view.run_of_checkpoint(named)
    numbers = range(task.runs, 0, -1)
    newest = next((last for last in (view.run(task.id, n) for n in numbers) if last.checkpoint_id), None)
    if run and newest and run.number != newest.number:
        sentence = f"checkpoint {run.checkpoint_id} is not the newest of task {task.id}"
        raise StaleCheckpoint(sentence, way_out=f"adjourn resume {newest.checkpoint_id}")


def _way_on(task: Task) -> str:
    verb = "wait" if task.state is TaskState.RUNNING else "restart"
    return f"adjourn {verb} {task.id}"


def _proper_verb(ask: Ask) -> str:
    match ask.kind:
        case AskKind.APPROVAL:
            return f"adjourn approve {ask.id}"
        case AskKind.QUESTION:
            return command_line(["adjourn", "answer", ask.id, ask.choices[0] if ask.choices else "TEXT"])
        case AskKind.UNCERTAIN:
            return f"adjourn settle {ask.task_id}.tc_{ask.call} it-ran|it-did-not|run-again"
