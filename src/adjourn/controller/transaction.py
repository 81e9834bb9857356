"""What every change is made of: tasks, runs, calls and asks, moved inside one transaction."""

from collections.abc import Sequence
from typing import TypedDict, TypeVar, Unpack

import msgspec

from adjourn.controller.changes import AskChanges, CallChanges, RunChanges, TaskChanges
from adjourn.core.ask import (
    ApprovalAsk,
    Ask,
    QuestionAsk,
    Settlement,
    Terms,
    UncertainAsk,
    is_review,
    number_of_call,
)
from adjourn.core.call import (
    AUTO_APPROVAL,
    COMMAND,
    Call,
    Command,
    command_body,
    command_of,
    digest_of,
    require_readable,
)
from adjourn.core.errors import Conflict, MoveRefused, NotFound, UnreadableRow
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
from adjourn.core.task import (
    SESSION_RUNNER,
    OnRejection,
    Run,
    RunState,
    Spec,
    Task,
    number_of_run,
    run_id,
    task_of_run,
)
from adjourn.core.trail.events import Event
from adjourn.ports.store import Change, View

TYPE_CHECKING = False

if TYPE_CHECKING:  # starting is a hot path: decisions need none of what these bring along
    from adjourn.ports.world import CopyTexts, NewId

ADJOURN = "adjourn"
POLICY = "policy"
ASKED = "ask:"
LEFT = "left:"
_DOTS_OF_A_PLACE = 2  # task, call, attempt
_IDLE = frozenset({TaskState.QUEUED, TaskState.WAITING, TaskState.PAUSED})
_REFUSALS = frozenset({AskState.REJECTED, AskState.EXPIRED})

_QUEUEING = {
    Move.SETTLE: "task_queued",
    Move.RESUME: "task_resumed",
    Move.FOLLOW_UP: "task_continued",
    Move.RESTART: "task_restarted",
}


AnyAsk = TypeVar("AnyAsk", bound=Ask)


class ApprovalDetails(TypedDict, total=False):
    """What else there may be to say of an ask for approval."""

    label: str | None
    key: str | None
    slot: str | None
    manifest: str | None
    gate: bool
    terms: Terms
    replaces: str | None
    escalate_to: tuple[str, ...]


