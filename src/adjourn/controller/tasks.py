"""How a task begins, goes on, is stopped and is forgotten."""

from collections.abc import Sequence

import msgspec

from adjourn.controller import gate
from adjourn.controller.context import Context
from adjourn.controller.decisions import ENOUGH, Decisions, require_named
from adjourn.controller.endings import end_run
from adjourn.controller.left_open import add_follow_up
from adjourn.controller.runs import Runs
from adjourn.controller.standing import begin_anew, reach_of, who_was_first
from adjourn.controller.transaction import (
    LEFT,
    Transaction,
    parent_of,
    plain_command,
    state_after,
)
from adjourn.core.agent.calls import CallResult
from adjourn.core.ask import (
    RESUME_KEY,
    ApprovalAsk,
    Ask,
    AskReason,
    Principal,
    Question,
    QuestionAsk,
    Reply,
    UncertainAsk,
    Verb,
    Verdict,
    is_review,
    require_open,
)
from adjourn.core.call import COMMAND, Call, Command, command_of, require_readable, slot_of
from adjourn.core.errors import (
    CannotResume,
    Conflict,
    Misuse,
    MoveRefused,
    NotFound,
    StaleCheckpoint,
    UnreadableRow,
)
from adjourn.core.foreign import read_pause, resume_argv
from adjourn.core.kept_documents import (
    BATCH,
    CHECKPOINT,
    CLARIFICATION,
    FOLLOW_UPS,
    ITEM,
    NOT_MADE,
    PLAN,
    RESPONSE,
    RESULT,
    SAVED,
    SESSION,
    UNTOLD,
    WHY,
    plan_key,
)
from adjourn.core.plan.plan import Begun, Record
from adjourn.core.policy.opening import Opening, Way
from adjourn.core.resumption import PLAIN, Resumption, replies_of
from adjourn.core.states import (
    ENDED,
    AskMove,
    CallMove,
    CallState,
    Move,
    TaskState,
    allows,
)
from adjourn.core.task import SESSION_RUNNER, PauseReason, Spec, Task, Wish
from adjourn.core.trail.reason import gate_for
from adjourn.ports.store import Change, Turn, View

# What a restart drops
_OF_A_SESSION = (
    SAVED,
    CLARIFICATION,
    CHECKPOINT,
    RESPONSE,
    BATCH,
    SESSION,
    NOT_MADE,
    FOLLOW_UPS,
    UNTOLD,
)

_GOES_ON = frozenset({TaskState.QUEUED, TaskState.WAITING, TaskState.PAUSED})

_VERDICTS = {
    Verdict.IT_RAN: (CallMove.IT_RAN, Move.ACCEPT),
    Verdict.IT_DID_NOT: (CallMove.IT_DID_NOT, Move.PAUSE),
    Verdict.RUN_AGAIN: (CallMove.RUN_AGAIN, Move.SETTLE),
}


class FromPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan says now of one of its items, and the digest of its words."""

    spec: Spec
    words: str


class Tasks:
    """Moves a task while no process of it runs."""

    def __init__(self, context: Context, *, decisions: Decisions, runs: Runs) -> None:
        self._context = context
        self._decisions = decisions
        self._runs = runs

    # --- a task begins ----------------------------------------------------------------------------

    def start(
        self,
        spec: Spec,
        *,
        by: Principal,
        key: str | None = None,
        slot: str | None = None,
        supervisor: str | None = None,
    ) -> Task:
        """Queue a new task.

        Inside a run, the n-th start with the same key returns the n-th task of that key. Elsewhere
        a task that has the slot already is returned as it is.

        For a supervisor that means to run it itself it is claimed in the same moment: no worker
        sees it in the queue.
        """
        self._context.trust.authorise(by, "start")
        opening = self._context.gate.opening(spec)
        with self._context.change() as tx:
            spec = gate.under_policy(tx, spec, opening)
            if spec.parent_run and key:
                task = self._start_child(tx, spec, opening, spec.parent_run, by=by, key=key)
            elif slot and (found := tx.rows.task_in_slot(slot)):
                return found
            else:
                task = self.create(tx, spec, opening, by=by, slot=slot)
            return self._runs.claim_if_queued(tx, task, supervisor, by=by)

    def ask_people(
        self,
        question: Question,
        *,
        workspace: str,
        by: Principal,
        parent_run: str | None = None,
        slot: str | None = None,
    ) -> Task:
        """Put a question that belongs to no task into people's inbox; a task of its own holds it.

        The task has no process: it has succeeded once it is answered. A task that has the slot
        already is returned as it is.
        """
        self._context.trust.authorise(by, "ask")
        with self._context.change() as tx:
            if slot and (found := tx.rows.task_in_slot(slot)):
                return found
            spec = Spec(
                runner=SESSION_RUNNER,
                argv=("ask_human",),
                workspace=workspace,
                parent_run=parent_run,
            )
            task = Task(
                id=tx.new_id(),
                spec=spec,
                state=TaskState.QUEUED,
                session_id=tx.new_id(),
                created_at=tx.now,
                updated_at=tx.now,
                next_call=1,  # a queued task has one; it is never made
                slot=slot,
            )
            tx.rows.add_task(task)
            tx.tell(task.id, "task_created", by=by.name, parent=parent_run)
            # Every run has a call; that of a question is withdrawn from the beginning
            command = plain_command(spec)
            call = tx.new_call(task, command, state=CallState.WITHDRAWN, by=None)
            state = state_after(task, Move.START)
            started = tx.save(task, state=state, runs=1, calls=call.number, next_call=None)
            run = tx.new_run(task, call=call.number, supervisor=gate.GATE)
            _, asking = tx.open_question(
                started,
                run,
                prompt=question.prompt,
                key=question.key,
                choices=question.choices,
                expires_after=question.expires_after,
            )
            return end_run(tx, asking, run, Move.WAIT, reason=PauseReason.INPUT_REQUIRED)

    def fork(
        self,
        task_id: str,
        *,
        at: str | None,
        by: Principal,
        text: str | None = None,
        supervisor: str | None = None,
    ) -> Task:
        """Start a new task with the conversation of another, at a checkpoint or as it is now.

        A text is what a person says next in it.
        """
        self._context.trust.authorise(by, "start")
        with self._context.store.read() as view:
            task = view.task(task_id)
            began, reached = reach_of(view, task, at)
            messages = view.messages(task_id, after=began)[: reached - began]
        if text is not None:
            # It loads decimals, and few forks have a text
            from adjourn.core.agent.transcript import Assistant, User, decoded, encoded

            last = decoded(messages[-1]) if messages else None
            if isinstance(last, Assistant) and last.tool_calls:
                raise Misuse(
                    "a text cannot come between calls and their results: calls wait there",
                    way_out=f"adjourn fork {task_id}",
                )
            messages = [*messages, encoded(User(text=text))]
        spec = msgspec.structs.replace(
            task.spec, parent_run=None, policy=None, plan=None, item=None
        )
        opening = self._context.gate.opening(spec)
        with self._context.change() as tx:
            forked = self.create(tx, gate.under_policy(tx, spec, opening), opening, by=by)
            for number, body in enumerate(messages, start=1):
                tx.rows.add_message(forked.id, number, body)
            tx.tell(forked.id, "task_forked", by=by.name, task=task.id, messages=len(messages))
            return self._runs.claim_if_queued(tx, forked, supervisor, by=by)

    def create(
        self,
        tx: Transaction,
        spec: Spec,
        opening: Opening,
        *,
        by: Principal,
        slot: str | None = None,
    ) -> Task:
        """Add a new task, and let its command through, put it before a person, or refuse it."""
        runs = opening.way is Way.RUN
        self._context.trust.note_place(tx.rows, by)
        task = Task(
            id=tx.new_id(),
            spec=spec,
            state=TaskState.QUEUED,
            session_id=tx.new_id(),
            created_at=tx.now,
            updated_at=tx.now,
            calls=1 if runs else 0,
            next_call=1,
            slot=slot,
        )
        tx.rows.add_task(task)
        call: Call | None = None
        if runs:
            uncounted = msgspec.structs.replace(task, calls=0)
            let_through_by = gate.let_through_by(opening, by.name)
            call = tx.new_call(
                uncounted, opening.command, state=CallState.APPROVED, by=let_through_by
            )
        tx.tell(
            task.id,
            "task_created",
            by=by.name,
            parent=spec.parent_run,
            judged=opening.told,
            plan=spec.plan,
            item=spec.item,
            gate=gate_for(spec).value,
            call=call.number if call else None,
            digest=call.digest if call else None,
        )
        return task if runs else gate.enter(tx, task, opening, by=by.name)

    def _start_child(
        self,
        tx: Transaction,
        spec: Spec,
        opening: Opening,
        parent_run: str,
        *,
        by: Principal,
        key: str,
    ) -> Task:
        parent, run = tx.running(parent_run)
        slot = slot_of(parent.session_id, key, 1 + tx.rows.count_turns(run.id, key))
        child = tx.rows.task_in_slot(slot) or self.create(tx, spec, opening, by=by, slot=slot)
        tx.rows.add_turn(Turn(run_id=run.id, key=key, thing=child.id))
        return child

    def leave_open(self, parent_run: str, child: Task) -> None:
        """Remember that a run was told that the task it started is not done."""
        with self._context.change() as tx:
            _, run = tx.running(parent_run)
            tx.rows.add_turn(
                Turn(run_id=run.id, key=f"{LEFT}{child.id}", thing=child.id, left_open=True)
            )

    def close_left(self, parent_run: str, child: Task) -> None:
        """Remember that an agent was told how a task ended that its tools started.

        A script was told so, too, but the next run of it starts from its beginning.
        """
        with self._context.change() as tx:
            task, run = tx.running(parent_run)
            if task.spec.is_driven:
                tx.rows.close_turn(run.id, child.id)

    # --- a person moves a task --------------------------------------------------------------------

    def find_call(self, text: str) -> tuple[str, int]:
        """Return the task and the number of a call, by TASK.NAME or by the ask that is about it."""
        if "." not in text:
            ask = self._decisions.find_ask(text)
            if not isinstance(ask, UncertainAsk):
                raise Conflict(
                    f"ask {ask.id} is not about an uncertain call",
                    way_out=f"adjourn show {ask.task_id}",
                )
            return ask.task_id, ask.call
        named, _, name = text.partition(".")
        require_named(named)
        task = self._decisions.find_task(named, shortest=ENOUGH)
        with self._context.store.read() as view:
            labelled = view.call_labelled(task.id, name)
        number = name.removeprefix("tc_") if name.startswith("tc_") else ""
        if labelled is None and not (number.isascii() and number.isdigit()):
            raise NotFound(
                f"no call {text}: write TASK.tc_N, or the agent's own name for it",
                way_out="adjourn inbox",
            )
        return task.id, labelled.number if labelled else int(number)

    def settle(self, task_id: str, call_number: int, verdict: Verdict, *, by: Principal) -> Task:
        """Record a person's word on whether an uncertain call ran."""
        call_move, move = _VERDICTS[verdict]
        with self._context.change() as tx:
            self._context.trust.authorise_change(tx.rows, by, Verb.SETTLE)
            task = tx.rows.task(task_id)
            ask = _uncertain_ask(tx.rows, task, call_number)
            is_inside = ask.call != tx.rows.run(task.id, ask.run).call
            if is_inside:
                call = tx.move_call(task.id, ask.call, call_move, shim=None)
            else:
                call = tx.move_call(task.id, ask.call, call_move)
                # What the lost run had been handed
                rest = call_move if call_move is CallMove.IT_RAN else CallMove.IT_DID_NOT
                for begun in tx.rows.calls_in(task.id, CallState.UNCERTAIN):
                    tx.move(begun, rest)
            level = self._context.trust.weigh(tx.rows, ask, Verb.SETTLE, by=by)
            tx.settle_ask(ask, AskMove.SETTLE, text=verdict, by=by.name, level=level)

            # An agent or a program goes on, and learns how its call ended
            if is_inside:
                if verdict is not Verdict.RUN_AGAIN:
                    result = CallResult(ok=verdict is Verdict.IT_RAN, settled_by=by.name)
                    RESULT.keep_of(tx.rows, call, result)
                tx.tell(
                    task.id, "call_settled", by=by.name, call=call.number, verdict=verdict.value
                )
                return tx.go_on(tx.rows.task(task.id), by=by.name)

            message = f"{by.name} says of {call.tool_call_id}: {verdict}"
            next_call = call.number if move is Move.SETTLE else None
            settled = tx.save(
                task, state=state_after(task, move), message=message, next_call=next_call
            )
            tx.tell(task.id, "call_settled", by=by.name, call=call.number, verdict=verdict.value)
            tx.wake_parent(settled)
            return settled

    def require_newest(self, text: str, task: Task) -> None:
        """Refuse a checkpoint that was left behind.

        What it stands for has been decided, or has changed.
        """
        with self._context.store.read() as view:
            _require_newest(view, task, named=text)

    def resume(
        self,
        task_id: str,
        resumption: Resumption = PLAIN,
        *,
        by: Principal,
        named: str | None = None,
        supervisor: str | None = None,
        setup: str | None = None,
    ) -> Task:
        """Record the replies that a resume carries; queue the task if nothing is left to settle.

        `setup` is how its agent is set up from now on: with the limits that the resume names.

        For a supervisor that means to run it, it is claimed in the same transaction. A checkpoint
        by which it was `named` must be the newest at the moment of the decision.
        """
        verb = (
            Verb.APPROVE
            if resumption.decides
            else Verb.ANSWER
            if resumption.answers_something
            else "resume"
        )
        with self._context.change() as tx:
            self._context.trust.authorise_change(tx.rows, by, verb)
            task = tx.rows.task(task_id)
            self._context.trust.require_subtree(tx.rows, by, verb, task.id)
            _require_newest(tx.rows, task, named=named or task_id)
            tx.release_plan(task)
            if setup is not None:
                task = tx.save(task, spec=msgspec.structs.replace(task.spec, setup=setup))
                tx.tell(task.id, "limits_changed", by=by.name, **resumption.limits)
            if resumption.text is not None and _can_follow_up(task):
                told = self._follow_up(tx, task, resumption, by=by)
                return self._runs.claim_if_queued(tx, told, supervisor, by=by)
            asks = tx.rows.asks_of_run(task.id, task.runs)
            ask = _foreign_ask(asks, resumption) if task.spec.resume_with else None
            if ask:
                self._resume_foreign(tx, task, ask, resumption, by=by)
                return self._runs.claim_if_queued(
                    tx, tx.go_on(tx.rows.task(task_id), by=by.name), supervisor, by=by
                )
            if resumption.input is not None:
                raise Misuse(
                    "--input is for an agent that was started with --resume-with and waits",
                    way_out=f"adjourn show {task.id}",
                )
            if task.state not in _GOES_ON and not any(ask.is_open for ask in asks):
                raise _nothing_to_resume(tx.rows, task)
            replies = replies_of(resumption, asks)
            if replies:
                for reply in replies:
                    self._decisions.reply(tx, reply, by=by)
                return self._runs.claim_if_queued(
                    tx, tx.go_on(tx.rows.task(task_id), by=by.name), supervisor, by=by
                )
            return self._runs.claim_if_queued(
                tx, self._resume_plainly(tx, task, by=by), supervisor, by=by
            )

    def _resume_foreign(
        self,
        tx: Transaction,
        task: Task,
        ask: ApprovalAsk,
        resumption: Resumption,
        *,
        by: Principal,
    ) -> None:
        """Approve the command that resumes an agent of others, with what a person says to it.

        Other words are another command: the ask for the first is taken back, and that one is
        judged, shown in the trail, and approved in its place.
        """
        pause = read_pause(ask.manifest)
        if pause is None or (resumption.decides and resumption.answers_something):
            raise Misuse(
                "a resume carries tool decisions or an answer, not both",
                way_out="adjourn resume --help",
            )
        argv = resume_argv(task.spec.resume_with, pause, resumption)
        if argv != command_of(tx.rows.call(task.id, ask.call).body).argv:
            tx.withdraw(ask)
            own = self._context.gate.own_ask(tx.rows, task, argv)
            command = Command(argv=argv, cwd=task.spec.workspace, files=own.files)
            call = tx.new_call(task, command, state=CallState.PENDING, by=None, ask=task.asks + 1)
            counted = tx.save(task, calls=call.number)
            ask, _ = tx.open_approval(
                counted,
                tx.rows.run(task.id, task.runs),
                call.number,
                prompt=ask.prompt,
                key=RESUME_KEY,
                manifest=ask.manifest,
                terms=own.terms,
                replaces=ask.id,
            )
            reasons = (*own.reasons, "it resumes an agent by its own checkpoint, as was said")
            WHY.of(ask.id).keep(tx.rows, task.id, AskReason(reasons=reasons))
        override = msgspec.UNSET if resumption.override is None else resumption.override
        self._decisions.reply(tx, Reply(ask_id=ask.id, verb=Verb.APPROVE, override=override), by=by)

    def accept(self, task_id: str, *, by: Principal) -> Task:
        """Take an agent's last words for the end of its work: no process starts."""
        with self._context.change() as tx:
            self._context.trust.authorise_change(tx.rows, by, Verb.ANSWER)
            task = tx.rows.task(task_id)
            asks = [ask for ask in tx.rows.open_asks_of(task.id) if not is_review(ask)]
            ask = asks[0] if len(asks) == 1 else None
            is_waiting = task.state is TaskState.WAITING and task.spec.is_driven
            if not is_waiting or not isinstance(ask, QuestionAsk):
                sentence = (
                    f"task {task.id} does not wait at an agent's own words:"
                    " there is nothing to accept"
                )
                raise Conflict(sentence, way_out=f"adjourn show {task.id}")
            level = self._context.trust.weigh(tx.rows, ask, Verb.ANSWER, by=by)
            tx.settle_ask(ask, AskMove.SETTLE, text="accepted", by=by.name, level=level)
            current = tx.rows.task(task.id)
            accepted = tx.save(
                current,
                state=state_after(current, Move.ACCEPT),
                message=ask.prompt,
                next_call=None,
            )
            tx.tell(task.id, "task_accepted", by=by.name, ask=ask.id)
            tx.wake_parent(accepted)
            return accepted

    def _follow_up(
        self, tx: Transaction, task: Task, resumption: Resumption, *, by: Principal
    ) -> Task:
        """Queue a task whose agent was done or paused, with what a person says to it next."""
        if resumption.decides or resumption.answers or not (resumption.text or "").strip():
            raise Misuse(
                f"task {task.id} has no open asks: a text for its agent stands alone",
                way_out=f'adjourn resume {task.id} "TEXT"',
            )
        self._require_session(tx.rows, task)
        add_follow_up(tx, task, resumption.text or "")
        move = Move.FOLLOW_UP if task.state is TaskState.SUCCEEDED else Move.RESUME
        return self._queue(tx, task, move, by=by)

    def _require_session(self, view: View, task: Task) -> None:
        """Refuse to go on without the provider's session: nothing else is started in its place."""
        run = view.run(task.id, task.runs) if task.runs else None
        runner = self._context.find_runner(task.spec.runner)
        if run and not run.resumable and runner.needs_session:
            ref = f"session {run.session_ref} was not saved"
            sentence = (
                f"task {task.id} (run {run.id}) cannot be resumed: {task.spec.runner}:"
                f" {ref if run.session_ref else 'it had no session yet'} when it was interrupted"
            )
            raise CannotResume(sentence, way_out=f"adjourn restart {task.id}")

    def _resume_plainly(self, tx: Transaction, task: Task, *, by: Principal) -> Task:
        if task.state in {TaskState.QUEUED, TaskState.WAITING}:
            return task
        if not allows(task.state, Move.RESUME):
            raise _nothing_to_resume(tx.rows, task)
        self._require_session(tx.rows, task)
        return self._queue(tx, task, Move.RESUME, by=by)

    def _queue(self, tx: Transaction, task: Task, move: Move, *, by: Principal) -> Task:
        """Queue a task that a person wants to go on.

        A command that needs approval needs a new one: none is used twice.
        """
        opening = self._context.gate.opening_again(tx.rows, task)
        is_unspent = any(
            call.tool == COMMAND for call in tx.rows.calls_in(task.id, CallState.APPROVED)
        )
        if is_unspent or (opening.way is Way.RUN and not opening.is_gated):
            return tx.enqueue(task, move, by=by.name)
        return gate.enter(tx, tx.requeue(task, move, by=by.name), opening, by=by.name)

    def restart(
        self,
        task_id: str,
        *,
        by: Principal,
        workspace: str,
        supervisor: str | None = None,
        from_plan: FromPlan | None = None,
    ) -> Task:
        """Queue a task from nothing, with a new session, or claim it at once. Its history stays.

        It does what it did, or what its plan says now.
        """
        opening = self._context.gate.opening(from_plan.spec) if from_plan else None
        with self._context.change() as tx:
            task = tx.rows.task(task_id)
            self._context.trust.authorise_change(tx.rows, by, "restart", task)
            if task.spec.runner == SESSION_RUNNER:
                raise Conflict(
                    f"task {task.id} is a question to people: it has nothing to run",
                    way_out=f"adjourn show {task.id}",
                )
            state_after(task, Move.RESTART)
            self._require_certainty(tx.rows, task)
            tx.withdraw_asks(task)
            tx.withdraw_calls(task)
            tx.cancel_children(task)
            for document in _OF_A_SESSION:
                document.drop(tx.rows, task.id)
            begin_anew(tx, task)
            spec = msgspec.structs.replace(task.spec, workspace=workspace)
            if from_plan and opening:
                spec = gate.under_policy(tx, from_plan.spec, opening)
                keep_begun(tx.rows, spec, Begun(task_id=task.id, words=from_plan.words))
            tx.release_plan(task)
            fresh = tx.save(task, spec=spec, session_id=self._context.new_id())
            return self._runs.claim_if_queued(
                tx, self._queue(tx, fresh, Move.RESTART, by=by), supervisor, by=by
            )

    def _require_certainty(self, view: View, task: Task) -> None:
        for call in view.calls_in(task.id, CallState.UNCERTAIN):
            raise Conflict(
                f"call {call.id} may have run",
                way_out=f"adjourn show {task.id}",  # which names a command for each verdict
            )

    def cancel(self, task_id: str, *, by: Principal) -> Task:
        """End a task; a running one is told to stop and ends when its process has."""
        stopped: Task | None = None
        try:
            stopped = self._stop(task_id, Wish.CANCEL, by=by)
            if stopped.state is TaskState.CANCELED:
                with self._context.store.read() as view:
                    for call in view.calls(task_id):
                        require_readable(call)
        except UnreadableRow as error:
            try:
                return self._cancel_damaged(task_id, by=by, why=error.sentence)
            except Conflict:
                if stopped is None:
                    raise
        return stopped

    def _cancel_damaged(self, task_id: str, *, by: Principal, why: str) -> Task:
        """End a task of which something cannot be read: only its events and its id stay."""
        with self._context.change() as tx:
            self._context.trust.authorise_change(tx.rows, by, Wish.CANCEL)
            if self._context.processes.has_live_run(task_id):
                raise Conflict(
                    f"{why}; a process of task {task_id} is alive",
                    way_out="wait until it has ended, or kill it",
                )
            try:
                spec = tx.rows.task(task_id).spec
            except UnreadableRow:
                spec = Spec(runner="command", argv=("(damaged)",), workspace="/")
            cleared = Task(
                id=task_id,
                spec=spec,
                state=TaskState.CANCELED,
                session_id=task_id,
                created_at=tx.now,
                updated_at=tx.now,
                message=f"canceled by {by.name}: {why}",
            )
            tx.rows.clear_damaged(cleared)
            tx.tell(task_id, "task_canceled", by=by.name, damaged=why)
            cleared = tx.rows.task(task_id)
            tx.wake_parent(cleared)
            return cleared

    def pause(self, task_id: str, *, by: Principal) -> Task:
        """Pause a task; a running one is told to stop and is paused when its process has."""
        return self._stop(task_id, Wish.PAUSE, by=by)

    def _stop(self, task_id: str, wish: Wish, *, by: Principal) -> Task:
        move = Move(wish)
        with self._context.change() as tx:
            task = tx.rows.task(task_id)
            self._context.trust.authorise_change(tx.rows, by, wish, task)
            state = state_after(task, move)
            if task.state is TaskState.WAITING and move is Move.PAUSE:
                raise Conflict(
                    f"task {task.id} is waiting: no process of it runs",
                    way_out=f"adjourn show {task.id}",
                )
            if task.wish is Wish.CANCEL:
                raise Conflict(
                    f"task {task.id} is being canceled", way_out=f"adjourn wait {task.id}"
                )
            if task.state is TaskState.RUNNING:
                if not self._context.processes.has_live_run(task.id):
                    # If one of these cannot be read, nobody sees it end
                    tx.rows.call(task.id, tx.rows.run(task.id, task.runs).call)
                wished = tx.save(task, wish=wish)
                tx.tell(wished.id, f"{wish}_requested", by=by.name)
                return wished
            if move is Move.CANCEL:
                self._require_certainty(tx.rows, task)
                tx.withdraw_asks(task)
                tx.withdraw_calls(task)
                tx.cancel_children(task)
            stopped = tx.save(task, state=state, message=f"{state} by {by.name}", next_call=None)
            if move is Move.PAUSE:
                tx.hold_plan(stopped)
            tx.tell(stopped.id, f"task_{state}", by=by.name)
            tx.wake_parent(stopped)
            return stopped

    def give_up(self, task_id: str, *, why: str) -> Task:
        """Fail a queued task that can never be started."""
        with self._context.change() as tx:
            task = tx.rows.task(task_id)
            if task.state is not TaskState.QUEUED:
                raise MoveRefused(
                    f"task {task.id} is {task.state}: somebody else has it", way_out=_way_on(task)
                )
            state = state_after(task, Move.FAIL)
            tx.withdraw_calls(task)
            failed = tx.save(task, state=state, message=why, next_call=None)
            tx.tell(failed.id, "task_failed")
            tx.wake_parent(failed)
            return failed

    def forget(self, task_id: str, *, by: Principal) -> None:
        """Drop an ended task from the store; the digests of its events stay."""
        with self._context.change() as tx:
            self._context.trust.authorise_change(tx.rows, by, "prune")
            task = tx.rows.task(task_id)
            if task.state not in ENDED:
                raise Conflict(
                    f"task {task.id} is {task.state}: only ended tasks are pruned",
                    way_out=f"adjourn cancel {task.id}",
                )
            parent = parent_of(tx.rows, task)
            if parent and parent.state not in ENDED:
                raise Conflict(
                    f"task {parent.id} started it and still needs it",
                    way_out=f"adjourn show {parent.id}",
                )
            _require_unneeded_by_plan(tx.rows, task)
            tx.tell(task.id, "task_pruned", by=by.name)
            tx.rows.forget_task(task_id)


