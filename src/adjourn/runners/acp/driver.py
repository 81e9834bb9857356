"""Drives an agent that speaks ACP through one run of a task.

Starts or resumes its session, holds its calls, and leaves when a person is needed.
"""

import time

from adjourn.core import exits
from adjourn.core.agent.calls import Held
from adjourn.core.errors import AdjournError, CannotResume, StoreProblem
from adjourn.core.states import CallState
from adjourn.ports.drive import Drive
from adjourn.ports.runner import Host
from adjourn.runners.acp import questions, words
from adjourn.runners.acp.calls import HeldCalls
from adjourn.runners.acp.conversation import (
    CallEnded,
    Conversation,
    Elicitation,
    ModeChanged,
    RequestBatch,
    Spoke,
    Stuck,
    TurnEnded,
)
from adjourn.runners.acp.memory import SESSION, MemoryKeeper
from adjourn.runners.acp.options import setup_of
from adjourn.runners.acp.probed import require_probed
from adjourn.runners.acp.protocol import (
    SHOWS_NO_MORE,
    AgentCall,
    Permission,
    WantedCall,
    wanted_call,
)
from adjourn.runners.acp.session import AgentSession, copy_session, put_session_back
from adjourn.runners.channel import Gone, Refused, Silent, StopRequested
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

_GLANCE = 0.2  # seconds between two checks of a call that still runs
_SHARE = 0.4  # of the grace that a run has, what the agent gets to end its turn
_LIMITS = frozenset({"max_tokens", "max_turn_requests"})
_CANCELLED = {"outcome": {"outcome": "cancelled"}}


