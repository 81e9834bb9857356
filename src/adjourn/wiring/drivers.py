"""Puts together what a driver needs inside a run."""

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial

from adjourn.controller.controller import Controller
from adjourn.core.agent.calls import CallResult, Held, Proposed, Report
from adjourn.core.ask import Ask, Question
from adjourn.core.call import Call
from adjourn.core.errors import NotInsideARun, StoreProblem
from adjourn.core.kept_documents import RAW
from adjourn.core.states import CallState
from adjourn.core.task import Run, Task, number_of_run, task_of_run
from adjourn.core.text.render import block
from adjourn.runners.agent import driver
from adjourn.runners.driver import FOR_NOW, NO_STORE
from adjourn.system.files import private_directory
from adjourn.system.poll import Poll
from adjourn.system.run_files import driver_directory
from adjourn.wiring import find_root, open_decisions
from adjourn.wiring.controller import open_controller
from adjourn.wiring.policies import open_gate

_LOOKS_ALONE = 5  # a worker that is there takes a run over much sooner
_MOVING = frozenset({CallState.APPROVED, CallState.CLAIMED, CallState.EXECUTING})


class Driver:
    """A driver of ours inside a run, and the store it speaks through."""

    def __init__(self, controller: Controller, *, root: str, run_id: str) -> None:
        self._controller = controller
        with controller.store.read() as view:
            self.task: Task = view.task(task_of_run(run_id))
            self.run: Run = view.run(self.task.id, number_of_run(run_id))
        self.feedback: Sequence[str] = (
            controller.asks.feedback(self.run) if self.task.spec.review else ()
        )
        self._looks_alone = 0
        self.place = private_directory(driver_directory(root, run_id))

    @property
    def directories(self) -> tuple[str, ...]:
        """Where the agent may read and write beside its workspace."""
        return self._controller.agents.directories(self.task.id)

    def propose(self, batch: Sequence[Proposed]) -> list[Held]:
        """Write down all calls of one answer of the model."""
        return self._controller.agents.propose_batch(self.run.id, batch)

    def batch(self) -> list[Held]:
        """Return the newest batch as it stands."""
        return self._controller.agents.batch(self.task.id)

    def held(self, tool_call_id: str) -> Held | None:
        """Return a call of the task by its name, as it stands."""
        return self._controller.agents.held_call(self.task.id, tool_call_id)

    def lets_run(self, proposed: Proposed) -> bool:
        """Say whether a call would run without anybody being asked."""
        return self._controller.agents.lets_run(self.task.id, proposed)

    def wait_for_calls(self) -> list[Held]:
        """Wait until nothing of the batch is left that could still run by itself."""
        with closing(self._controller.store.listen()) as listener:
            poll = Poll(listener)
            while (held := self._settled_batch()) is None:
                if not poll.wait():
                    self._leave_if_adrift()
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
            raise SystemExit(FOR_NOW)

    def hand_out(self, call: Call) -> Call | None:
        """Let the agent make an approved call, once."""
        return self._controller.agents.hand_out(self.run.id, call)

    def close(self, call: Call, result: CallResult) -> None:
        """Say what became of a call that was handed out."""
        self._controller.agents.close_handed_out(self.run.id, call, result)

    def ask(self, question: Question) -> Ask:
        """Register a question, or find it again with its answer."""
        return self._controller.asks.ask(self.run.id, question)

    def asks(self) -> list[Ask]:
        """Return all asks of the task, oldest first."""
        with self._controller.store.read() as view:
            return view.asks(self.task.id)

    def append(self, messages: Sequence[bytes], *, after: int) -> None:
        """Add to the transcript."""
        self._controller.agents.append_messages(self.run.id, messages, after=after)

    def conclude(self, results: Sequence[bytes], *, after: int) -> None:
        """Add what came of a batch to the transcript and be done with the batch."""
        self._controller.agents.conclude_batch(self.run.id, results, after=after)

    def messages(self, *, after: int = 0) -> list[bytes]:
        """Return the transcript."""
        return self._controller.agents.messages(self.task.id, after=after)

    def keep(self, name: str, body: bytes | None) -> None:
        """Keep a document of the task."""
        self._controller.documents.keep(self.task.id, RAW.of(name), body)

    def document(self, name: str) -> bytes | None:
        """Return what the task keeps under that name."""
        return self._controller.documents.read(self.task.id, RAW.of(name))

    def session(self, ref: str, *, resumable: bool) -> None:
        """Write down the provider's own name of its session."""
        self._controller.agents.note_session(self.run.id, ref, resumable=resumable)

    def report(self, report: Report) -> None:
        """Say what the run has done so far."""
        self._controller.agents.report(self.run.id, report)


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


def go_on() -> int:
    """Go on with the agent of the run that this process is, and return its exit code."""
    with driving() as drive:
        return driver.drive_agent(drive)


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
        tools, directories = view.document(task_id, driver.TOOLS), gate.directories(view, task)
    store.close()
    if call is None or call.state is not CallState.EXECUTING:
        raise NotInsideARun(f"call {call_id} is not let through", way_out=f"adjourn show {task_id}")
    return driver.carry_out(task, call, tools=tools, directories=directories)


def drive_claude() -> int:
    """Drive the Claude Code of the run that this process is, and return the exit code that says how it ended."""
    from adjourn.runners.claude.driver import ClaudeDriver
    from adjourn.wiring.policies import own_program

    with driving() as drive:
        return ClaudeDriver(drive, adjourn=own_program() or "adjourn", inherited=os.environ).run()


def ask_driver(request: bytes) -> bytes:
    """Take the input of a hook to the driver of the run that it belongs to, and return what to print, or raise."""
    from adjourn.runners import hook

    run_id, root = os.environ.get("ADJOURN_RUN_ID"), os.environ.get("ADJOURN_STORE")
    if not run_id or not root:
        raise NotInsideARun("nobody runs this: it is a part of adjourn's own")
    return hook.ask(driver_directory(root, run_id), request)


def drive_codex() -> int:
    """Drive the Codex of the run that this process is, and return the exit code that says how it ended."""
    from adjourn.process.linux import die_with
    from adjourn.runners.codex.driver import run_codex
    from adjourn.wiring.policies import own_program

    with driving() as drive:
        adjourn, bind = own_program() or "adjourn", partial(die_with, os.getpid())
        return run_codex(drive, os.environ, adjourn=adjourn, bind=bind)