class Transaction:
    """One transaction of the store, at one moment."""

    def __init__(
        self, rows: Change, *, now: int, new_id: "NewId", copy_texts: "CopyTexts | None" = None
    ) -> None:
        self.rows = rows
        self.now = now
        self.new_id = new_id
        self._copy_texts = copy_texts

    # --- writes -----------------------------------------------------------------------------------

    def save(self, task: Task, **changes: Unpack[TaskChanges]) -> Task:
        """Save a task with changes, or raise Outdated if somebody else changed it."""
        new = msgspec.structs.replace(
            task, updated_at=self.now, version=task.version + 1, **changes
        )
        self.rows.save_task(task, new)
        return new

    def save_run(self, run: Run, **changes: Unpack[RunChanges]) -> Run:
        """Save a run with changes, or raise Outdated if somebody else changed it."""
        new = msgspec.structs.replace(run, updated_at=self.now, version=run.version + 1, **changes)
        self.rows.save_run(run, new)
        return new

    def save_call(self, call: Call, **changes: Unpack[CallChanges]) -> Call:
        """Save a call with changes, in the state that it is in."""
        new = msgspec.structs.replace(call, version=call.version + 1, **changes)
        self.rows.save_call(call, new)
        return new

    def move(self, call: Call, move: CallMove, **changes: Unpack[CallChanges]) -> Call:
        """Move a call to its next state. One that is released belongs to nobody."""
        if move is CallMove.RELEASE:
            changes["claimed_by"] = None
        state = call_after(call.state, move)
        new = msgspec.structs.replace(call, state=state, version=call.version + 1, **changes)
        self.rows.save_call(call, new)
        return new

    def move_call(
        self, task_id: str, number: int, move: CallMove, **changes: Unpack[CallChanges]
    ) -> Call:
        """Read a call and move it to its next state."""
        return self.move(self.rows.call(task_id, number), move, **changes)

    def save_ask(self, ask: AnyAsk, **changes: Unpack[AskChanges]) -> AnyAsk:
        """Save an ask with changes, or raise Outdated if somebody settled it."""
        new = msgspec.structs.replace(ask, **changes)
        self.rows.save_ask(ask, new)
        return new

    def tell(
        self, task_id: str, kind: str, *, by: str = ADJOURN, **facts: str | int | None
    ) -> None:
        """Append an event to the audit trail. Facts that are None are left out."""
        known: dict[str, str | int | None] = {
            name: fact for name, fact in facts.items() if fact is not None
        }
        self.rows.append(Event(task_id=task_id, kind=kind, by=by, at=self.now, facts=known))

    # --- plans ------------------------------------------------------------------------------------

    def hold_plan(self, task: Task) -> None:
        """Keep workers from starting tasks of the plan that a task belongs to, if any."""
        self._keep_hold(task, is_held=True)

    def release_plan(self, task: Task) -> None:
        """Let workers start tasks of the plan again: somebody goes on with it."""
        self._keep_hold(task, is_held=False)

    def _keep_hold(self, task: Task, *, is_held: bool) -> None:
        if task.spec.plan is None:
            return
        # Most tasks belong to no plan (bench start)
        from adjourn.core.kept_documents import PLAN, plan_key

        key = plan_key(task.spec.plan)
        record = PLAN.read(self.rows, key)
        if record and record.is_held is not is_held:
            PLAN.keep(self.rows, msgspec.structs.replace(record, is_held=is_held), key)

    # --- tasks ------------------------------------------------------------------------------------

    def enqueue(self, task: Task, move: Move, *, by: str) -> Task:
        """Make a move that leads to the queue, with the call to run next."""
        call = self.find_or_make_next_call(task, by=by)
        queued = self.save(
            task,
            state=after(task.state, move),
            message=None,
            wish=None,
            next_call=call.number,
            calls=max(task.calls, call.number),
        )
        is_new = call.number > task.calls
        self.tell(
            queued.id,
            _QUEUEING[move],
            by=by,
            call=call.number,
            digest=call.digest,
            new=1 if is_new else None,
        )
        return queued

    def requeue(self, task: Task, move: Move, *, by: str) -> Task:
        """Make a move that leads to the queue, for a command that is still to be judged."""
        self.tell(task.id, _QUEUEING[move], by=by)
        return self.save(
            task, state=after(task.state, move), message=None, wish=None, next_call=task.calls + 1
        )

    def go_on(self, task: Task, *, by: str) -> Task:
        """Queue a waiting task that has nothing left to settle, or end it if a reply does that."""
        if task.state is not TaskState.WAITING:
            return task
        asks = self.rows.asks_of_run(task.id, task.runs)
        for ask in asks:
            if is_review(ask) and ask.settlement:
                return self._apply_review(task, ask, ask.settlement, by=by)
        if task.spec.on_rejection is OnRejection.FAIL:
            for ask in asks:
                if ask.settlement is None or ask.settlement.state not in _REFUSALS:
                    continue
                # A process learns that its own call was rejected, and goes on
                call = call_asked_about(self.rows, ask)
                if call is None or call.tool == COMMAND:
                    return self._refuse(task, ask, ask.settlement, by=by)
        if is_blocked(self.rows, task):
            return task
        if task.spec.runner == SESSION_RUNNER:
            return self._close_session(task, asks, by=by)
        return self.enqueue(task, Move.SETTLE, by=by)

    def _close_session(self, task: Task, asks: Sequence[Ask], *, by: str) -> Task:
        """End a task that only held a question: its answer is all that there is to do."""
        run = self.rows.run(task.id, task.runs)
        self.save_run(run, state=RunState.SUCCEEDED, paused_at=None, pause_reason=None)
        answers = [ask.reply or "" for ask in asks if ask.state is AskState.ANSWERED]
        state = after(task.state, Move.ACCEPT)
        closed = self.save(task, state=state, message="\n".join(answers), next_call=None)
        self.tell(closed.id, "task_answered", by=by)
        self.wake_parent(closed)
        return closed

    def _apply_review(self, task: Task, ask: Ask, settled: Settlement, *, by: str) -> Task:
        """Do what a reviewer said of the work: it has succeeded, goes on, or has failed."""
        # Loaded here: most work is not reviewed, and `answer` is a hot path
        from adjourn.core.review import ChangesRequested, TurnedDown, WorkApproved, review_of

        match review_of(settled.reply) if settled.state is AskState.ANSWERED else None:
            case WorkApproved():
                run = self.rows.run(task.id, task.runs)
                self.save_run(run, state=RunState.SUCCEEDED, paused_at=None, pause_reason=None)
                accepted = self.save(task, state=after(task.state, Move.ACCEPT))
                self.tell(accepted.id, "task_accepted", by=by, ask=ask.id)
                self.wake_parent(accepted)
                return accepted
            case ChangesRequested() if task.spec.pause_on_approval and not task.spec.is_driven:
                # Its approval is used up: it needs a new one
                message = f"{settled.by} wants changes"
                state = after(task.state, Move.PAUSE)
                paused = self.save(task, state=state, message=message, next_call=None)
                self.tell(paused.id, "task_paused", by=by)
                return paused
            case ChangesRequested():
                return self.enqueue(task, Move.SETTLE, by=by)
            case TurnedDown(reason=reason):
                return self._refuse(task, ask, settled, by=by, said=reason or "the work")
            case None:
                return self._refuse(task, ask, settled, by=by)

    def _refuse(
        self, task: Task, ask: Ask, settled: Settlement, *, by: str, said: str | None = None
    ) -> Task:
        """Fail a task because of a rejection."""
        self.withdraw_asks(task)
        reason = (
            "nobody settled it in time"
            if settled.state is AskState.EXPIRED
            else f"rejected by {settled.by}"
        )
        reason += f": {said or settled.reply}" if said or settled.reply else ""
        failed = self.save(task, state=after(task.state, Move.REFUSE), message=reason)
        self.tell(failed.id, "task_refused", by=by, ask=ask.id)
        self.wake_parent(failed)
        return failed

    def wake_parent(self, task: Task) -> None:
        """Queue the task that left because this one was not done."""
        parent = parent_of(self.rows, task)
        if task.state not in ENDED or parent is None or parent.state is not TaskState.WAITING:
            return
        if any(
            turn.thing == task.id
            for turn in self.rows.turns_left_open(run_id(parent.id, parent.runs))
        ):
            self.go_on(parent, by=ADJOURN)

    def cancel_children(self, task: Task) -> None:
        """Cancel what a task waits for and will not come back to.

        Otherwise a new session would do it a second time.
        """
        for child in children_left_open(self.rows, run_id(task.id, task.runs)):
            if child.state in _IDLE and not self.rows.calls_in(child.id, CallState.UNCERTAIN):
                self.cancel_children(child)
                self.withdraw_asks(child)
                self.withdraw_calls(child)
                self.save(
                    child,
                    state=after(child.state, Move.CANCEL),
                    message=f"task {task.id} gave it up",
                    next_call=None,
                )
                self.tell(child.id, "task_canceled")

    # --- runs -------------------------------------------------------------------------------------

    def running(self, name: str) -> tuple[Task, Run]:
        """Return a run that has not ended, and its task."""
        task = self.rows.task(task_of_run(name))
        # What runs beside an agent is named by its call
        beside = task.runs if name.count(".") == _DOTS_OF_A_PLACE else 0
        run = self.rows.run(task.id, number_of_run(name) or beside)
        if run.state is not RunState.RUNNING:
            raise Conflict(
                f"run {run.id} has ended: it is {run.state}", way_out=f"adjourn show {task.id}"
            )
        return task, run

    def held(self, run: Run) -> tuple[Task, Run]:
        """Return a run and its task, or refuse if it has ended or another supervisor has it."""
        task, current = self.running(run.id)
        if current.supervisor != run.supervisor:
            raise Conflict(
                f"run {run.id} was taken over by somebody else", way_out=f"adjourn show {task.id}"
            )
        self.rows.fence(current)
        return task, current

    def new_run(self, task: Task, *, call: int, supervisor: str) -> Run:
        """Make a task's next run, linked to the one it follows or replaces."""
        last = self.rows.run(task.id, task.runs) if task.runs else None
        resumed = last if last and last.session_id == task.session_id else None
        replaced = last if resumed is None else None
        run = Run(
            task_id=task.id,
            number=task.runs + 1,
            state=RunState.RUNNING,
            call=call,
            supervisor=supervisor,
            session_id=task.session_id,
            created_at=self.now,
            updated_at=self.now,
            resumed_from=resumed.number if resumed else None,
            restart_of=replaced.number if replaced else None,
            # A run that is stopped before its driver has reported anything can be resumed as well
            # as the one before it
            session_ref=resumed.session_ref if resumed else None,
            resumable=resumed.resumable if resumed else False,
        )
        if replaced:
            self.save_run(replaced, superseded_by=run.number)
        self.rows.add_run(run)
        return run

    # --- calls ------------------------------------------------------------------------------------

    def new_call(
        self,
        task: Task,
        command: Command,
        *,
        state: CallState,
        by: str | None,
        ask: int | None = None,
    ) -> Call:
        """Make a task's next call."""
        label: str | None = None
        if task.spec.is_driven:
            # A name of its own, so that what its agent calls tc_1 can be called so here
            label = f"run_{task.runs + 1}"
            if self.rows.call_labelled(task.id, label):
                label = f"{label}_{task.calls + 1}"
        return self.new_tool_call(
            task, COMMAND, command_body(command), state=state, by=by, ask=ask, label=label
        )

    def new_tool_call(
        self,
        task: Task,
        tool: str,
        body: bytes,
        *,
        state: CallState,
        by: str | None,
        ask: int | None,
        label: str | None = None,
    ) -> Call:
        """Make a task's next call, of any tool."""
        call = Call(
            task_id=task.id,
            number=task.calls + 1,
            tool=tool,
            body=body,
            digest=digest_of(body),
            nonce=self.new_id(),
            state=state,
            approved_by=by,
            ask=ask,
            label=label,
        )
        self.rows.add_call(call)
        return call

    def find_or_make_next_call(self, task: Task, *, by: str) -> Call:
        """Return the command that was approved last, or make the task's own command once more."""
        waiting = self.rows.calls_in(task.id, CallState.APPROVED)
        commands = [call for call in waiting if call.tool == COMMAND]
        if commands:
            return commands[-1]
        command = plain_command(task.spec)
        approver: str | None = by
        ask: int | None = None
        if task.spec.pause_on_approval and task.runs and not task.spec.is_driven:
            # It was let through, left to wait, and goes on: with its files and its approval
            last = self.rows.call(task.id, self.rows.run(task.id, task.runs).call)
            approved = command_of(last.body)
            command = msgspec.structs.replace(approved, argv=task.spec.argv, env={})
            approver, ask = last.approved_by, last.ask
        return self.new_call(task, command, state=CallState.APPROVED, by=approver, ask=ask)

    def withdraw_calls(self, task: Task) -> None:
        """Take back what was approved and not started."""
        for call in self.rows.calls_in(task.id, CallState.APPROVED):
            self.move(call, CallMove.WITHDRAW)

    # --- asks -------------------------------------------------------------------------------------

    def open_approval(
        self,
        task: Task,
        run: Run,
        call: int,
        *,
        prompt: str,
        expires_after: int | None = None,
        remind_after: int | None = None,
        **details: Unpack[ApprovalDetails],
    ) -> tuple[ApprovalAsk, Task]:
        """Ask a person whether a call may run."""
        terms = details.get("terms")
        if terms and terms.people and terms.not_requester:
            # Who asked for the task is not among those who are still missing
            requester = self.rows.requester(task.id)
            others = tuple(each for each in terms.people if requester not in each.principals)
            details["terms"] = msgspec.structs.replace(terms, people=others)
        expires_at = self._expiry(task, expires_after)
        remind_at = None if remind_after is None else self.now + remind_after
        if remind_at and expires_at is not None and expires_at <= remind_at:
            remind_at = None  # there is nothing left to remind of
        ask = ApprovalAsk(
            id=self.new_id(),
            task_id=task.id,
            number=task.asks + 1,
            run=run.number,
            prompt=prompt,
            created_at=self.now,
            call=call,
            expires_at=expires_at,
            remind_at=remind_at,
            **details,
        )
        if self._copy_texts:
            # Who only decides does without (bench start)
            from adjourn.core.kept_documents import COPIES

            asked = self.rows.call(task.id, call)
            if texts := self._copy_texts(asked, task.spec.workspace):
                COPIES.of(ask.id).keep(self.rows, task.id, texts)
        return ask, self._add_ask(task, ask)

    def open_question(
        self,
        task: Task,
        run: Run,
        *,
        prompt: str,
        key: str,
        slot: str | None = None,
        choices: tuple[str, ...] = (),
        review: bool = False,
        expires_after: int | None = None,
    ) -> tuple[QuestionAsk, Task]:
        """Ask a person for an answer."""
        ask = QuestionAsk(
            id=self.new_id(),
            task_id=task.id,
            number=task.asks + 1,
            run=run.number,
            prompt=prompt,
            created_at=self.now,
            key=key,
            slot=slot,
            choices=choices,
            review=review,
            expires_at=self._expiry(task, expires_after),
        )
        return ask, self._add_ask(task, ask)

    def open_uncertain(
        self, task: Task, run: Run, call: int, *, prompt: str, label: str | None = None
    ) -> Task:
        """Ask a person whether a call ran that nobody saw end."""
        ask = UncertainAsk(
            id=self.new_id(),
            task_id=task.id,
            number=task.asks + 1,
            run=run.number,
            prompt=prompt,
            created_at=self.now,
            call=call,
            label=label,
        )
        return self._add_ask(task, ask)

    def _expiry(self, task: Task, expires_after: int | None) -> int | None:
        after_ms = expires_after if expires_after is not None else task.spec.expires_after
        return None if after_ms is None else self.now + after_ms

    def _add_ask(self, task: Task, ask: Ask) -> Task:
        self.rows.add_ask(ask)
        self.tell(
            task.id,
            "ask_opened",
            ask=ask.id,
            ask_kind=ask.kind.value,
            call=number_of_call(ask),
            replaces=ask.replaces if isinstance(ask, ApprovalAsk) else None,
            approvals=ask.terms.approvals
            if isinstance(ask, ApprovalAsk) and ask.terms.is_counted
            else None,
        )
        return self.save(task, asks=ask.number)

    def settle_ask(
        self,
        ask: AnyAsk,
        move: AskMove,
        *,
        text: str | None,
        by: str,
        level: str | None = None,
        digest: str | None = None,
        override: str | None = None,
        comment: str | None = None,
    ) -> AnyAsk:
        """Give an ask its reply. With an approval goes the digest of what it lets start.

        And why, where a person overrides the policy by it.
        """
        state = ask_after(ask.state, move)
        settled = self.save_ask(
            ask, settlement=Settlement(state=state, at=self.now, by=by, reply=text, level=level)
        )
        self.tell(
            ask.task_id,
            f"ask_{settled.state}",
            by=by,
            ask=ask.id,
            call=number_of_call(ask),
            level=level,
            digest=digest,
            override=override,
            comment=comment,
        )
        return settled

    def withdraw_asks(self, task: Task) -> None:
        """Take back all that a task asks."""
        for ask in self.rows.open_asks_of(task.id):
            self.withdraw(ask)

    def withdraw(self, ask: Ask) -> None:
        """Take back an ask, and the call it is about."""
        self.settle_ask(ask, AskMove.WITHDRAW, text=None, by=ADJOURN)
        call = call_asked_about(self.rows, ask)
        if call and call.state is CallState.PENDING:
            self.move(call, CallMove.WITHDRAW)


