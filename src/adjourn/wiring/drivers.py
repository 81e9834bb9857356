"""Puts together what a driver needs inside a run."""

import os
import signal
import sys
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial

from adjourn.clarifications.log import SHOW_CALLS, VERBOSE
from adjourn.controller.controller import Controller
from adjourn.core.agent.calls import CallResult, Held, Proposed
from adjourn.core.ask import Ask, Question, QuestionAsk
from adjourn.core.call import Call
from adjourn.core.clarification import Checkpoint, Clarification, Request
from adjourn.core.errors import NotInsideARun, StoreProblem
from adjourn.core.states import CallState
from adjourn.core.task import Run, Task, number_of_run, task_of_run
from adjourn.core.text.render import block
from adjourn.ports.runner import Host
from adjourn.process.linux import die_with
from adjourn.runners import find_kind, hook
from adjourn.runners.agent.driver import TOOLS
from adjourn.runners.agent.driver import carry_out as carry_out_call
from adjourn.runners.driver import NO_STORE, UNAVAILABLE
from adjourn.system.files import driver_directory, private_directory
from adjourn.system.poll import Poll
from adjourn.wiring import find_root, open_decisions
from adjourn.wiring.controller import open_controller
from adjourn.wiring.own_program import own_program
from adjourn.wiring.surroundings import open_gate

TYPE_CHECKING = False

if TYPE_CHECKING:  # few runs are verbose
    from adjourn.wiring.verbose_drive import Narrator

_LOOKS_ALONE = 5  # a worker that is there takes a run over much sooner
_MOVING = frozenset({CallState.APPROVED, CallState.CLAIMED, CallState.EXECUTING})


class Driver:
    """The run of this process as its driver sees it: the `Drive` of ports/drive."""

    def __init__(self, controller: Controller, *, root: str, run_id: str) -> None:
        self._controller = controller
        self._root = root
        self._clarification: Clarification | None = None  # what `clarify` registered last
        with controller.store.read() as view:
            self.task: Task = view.task(task_of_run(run_id))
            self.run: Run = view.run(self.task.id, number_of_run(run_id))
        self.feedback: Sequence[str] = controller.asks.said_to_agent(self.run)
        self.place = private_directory(driver_directory(root, run_id))
        self._looks_alone = 0

        # What the controller does for any run or task, it does here for this one
        task_id = self.task.id
        self.batch = partial(controller.agents.batch, task_id)
        self.held = partial(controller.agents.held_call, task_id)
        self.lets_run = partial(controller.agents.lets_run, task_id)
        self.hand_out = partial(controller.agents.hand_out, run_id)
        self.ask = partial(controller.asks.ask_for_agent, run_id)
        self.append = partial(controller.agents.append_messages, run_id)
        self._narrator: Narrator | None = None
        if os.environ.get(VERBOSE) or os.environ.get(SHOW_CALLS):
            # It reads the user's config, and most runs are watched by nobody
            from adjourn.wiring import verbose_drive

            self._narrator = verbose_drive.Narrator()
        self.conclude = partial(controller.agents.conclude_batch, run_id)
        self.messages = partial(controller.agents.messages, task_id)
        self.keep = partial(controller.documents.keep_named, task_id)
        self.document = partial(controller.documents.read_named, task_id)
        self.report = partial(controller.agents.report, run_id)

    @property
    def directories(self) -> tuple[str, ...]:
        """Where the agent may read and write beside its workspace."""
        return self._controller.agents.directories(self.task.id)

    def session(self, ref: str, *, resumable: bool) -> None:
        """Record the provider's own name of its session."""
        self._controller.agents.note_session(self.run.id, ref, resumable=resumable)

    def clarify(self, questions: Sequence[Question]) -> list[QuestionAsk]:
        """Register questions that are asked together, or find them again."""
        # Few agents ask, and fewer than run
        from adjourn.clarifications.exchange import clear_taken
        from adjourn.settings.supervision import read_settings

        clear_taken(self._controller, self._root, self.task.id)
        blocked_at = questions[0].prompt if questions else ""
        request = Request(
            questions=tuple(questions),
            blocked_at=blocked_at,
            reason="its model asks",
            linger=read_settings(self._root).linger,
        )
        self._clarification, asks = self._controller.asks.clarify_for_agent(self.run.id, request)
        return asks

    def linger(self, asks: Sequence[QuestionAsk], checkpoint: Checkpoint) -> list[QuestionAsk]:
        """Wait briefly for answers, with a request file; else write the checkpoint."""
        from adjourn.wiring.inside import InsideRun  # as above

        if self._clarification is None:
            return list(asks)
        inside = InsideRun(self._controller, root=self._root, run_id=self.run.id)
        if settled := inside.wait_for(self._clarification, asks):
            return settled
        inside.write_checkpoint(self._clarification, checkpoint)
        return list(asks)

    def asks(self) -> list[Ask]:
        """Return all asks of the task, oldest first."""
        with self._controller.store.read() as view:
            return view.asks(self.task.id)

    def propose(self, batch: Sequence[Proposed]) -> list[Held]:
        """Record all calls of one answer, and return how each stands."""
        held = self._controller.agents.propose_batch(self.run.id, batch)
        if self._narrator:
            self._narrator.tell_proposed(batch, held)
        return held

    def close(self, call: Call, result: CallResult) -> None:
        """Record how a call ended that was handed out."""
        self._controller.agents.close_handed_out(self.run.id, call, result)
        if self._narrator:
            self._narrator.tell(call, result)

    def note_step(self, number: int) -> None:
        """Tell that the model has answered for the n-th time, if somebody wants to hear it."""
        if self._narrator and os.environ.get(VERBOSE):
            self._narrator.tell_step(number)

    def wait_for_calls(self) -> list[Held]:
        """Wait until nothing of the batch is left that could still run by itself."""
        with closing(self._controller.store.listen()) as listener:
            poll = Poll(listener)
            while (held := self._settled_batch()) is None:
                if not poll.wait():
                    self._leave_if_adrift()
        if self._narrator:
            self._narrator.tell_held(held)
        return held

    def _settled_batch(self) -> list[Held] | None:
        with suppress(StoreProblem):  # it may come back; should it stay away, the lease ends us
            held = self.batch()
            return None if _moves(held) else held
        return None

    def _leave_if_adrift(self) -> None:
        """Leave when nobody supervises the run any more.

        What was approved stays approved, and a person can resume.
        """
        with suppress(StoreProblem):
            self._looks_alone = (
                0 if self._controller.agents.is_supervised(self.run.id) else self._looks_alone + 1
            )
        if self._looks_alone >= _LOOKS_ALONE:
            raise SystemExit(UNAVAILABLE)