def _foreign_ask(asks: Sequence[Ask], resumption: Resumption) -> ApprovalAsk | None:
    """Return the ask that resumes an agent of others, if a resume says something to that agent.

    What names the ask itself, or all of it, is a decision on the ask as it is shown.
    """
    found = next(
        (
            ask
            for ask in asks
            if isinstance(ask, ApprovalAsk) and ask.is_open and ask.key == RESUME_KEY
        ),
        None,
    )
    pause = read_pause(found.manifest) if found else None
    if found is None or pause is None:
        return None
    named = {*resumption.approve, *resumption.reject}
    is_said = resumption.answers_something or resumption.input is not None or resumption.reject_all
    is_decision = named and not named.isdisjoint(pause.pending)
    return found if is_said or is_decision else None


def record_of(view: View, path: str) -> Record:
    """Return what was begun of a plan; of an unknown one, nothing."""
    return PLAN.read(view, plan_key(path)) or Record(path=path)


def keep_begun(rows: Change, spec: Spec, begun: Begun) -> None:
    """Keep which task was begun for an item of a plan, found by the plan and by the item's id."""
    path, item = spec.plan or "", spec.item or ""
    record = record_of(rows, path)
    items = {**record.items, item: begun}
    PLAN.keep(rows, msgspec.structs.replace(record, items=items), plan_key(path))
    ITEM.keep(rows, {**(ITEM.read(rows, item) or {}), path: begun.task_id}, item)