def state_after(task: Task, move: Move) -> TaskState:
    """Return the state that a move leads the task to, or refuse it with the way on."""
    if allows(task.state, move):
        return after(task.state, move)
    verb = (
        "wait"
        if task.state is TaskState.RUNNING
        else "show"
        if task.state is TaskState.WAITING
        else "restart"
    )
    raise MoveRefused(
        f"task {task.id} is {task.state}: it cannot {move}", way_out=f"adjourn {verb} {task.id}"
    )


def is_blocked(view: View, task: Task) -> bool:
    """Say whether a task that left still waits for a person or for a task it started."""
    if view.open_asks_of(task.id):
        return True
    return any(
        child.state not in ENDED for child in children_left_open(view, run_id(task.id, task.runs))
    )


def children_left_open(view: View, run: str) -> list[Task]:
    """Return the tasks that a run was told are not done."""
    return [
        view.task(turn.thing) for turn in view.turns_left_open(run) if turn.key.startswith(LEFT)
    ]


def parent_of(view: View, task: Task) -> Task | None:
    """Return the task in whose run this one was started, if it is in this store."""
    if task.parent_task is None:
        return None
    try:
        return view.task(task.parent_task)
    except NotFound:
        return None


def call_to_run(view: View, task: Task) -> Call:
    """Return the call that a queued task runs next."""
    if task.next_call is None:
        raise NotFound(f"task {task.id} has no call to run", way_out=f"adjourn show {task.id}")
    return view.call(task.id, task.next_call)