def _moves(held: Sequence[Held]) -> bool:
    """Say whether a call may still end without a person.

    While one of the batch is asked about, none of it runs.
    """
    states = {each.call.state for each in held if each.call}
    return (
        CallState.PENDING not in states
        and CallState.UNCERTAIN not in states
        and not states.isdisjoint(_MOVING)
    )


@contextmanager
def driving() -> Generator[Driver, None, None]:
    """Open the store of the run that this process drives."""
    run_id, store = os.environ.get("ADJOURN_RUN_ID"), os.environ.get("ADJOURN_STORE")
    if not run_id or not store:
        raise NotInsideARun(
            "nobody runs this: it is a part of adjourn's own", way_out='adjourn run "PROMPT"'
        )
    root = find_root(store)
    controller = open_controller(root, as_worker=True)
    try:
        yield Driver(controller, root=root, run_id=run_id)
    except StoreProblem as problem:
        sys.stderr.write(f"adjourn: {block(problem.sentence)}\n")
        raise SystemExit(NO_STORE) from problem
    finally:
        controller.store.close()


def drive_run(name: str) -> int:
    """Drive the agent of the run that this process is; return the exit code of how it ended."""
    with driving() as drive:
        host = Host(
            environment=os.environ,
            adjourn=own_program() or "adjourn",
            die_with_us=partial(die_with, os.getpid()),
        )
        agent = find_kind(name).make_driver(drive, host)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda _number, _frame: agent.interrupt())
        try:
            return agent.resume(drive.run.session_ref) if drive.run.session_ref else agent.start()
        except StoreProblem:
            agent.kill()
            raise


def carry_out(call_id: str) -> int:
    """Carry out the call that this process was started for, and no other.

    The gate was opened for that one.
    """
    root = os.environ.get("ADJOURN_STORE")
    task_id, _, label = call_id.partition(".")
    if not root or os.environ.get("ADJOURN_CALL_ID") != call_id:
        raise NotInsideARun(
            "nobody runs this: it is a part of adjourn's own", way_out='adjourn run "PROMPT"'
        )
    store, gate = open_decisions(root).store, open_gate(root)
    with store.read() as view:
        task, call = view.task(task_of_run(task_id)), view.call_labelled(task_id, label)
        tools, directories = view.document(task_id, TOOLS), gate.directories(view, task)
    store.close()
    if call is None or call.state is not CallState.EXECUTING:
        raise NotInsideARun(f"call {call_id} is not let through", way_out=f"adjourn show {task_id}")
    return carry_out_call(task, call, tools=tools, directories=directories)


def ask_driver(request: bytes) -> bytes:
    """Send the input of a hook to the driver of its run, and return what to print, or raise."""
    run_id, root = os.environ.get("ADJOURN_RUN_ID"), os.environ.get("ADJOURN_STORE")
    if not run_id or not root:
        raise NotInsideARun("nobody runs this: it is a part of adjourn's own")
    return hook.ask(driver_directory(root, run_id), request)
