"""Drives Codex through one run of a task.

Starts or resumes its thread, holds its calls, and leaves when a person is needed.
"""

import time
from collections.abc import Sequence

import msgspec

from adjourn.core import exits
from adjourn.core.errors import AdjournError, StoreProblem
from adjourn.ports.drive import Drive
from adjourn.ports.runner import Host
from adjourn.runners.channel import Gone, Silent, StopRequested
from adjourn.runners.codex import words
from adjourn.runners.codex.app_server import InUse, NoAppServer, OtherProvider, Thread
from adjourn.runners.codex.calls import CodexHeldCalls
from adjourn.runners.codex.conversation import (
    CodexConversation,
    ItemEnded,
    RequestBatch,
    Stuck,
    TurnEnded,
)
from adjourn.runners.codex.exec_fallback import ExecConversation, ExecThread
from adjourn.runners.codex.launch import Launch
from adjourn.runners.codex.memory import MemoryKeeper
from adjourn.runners.codex.options import Interface, OnApprove, setup_of
from adjourn.runners.codex.outputs import Outputs
from adjourn.runners.codex.protocol import Questions, ThreadItem, WantedCall
from adjourn.runners.codex.questions import ask_all, offered
from adjourn.runners.codex.session import Rollout
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

_GLANCE = 0.2  # seconds between two checks that the thread is on disk


class _Live(msgspec.Struct, frozen=True):
    """A thread that is open, its file, and what is said in it."""

    thread: Thread | ExecThread
    rollout: Rollout
    talk: CodexConversation


