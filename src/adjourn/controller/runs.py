"""How a run begins and ends, and what becomes of one whose supervisor died."""

from contextlib import suppress

import msgspec

from adjourn.controller import asks, endings, gate
from adjourn.controller.agents import Executions, Found, tell_what_ran
from adjourn.controller.reasons import tell_start
from adjourn.controller.standing import standing_of
from adjourn.controller.transaction import ADJOURN, Steps, plain_command, state_after
from adjourn.core.ask import Terms
from adjourn.core.call import COMMAND, Call, command_body, command_of, digest_of, grant_of
from adjourn.core.digest import sha256
from adjourn.core.errors import (
    Conflict,
    Misuse,
    Outdated,
    StoreReadOnly,
    StoreRefused,
    WorkspaceBusy,
)
from adjourn.core.outcome import Exit, Failed, Interrupted, Waits
from adjourn.core.policy.judgement import Effect, approved_on, strictest
from adjourn.core.policy.opening import Obstacle, Opening, OwnAsk
from adjourn.core.reason import Grounds, NoReason, Reason
from adjourn.core.states import AskMove, CallMove, Move, TaskState
from adjourn.core.task import TRIES, ProcessId, Run, RunState, Task, Wish, run_id
from adjourn.ports.store import View
from adjourn.ports.world import Ended, NeverStarted, ShimState, StillRuns, Vanished

VANISHED = "it vanished without a trace"
UNSAVED = "the agent was killed before its session was saved: there is nothing to resume, only `restart` helps"


class Claimed(msgspec.Struct, frozen=True):
    """What a supervisor holds once it may start a run."""

    task: Task
    run: Run
    call: Call

    @property
    def grant(self) -> bytes:
        """The proof of an approval that the process can read once, or nothing where nobody approved."""
        return grant_of(self.call) if self.call.ask else b""


def _in_the_way(view: View, task: Task) -> Task | None:
    """Return the task of a plan that runs in the workspace in which another task of a plan is to run, if there is one."""
    if task.spec.plan is None:
        return None
    name = sha256(task.spec.workspace.encode("utf-8", "backslashreplace")).hex()
    # Of two who look at the same moment, one waits here for the other
    view.shared_document(f"workspace:{name}")
    fellows = [
        other
        for other in view.running()
        if other.spec.plan and other.spec.workspace == task.spec.workspace
    ]
    return next(iter(fellows), None)