def _can_follow_up(task: Task) -> bool:
    """Return whether a text of a resume is for the agent itself, not the answer to a question."""
    return task.spec.is_driven and task.state in {TaskState.SUCCEEDED, TaskState.PAUSED}


def _require_unneeded_by_plan(view: View, task: Task) -> None:
    """Refuse to forget why an item of a plan failed or was canceled.

    Of one that succeeded, the plan knows that without its task.
    """
    if task.spec.plan is None or task.state is TaskState.SUCCEEDED:
        return
    record = PLAN.read(view, plan_key(task.spec.plan))
    begun = record.items if record else {}
    if any(one.task_id == task.id for one in begun.values()):
        sentence = (
            f"task {task.id} is {task.spec.item} of plan {task.spec.plan}, and has {task.state}"
        )
        raise Conflict(sentence, way_out=f"adjourn restart {task.id}")


def _require_newest(view: View, task: Task, *, named: str) -> None:
    if task.id.startswith(named.partition(".")[0]):
        return
    run = view.run_of_checkpoint(named)
    numbers = range(task.runs, 0, -1)
    newest = next(
        (last for last in (view.run(task.id, n) for n in numbers) if last.checkpoint_id), None
    )
    if run and newest and run.number != newest.number:
        sentence = f"checkpoint {run.checkpoint_id} is not the newest of task {task.id}"
        raise StaleCheckpoint(sentence, way_out=f"adjourn resume {newest.checkpoint_id}")


def _nothing_to_resume(view: View, task: Task) -> Conflict:
    """Return the refusal of a resume that came too late, or at the wrong time."""
    first = who_was_first(view, task) if task.state is TaskState.RUNNING or task.runs > 1 else ""
    return Conflict(
        f"task {task.id} is {task.state}: there is nothing to resume{first}", way_out=_way_on(task)
    )


def _way_on(task: Task) -> str:
    verb = "wait" if task.state is TaskState.RUNNING else "restart"
    return f"adjourn {verb} {task.id}"


def _uncertain_ask(view: View, task: Task, call_number: int) -> UncertainAsk:
    """Return the open ask about an uncertain call."""
    call = view.call(task.id, call_number)
    asks = [ask for ask in view.asks_of_run(task.id, task.runs) if isinstance(ask, UncertainAsk)]
    found = next((ask for ask in asks if ask.call == call_number), None)
    if found is None or not task.spec.is_driven:
        # The ask about a lost run covers all that the run had been handed
        found = asks[-1] if asks else None
        if found is None or (found.call != call_number and call.state is not CallState.UNCERTAIN):
            raise Conflict(
                f"call {call.id} is {call.state}, not uncertain", way_out=f"adjourn show {task.id}"
            )
    require_open(found)
    return found