class CodexDriver:
    """One run of Codex."""

    def __init__(self, drive: Drive, host: Host) -> None:
        self._drive = drive
        self._setup = setup_of((drive.task.spec.setup or "").encode())
        self._keeper = MemoryKeeper(drive, host.environment)
        self._calls = CodexHeldCalls(drive, self._keeper, sandbox=self._setup.sandbox.value)
        self._has_app_server = self._setup.way is Interface.APP_SERVER
        self._launch = Launch(
            self._setup,
            workspace=drive.task.spec.workspace,
            environment=host.environment,
            place=drive.place,
            adjourn=host.adjourn,
            bind=host.die_with_us,
            interrupts=StopRequest(),
        )
        self._live: _Live | None = None
        self._steps = self._keeper.memory.answers  # the answers that were reported

    def start(self) -> int:
        """Run Codex until it is done or a person is needed, and return the exit code."""
        try:
            return self._run()
        except StoreProblem:
            raise
        except StopRequested:
            return self._leave_interrupted()
        except Gone as gone:
            return self._lose(gone)
        except (Stuck, Silent, InUse, OtherProvider) as error:
            return self._give_up(self._sentence(error), UNAVAILABLE)
        except AdjournError as error:
            return self._fail(self._sentence(error))

    def resume(self, ref: str) -> int:
        """Go on in the thread that the task remembers; `ref` is its name."""
        del ref
        return self.start()

    def interrupt(self) -> None:
        """Have Codex ended at its next word."""
        self._launch.interrupts.make()

    def kill(self) -> None:
        """End Codex before we end: a hook without an answer is a no, and its model would go on."""
        if self._live:
            self._live.thread.kill()

    def _run(self) -> int:
        while True:
            live = self._open()
            # A run may have been paused between the model's last words and the end of its turn
            last_words = live.rollout.read_on().last_words
            wants_more = self._wish(live.rollout) is not None
            if last_words is not None and not self._keeper.memory.queried and not wants_more:
                say(last_words)
                return self._end(live, last_words)
            code = self._converse(live) if self._go_on(live) else self._leave(live)
            if code is not None:
                return code

    # --- beginning --------------------------------------------------------------------------------

    def _open(self) -> _Live:
        """Start Codex, and open the thread that the task remembers, or a new one."""
        known = self._keeper.known
        if known:
            self._keeper.bring_back()
        thread: Thread | ExecThread
        if self._has_app_server:
            thread, talk = Thread(self._launch), CodexConversation
        else:
            prompt = self._drive.task.spec.prompt or ""
            thread, talk = ExecThread(self._launch, prompt=prompt), ExecConversation
        try:
            thread.open(known.thread if known else None)
        except NoAppServer:
            thread.kill()
            self._has_app_server = False
            return self._open()
        except BaseException:
            thread.kill()
            raise
        rollout = self._keeper.rollout(thread.path)
        self._live = _Live(thread, rollout, talk(thread, rollout, self._setup))
        self._keeper.opened(thread.id, rollout, version=thread.version)
        return self._live

    def _go_on(self, live: _Live) -> bool:
        """Tell Codex what came of its calls, and let the model go on.

        Return False if a person is needed first.
        """
        if not live.rollout.read_on().has_prompt:
            live.thread.begin_turn(self._drive.task.spec.prompt)
            return True

        # Run what was approved, if that is how approved calls come to run
        if isinstance(live.thread, Thread) and self._setup.on_approve is OnApprove.EXECUTE:
            parts = Outputs(self._keeper.memory, self._drive).parts
            if not self._calls.execute(live.thread, parts):
                return False

        outputs = Outputs(self._keeper.memory, self._drive)
        live.thread.tell_outputs(outputs.outputs(live.rollout))
        said = [outputs.in_words(live.rollout), self._wish(live.rollout)]
        live.thread.begin_turn("\n\n".join(filter(None, said)) or None)

        # Not before: after a kill until now, the next run says all this
        told = dict.fromkeys((*self._calls.may_be_repeated, *outputs.approved))
        reviews = len(self._drive.feedback)
        self._keeper.remember(put=(), cut=(), ran=(), queried=(), told=tuple(told), reviews=reviews)
        return True

    def _wish(self, rollout: Rollout) -> str | None:
        """Return what was said to the agent since it left, if Codex has not heard it.

        The same may have been said before, also as the prompt.
        """
        wishes = list(self._drive.feedback)
        if not wishes:
            return None
        newest = wishes[-1]
        told = [self._drive.task.spec.prompt or "", *wishes]
        said = sum(text.endswith(newest) for text in rollout.heard)
        if said >= sum(text.endswith(newest) for text in told):
            return None
        return "\n\n".join(wishes[self._keeper.memory.reviews :]) or newest

    # --- while Codex works ------------------------------------------------------------------------

    def _converse(self, live: _Live) -> int | None:
        """Take what comes until the run is over.

        None means that the thread has to be opened again.
        """
        while True:
            event = live.talk.next(patience=None if self._keeper.is_resumable else _GLANCE)
            if not self._keeper.is_resumable:
                self._keeper.note_session(live.rollout)
            match event:
                case None:
                    continue
                case ItemEnded(item):
                    self._note_step(live)
                    self._take_ended(live, item)
                case TurnEnded():
                    return self._finish(live, event)
                case RequestBatch(requests):
                    self._note_step(live)
                    if not self._take_batch(live, requests):
                        return self._leave_or_stop(live)

    def _note_step(self, live: _Live) -> None:
        """Report the model's newest answer, if that was not done yet."""
        if (answers := live.rollout.read_on().answers) > self._steps:
            self._steps = answers
            self._drive.note_step(answers)

    def _take_batch(self, live: _Live, requests: Sequence[WantedCall | Questions]) -> bool:
        """Put all that Codex wants before the policy and before people.

        Say whether all of it could be answered now.
        """
        wanted = [
            self._calls.placed(request, live.rollout)
            for request in requests
            if isinstance(request, WantedCall)
        ]
        asked = [request for request in requests if isinstance(request, Questions)]
        asks = [
            ask_all(self._drive, self._keeper, each.questions, call=live.rollout.call_of(each.item))
            for each in asked
        ]
        is_asked = any(ask.is_open for each in asks for ask in each)
        if is_asked or not self._calls.take(wanted, live.rollout, said=live.talk.message):
            return False
        live.talk.let(wanted)
        for each in wanted:
            live.thread.answer(each.answer(yes=True))
        for questions, answered in zip(asked, asks, strict=True):
            live.thread.answer(questions.answer([ask.reply for ask in answered]))
        return True

    def _leave_or_stop(self, live: _Live) -> int | None:
        """Leave if a person is needed.

        Else open the thread again, to tell Codex what it may not do.
        """
        if any(ask.is_open for ask in self._drive.asks()):
            return self._leave(live)
        self._stop_in_time(live)
        return None

    def _take_ended(self, live: _Live, item: ThreadItem) -> None:
        if item.type == "agentMessage":
            say(item.text)
            # At once: nothing else keeps them
            ask_all(self._drive, self._keeper, offered(item), call="")
        if not self._calls.end(item, live.rollout) and item.has_acted:
            why = f"Codex did something that it had not asked for: {item.what}"
            raise AdjournError(
                why, way_out="look for what allows it in Codex's own rules and settings"
            )

    # --- ending -----------------------------------------------------------------------------------

    def _finish(self, live: _Live, ended: TurnEnded) -> int | None:
        if ended.status != "completed":
            sentence = ended.error or f"Codex ended its turn as {ended.status}"
            # What is refused before anything was answered would be refused again
            has_work = (
                live.rollout.read_on().answers > 0 or self._drive.run.resumed_from is not None
            )
            if ended.is_final and not has_work:
                return self._fail(sentence)
            return self._give_up(sentence, LIMIT_REACHED if ended.is_limit else UNAVAILABLE)
        # The model did not wait for the answer
        if any(not each.call for each in self._keeper.memory.queried):
            return self._leave_or_stop(live)
        return self._end(live, live.talk.message)

    def _leave(self, live: _Live) -> int:
        self._stop_in_time(live)
        self._keeper.report(live.talk.message)
        return exits.PAUSED

    def _stop_in_time(self, live: _Live) -> None:
        """End Codex when what still runs has ended, or has had its time."""
        self._let_end(live)
        running = self._calls.running(live.rollout.read_on(), live.talk.items)
        self._stop(live)
        self._cut_off(live, running, why=words.LEFT)

    def _cut_off(self, live: _Live, running: Sequence[str], *, why: str) -> None:
        """Close what was ended along with Codex, and say so."""
        for call in self._calls.cut_off(live.rollout, live.talk.printed, names=running, why=why):
            complain(f"{words.line_of(call)}: {why}")

    def _let_end(self, live: _Live) -> None:
        """Wait for what still runs: a pause would cut it off.

        What Codex asks for meanwhile it asks for again.
        """
        began, is_told = time.monotonic(), False
        while (
            self._calls.running(live.rollout.read_on(), live.talk.items)
            and time.monotonic() < began + self._setup.wait
        ):
            if not is_told:
                complain(f"Codex has to stop; what still runs has {self._setup.wait:g} s to end.")
            is_told = True
            event = live.talk.next(patience=_GLANCE)
            if isinstance(event, ItemEnded):
                self._take_ended(live, event.item)

    def _stop(self, live: _Live) -> None:
        """End Codex at once: it must not get to write down that somebody stopped it."""
        live.thread.kill()
        self._put_away(live)

    def _end(self, live: _Live, message: str | None) -> int:
        running = self._calls.running(live.rollout.read_on(), live.talk.items)
        live.thread.close()
        self._put_away(live)
        self._cut_off(live, running, why=words.DONE_BEFORE)
        self._keeper.remember(reviews=len(self._drive.feedback))
        self._keeper.report(message)
        return exits.COMPLETED

    def _put_away(self, live: _Live) -> None:
        self._live = None
        self._calls.close_refused(live.rollout.read_on(), live.talk.items)
        self._keeper.keep(live.rollout, told=live.talk.usage)

    def _leave_interrupted(self) -> int:
        """End Codex, and say of the calls that it was making that they were cut off."""
        live = self._live
        if live:
            self._stop(live)
            self._calls.cut_off(live.rollout, live.talk.printed, why=words.INTERRUPTED)
            self._keeper.report(live.talk.message)
        return INTERRUPTED

    def _sentence(self, error: Exception) -> str:
        """Say what went wrong, with the last words of Codex if it left without a word."""
        if isinstance(error, AdjournError):
            return f"{error.sentence}; {error.way_out}" if error.way_out else error.sentence
        said = self._launch.complaint
        what = "Codex did not answer in time"
        if isinstance(error, Gone):
            what = f"Codex left before its turn ended{_how(error.code)}"
        return f"{what}: {said}" if said else what

    def _lose(self, gone: Gone) -> int:
        """Leave for now if somebody ended Codex between two calls.

        Else it has given up by itself.
        """
        code = self._fail(self._sentence(gone))
        return STOPPED if self._can_go_on and was_stopped(gone.code) else code

    def _give_up(self, sentence: str, code: int) -> int:
        """Leave for now, with that exit code, if the thread can go on; else fail."""
        failed = self._fail(sentence)
        return code if self._can_go_on else failed

    @property
    def _can_go_on(self) -> bool:
        return self._keeper.can_go_on and not self._calls.has_open_calls

    def _fail(self, sentence: str) -> int:
        """End Codex, and say why. How its running calls ended is not known then."""
        if self._live:
            self._stop(self._live)
        self._keeper.report(sentence)
        complain(sentence)
        return exits.FAILED


def _how(code: int | None) -> str:
    return "" if not code else f", by signal {-code}" if code < 0 else f", with exit code {code}"
