"""Drives one run of Claude Code.

Starts or resumes it, answers its hooks, and keeps what the next run needs.
"""

import os
import selectors
import time
from collections.abc import Sequence
from uuid import uuid4

import msgspec

from adjourn.core import exits
from adjourn.core.agent.calls import Report
from adjourn.core.clarification import RESUME_FROM_CLARIFICATION
from adjourn.core.errors import AdjournError, CannotResume, StoreProblem
from adjourn.core.resumption import TASKS_ENDED
from adjourn.ports.drive import Drive
from adjourn.ports.runner import Host
from adjourn.runners.claude import session, words
from adjourn.runners.claude.calls import ClaudeHeldCalls
from adjourn.runners.claude.check import find_claude, installed_version
from adjourn.runners.claude.memory import DOCUMENT, SESSION, ClaudeMemory, memory_of
from adjourn.runners.claude.options import (
    PROVIDER,
    ClaudeSetup,
    dotted,
    environment,
    fits_a_word,
    hook_command,
    require_fitting,
    resume_argv,
    start_argv,
)
from adjourn.runners.claude.program import NO_MARKER, Program
from adjourn.runners.claude.protocol import Began, Init, Result, Said, events_of
from adjourn.runners.claude.usage import Used, used_since
from adjourn.runners.driver import (
    INTERRUPTED,
    LIMIT_REACHED,
    STOPPED,
    UNAVAILABLE,
    StopRequest,
    complain,
    say,
    was_stopped,
)
from adjourn.runners.hook import REPLACED, HookListener

_LEAVING = 5.0  # seconds that the program gets to leave after it said that it stops at a call
_SHARE = 0.7  # of the grace that a run has, what the program gets before it is killed
_GLANCE = 0.2  # seconds between two checks that the session is on disk
_NO_SESSION = "No conversation found"
# How that begins of which parts were written by programs
_NOT_A_PERSONS = (RESUME_FROM_CLARIFICATION, TASKS_ENDED)
_HOOKS_OFF = "its hooks are switched off; look for what does that in its managed settings"


class ProgramStart(msgspec.Struct, frozen=True, kw_only=True):
    """How the program is started: in a new or an old session, with a prompt or without."""

    ref: str | None = None
    prompt: str | None = None