def call_asked_about(view: View, ask: Ask) -> Call | None:
    """Return the call that an ask is about; a question is about none."""
    number = number_of_call(ask)
    return None if number is None else view.call(ask.task_id, number)


def readable_call(view: View, ask: Ask) -> Call | None:
    """Return the same, or None if it cannot be read; that is noted."""
    try:
        call = call_asked_about(view, ask)
        if call:
            require_readable(call)
    except UnreadableRow as error:
        error.note_in(view.unreadable)
        return None
    return call


def approval_of(view: View, call: Call) -> ApprovalAsk | None:
    """Return the ask by which a call was let through, or is to be, if a person is asked."""
    ask = view.ask_numbered(call.task_id, call.ask) if call.ask else None
    return ask if isinstance(ask, ApprovalAsk) else None


def plain_command(spec: Spec) -> Command:
    """Return the command of a task that nobody has approved anything for."""
    return Command(argv=spec.argv, cwd=spec.workspace)


def approved_command(spec: Spec, value: str, *, files: dict[str, str]) -> Command:
    """Return the command that an approval with that value starts."""
    decision = (f"--approval-decision={value}",) if spec.decision_arg else ()
    return Command(
        argv=(*spec.argv, *decision), cwd=spec.workspace, env={AUTO_APPROVAL: value}, files=files
    )