class AcpDriver:
    """One run of an agent."""

    def __init__(self, drive: Drive, host: Host) -> None:
        self._drive = drive
        self._host = host
        self._setup = setup_of(drive.task.spec.setup)
        self._name = self._setup.name
        self._is_gated = drive.task.spec.pause_on_approval
        self._keeper = MemoryKeeper(drive)
        self._calls = HeldCalls(drive, self._keeper)
        self._interrupts = StopRequest()
        self._session: AgentSession | None = None
        self._talk: Conversation | None = None
        self._is_noted = False  # whether it is noted that the agent has heard the newest prompt
        self._refused: list[Held] = []  # calls that were turned down in this turn

    def start(self) -> int:
        """Run the agent until it is done or a person is needed, and return the exit code."""
        try:
            return self._run()
        except StoreProblem:
            raise
        except StopRequested:
            return self._leave_interrupted()
        except Gone as gone:
            code = self._fail(self._sentence(gone))
            return STOPPED if self._can_go_on and was_stopped(gone.code) else code
        except (Stuck, Silent) as error:
            return self._give_up(self._sentence(error), UNAVAILABLE)
        except CannotResume as error:
            return self._fail(f"{error.sentence}; adjourn restart {self._drive.task.id}")
        except AdjournError as error:
            return self._fail(self._sentence(error))

    def resume(self, ref: str) -> int:
        """Go on in the session that the task remembers; `ref` is its name."""
        del ref
        return self.start()

    def interrupt(self) -> None:
        """Have the agent ended at its next word."""
        self._interrupts.make()

    def kill(self) -> None:
        """End the agent before we end."""
        if self._session:
            self._session.kill()

    # --- beginning --------------------------------------------------------------------------------

    def _run(self) -> int:
        session = self._open()
        talk = self._talk = Conversation(session, self._setup)
        memory = self._keeper.memory
        if memory.has_begun:
            answers = questions.answered(self._drive, self._keeper)
            told = words.news(self._calls.untold(), answers) or words.PAUSED
            text = "\n\n".join([told, *self._drive.feedback[memory.reviews :]])
        else:
            text = self._drive.task.spec.prompt or ""
        talk.begin_turn(text)
        return self._converse(session, talk)

    def _open(self) -> AgentSession:
        """Start the agent, and open the session that the task remembers, or a new one."""
        spec, agent, memory = self._drive.task.spec, self._setup.agent, self._keeper.memory
        session = self._session = AgentSession(
            self._setup,
            workspace=spec.workspace,
            environment=self._host.environment,
            place=self._drive.place,
            bind=self._host.die_with_us,
            interrupts=self._interrupts,
        )
        version = session.greet()
        if self._is_gated:
            require_probed(self._setup, version, self._host.environment)
        if not session.can_go_on:
            raise AdjournError(
                f"{self._name} cannot open a session again, so a task of it could not be paused",
                way_out="use an agent that offers session/resume or session/load",
            )

        # Nothing came of a session that never began: another takes its place
        ref = memory.session if memory.has_begun else None
        if ref and (copy := self._drive.document(SESSION)):
            put_session_back(copy, home=session.home)
        if ref and agent.waits_a_minute:
            session.wait_for_next_minute(memory.began)
        session.open(ref, is_gated=self._is_gated)
        self._keeper.opened(session.id, mode=session.mode, version=version)
        return session

    # --- while the agent works --------------------------------------------------------------------

    def _converse(self, session: AgentSession, talk: Conversation) -> int:
        """Take what comes until the run is over."""
        while True:
            event = talk.next(patience=None if self._is_noted else _GLANCE)
            self._note_begun()
            match event:
                case None:
                    continue
                case Spoke(text):
                    say(text)
                case ModeChanged(mode):
                    if self._is_gated:
                        session.refuse_careless(mode)
                case CallEnded(call):
                    self._take_ended(talk, call)
                case RequestBatch():
                    self._keeper.steps += 1
                    self._drive.note_step(self._keeper.steps)
                    if not self._take_batch(session, talk, event):
                        return self._leave(talk)
                case TurnEnded():
                    code = self._finish(session, talk, event)
                    if code is not None:
                        return code
                    self._is_noted = False

    def _note_begun(self) -> None:
        """Note that the agent has heard the newest prompt, once.

        Not before: after a kill until then, the next run says all this.
        """
        if self._talk and self._talk.has_begun and not self._is_noted:
            self._is_noted = True
            self._calls.forget_told()
            self._keeper.begun()

    def _take_batch(self, session: AgentSession, talk: Conversation, batch: RequestBatch) -> bool:
        """Put all that the agent wants before the policy and before people.

        Say whether all of it could be answered now.
        """
        wanted = [each for each in batch.requests if isinstance(each, WantedCall)]
        if any(not self._can_be_let(each) or not self._calls.needs_nobody(each) for each in wanted):
            batch = talk.gather(batch)

        # What a person cannot see, or what has no plain yes, nobody can approve
        for each in batch.requests:
            if isinstance(each, WantedCall) and not self._can_be_let(each):
                self._answer(session, each, yes=None)
        wanted = [
            each
            for each in batch.requests
            if isinstance(each, WantedCall) and self._can_be_let(each)
        ]
        forms = [each for each in batch.requests if isinstance(each, Elicitation)]
        asked = [questions.ask_form(self._drive, self._keeper, each) for each in forms]
        which = {
            each.item: questions.ask_which_yes(self._drive, self._keeper, each)
            for each in wanted
            if len(each.permission.yeses) > 1
        }
        held = self._calls.judge(wanted, said=talk.message) if wanted else []
        self._refused += [one for one in held if one.call and one.call.state is CallState.REJECTED]
        asks = [
            *which.values(),
            *(ask for each in asked for ask in each.values()),
            *(one.ask for one in held if one.ask),
        ]
        if any(ask.is_open for ask in asks) or not self._calls.hand_out(wanted, held):
            self._calls.hold(held)
            return False

        for each, one in zip(wanted, held, strict=True):
            is_approved = one.call is not None and one.call.state is CallState.APPROVED
            chosen = which.get(each.item)
            name = chosen.reply if chosen else each.permission.yeses[0].name
            yes = next((option for option in each.permission.yeses if option.name == name), None)
            self._answer(session, each, yes=yes.option_id if yes and is_approved else None)
        for form, answers in zip(forms, asked, strict=True):
            session.answer(form.request, questions.form_answer(form, answers))
            questions.forget(self._keeper, answers.values())
        questions.forget(self._keeper, which.values())
        return True

    def _can_be_let(self, wanted: WantedCall) -> bool:
        return wanted.can_be_shown and bool(wanted.permission.yeses)

    def _answer(self, session: AgentSession, wanted: WantedCall, *, yes: str | None) -> None:
        """Let one call run, once, or keep it from running."""
        if yes is None and not self._can_be_let(wanted):
            title = wanted.permission.tool_call.title or wanted.tool
            what = "offers no plain yes for" if wanted.can_be_shown else "does not show"
            why = "" if wanted.can_be_shown else f": {SHOWS_NO_MORE}"
            complain(f"Not run: {self._name} {what} its call {title!r}{why}")
            if not wanted.can_be_shown:
                complain(f"If its titles are its calls: title_is_call = true in [acp.{self._name}]")
        chosen = {"outcome": {"outcome": "selected", "optionId": yes}}
        session.answer(wanted.request, chosen if yes else wanted.permission.refusal)

    def _take_ended(self, talk: Conversation, call: AgentCall) -> None:
        """Close a call; one that had an effect and was never asked about ends the run."""
        is_ours = self._calls.end(call) or talk.was_asked(call)
        agent = self._setup.agent
        if is_ours or not self._is_gated or not call.has_acted or agent.is_sandboxed or agent.trust:
            return
        permission = Permission(session_id="", tool_call=call)
        made = wanted_call("", permission, [call], agent=agent)
        if not made.can_be_shown or not self._drive.lets_run(self._calls.proposed(made)):
            raise AdjournError(
                f"{self._name} did something without asking: {call.what}",
                way_out=f"adjourn doctor --agent {self._name}",
            )

    # --- ending -----------------------------------------------------------------------------------

    def _finish(self, session: AgentSession, talk: Conversation, ended: TurnEnded) -> int | None:
        """Say how the run ended; None if the agent was told to go on."""
        self._keeper.note_use(talk.usage, talk.cost)
        if ended.error:
            sentence = f"{self._name} ended its turn: {ended.error.message}"
            return self._give_up(sentence, UNAVAILABLE)
        if ended.reason in _LIMITS:
            return self._give_up(f"{self._name} ended its turn: {ended.reason}", LIMIT_REACHED)
        # Some end their turn at a call that is turned down: the model has to hear why, and go on
        if ended.reason == "cancelled" and self._refused:
            told, self._refused = words.rejected(self._refused), []
            talk.begin_turn(told)
            return None
        if ended.reason != "end_turn":
            return self._give_up(f"{self._name} ended its turn: {ended.reason}", UNAVAILABLE)
        # Where its model's server fails, an agent may end its turn as if all were well
        if not talk.has_result:
            said = session.complaint
            what = f"{self._name} ended its turn without a word or a result"
            return self._give_up(f"{what}: {said}" if said else what, UNAVAILABLE)
        session.close()
        self._keep_session(session)
        self._session = None
        self._keeper.report(talk.message)
        return exits.COMPLETED

    def _leave(self, talk: Conversation) -> int:
        """End the agent when what still runs has ended, or has had its time."""
        began, is_told = time.monotonic(), False
        while self._calls.has_open_calls and time.monotonic() < began + self._setup.wait:
            if not is_told:
                complain(
                    f"{self._name} has to stop; what still runs has {self._setup.wait:g} s to end."
                )
            is_told = True
            event = talk.next(patience=_GLANCE)
            if isinstance(event, CallEnded):
                self._take_ended(talk, event.call)
            elif isinstance(event, TurnEnded):
                break
        self._stop()
        self._calls.cut_off(why=words.LEFT)
        self._keeper.report(talk.message)
        return exits.PAUSED

    def _stop(self) -> None:
        """End the agent at once, and keep its session."""
        session, self._session = self._session, None
        if session:
            session.kill()
            self._keep_session(session)

    def _keep_session(self, session: AgentSession) -> None:
        copy = copy_session(self._setup.agent.session_files, home=session.home, session=session.id)
        if copy:
            self._drive.keep(SESSION, copy)

    def _leave_interrupted(self) -> int:
        """Have the agent end its turn, so that its session is in order, and end it."""
        session, talk = self._session, self._talk
        self._interrupts.take()
        if session and talk:
            grace = float(self._host.environment.get("ADJOURN_GRACE", "5"))
            deadline = time.monotonic() + _SHARE * grace
            try:
                session.cancel()
                while (rest := deadline - time.monotonic()) > 0:
                    event = talk.next(patience=rest)
                    match event:
                        case CallEnded(call):
                            self._calls.end(call)
                        case RequestBatch(requests):
                            for each in requests:
                                is_form = isinstance(each, Elicitation)
                                session.answer(
                                    each.request, {"action": "cancel"} if is_form else _CANCELLED
                                )
                        case TurnEnded():
                            break
                        case _:
                            pass
            except (Gone, Silent, StopRequested, AdjournError):
                pass  # it is killed all the same
            self._note_begun()
        self._stop()
        self._calls.cut_off(why=words.INTERRUPTED)
        self._keeper.report(talk.message if talk else None)
        return INTERRUPTED

    def _sentence(self, error: Exception) -> str:
        """Say what went wrong, with the last words of the agent if it left without a word."""
        if isinstance(error, AdjournError) and not isinstance(error, Refused):
            return f"{error.sentence}; {error.way_out}" if error.way_out else error.sentence
        said = self._session.complaint if self._session else ""
        what = f"{self._name} did not answer in time"
        if isinstance(error, Refused):
            what = error.sentence
        elif isinstance(error, Gone):
            code = error.code
            how = "" if not code else f", by signal {-code}" if code < 0 else f", exit code {code}"
            what = f"{self._name} left before its turn ended{how}"
        return f"{what}: {said}" if said else what

    def _give_up(self, sentence: str, code: int) -> int:
        """Leave for now, with that exit code, if the session can go on; else fail."""
        failed = self._fail(sentence)
        return code if self._can_go_on else failed

    @property
    def _can_go_on(self) -> bool:
        return self._keeper.memory.has_begun and not self._calls.has_open_calls

    def _fail(self, sentence: str) -> int:
        """End the agent, and say why. How its running calls ended is not known."""
        self._note_begun()
        self._stop()
        self._keeper.report(sentence)
        complain(sentence)
        return exits.FAILED
