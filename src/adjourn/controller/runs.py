"""How a run begins and ends, and what happens to one whose supervisor died."""

from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256

import msgspec

from adjourn.controller import asks, endings, gate
from adjourn.controller.agents import (
    Agents,
    ForgottenStart,
    conclude,
    find_forgotten_start,
    record_start,
    state_at,
    tell_what_ran,
)
from adjourn.controller.context import Context
from adjourn.controller.left_open import tell_what_was_left_open
from adjourn.controller.reasons import Reasons, tell_start
from adjourn.controller.standing import standing_of, who_was_first
from adjourn.controller.transaction import (
    ADJOURN,
    Transaction,
    call_to_run,
    plain_command,
    state_after,
)
from adjourn.core.ask import ApprovalAsk, Ask, Principal, Terms
from adjourn.core.call import COMMAND, Call, command_body, command_of, digest_of, grant_of
from adjourn.core.errors import (
    Conflict,
    Misuse,
    MoveRefused,
    Outdated,
    StoreReadOnly,
    StoreRefused,
    UnreadableRow,
    WorkspaceBusy,
)
from adjourn.core.foreign import read_pause, resume_argv
from adjourn.core.kept_documents import WORKSPACE
from adjourn.core.outcome import Exit, Failed, Interrupted, Waits, WantsApproval
from adjourn.core.policy.judgement import Effect, approved_on, strictest
from adjourn.core.policy.opening import Obstacle, Opening, OwnAsk
from adjourn.core.states import AskMove, CallMove, Move, TaskState
from adjourn.core.task import TRIES, ProcessId, Run, RunState, Task, Wish, run_id
from adjourn.core.trail.reason import Grounds, NoReason, Reason
from adjourn.ports.store import View
from adjourn.ports.world import Ended, NeverStarted, StillRuns, Vanished

VANISHED = "it vanished without a trace"
UNSAVED = (
    "the agent was killed before its session was saved:"
    " there is nothing to resume, only `restart` helps"
)


class Claimed(msgspec.Struct, frozen=True):
    """What a supervisor holds once it may start a run."""

    task: Task
    run: Run
    call: Call

    @property
    def grant(self) -> bytes:
        """The proof of an approval that the process can read once; empty where nobody approved."""
        return grant_of(self.call) if self.call.ask else b""


