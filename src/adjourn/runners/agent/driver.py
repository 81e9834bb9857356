"""The agent's process, from its first look at the store to its exit code.

And the process of one of its tools.
"""

import sys
from collections.abc import Sequence
from contextlib import closing

from adjourn.core import exits, kept_documents
from adjourn.core.agent.calls import Report
from adjourn.core.call import Call, arguments_of
from adjourn.core.errors import AdjournError, StoreProblem
from adjourn.core.task import Task
from adjourn.ports.drive import Drive
from adjourn.ports.runner import Host
from adjourn.runners.agent import options as setups
from adjourn.runners.agent.interrupt import Stop, WasInterrupted
from adjourn.runners.agent.loop import Agent
from adjourn.runners.agent.model_errors import LimitReached, ModelGaveUp, ModelRefused
from adjourn.runners.agent.options import FINISH, AgentSetup
from adjourn.runners.agent.retry import RetryingModel
from adjourn.runners.agent.tools import plugins
from adjourn.runners.agent.tools.tool import ToolFailed
from adjourn.runners.agent.tools.toolbox import Toolbox, toolbox
from adjourn.runners.driver import INTERRUPTED, LIMIT_REACHED, UNAVAILABLE

TOOLS = kept_documents.TOOLS.name  # names the document with the tools that others bring


class BuiltInAgent:
    """Our own agent. Its conversation is in the store, so a start and a resume are the same."""

    def __init__(self, drive: Drive, host: Host) -> None:
        del host
        self._drive = drive
        self._stop = Stop()

    def start(self) -> int:
        """Go on with the agent until it leaves, and return its exit code."""
        drive = self._drive
        drive.session(drive.task.session_id, resumable=True)
        try:
            return _driven(drive, self._stop)
        except WasInterrupted:
            return INTERRUPTED
        except StoreProblem:
            raise
        except AdjournError as error:
            _say(2, f"{error.why}\n")
            return exits.FAILED

    def resume(self, ref: str) -> int:
        """Go on with the conversation that the store has."""
        del ref
        return self.start()

    def interrupt(self) -> None:
        """Stop after the step, or at once where nothing is lost by that."""
        self._stop.request()

    def kill(self) -> None:
        """Do nothing: all that the agent has started runs in shims of its own."""


def _driven(drive: Drive, stop: Stop) -> int:
    setup = _setup(drive.task)
    with closing(_asking(setup, drive.task)) as asking:
        try:
            agent = Agent(
                drive,
                setup,
                _toolbox(drive.task, setup, _tools(drive, setup), drive.directories),
                asking,
                stop,
            )
        except AdjournError as error:
            drive.report(Report(message=error.why))
            raise
        try:
            code = agent.run()
        except StoreProblem:
            raise
        except AdjournError as error:
            # What would lose work pauses. A server that is away may be back soon; one that refuses
            # the very first request would refuse it again, and nothing is lost.
            is_away = isinstance(error, ModelGaveUp) and not isinstance(error, ModelRefused)
            if isinstance(error, LimitReached):
                code = LIMIT_REACHED
            elif agent.has_answers or is_away:
                code = UNAVAILABLE
            else:
                raise
            _say(2, f"{error.why}\n")
    if agent.farewell:
        _say(1, f"{agent.farewell}\n")  # it was part of a call, and nobody has heard it
    return code


def _tools(drive: Drive, setup: AgentSetup) -> bytes:
    """Return the tools that others bring.

    They are looked up when the task begins, and do not change between its runs.
    """
    kept = drive.document(TOOLS)
    if kept is None:
        kept = plugins.encoded(plugins.look_up(setup, workspace=drive.task.spec.workspace))
        drive.keep(TOOLS, kept)
    return kept


def carry_out(task: Task, call: Call, *, tools: bytes | None, directories: Sequence[str]) -> int:
    """Carry out one call that was let through, print its result, and return the exit code."""
    box = _toolbox(task, _setup(task), tools or b"[]", directories)
    try:
        words, code = box.carry_out(call.tool, dict(arguments_of(call.body))), exits.COMPLETED
    except ToolFailed as error:
        words, code = str(error), exits.FAILED
    sys.stdout.buffer.write(words.encode(errors="replace"))
    sys.stdout.flush()
    return code


def _setup(task: Task) -> AgentSetup:
    return setups.decoded((task.spec.setup or "").encode())


def _toolbox(task: Task, setup: AgentSetup, kept: bytes, directories: Sequence[str]) -> Toolbox:
    workspace, pauses = task.spec.workspace, task.spec.pause_on_approval
    return toolbox(
        setup, plugins.decoded(kept), workspace=workspace, directories=directories, pauses=pauses
    )


def _asking(setup: AgentSetup, task: Task) -> RetryingModel:
    instructions = setup.instructions + (FINISH if task.spec.pause_on_approval else "")
    return RetryingModel(
        setup,
        instructions,
        hear=lambda words: _say(1, words),
        tell=lambda words: _say(2, f"{words}\n"),
    )


def _say(stream: int, words: str) -> None:
    """Print words at once, as they are.

    The surface that shows them makes them harmless for a terminal, as for any process.
    """
    out = sys.stdout if stream == 1 else sys.stderr
    out.buffer.write(words.encode(errors="replace"))
    out.flush()
