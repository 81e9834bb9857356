"""How a task begins, goes on, is stopped and is forgotten."""

import msgspec

from adjourn.controller import asks, gate
from adjourn.controller.batches import BATCH, SESSION, result_body
from adjourn.controller.runs import Runs
from adjourn.controller.transaction import LEFT, Steps, parent_of, state_after
from adjourn.core.agent.calls import CallResult
from adjourn.core.ask import Ask, AskKind, Principal, Verb, Verdict, refuse_settled
from adjourn.core.call import COMMAND, RESULT, Call, slot_of
from adjourn.core.errors import CannotResume, Conflict, MoveRefused, StaleCheckpoint
from adjourn.core.plan.plan import Record, record_name
from adjourn.core.policy.opening import Opening, Way
from adjourn.core.reason import gate_for
from adjourn.core.resumption import PLAIN, Resumption, replies_of
from adjourn.core.states import ENDED, AskMove, CallMove, CallState, Move, TaskState, allows
from adjourn.core.task import Spec, Task, Wish
from adjourn.ports.store import Turn, View

_VERDICTS = {
    Verdict.IT_RAN: (CallMove.IT_RAN, Move.ACCEPT),
    Verdict.IT_DID_NOT: (CallMove.IT_DID_NOT, Move.PAUSE),
    Verdict.RUN_AGAIN: (CallMove.RUN_AGAIN, Move.SETTLE),
}