class Runs:
    """Moves a task while a process of it runs."""

    def __init__(self, context: Context, agents: Agents) -> None:
        self._context = context
        self._agents = agents
        self._reasons = Reasons(context)

    # --- a run begins -----------------------------------------------------------------------------

    def claim(self, task_id: str, *, supervisor: str) -> Claimed | Task:
        """Take a queued task for one run.

        Of many who try, one gets it. If what was let through has changed, nobody does, and the task
        is returned.
        """
        try:
            return self._check_and_claim(task_id, supervisor)
        except Outdated:
            pass
        # What was read was old, or the store went away in the middle. Then it may have claimed the
        # task for us, or may be about to: what it refuses now may be ours a moment later.
        try:
            return self.claimed(task_id, supervisor=supervisor) or self._check_and_claim(
                task_id, supervisor
            )
        except Conflict:
            if claimed := self.claimed(task_id, supervisor=supervisor):
                return claimed
            raise

    def _check_and_claim(self, task_id: str, supervisor: str) -> Claimed | Task:
        # Files may be large: they are read before the transaction
        with self._context.store.read() as view:
            view.read_ahead(task_id)
            task = view.task(task_id)
            _require_startable(view, task)
            seen = call_to_run(view, task)
            found = self._find_forgotten_start(view, task, seen)
            obstacle = None if found else self._find_obstacle(view, task, seen)
        with self._context.change() as tx:
            task = tx.rows.task(task_id)
            _require_startable(tx.rows, task)
            if call_to_run(tx.rows, task) != seen:
                raise Outdated(
                    f"task {task.id} changed while its command was checked",
                    way_out=f"adjourn show {task.id}",
                )
            return self._claim(tx, task, supervisor, found, obstacle, by=ADJOURN)

    def claim_if_queued(
        self, tx: Transaction, task: Task, supervisor: str | None, *, by: Principal
    ) -> Task:
        """Claim a task that was queued in this transaction, if there is a supervisor to run it.

        It stays queued if its workspace is busy, or a forgotten start of it still runs.
        """
        if (
            supervisor is None
            or task.state is not TaskState.QUEUED
            or _task_in_workspace(tx.rows, task)
        ):
            return task
        call = call_to_run(tx.rows, task)
        found = self._find_forgotten_start(tx.rows, task, call)
        if found and isinstance(found.state, StillRuns):
            return task
        obstacle = None if found else self._find_obstacle(tx.rows, task, call)
        claimed = self._claim(tx, task, supervisor, found, obstacle, by=by.name)
        return claimed.task if isinstance(claimed, Claimed) else claimed

    def _claim(
        self,
        tx: Transaction,
        task: Task,
        supervisor: str,
        found: ForgottenStart | None,
        obstacle: Obstacle | None,
        *,
        by: str,
    ) -> Claimed | Task:
        """Claim a task, unless something keeps it from starting or it has run already."""
        if obstacle:
            return gate.stop(tx, task, obstacle)
        call = call_to_run(tx.rows, task)
        if found and isinstance(found.state, StillRuns):
            raise Conflict(
                f"call {call.id} was started before the store was set back, and still runs",
                way_out=f"wait until it has ended, then: adjourn resume {task.id}",
            )
        require_free_workspace(tx.rows, task)

        call = tx.move(call, CallMove.CLAIM, claimed_by=supervisor)
        run = tx.new_run(task, call=call.number, supervisor=supervisor)
        if task.spec.is_driven and run.resumed_from:
            # An agent's session goes on, unlike a script, which starts again from its beginning
            tell_what_was_left_open(tx, task, run, after=run_id(task.id, run.resumed_from))
        started = tx.save(task, state=state_after(task, Move.START), runs=run.number)
        tx.rows.hold(run)
        tx.tell(started.id, "run_claimed", by=by, run=run.number, call=call.number)
        if found is None:
            return Claimed(task=started, run=run, call=call)

        # It ran before the store was set back. Nothing starts: how it ended is recorded.
        record_start(tx, run, call, found.place)
        if isinstance(found.state, Ended):
            exit_ = found.state.exit
            own = self._context.gate.own_ask(tx.rows, started) if exit_.wants_a_person else OwnAsk()
            return self._finish(tx, started, run, exit_, own)
        return self._lose(tx, started, run, proof=found.place)

    def claimed(self, task_id: str, *, supervisor: str) -> Claimed | None:
        """Return what a supervisor has claimed and not yet started, if it has."""
        with self._context.store.read() as view:
            task = view.task(task_id)
            run = view.run(task_id, task.runs) if task.state is TaskState.RUNNING else None
            if run is None or run.supervisor != supervisor or run.shim:
                return None
            return Claimed(task=task, run=run, call=view.call(task_id, run.call))

    def _find_forgotten_start(self, view: View, task: Task, call: Call) -> ForgottenStart | None:
        """Return the start of a queued task's command that the store has forgotten.

        A driver that has ended may start again: its calls are claimed one by one.
        """
        place = run_id(task.id, task.runs + 1)
        found = find_forgotten_start(self._context.processes, view, call, place=place)
        is_harmless = found and task.spec.is_driven and not isinstance(found.state, StillRuns)
        return None if is_harmless else found

    def _find_obstacle(self, view: View, task: Task, call: Call) -> Obstacle | None:
        """Return what keeps an approved call from starting: bytes, a signature, files, policies."""
        reason = self._reasons.verify(view, call)
        if isinstance(reason, NoReason):
            return self._obstacle_without_reason(view, task, call, reason)
        return self._context.gate.obstacle(view, task, call, reason.grounds)

    def _obstacle_without_reason(
        self, view: View, task: Task, call: Call, reason: NoReason
    ) -> Obstacle:
        """Return the ask for a call that nothing lets start, on terms no easier than before."""
        command = plain_command(task.spec)
        if digest_of(call.body) == call.digest:
            with suppress(msgspec.MsgspecError):
                command = command_of(call.body)
        if command.files or task.spec.pause_on_approval:
            files = self._context.gate.look(command).files
            command = msgspec.structs.replace(command, files=files)
        judged_now = self._context.gate.judge(view, task, COMMAND, command_body(command))
        judgement = strictest(approved_on(reason.ask.terms if reason.ask else Terms()), judged_now)
        opening = Opening(command=command, judgement=judgement, is_gated=True)
        return Obstacle(call=call, ask=reason.ask, opening=opening, changes=(reason.why,))

    def execute(self, run: Run, *, shim: ProcessId) -> Run | Task:
        """Write down that the gate is about to open.

        From here on only a result or a person moves the call. If what let it start is gone, nothing
        starts, a person is asked, and the task is returned.
        """
        obstacle: Obstacle | None = None
        # Where only a rule lets a command start, the policy must agree now. It reads files, which
        # may be large, so that happens between two transactions.
        is_judged = False
        while True:
            with self._context.change() as tx:
                task, current = tx.held(run)
                call = tx.rows.call(task.id, current.call)
                reason = self._reasons.verify_again(tx.rows, call)
                if isinstance(reason, NoReason):
                    obstacle = self._obstacle_without_reason(tx.rows, task, call, reason)
                if obstacle:
                    queued = endings.release(tx, task, current, why="its approval is gone")
                    is_queued = queued.state is TaskState.QUEUED
                    return gate.stop(tx, queued, obstacle) if is_queued else queued
                assert isinstance(reason, Reason)  # noqa: S101 -- else there is an obstacle
                if reason.grounds is not Grounds.RULE or is_judged:
                    tx.rows.hold(current)  # again: the lease may have run out before the shim came
                    tx.move(call, CallMove.EXECUTE)
                    executing = tx.save_run(current, shim=shim)
                    tell_start(tx, executing, call, reason, pid=shim.pid)
                    return executing
            with self._context.store.read() as view:
                obstacle = self._context.gate.obstacle(view, task, call, Grounds.RULE)
            is_judged = True

    def adopt(self, run: Run, *, supervisor: str) -> Run:
        """Take over a run whose supervisor is gone; of many who try, one gets it."""
        with self._context.change() as tx:
            task, current = tx.running(run.id)
            if current != run:
                raise Conflict(
                    f"run {run.id} was taken over by somebody else",
                    way_out=f"adjourn show {task.id}",
                )
            is_alive = self._context.processes.supervisor_lives(run.supervisor)
            tx.rows.take_over(current, only_if_over=is_alive)
            tx.save_call(tx.rows.call(task.id, run.call), claimed_by=supervisor)
            adopted = tx.save_run(current, supervisor=supervisor)
            tx.rows.hold(adopted)
            tx.tell(task.id, "run_adopted", run=run.number)
            return adopted

    # --- a run ends -------------------------------------------------------------------------------

    def finish(self, run: Run, exit: Exit) -> Task:  # noqa: A002 -- the word for it
        """Record how a run ended, and what that means for its task."""
        own = self._own_ask(run, exit)
        with self._context.change() as tx:
            return self._finish(tx, *tx.held(run), exit, own)

    def _finish(self, tx: Transaction, task: Task, run: Run, exit: Exit, own: OwnAsk) -> Task:  # noqa: A002 -- the word for it
        if exit.left and asks.is_known_ask(tx.rows, task, exit.left):
            exit = msgspec.structs.replace(exit, left=None)  # noqa: A001 -- the word for it
        if exit.left and exit.may_leave_asks:
            asks.register_left(tx, task, run, exit.left)
            task = tx.rows.task(task.id)
        standing = standing_of(tx.rows, task, run)
        outcome = self._context.find_runner(task.spec.runner).meaning(exit, standing)
        tell_what_ran(tx, run, run.call, exit)
        ended = tx.save_run(run, exit_code=exit.code, signal=exit.signal)
        return endings.conclude(tx, task, ended, outcome, own)

    def _own_ask(self, run: Run, exit: Exit) -> OwnAsk:  # noqa: A002 -- the word for it
        """Return what becomes part of the ask, if a process wants its own command approved.

        It reads files, which may be large: so before the transaction.
        """
        if not exit.wants_a_person:
            return OwnAsk()
        with self._context.store.read() as view:
            if view.turns_left_open(run.id):
                return OwnAsk()  # it waits for answers, or for another task
            task = view.task(run.task_id)
            if not task.spec.resume_with:
                return self._context.gate.own_ask(view, task)
            runner = self._context.find_runner(task.spec.runner)
            outcome = runner.meaning(exit, standing_of(view, task, run))
            pause = read_pause(outcome.manifest) if isinstance(outcome, WantsApproval) else None
            argv = resume_argv(task.spec.resume_with, pause) if pause else ()
            return self._context.gate.own_ask(view, task, argv)

    def release(self, run: Run, *, why: str) -> Task:
        """Give back a run whose call provably did not start."""
        with self._context.change() as tx:
            return endings.release(tx, *tx.held(run), why=why)

    def fail_to_start(self, run: Run, *, why: str, tries: int = TRIES) -> Task:
        """Give back a run that could not be started; after some tries, fail its task."""
        with self._context.change() as tx:
            return endings.fail_to_start(tx, *tx.held(run), why=why, tries=tries)

    def lose(self, run: Run, *, tries: int = TRIES) -> Task:
        """Ask a person whether a call ran whose process vanished.

        Unless a second start does no harm, or its agent can be resumed.
        """
        with self._context.change() as tx:
            return self._lose(tx, *tx.held(run), tries=tries)

    def _lose(
        self, tx: Transaction, task: Task, run: Run, *, tries: int = TRIES, proof: str = ""
    ) -> Task:
        if task.spec.is_driven and tx.rows.open_asks_of(task.id):
            # All that it wanted is in the store
            return endings.conclude(tx, task, run, Waits(), OwnAsk())

        call = tx.rows.call(task.id, run.call)
        is_repeatable = (
            self._context.find_runner(task.spec.runner).effect is not Effect.UNKNOWN
            or self._context.gate.effect(tx.rows, task, call) is not Effect.UNKNOWN
        )
        if is_repeatable and task.tries + 1 < tries:
            return endings.fail_to_start(tx, task, run, why=VANISHED, tries=tries)
        if not task.spec.is_driven:
            return endings.lose(tx, task, run, proof=proof)

        # Of an agent only its calls can be uncertain, and `conclude` asks about each of those.
        # Nobody could say whether the agent itself "ran".
        outcome: Interrupted | Failed = Failed(UNSAVED)
        if run.resumable or task.wish is Wish.CANCEL:
            outcome = Interrupted(VANISHED, died=True)
        return endings.conclude(tx, task, run, outcome, OwnAsk())

    # --- what a dead supervisor left --------------------------------------------------------------

    def orphans(self) -> list[Run]:
        """Return the runs whose supervisor is gone."""
        return self._context.find_unsettled()[0]

    def recover(self) -> list[Task]:
        """Settle every run whose supervisor is gone, and every ask whose time is over.

        Nothing starts, nothing is lost. Runs that this login may not settle are skipped, so that
        they never keep anybody from reading or deciding.
        """
        orphans, expired = self._context.find_unsettled()
        settled: list[Task] = []
        for run in orphans:
            # Another command settled it first, or its runner is not installed here, or it is not
            # for us to settle
            try:
                task = self._settle_orphan(run)
                settled += [task] if task else []
            except UnreadableRow as error:
                error.note_in(self._context.store.unreadable)
            except (Conflict, Misuse, StoreRefused, StoreReadOnly):
                continue
        if expired:
            with suppress(StoreRefused, StoreReadOnly):
                settled += self._expire(expired)
        return settled

    def _settle_orphan(self, orphan: Run) -> Task | None:
        processes = self._context.processes
        with self._context.store.read() as view:
            # Read again: its supervisor may have written just before it died
            run = view.run(orphan.task_id, orphan.number)
            if run.state is not RunState.RUNNING:
                return None
        if run.shim:
            state = processes.shim_state(run.id, run.shim)
        else:
            with self._context.store.read() as view:
                own_call = view.call(run.task_id, run.call)
                state = state_at(processes, view, own_call, place=run.id)
        calls = [
            (call, self._agents.state_of(call)) for call in self._agents.executions(run.task_id)
        ]

        # What still runs is left to a supervisor, which finds it by its shim
        if isinstance(state, StillRuns):
            if run.shim is None:
                self._restore_shim(run)
            return None
        if any(isinstance(left, StillRuns) for _, left in calls):
            return None

        own = self._own_ask(run, state.exit) if isinstance(state, Ended) else OwnAsk()
        is_alive = processes.supervisor_lives(run.supervisor)
        with self._context.change() as tx:
            task, current = tx.running(run.id)
            tx.rows.take_over(current, only_if_over=is_alive)
            for call, left in calls:
                conclude(tx, current, call, left)
            if run.shim is None and not isinstance(state, NeverStarted):
                record_start(tx, current, tx.rows.call(task.id, current.call), run.id)
            match state:
                case NeverStarted():
                    why = "its supervisor died before the gate opened"
                    return endings.release(tx, task, current, why=why)
                case Ended(exit=exit):
                    return self._finish(tx, task, current, exit, own)
                case Vanished() | _:
                    return self._lose(tx, task, current)

    def _restore_shim(self, run: Run) -> None:
        """Write down who runs a command whose start the store has forgotten.

        From then on it is watched like any other.
        """
        with self._context.change() as tx:
            task, current = tx.running(run.id)
            shim = self._context.processes.shim_at(run.id)
            if current == run and shim:
                record_start(tx, current, tx.rows.call(task.id, current.call), run.id)
                tx.save_run(current, shim=shim)

    def _expire(self, expired: Sequence[Ask]) -> list[Task]:
        """Settle what nobody replied to in time: all at once, or task by task if one is damaged."""
        try:
            return self._expire_of(None)
        except UnreadableRow:
            settled: list[Task] = []
            for task_id in dict.fromkeys(ask.task_id for ask in expired):
                try:
                    settled += self._expire_of(task_id)
                except UnreadableRow as error:
                    error.note_in(self._context.store.unreadable)
            return settled

    def _expire_of(self, only: str | None) -> list[Task]:
        with self._context.change() as tx:
            expired = [
                tx.settle_ask(ask, AskMove.EXPIRE, text=None, by=ADJOURN)
                for ask in tx.rows.expired_asks(now=tx.now)
                if only in {None, ask.task_id}
            ]
            for ask in expired:
                if isinstance(ask, ApprovalAsk):
                    tx.move_call(ask.task_id, ask.call, CallMove.EXPIRE)
            task_ids = dict.fromkeys(ask.task_id for ask in expired)
            return [tx.go_on(tx.rows.task(task_id), by=ADJOURN) for task_id in task_ids]


def _require_startable(view: View, task: Task) -> None:
    """Refuse to start a task that is not queued; of one that runs, say who was first."""
    if task.state is TaskState.RUNNING:
        raise MoveRefused(
            f"task {task.id} is running{who_was_first(view, task)}",
            way_out=f"adjourn wait {task.id}",
        )
    state_after(task, Move.START)


def require_free_workspace(view: View, task: Task) -> None:
    """Refuse a task of a plan while another one runs in its workspace."""
    if other := _task_in_workspace(view, task):
        sentence = (
            f"task {other.id} is running in {task.spec.workspace}:"
            " of a plan one task runs at a time"
        )
        raise WorkspaceBusy(sentence, way_out=f"adjourn wait {other.id}")


def _task_in_workspace(view: View, task: Task) -> Task | None:
    """Return the task of a plan that keeps another task of a plan out of its workspace."""
    if task.spec.plan is None:
        return None
    name = sha256(task.spec.workspace.encode("utf-8", "backslashreplace")).hexdigest()
    # Of two who look at the same moment, one waits here for the other
    WORKSPACE.read(view, name)
    for other in view.running():
        if other.spec.plan and other.spec.workspace == task.spec.workspace:
            return other
    return None