class ClaudeDriver:
    """One run."""

    def __init__(self, drive: Drive, host: Host) -> None:
        self._drive = drive
        self._setup = msgspec.json.decode(drive.task.spec.setup or "{}", type=ClaudeSetup)
        self._hook = hook_command(host.adjourn)
        self._inherited = dict(host.environment)
        self._argv: list[str] = []  # that start the program
        kept = memory_of(drive.document(DOCUMENT), session=drive.task.session_id)
        new = ClaudeMemory(of=drive.task.session_id, session=str(uuid4()))
        self._laid_out: list[str] = []  # where the session is, if not where the program keeps it
        self._calls = ClaudeHeldCalls(drive, kept or new, paths=self._paths)
        self._began_at_cost = self._calls.memory.cost
        self._before = (drive.document(SESSION) if kept else None) or b""
        self._selector = selectors.DefaultSelector()
        self._stop_request = StopRequest()
        self._selector.register(self._stop_request, selectors.EVENT_READ, self._stop)
        self._program: Program | None = None
        self._is_replaced = False  # something else was seen in the place of our socket
        self._result: Result | None = None
        self._has_prompt = False  # whether the program was started with something to be told
        self._last_words = ""
        self._is_told_to_stop = False
        self._deadline: float | None = None
        self._is_resumable = False

    @property
    def _session(self) -> str:
        return self._calls.memory.session

    def start(self) -> int:
        """Run to the end, and return the exit code that says what it was."""
        try:
            require_fitting(self._setup)
            workspace = self._drive.task.spec.workspace
            self._argv = find_claude(self._setup.program, self._inherited, workspace=workspace)
            self._calls.keep(version=dotted(installed_version(self._argv)))
            launch: ProgramStart | None = ProgramStart(prompt=self._drive.task.spec.prompt)
            if self._calls.memory.started:
                # Where it stopped at a call, without a prompt, or the call would be lost
                ref, is_at_call = self._ref(), self._calls.memory.deferred is not None
                launch = ProgramStart(
                    ref=ref, prompt=None if is_at_call else self._prompt_to_go_on()
                )
            self._drive.session(self._session, resumable=self._is_resumable)
            while launch:
                self._attempt(launch)
                launch = self._other_launch(launch)
            return self._ended()
        except StoreProblem:
            raise  # nothing can be put in order; the shim ends the program
        except AdjournError as error:
            return self._fail(error.sentence)

    def resume(self, ref: str) -> int:
        """Go on in the session that the task remembers; `ref` is its name."""
        del ref
        return self.start()

    def interrupt(self) -> None:
        """Have the loop stop the program."""
        self._stop_request.make()

    def kill(self) -> None:
        """End the program."""
        if self._program:
            self._program.kill()

    # --- how it is started ------------------------------------------------------------------------

    def _prompt_to_go_on(self) -> str:
        news = self._calls.news()
        told = [words.DECIDED, news] if news else []
        if made := self._calls.made_before():
            told += [made] if news else [words.PAUSED, made]
        told = [words.naming_no_file(each) for each in told]
        told += [
            # Programs wrote parts of those
            words.naming_no_file(each) if each.startswith(_NOT_A_PERSONS) else each
            for each in self._unheard_feedback
        ]
        return "\n\n".join(told) or words.PAUSED

    @property
    def _unheard_feedback(self) -> Sequence[str]:
        """What the agent has still to be told since it left."""
        return self._drive.feedback[self._calls.memory.reviews :]

    def _ref(self) -> str:
        """Return how to name the session.

        By its id if the program has its file, else by the copy in the store.
        """
        copy = self._drive.document(SESSION)
        found = session.read(self._session, session.files_of(self._session, self._inherited))
        self._is_resumable = found is not None or copy is not None
        self._calls.forget_shown(max(found or b"", copy or b"", key=len))
        if found is not None and not (copy and len(found) < len(copy)):
            return self._session
        if copy is None:
            raise self._cannot_resume("its session is not on disk, and there is no copy of it")
        return self._lay_out(copy)

    def _lay_out(self, copy: bytes) -> str:
        self._laid_out = [session.lay_out(self._session, copy, place=self._drive.place)]
        return self._laid_out[0]

    def _paths(self) -> list[str]:
        """Return where the session's file may be now."""
        return [*self._laid_out, *session.files_of(self._session, self._inherited)]

    def _cannot_resume(self, why: str) -> CannotResume:
        task, run = self._drive.task, self._drive.run
        sentence = (
            f"task {task.id} (run {run.id}) cannot be resumed: {PROVIDER}, session "
            f"{self._session}: {why}"
        )
        return CannotResume(
            f"{sentence}; adjourn restart {task.id} starts over",
            way_out=f"adjourn restart {task.id}",
        )

    def _other_launch(self, launch: ProgramStart) -> ProgramStart | None:
        """Return another way to go on in the same session, if the program could not take this."""
        said = self._program.complaints if self._program else ""
        is_over = self._is_told_to_stop or self._is_replaced or self._calls.is_pausing
        if is_over or launch.ref is None:
            return None
        # Where it had stopped at a call, it went on without a prompt
        is_done = self._result is not None and self._result.is_success and self._exit_code == 0
        if launch.prompt is None and is_done and self._unheard_feedback:
            return ProgramStart(ref=self._ref(), prompt=self._prompt_to_go_on())
        if launch.prompt is None and NO_MARKER in said:
            self._calls.keep(deferred=None)
            return ProgramStart(ref=launch.ref, prompt=self._prompt_to_go_on())
        copy = self._drive.document(SESSION)
        if _NO_SESSION in said and copy and not os.path.isabs(launch.ref):
            return ProgramStart(ref=self._lay_out(copy), prompt=launch.prompt)
        return None

    # --- while it runs ----------------------------------------------------------------------------

    def _attempt(self, launch: ProgramStart) -> None:
        """Run the program once, and answer its hooks until it has left."""
        self._result, self._has_prompt = None, launch.prompt is not None
        listener = HookListener(self._drive.place, self._selector)
        try:
            program = self._program = self._start_program(launch)
            while not program.is_gone:
                seconds = self._answer_hooks(listener)
                for key, _ in self._selector.select(seconds):
                    key.data()
                if not program.is_gone:
                    self._take_in(program, listener)
        finally:
            listener.close()
            self._calls.drop()
            self._keep_session()

    def _start_program(self, launch: ProgramStart) -> Program:
        setup, prompt = self._setup, launch.prompt
        if launch.ref:
            argv = resume_argv(setup, ref=launch.ref, prompt=prompt, hook=self._hook)
        else:
            argv = start_argv(setup, session=self._session, prompt=prompt or "", hook=self._hook)
        self._calls.keep(started=True)
        return Program(
            [*self._argv, *argv[1:]],
            cwd=self._drive.task.spec.workspace,
            environment=environment(setup, self._inherited),
            words=prompt if prompt is not None and not fits_a_word(prompt) else None,
            selector=self._selector,
            hear=self._hear,
        )

    def _answer_hooks(self, listener: HookListener) -> float:
        """Judge the calls that can be judged now, and answer their hooks.

        Return in how many seconds to look again if nothing happens.
        """
        rests = [60.0]
        # If the socket is not ours, nobody knows who would get the answers
        rest = self._calls.answer() if listener.is_own else None
        if rest is not None:
            rests.append(rest)
        if self._deadline is not None:
            rests.append(self._deadline - time.monotonic())
        if not self._is_resumable:
            rests.append(_GLANCE)
        return max(0.0, min(rests))

    def _take_in(self, program: Program, listener: HookListener) -> None:
        """Take in what was printed, and then who asks.

        A person who is asked must find all that was printed before.
        """
        program.drain()
        if listener.is_replaced:
            self._is_replaced = True
            program.kill()
            return
        self._note_session()
        for hook in listener.take():
            self._calls.add(hook)
        is_late = self._deadline is not None and time.monotonic() > self._deadline
        if is_late or self._calls.has_run_unasked or self._calls.has_no_hold:
            program.kill()

    def _hear(self, line: bytes) -> None:
        for event in events_of(line):
            self._calls.hear(event)
            match event:
                case Began():
                    self._drive.note_step(self._calls.turns.count)
                case Said(text=text):
                    self._last_words = text
                    say(text)
                case Init() if self._has_prompt:
                    self._calls.keep(reviews=len(self._drive.feedback))  # it has heard them
                case Result():
                    self._end_turn(event)
                case _:
                    pass

    def _end_turn(self, result: Result) -> None:
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
        """Pause: the program saves its session and exits."""
        self._stop_request.take()
        self._is_told_to_stop = self._calls.is_stopping = True
        self._calls.drop()
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
            self._drive.keep(SESSION, copy)
        self._is_resumable = copy is not None or self._drive.document(SESSION) is not None
        self._drive.session(self._session, resumable=self._is_resumable)

    def _ended(self) -> int:
        calls, result, code = self._calls, self._result, self._exit_code
        self._report(self._last_words)
        if self._is_told_to_stop:
            return INTERRUPTED
        if self._is_replaced:
            return self._fail(REPLACED)
        if calls.has_run_unasked:
            return self._fail(
                f"Claude Code ran {calls.has_run_unasked} without asking: {_HOOKS_OFF}"
            )
        if calls.has_no_hold:
            return self._fail(f"Claude Code does not ask before it makes a call: {_HOOKS_OFF}")
        if calls.is_pausing:
            return exits.PAUSED

        # A model that cannot make its calls, because their hooks do not reach us, is soon done, too
        if result and result.is_success and code == 0 and not calls.unheard:
            calls.close_subagents()
            self._report(result.result or self._last_words)
            return exits.COMPLETED

        # Pause if the session can go on: what fails would be lost. If it is not known what became
        # of a call, a person is asked that first. What is refused before anything was answered
        # would be refused again, and loses nothing.
        self._fail(self._why())
        if not self._is_resumable or calls.has_open_calls:
            return exits.FAILED
        if result is None:
            return STOPPED if was_stopped(code) else exits.FAILED
        if result.is_limit:
            return LIMIT_REACHED
        has_work = calls.turns.count > 0 or self._drive.run.resumed_from is not None
        is_outage = result.is_outage or calls.unheard is not None
        return UNAVAILABLE if is_outage or has_work else exits.FAILED

    @property
    def _exit_code(self) -> int | None:
        return self._program.exit_code if self._program else None

    def _report(self, message: str) -> None:
        used = self._used()
        if used.cost is not None:
            self._calls.keep(cost=self._began_at_cost + used.cost)
        self._drive.report(
            Report(
                message=message or None,
                steps=self._calls.turns.count,
                input_tokens=used.input_tokens,
                cached_input_tokens=used.cached_input_tokens,
                output_tokens=used.output_tokens,
                cost=f"{used.cost:.6f}" if used.cost is not None else None,
                details={"version": self._calls.memory.version},
            )
        )

    def _used(self) -> Used:
        """Return what the run used, and all that runs before it could not tell any more."""
        by_file = used_since(self._before, self._drive.document(SESSION) or b"")
        if by_file.cost is not None or self._result is None:
            return by_file
        return Used(
            input_tokens=by_file.input_tokens,
            cached_input_tokens=by_file.cached_input_tokens,
            output_tokens=by_file.output_tokens,
            cost=max(0.0, self._result.total_cost_usd - self._began_at_cost),
        )

    def _why(self) -> str:
        """Say why the program did not do its work."""
        if self._calls.unheard:
            return (
                f"the hook of call {self._calls.unheard} did not reach adjourn: nothing of it "
                "was run"
            )
        result, code = self._result, self._exit_code
        said = self._program.complaints.strip().rpartition("\n")[2] if self._program else ""
        if self._calls.memory.started and _NO_SESSION in said:
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
        complain(f"adjourn: {sentence}")
        return exits.FAILED