class Tasks(Runs):
    """Moves a task while no process of it runs."""

    # --- a task begins ----------------------------------------------------------------------------

    def start(
        self, spec: Spec, *, by: Principal, key: str | None = None, supervisor: str | None = None
    ) -> Task:
        """Queue a new task.

        Inside a run, the n-th start with the same key returns the n-th task of that key.

        For a supervisor that means to run it itself it is claimed in the same moment: no worker
        sees it in the queue.
        """
        self.authorise(by, "start")
        opening = self._gate.opening(spec)
        with self._steps() as step:
            spec = gate.under_policy(step, spec, opening)
            if spec.parent_run and key:
                task = self._start_child(step, spec, opening, by=by, key=key)
            else:
                task = self._create(step, spec, opening, by=by)
            return self._taken(step, task, supervisor)

    def fork(
        self, task_id: str, *, at: str | None, by: Principal, supervisor: str | None = None
    ) -> Task:
        """Start a new task with an agent's conversation as it was at a checkpoint of another, or as it is now."""
        from adjourn.controller.standing import reach_of  # seldom needed

        self.authorise(by, "start")
        with self._store.read() as view:
            task = view.task(task_id)
            began, reached = reach_of(view, task, at)
            messages = view.messages(task_id, after=began)[: reached - began]
        spec = msgspec.structs.replace(
            task.spec, parent_run=None, policy=None, plan=None, item=None
        )
        opening = self._gate.opening(spec)
        with self._steps() as step:
            forked = self._create(step, gate.under_policy(step, spec, opening), opening, by=by)
            for number, body in enumerate(messages, start=1):
                step.tx.add_message(forked.id, number, body)
            step.tell(forked.id, "task_forked", by=by.name, task=task.id, messages=len(messages))
            return self._taken(step, forked, supervisor)

    def _create(
        self, step: Steps, spec: Spec, opening: Opening, *, by: Principal, slot: str | None = None
    ) -> Task:
        runs = opening.way is Way.RUN
        self._trust.note_place(step.tx, by)
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
        call: Call | None = None
        if runs:
            uncounted = msgspec.structs.replace(task, calls=0)
            let_through_by = gate.let_through_by(opening, by.name)
            call = step.new_call(
                uncounted, opening.command, state=CallState.APPROVED, by=let_through_by
            )
        step.tell(
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
        return task if runs else gate.enter(step, task, opening, by=by.name)

    def _start_child(
        self, step: Steps, spec: Spec, opening: Opening, *, by: Principal, key: str
    ) -> Task:
        parent, run = step.running(spec.parent_run or "")
        slot = slot_of(parent.session_id, key, 1 + step.tx.count_turns(run.id, key))
        child = step.tx.task_in_slot(slot) or self._create(step, spec, opening, by=by, slot=slot)
        step.tx.add_turn(Turn(run_id=run.id, key=key, thing=child.id))
        return child

    def leave_open(self, parent_run: str, child: Task) -> None:
        """Remember that a run was told that the task it started is not done."""
        with self._steps() as step:
            _, run = step.running(parent_run)
            step.tx.add_turn(
                Turn(run_id=run.id, key=f"{LEFT}{child.id}", thing=child.id, left_open=True)
            )

    # --- a person moves a task --------------------------------------------------------------------

    def settle(self, task_id: str, call_number: int, verdict: Verdict, *, by: Principal) -> Task:
        """Take a person's word on what became of an uncertain call."""
        with self._steps() as step:
            self._authorise(step, by, Verb.SETTLE)
            task = step.tx.task(task_id)
            ask = self._uncertain_ask(step.tx, task, call_number)
            if task.spec.is_driven and ask.call != step.tx.run(task.id, ask.run).call:
                return self._settle_tool_call(step, task, ask, verdict, by=by)
            call_move, move = _VERDICTS[verdict]
            call_number = ask.call or call_number
            call = step.move_call(task.id, call_number, call_move)
            # What the lost run had been handed
            for begun in step.tx.calls_in(task.id, CallState.UNCERTAIN):
                step.move(begun, call_move if call_move is CallMove.IT_RAN else CallMove.IT_DID_NOT)
            level = self._trust.weigh(step.tx, ask, Verb.SETTLE, by=by)
            step.settle_ask(ask, AskMove.SETTLE, text=verdict, by=by.name, level=level)
            message = f"{by.name} says of {call.tool_call_id}: {verdict}"
            next_call = call_number if move is Move.SETTLE else None
            settled = step.save(
                task, state=state_after(task, move), message=message, next_call=next_call
            )
            step.tell(
                settled.id, "call_settled", by=by.name, call=call_number, verdict=verdict.value
            )
            step.wake_parent(settled)
            return settled

    def _settle_tool_call(
        self, step: Steps, task: Task, ask: Ask, verdict: Verdict, *, by: Principal
    ) -> Task:
        """Take a person's word on a call of an agent, which goes on and is told of it."""
        call = step.move_call(task.id, ask.call or 0, _VERDICTS[verdict][0], shim=None)
        level = self._trust.weigh(step.tx, ask, Verb.SETTLE, by=by)
        step.settle_ask(ask, AskMove.SETTLE, text=verdict, by=by.name, level=level)
        if verdict is not Verdict.RUN_AGAIN:
            result = CallResult(ok=verdict is Verdict.IT_RAN, settled_by=by.name)
            step.tx.keep_document(task.id, f"{RESULT}{call.tool_call_id}", result_body(result))
        step.tell(task.id, "call_settled", by=by.name, call=call.number, verdict=verdict.value)
        return step.go_on(step.tx.task(task.id), by=by.name)

    def _uncertain_ask(self, view: View, task: Task, call_number: int) -> Ask:
        call = view.call(task.id, call_number)
        asks = [
            ask for ask in view.asks_of_run(task.id, task.runs) if ask.kind is AskKind.UNCERTAIN
        ]
        own = next((ask for ask in asks if ask.call == call_number), None)
        if own and task.spec.is_driven:
            return own if own.is_open else refuse_settled(own)
        if not asks or (asks[-1].call != call_number and call.state is not CallState.UNCERTAIN):
            raise Conflict(
                f"call {call.id} is {call.state}, not uncertain", way_out=f"adjourn show {task.id}"
            )
        return asks[-1] if asks[-1].is_open else refuse_settled(asks[-1])

    def require_newest(self, text: str, task: Task) -> None:
        """Refuse a checkpoint that was left behind.

        What it stands for has been decided, or has changed.
        """
        with self._store.read() as view:
            _require_newest(view, task, named=text)

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
        verb = (
            Verb.APPROVE
            if resumption.decides
            else Verb.ANSWER
            if resumption.answers_something
            else "resume"
        )
        with self._steps() as step:
            self._authorise(step, by, verb)
            task = step.tx.task(task_id)
            _require_newest(step.tx, task, named=named or task_id)
            replies = replies_of(resumption, step.tx.asks_of_run(task.id, task.runs))
            if replies:
                for reply in replies:
                    self._reply(step, reply, by=by)
                return self._taken(step, step.go_on(step.tx.task(task_id), by=by.name), supervisor)
            return self._taken(step, self._resume_plainly(step, task, by=by), supervisor)

    def accept(self, task_id: str, *, by: Principal) -> Task:
        """Take an agent's last words for the end of its work: no process starts."""
        with self._steps() as step:
            self._authorise(step, by, Verb.ANSWER)
            task = step.tx.task(task_id)
            asks = step.tx.open_asks_of(task.id)
            words = [ask.kind for ask in asks if not ask.review]
            if (
                task.state is not TaskState.WAITING
                or not task.spec.is_driven
                or words != [AskKind.QUESTION]
            ):
                sentence = f"task {task.id} does not wait at an agent's own words: there is nothing to accept"
                raise Conflict(sentence, way_out=f"adjourn show {task.id}")
            level = self._trust.weigh(step.tx, asks[0], Verb.ANSWER, by=by)
            step.settle_ask(asks[0], AskMove.SETTLE, text="accepted", by=by.name, level=level)
            current = step.tx.task(task.id)
            accepted = step.save(
                current,
                state=state_after(current, Move.ACCEPT),
                message=asks[0].prompt,
                next_call=None,
            )
            step.tell(task.id, "task_accepted", by=by.name, ask=asks[0].id)
            step.wake_parent(accepted)
            return accepted

    def _resume_plainly(self, step: Steps, task: Task, *, by: Principal) -> Task:
        if task.state in {TaskState.QUEUED, TaskState.WAITING}:
            return task
        if not allows(task.state, Move.RESUME):
            raise Conflict(
                f"task {task.id} is {task.state}: there is nothing to resume", way_out=_way_on(task)
            )
        self._require_session(step.tx, task)
        return self._queue(step, task, Move.RESUME, by=by)

    def _require_session(self, view: View, task: Task) -> None:
        """Refuse to go on where the provider's session is not there to go on from.

        Nothing is started in its place.
        """
        run = view.run(task.id, task.runs) if task.runs else None
        if run is None or run.resumable or not self._find_runner(task.spec.runner).needs_session:
            return
        ref = (
            f"session {run.session_ref} was not saved"
            if run.session_ref
            else "it had no session yet"
        )
        sentence = f"task {task.id} (run {run.id}) cannot be resumed: {task.spec.runner}: {ref} when it was interrupted"
        raise CannotResume(sentence, way_out=f"adjourn restart {task.id}")

    def _queue(self, step: Steps, task: Task, move: Move, *, by: Principal) -> Task:
        """Queue a task that a person wants to go on.

        A command that needs approval needs a new one: none is used twice.
        """
        opening = self._gate.opening_again(step.tx, task)
        is_unspent = any(
            call.tool == COMMAND for call in step.tx.calls_in(task.id, CallState.APPROVED)
        )
        if is_unspent or (opening.way is Way.RUN and not opening.is_gated):
            return step.enqueue(task, move, by=by.name)
        return gate.enter(step, step.requeue(task, move, by=by.name), opening, by=by.name)

    def restart(
        self, task_id: str, *, by: Principal, workspace: str, supervisor: str | None = None
    ) -> Task:
        """Queue a task from nothing, with a new session, or claim it at once. Its history stays."""
        from adjourn.controller.standing import begin_anew  # seldom needed

        with self._steps() as step:
            task = step.tx.task(task_id)
            self._authorise(step, by, "restart", task)
            state_after(task, Move.RESTART)
            self._require_certainty(step.tx, task)
            step.withdraw_asks(task)
            step.withdraw_calls(task)
            step.cancel_children(task)
            for name in (*asks.DOCUMENTS, BATCH, SESSION):
                step.tx.keep_document(task.id, name, None)
            begin_anew(step, task)
            spec = msgspec.structs.replace(task.spec, workspace=workspace)
            fresh = step.save(task, spec=spec, session_id=self._new_id())
            return self._taken(step, self._queue(step, fresh, Move.RESTART, by=by), supervisor)

    def _require_certainty(self, view: View, task: Task) -> None:
        for call in view.calls_in(task.id, CallState.UNCERTAIN):
            raise Conflict(
                f"call {call.id} may have run",
                way_out=f"adjourn settle {call.id} it-ran|it-did-not|run-again",
            )

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
            self._authorise(step, by, wish, task)
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
                raise MoveRefused(
                    f"task {task.id} is {task.state}: somebody else has it", way_out=_way_on(task)
                )
            state = state_after(task, Move.FAIL)
            step.withdraw_calls(task)
            failed = step.save(task, state=state, message=why, next_call=None)
            step.tell(failed.id, "task_failed")
            step.wake_parent(failed)
            return failed

    def forget(self, task_id: str, *, by: Principal) -> None:
        """Drop an ended task from the store; the digests of its events stay."""
        with self._steps() as step:
            self._authorise(step, by, "prune")
            task = step.tx.task(task_id)
            if task.state not in ENDED:
                raise Conflict(
                    f"task {task.id} is {task.state}: only ended tasks are pruned",
                    way_out=f"adjourn cancel {task.id}",
                )
            parent = parent_of(step.tx, task)
            if parent and parent.state not in ENDED:
                raise Conflict(
                    f"task {parent.id} started it and still needs it",
                    way_out=f"adjourn show {parent.id}",
                )
            _require_unneeded_by_plan(step.tx, task)
            step.tell(task.id, "task_pruned", by=by.name)
            step.tx.forget_task(task_id)


def _require_unneeded_by_plan(view: View, task: Task) -> None:
    """Refuse to forget how an item of a plan came to nothing.

    Of one that succeeded, the plan knows that without its task.
    """
    if task.spec.plan is None or task.state is TaskState.SUCCEEDED:
        return
    record = view.shared_document(record_name(task.spec.plan))
    begun = msgspec.json.decode(record, type=Record).items if record else {}
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


def _way_on(task: Task) -> str:
    verb = "wait" if task.state is TaskState.RUNNING else "restart"
    return f"adjourn {verb} {task.id}"
