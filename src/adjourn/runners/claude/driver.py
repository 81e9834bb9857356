"""Drives one run of Claude Code.

Starts or resumes it, answers its hooks, and keeps what the next run needs.
"""

import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from uuid import uuid4

import msgspec

from adjourn.core import exits
from adjourn.core.agent.calls import Report
from adjourn.core.errors import AdjournError, CannotResume, StoreProblem
from adjourn.core.review import WANTS_CHANGES
from adjourn.core.text.render import block
from adjourn.ports.drive import Drive
from adjourn.runners.claude import memory, session, words
from adjourn.runners.claude.calls import Holding
from adjourn.runners.claude.check import installed_version, program_words
from adjourn.runners.claude.memory import Progress
from adjourn.runners.claude.options import (
    PROVIDER,
    Setup,
    dotted,
    environment,
    fits_a_word,
    hook_command,
    require_fitting,
    resume_argv,
    start_argv,
)
from adjourn.runners.claude.program import NO_MARKER, Program
from adjourn.runners.claude.protocol import Event, Init, Result, Said, events_of
from adjourn.runners.claude.usage import Used, used_since
from adjourn.runners.driver import FOR_NOW, INTERRUPTED, was_stopped
from adjourn.runners.hook import REPLACED, Ear
from adjourn.system.signals import deferred_signals

_LEAVING = 5.0  # seconds that the program gets to leave after it said that it stops at a call
_SHARE = 0.7  # of the grace that a run has, what the program gets before it is killed
_GLANCE = 0.2  # seconds between two looks whether the session is on disk
_NO_SESSION = "No conversation found"
_HOOKS_OFF = "its hooks are switched off; look for what does that in its managed settings"


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """How the program is started.

    Anew, or in a session that is named, with words of ours or without.
    """

    ref: str | None = None
    prompt: str | None = None