class Runs(Executions):
    """Moves a task while a process of it runs."""

    # --- a run begins -----------------------------------------------------------------------------

    def claim(self, task_id: str, *, supervisor: str) -> Claimed | Task:
        """Take a queued task for one run.

        Of many who try, one gets it; if what was let through has changed, nobody does.
        """
        try:
            return self._claim_as_seen(task_id, supervisor)
        except Outdated:
            # What was seen of it was old, or the store went away in the middle: once more, with
            # what is true now
            return self._claim_once_more(task_id, supervisor)

    def _claim_once_more(self, task_id: str, supervisor: str) -> Claimed | Task:
        """Claim what a first try may have claimed.

        A store that went away may still be at it: what it refuses may be ours.
        """
        try:
            return self.claimed(task_id, supervisor=supervisor) or self._claim_as_seen(
                task_id, supervisor
            )
        except Conflict:
            if claimed := self.claimed(task_id, supervisor=supervisor):
                return claimed
            raise

    def _claim_as_seen(self, task_id: str, supervisor: str) -> Claimed | Task:
        seen, obstacle, found = self._look_ahead(task_id)
        with self._steps() as step:
            task = step.tx.task(task_id)
            state_after(task, Move.START)
            if step.tx.call(task.id, task.next_call or 0) != seen:
                raise Outdated(
                    f"task {task.id} changed while its command was looked at",
                    way_out=f"adjourn show {task.id}",
                )
            if found:
                return self._conclude_found(step, task, supervisor, found)
            return (
                gate.stop(step, task, obstacle) if obstacle else self._claim(step, task, supervisor)
            )

    def _claim(self, step: Steps, task: Task, supervisor: str) -> Claimed:
        state = state_after(task, Move.START)
        if other := _in_the_way(step.tx, task):
            sentence = f"task {other.id} is running in {task.spec.workspace}: of a plan one task runs at a time"
            raise WorkspaceBusy(sentence, way_out=f"adjourn wait {other.id}")
        call = step.move_call(task.id, task.next_call or 0, CallMove.CLAIM, claimed_by=supervisor)
        run = step.new_run(task, call=call.number, supervisor=supervisor)
        started = step.save(task, state=state, runs=run.number)
        step.tx.hold(run)
        step.tell(started.id, "run_claimed", run=run.number, call=call.number)
        return Claimed(task=started, run=run, call=call)

    def _taken(self, step: Steps, task: Task, supervisor: str | None) -> Task:
        """Claim a task that was queued just now, if somebody means to run it and nothing stands in the way."""
        if supervisor is None or task.state is not TaskState.QUEUED or _in_the_way(step.tx, task):
            return task
        call = step.tx.call(task.id, task.next_call or 0)
        if found := self._found_start_of_run(step.tx, task, call):
            is_over = not isinstance(found.state, StillRuns)
            return self._conclude_found(step, task, supervisor, found) if is_over else task
        obstacle = self._obstacle(step.tx, task, call)
        return (
            gate.stop(step, task, obstacle)
            if obstacle
            else self._claim(step, task, supervisor).task
        )

    def claimed(self, task_id: str, *, supervisor: str) -> Claimed | None:
        """Return what a supervisor has claimed and not yet started, if it has."""
        with self._store.read() as view:
            task = view.task(task_id)
            run = view.run(task_id, task.runs) if task.state is TaskState.RUNNING else None
            if run is None or run.supervisor != supervisor or run.shim:
                return None
            return Claimed(task=task, run=run, call=view.call(task_id, run.call))

    def _look_ahead(self, task_id: str) -> tuple[Call, Obstacle | None, Found | None]:
        """Look at the call that a queued task is to run, outside of any transaction.

        Files may be large.
        """
        with self._store.read() as view:
            view.foresee(task_id)
            task = view.task(task_id)
            state_after(task, Move.START)
            call = view.call(task.id, task.next_call or 0)
            found = self._found_start_of_run(view, task, call)
            return call, None if found else self._obstacle(view, task, call), found

    def _found_start_of_run(self, view: View, task: Task, call: Call) -> Found | None:
        """Return the start of a queued task's command that the store has forgotten.

        A driver may start again once it is gone.
        """
        found = self._found_start(view, call, place=run_id(task.id, task.runs + 1))
        is_harmless = found and task.spec.is_driven and not isinstance(found.state, StillRuns)
        return None if is_harmless else found

    def _conclude_found(self, step: Steps, task: Task, supervisor: str, found: Found) -> Task:
        """Write down what became of a command that ran before the store was set back.

        Nothing is started.
        """
        call = step.tx.call(task.id, task.next_call or 0)
        if isinstance(found.state, StillRuns):
            raise Conflict(
                f"call {call.id} was started before the store was set back, and still runs",
                way_out=f"wait until it has ended, then: adjourn resume {task.id}",
            )
        claimed = self._claim(step, task, supervisor)
        self._tell_found(step, claimed.run, claimed.call, found.place)
        if isinstance(found.state, Ended):
            exit_ = found.state.exit
            own = self._gate.own_ask(step.tx, claimed.task) if exit_.wants_a_person else OwnAsk()
            return self._finish(step, claimed.task, claimed.run, exit_, own)
        return self._lose(step, claimed.task, claimed.run, proof=found.place)

    def _obstacle(self, view: View, task: Task, call: Call) -> Obstacle | None:
        """Say what keeps a call that was let through from starting.

        Other bytes, a signature, files or policies.
        """
        reason = self._proofs.reason(view, call)
        if isinstance(reason, NoReason):
            return self._obstacle_without_reason(view, task, call, reason)
        return self._gate.obstacle(view, task, call, reason.grounds)

    def _obstacle_without_reason(
        self, view: View, task: Task, call: Call, reason: NoReason
    ) -> Obstacle:
        """Ask a person about a call that nothing lets start, on terms that are not easier than before."""
        command = plain_command(task.spec)
        if digest_of(call.body) == call.digest:
            with suppress(msgspec.MsgspecError):
                command = command_of(call.body)
        if command.files or task.spec.pause_on_approval:
            command = msgspec.structs.replace(command, files=self._gate.look(command).files)
        said_now = self._gate.judge(view, task, COMMAND, command_body(command))
        judgement = strictest(approved_on(reason.ask.terms if reason.ask else Terms()), said_now)
        opening = Opening(command=command, judgement=judgement, is_gated=True)
        return Obstacle(call=call, ask=reason.ask, opening=opening, changes=(reason.why,))

    def execute(self, run: Run, *, shim: ProcessId) -> Run | Task:
        """Write down that the gate is about to open.

        From here on only a result or a person moves the call.

        The reason to start is looked for once more. Where it is gone, nothing starts and a person
        is asked: the task is returned.
        """
        obstacle: Obstacle | None = None
        # By the policy, where only a rule lets it start: files are not looked at inside of a
        # transaction
        is_judged = False
        while True:
            with self._steps() as step:
                task, current = step.held(run)
                call = step.tx.call(task.id, current.call)
                reason = self._proofs.reason_as_told(step.tx, call)
                if isinstance(reason, NoReason):
                    obstacle = self._obstacle_without_reason(step.tx, task, call, reason)
                if obstacle:
                    queued = endings.release(step, task, current, why="what let it start is gone")
                    return (
                        gate.stop(step, queued, obstacle)
                        if queued.state is TaskState.QUEUED
                        else queued
                    )
                assert isinstance(reason, Reason)  # noqa: S101 -- else there is an obstacle
                if reason.grounds is not Grounds.RULE or is_judged:
                    step.tx.hold(current)  # anew: what was claimed may have waited for its shim
                    step.move(call, CallMove.EXECUTE)
                    executing = step.save_run(current, shim=shim)
                    tell_start(step, executing, call, reason, pid=shim.pid)
                    return executing
            with self._store.read() as view:
                obstacle = self._gate.obstacle(view, task, call, Grounds.RULE)
            is_judged = True

    def adopt(self, run: Run, *, supervisor: str) -> Run:
        """Take over a run whose supervisor is gone; of many who try, one gets it."""
        with self._steps() as step:
            task, current = step.running(run.id)
            if current != run:
                raise Conflict(
                    f"run {run.id} was taken over by somebody else",
                    way_out=f"adjourn show {task.id}",
                )
            step.tx.wrest(current, only_if_over=self._processes.supervisor_lives(run.supervisor))
            call = step.tx.call(task.id, run.call)
            step.tx.save_call(
                call, msgspec.structs.replace(call, claimed_by=supervisor, version=call.version + 1)
            )
            adopted = step.save_run(current, supervisor=supervisor)
            step.tx.hold(adopted)
            step.tell(task.id, "run_adopted", run=run.number)
            return adopted

    # --- a run ends -------------------------------------------------------------------------------

    def finish(self, run: Run, exit: Exit) -> Task:  # noqa: A002 -- the word for it
        """Record how a run ended, and what that means for its task."""
        own = self._own_ask(run, exit)
        with self._steps() as step:
            return self._finish(step, *step.held(run), exit, own)

    def _finish(self, step: Steps, task: Task, current: Run, exit: Exit, own: OwnAsk) -> Task:  # noqa: A002 -- the word for it
        if exit.left and asks.is_known_ask(step.tx, task, exit.left):
            exit = msgspec.structs.replace(exit, left=None)  # noqa: A001 -- the word for it
        if exit.left and exit.may_leave_asks:
            asks.register_left(step, task, current, exit.left)
            task = step.tx.task(task.id)
        outcome = self._find_runner(task.spec.runner).meaning(
            exit, standing_of(step.tx, task, current)
        )
        tell_what_ran(step, current, current.call, exit)
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
        """Ask a person what became of a call whose process vanished, unless a second start does no harm, or it can be resumed."""
        with self._steps() as step:
            return self._lose(step, *step.held(run), tries=tries)

    def _lose(
        self, step: Steps, task: Task, current: Run, *, tries: int = TRIES, proof: str = ""
    ) -> Task:
        call = step.tx.call(task.id, current.call)
        if task.spec.is_driven and step.tx.open_asks_of(task.id):
            # All that it wanted is in the store
            return endings.conclude(step, task, current, Waits(), OwnAsk())
        if self._is_repeatable(step.tx, task, call) and task.tries + 1 < tries:
            return endings.fail_to_start(step, task, current, why=VANISHED, tries=tries)
        if not task.spec.is_driven:
            return endings.lose(step, task, current, proof=proof)
        # Of an agent only its calls can be uncertain, and `conclude` asks about each of those.
        # Nobody
        # could say whether the agent itself "ran".
        outcome: Interrupted | Failed = Failed(UNSAVED)
        if current.resumable or task.wish is Wish.CANCEL:
            outcome = Interrupted(VANISHED, died=True)
        return endings.conclude(step, task, current, outcome, OwnAsk())

    def _is_repeatable(self, view: View, task: Task, call: Call) -> bool:
        """Say whether a second start of a process does no harm."""
        runner = self._find_runner(task.spec.runner)
        return (
            runner.effect is not Effect.UNKNOWN
            or self._gate.effect(view, task, call) is not Effect.UNKNOWN
        )

    # --- what a dead supervisor left --------------------------------------------------------------

    def recover(self) -> list[Task]:
        """Settle every run whose supervisor is gone, and every ask whose time is over: start nothing, lose nothing.

        What whoever is here may not change is left to those who may: it keeps nobody from looking, asking or deciding.
        """
        orphans, expired = self._unsettled()
        settled = [task for run in orphans if (task := self._recover_run(run.task_id, run.number))]
        return settled + (self._expire() if expired else [])

    def _expire(self) -> list[Task]:
        with suppress(StoreRefused, StoreReadOnly), self._steps() as step:
            expired = [
                step.settle_ask(ask, AskMove.EXPIRE, text=None, by=ADJOURN)
                for ask in step.tx.expired_asks(now=step.now)
            ]
            for ask in expired:
                if ask.call:
                    step.move_call(ask.task_id, ask.call, CallMove.EXPIRE)
            return [
                step.go_on(step.tx.task(task_id), by=ADJOURN)
                for task_id in dict.fromkeys(ask.task_id for ask in expired)
            ]
        return []

    def _recover_run(self, task_id: str, number: int) -> Task | None:
        # Read again: the supervisor may have written between our first look and its death.
        with self._store.read() as view:
            run = view.run(task_id, number)
        if run.state is not RunState.RUNNING:
            return None
        try:
            return self._settle_orphan(run)
        except (Conflict, Misuse, StoreRefused, StoreReadOnly):
            # Another command settled it first, or its runner is not installed here, or it is not
            # for us to settle
            return None

    def _settle_orphan(self, run: Run) -> Task | None:
        state = (
            self._processes.shim_state(run.id, run.shim)
            if run.shim
            else self._state_of_claimed(run)
        )
        beside = self._left_beside(run)
        if isinstance(state, StillRuns) and run.shim is None:
            self._restore_shim(run)
            return None
        if isinstance(state, StillRuns) or beside is None:
            return None
        own = self._own_ask(run, state.exit) if isinstance(state, Ended) else OwnAsk()
        lives = self._processes.supervisor_lives(run.supervisor)
        with self._steps() as step:
            task, current = step.running(run.id)
            step.tx.wrest(current, only_if_over=lives)
            for call, left in beside:
                self._conclude_call(step, current, call, left)
            if run.shim is None and not isinstance(state, NeverStarted):
                self._tell_found(step, current, step.tx.call(task.id, current.call), run.id)
            match state:
                case NeverStarted():
                    return endings.release(
                        step, task, current, why="its supervisor died before the gate opened"
                    )
                case Ended(exit=exit):
                    return self._finish(step, task, current, exit, own)
                case Vanished() | _:
                    return self._lose(step, task, current)

    def _state_of_claimed(self, run: Run) -> ShimState:
        """Say what became of a run of which the store knows no shim.

        None was started, unless this machine has proof of it.
        """
        with self._store.read() as view:
            found = self._found_start(view, view.call(run.task_id, run.call), place=run.id)
        return found.state if found and found.place == run.id else NeverStarted()

    def _restore_shim(self, run: Run) -> None:
        """Write down who runs a command whose start the store has forgotten.

        From then on it is watched like any other.
        """
        with self._steps() as step:
            task, current = step.running(run.id)
            shim = self._processes.shim_at(run.id)
            if current == run and shim:
                self._tell_found(step, current, step.tx.call(task.id, current.call), run.id)
                step.save_run(current, shim=shim)