class ClaudeDriver:
    """One run."""

    def __init__(self, drive: Drive, *, adjourn: str, inherited: Mapping[str, str]) -> None:
        self._drive = drive
        self._setup = msgspec.json.decode(drive.task.spec.setup or "{}", type=Setup)
        self._hook = hook_command(adjourn)
        self._inherited = dict(inherited)
        self._words: list[str] = []  # that start the program
        kept = memory.decode(drive.document(memory.DOCUMENT), of=drive.task.session_id)
        new = Progress(of=drive.task.session_id, session=str(uuid4()))
        self._laid_out: list[str] = []  # where the session is, if not where the program keeps it
        self._holding = Holding(drive, kept or new, paths=self._paths)
        self._began_at_cost = self._holding.progress.cost
        self._before = (drive.document(memory.SESSION) if kept else None) or b""
        self._selector = selectors.DefaultSelector()
        self._program: Program | None = None
        self._ear: Ear | None = None
        self._is_replaced = False  # something else was seen in the place of our socket
        self._result: Result | None = None
        self._last_words = ""
        self._is_told_to_stop = False
        self._deadline: float | None = None
        self._is_resumable = False

    @property
    def _session(self) -> str:
        return self._holding.progress.session

    def run(self) -> int:
        """Run to the end, and return the exit code that says what it was."""
        try:
            with _interrupts(self._selector, self._stop):
                return self._run()
        except StoreProblem:
            raise  # nothing can be put in order; the shim ends the program
        except AdjournError as error:
            return self._fail(error.sentence)

    def _run(self) -> int:
        require_fitting(self._setup)
        workspace = self._drive.task.spec.workspace
        self._words = program_words(self._setup.program, self._inherited, workspace=workspace)
        self._holding.keep(version=dotted(installed_version(self._words)))
        way: Way | None = (
            self._way_on()
            if self._holding.progress.started
            else Way(prompt=self._drive.task.spec.prompt)
        )
        self._drive.session(self._session, resumable=self._is_resumable)
        while way:
            self._attempt(way)
            way = self._other_way(way)
        return self._ended()

    # --- how it is started ------------------------------------------------------------------------

    def _way_on(self) -> Way:
        """Go on in the session of the run before.

        Where it stopped at a call, without a word, or the call would be lost.
        """
        ref = self._ref()
        return Way(
            ref=ref, prompt=None if self._holding.progress.deferred else self._words_to_go_on()
        )

    def _words_to_go_on(self) -> str:
        news = self._holding.news()
        told = [words.DECIDED, news] if news else []
        if made := self._holding.made_before():
            told += [made] if news else [words.PAUSED, made]
        told = [words.naming_no_file(each) for each in told]
        told += [
            f"{WANTS_CHANGES} {wanted}"
            for wanted in self._drive.feedback[self._holding.progress.reviews :]
        ]
        return "\n\n".join(told) or words.PAUSED

    def _ref(self) -> str:
        """Return how to name the session.

        By its id if the program has its file, else by the copy in the store.
        """
        copy = self._drive.document(memory.SESSION)
        found = session.read(self._session, session.files_of(self._session, self._inherited))
        self._is_resumable = found is not None or copy is not None
        self._holding.forget_shown(max(found or b"", copy or b"", key=len))
        if found is not None and not (copy and len(found) < len(copy)):
            return self._session
        if copy is None:
            raise self._cannot_resume("its session is not on disk, and there is no copy of it")
        return self._by_copy(copy)

    def _by_copy(self, copy: bytes) -> str:
        self._laid_out = [session.lay_out(self._session, copy, place=self._drive.place)]
        return self._laid_out[0]

    def _paths(self) -> list[str]:
        """Return where the session's file may be now."""
        return [*self._laid_out, *session.files_of(self._session, self._inherited)]

    def _cannot_resume(self, why: str) -> CannotResume:
        task, run = self._drive.task, self._drive.run
        sentence = f"task {task.id} (run {run.id}) cannot be resumed: {PROVIDER}, session {self._session}: {why}"
        return CannotResume(
            f"{sentence}; adjourn restart {task.id} begins anew",
            way_out=f"adjourn restart {task.id}",
        )

    def _other_way(self, way: Way) -> Way | None:
        """Return another way to go on in the same session, where the program could not take the one that was tried."""
        said = self._program.complaints if self._program else ""
        if (
            self._is_told_to_stop
            or self._is_replaced
            or self._holding.is_pausing
            or way.ref is None
        ):
            return None
        if way.prompt is None and NO_MARKER in said:
            self._holding.keep(deferred=None)
            return Way(ref=way.ref, prompt=self._words_to_go_on())
        copy = self._drive.document(memory.SESSION)
        if _NO_SESSION in said and copy and not os.path.isabs(way.ref):
            return Way(ref=self._by_copy(copy), prompt=way.prompt)
        return None

    # --- while it runs ----------------------------------------------------------------------------

    def _attempt(self, way: Way) -> None:
        self._result = None
        ear = self._ear = Ear(self._drive.place, self._selector)
        try:
            self._program = self._start(way)
            while not self._program.is_gone:
                self._look(self._program, ear)
        finally:
            ear.close()
            self._holding.drop()
            self._keep_session()

    def _start(self, way: Way) -> Program:
        if way.ref:
            argv = resume_argv(self._setup, ref=way.ref, prompt=way.prompt, hook=self._hook)
        else:
            argv = start_argv(
                self._setup, session=self._session, prompt=way.prompt or "", hook=self._hook
            )
        self._holding.keep(started=True)
        return Program(
            [*self._words, *argv[1:]],
            cwd=self._drive.task.spec.workspace,
            environment=environment(self._setup, self._inherited),
            words=way.prompt if way.prompt is not None and not fits_a_word(way.prompt) else None,
            selector=self._selector,
            hear=self._hear,
        )

    def _look(self, program: Program, ear: Ear) -> None:
        """Take in what there is.

        Only then answer: whoever asks must find all that was printed before.
        """
        for key, _ in self._selector.select(self._patience()):
            key.data()
        if program.is_gone:
            return
        program.drain()
        if ear.is_replaced:
            self._is_replaced = True
            program.kill()
            return
        self._note_session()
        for asked in ear.take():
            self._holding.add(asked)
        if self._deadline is not None and time.monotonic() > self._deadline:
            program.kill()
        if self._holding.has_run_unasked or self._holding.has_no_hold:
            program.kill()

    def _patience(self) -> float | None:
        # Else nobody knows who would get the answers
        is_own = self._ear is not None and self._ear.is_own
        rests = [
            self._holding.answer() if is_own else None,
            self._deadline - time.monotonic() if self._deadline is not None else None,
        ]
        rests += [] if self._is_resumable else [_GLANCE]
        return max(
            0.0,
            min(
                (rest for rest in rests if rest is not None and rest != float("inf")), default=60.0
            ),
        )

    def _hear(self, line: bytes) -> None:
        for event in events_of(line):
            self._holding.hear(event)
            self._note(event)

    def _note(self, event: Event) -> None:
        match event:
            case Said(text=text):
                self._last_words = text
                sys.stdout.write(block(text) + "\n")
                sys.stdout.flush()
            case Init():
                self._holding.keep(reviews=len(self._drive.feedback))  # it has heard them
            case Result():
                self._end_of_turn(event)
            case _:
                pass

    def _end_of_turn(self, result: Result) -> None:
        """Remember how a turn ended.

        One that stops at a call ends the run: anything else would destroy what it stopped at.
        """
        if self._result is None or not self._result.is_deferral:
            self._result = result
        if result.is_deferral and self._program and self._deadline is None:
            self._deadline = time.monotonic() + _LEAVING
            self._program.terminate()

    def _note_session(self) -> None:
        if not self._is_resumable and session.read(
            self._session, session.files_of(self._session, self._inherited)
        ):
            self._is_resumable = True
            self._drive.session(self._session, resumable=True)

    def _stop(self) -> None:
        """Pause: the program keeps its session in good order, and leaves."""
        self._is_told_to_stop = self._holding.is_stopping = True
        self._holding.drop()
        self._deadline = time.monotonic() + _SHARE * float(
            self._inherited.get("ADJOURN_GRACE", "5")
        )
        if self._program:
            self._program.terminate()

    # --- when it has left -------------------------------------------------------------------------

    def _keep_session(self) -> None:
        """Keep a copy of the session's file, and say whether it can be resumed."""
        contents = [
            content for path in self._paths() if (content := session.read(self._session, [path]))
        ]
        copy = max(contents, key=len, default=None)
        if copy is not None:
            self._drive.keep(memory.SESSION, copy)
        self._is_resumable = copy is not None or self._drive.document(memory.SESSION) is not None
        self._drive.session(self._session, resumable=self._is_resumable)

    def _ended(self) -> int:
        self._report(self._last_words)
        if self._is_told_to_stop:
            return INTERRUPTED
        if why := self._lost_hold():
            return self._fail(why)
        if self._holding.is_pausing:
            return exits.PAUSED
        result, code = self._result, self._program.exit_code if self._program else None
        # A model that cannot make its calls, because their hooks do not reach us, is soon done,
        # too.
        if result and result.is_success and code == 0 and not self._holding.unheard:
            self._holding.close_subagents()
            self._report(result.result or self._last_words)
            return exits.COMPLETED
        return self._give_up()

    def _lost_hold(self) -> str | None:
        """Say why its calls did not, or might not, wait for us, if so."""
        if self._is_replaced:
            return REPLACED
        if self._holding.has_run_unasked:
            return f"Claude Code ran {self._holding.has_run_unasked} without asking: {_HOOKS_OFF}"
        return (
            f"Claude Code does not ask before it makes a call: {_HOOKS_OFF}"
            if self._holding.has_no_hold
            else None
        )

    def _give_up(self) -> int:
        """Leave for now where the session can go on and may fare better; else fail."""
        self._fail(self._why())
        # Else nobody knows what became of a call, and a person is asked that first
        is_known = not self._holding.has_open_calls
        return (
            FOR_NOW
            if is_known and self._is_resumable and self._can_be_tried_again()
            else exits.FAILED
        )

    def _can_be_tried_again(self) -> bool:
        """Say whether somebody ended it, or a person is at hand who can do something about what did."""
        if self._result is None:
            return was_stopped(self._program.exit_code if self._program else None)
        may_fare_better = self._result.can_be_tried_again or self._holding.unheard is not None
        return self._drive.task.spec.pause_on_approval and may_fare_better

    def _report(self, message: str) -> None:
        used = self._used()
        if used.cost is not None:
            self._holding.keep(cost=self._began_at_cost + used.cost)
        self._drive.report(
            Report(
                message=message or None,
                steps=self._holding.turns.count,
                input_tokens=used.input_tokens,
                output_tokens=used.output_tokens,
                cost=f"{used.cost:.6f}" if used.cost is not None else None,
                details={"version": self._holding.progress.version},
            )
        )

    def _used(self) -> Used:
        """Return what the run used, and all that runs before it could not tell any more."""
        by_file = used_since(self._before, self._drive.document(memory.SESSION) or b"")
        if by_file.cost is not None or self._result is None:
            return by_file
        return Used(
            input_tokens=by_file.input_tokens,
            output_tokens=by_file.output_tokens,
            cost=max(0.0, self._result.total_cost_usd - self._began_at_cost),
        )

    def _why(self) -> str:
        """Say why the program did not do its work."""
        if self._holding.unheard:
            return f"the hook of call {self._holding.unheard} did not reach adjourn: nothing of it was run"
        result, code = self._result, self._program.exit_code if self._program else None
        said = self._program.complaints.strip().rpartition("\n")[2] if self._program else ""
        if self._holding.progress.started and _NO_SESSION in said:
            return self._cannot_resume(said).sentence
        if result and (result.is_error or not result.is_success):
            status = f" (HTTP {result.api_error_status})" if result.api_error_status else ""
            told = result.result or "; ".join(map(str, result.errors)) or said
            return (
                f"Claude Code ended with {result.terminal_reason or result.subtype}{status}: {told}"
            )
        ending = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        return f"Claude Code ended with {ending}{f': {said}' if said else ' and without a result'}"

    def _fail(self, sentence: str) -> int:
        self._report(sentence)
        sys.stderr.write(f"adjourn: {block(sentence)}\n")
        return exits.FAILED


@contextmanager
def _interrupts(
    selector: selectors.BaseSelector, stop: Callable[[], None]
) -> Generator[None, None, None]:
    """Turn interrupts into something to wait for, so that none breaks into a transaction."""
    with deferred_signals((signal.SIGINT, signal.SIGTERM)) as signals:

        def heed() -> None:
            signals.drain()
            stop()

        selector.register(signals, selectors.EVENT_READ, heed)
        try:
            yield
        finally:
            selector.unregister(signals)
