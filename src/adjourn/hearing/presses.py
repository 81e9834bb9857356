"""Takes what somebody pressed or replied in a channel, and has it decided by the one `decide()`."""

from collections.abc import Callable
from contextlib import suppress

import msgspec

from adjourn.controller.controller import Controller
from adjourn.core.ask import (
    ApprovalAsk,
    Ask,
    Principal,
    QuestionAsk,
    Reply,
    Verb,
    number_of_call,
)
from adjourn.core.errors import (
    AdjournError,
    AlreadySettled,
    NotAllowed,
    NotFound,
    StoreProblem,
)
from adjourn.core.redact import Redactor, plainly
from adjourn.core.text.render import prose
from adjourn.ports.notifier import NotDelivered
from adjourn.ports.store import Change
from adjourn.settings.config import read_config
from adjourn.settings.notify import approvers_in
from adjourn.supervision.ask_messages import AskMessages
from adjourn.views.block import CommandWriter
from adjourn.views.message import outcome_words
from adjourn.wiring.all_stores import registered_stores
from adjourn.wiring.controller import open_controller
from adjourn.wiring.notifications import Configured, open_messages

_LONGEST_ANSWER = 100_000  # characters
_UNKNOWN = "This ask is not known here any more."


class Press(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody did in a channel, as the platform says."""

    principal: str  # `telegram:42`
    ask_id: str
    verb: Verb
    digest: str | None = None  # the beginning of that of the call which the message showed
    choice: int | None = None  # which of a question's choices
    text: str | None = None  # a reason, or an answer
    handle: str | None = None  # of the message that was pressed


class PressResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a press, in words for the person who pressed."""

    words: str
    is_recorded: bool = False
    is_refused: bool = False


class _OpenedStore(msgspec.Struct, frozen=True):
    controller: Controller
    messages: AskMessages


def _note_nothing(_rows: Change) -> None:
    """Write nothing."""


class Presses:
    """Decides for one channel, in all stores of this user: an ask's id names its store."""

    def __init__(
        self,
        root: str,
        channel: Configured,
        *,
        commands_for: Callable[[str], CommandWriter],
        redactor: Redactor,
    ) -> None:
        self._root = root
        self._channel = channel
        self._commands_for = commands_for
        self._redactor = redactor
        self._opened: dict[str, _OpenedStore] = {}

    @property
    def home(self) -> Controller:
        """The store of the worker or server that listens."""
        return self._open(self._root).controller

    def find(self, ask_id: str) -> Ask | None:
        """Return the ask of that id in any store, or None."""
        found = self._find(ask_id)
        return found[1] if found else None

    def could_count(self, press: Press) -> bool:
        """Return whether a press would be recorded now; it only saves a person a question."""
        found = self._find(press.ask_id)
        if found is None or not found[1].is_open:
            return False
        opened, ask = found
        by = self._principal(opened, press)
        with opened.controller.store.read() as view:
            return opened.controller.decisions.why_not(view, ask, press.verb, by=by) is None

    def take(self, press: Press, *, heard: Callable[[Change], None] | None = None) -> PressResult:
        """Record what a press decides. `heard` notes in the same transaction that it was taken.

        A press that comes twice decides once, and is answered in the same words.
        """
        found = self._find(press.ask_id)
        if found is None:
            self._note(heard)
            return PressResult(words=_UNKNOWN, is_refused=True)
        opened, ask = found
        is_home = opened is self._opened.get(self._root)
        note: Callable[[Change], None] = heard if heard and is_home else _note_nothing
        decisions, by = opened.controller.decisions, self._principal(opened, press)
        try:
            with opened.controller.store.read() as view:
                number = number_of_call(ask)
                call = None if number is None else view.call(ask.task_id, number)
            is_changed = bool(press.digest and call and not call.digest.startswith(press.digest))
            if is_changed and ask.is_open and press.verb is Verb.APPROVE:
                self._note(heard)
                return self._changed(opened, ask, press)
            if press.handle and ask.is_open:
                opened.messages.adopt(ask, press.handle, digest=call.digest if call else None)
            reply = Reply(
                ask_id=ask.id,
                verb=press.verb,
                text=self._text(ask, press),
                digest=call.digest if call and press.verb is Verb.APPROVE else None,
            )
            (settled,) = decisions.decide([reply], by=by, also=note)
        except StoreProblem:
            raise  # it is taken later
        except AlreadySettled:
            self._note(heard)
            with opened.controller.store.read() as view:
                ask = view.ask(ask.id)
            return self._settled_before(opened, ask, press)
        except NotAllowed as refusal:
            decisions.tell_refusal(
                ask.task_id, verb=press.verb, why=refusal.sentence, by=by, also=note
            )
            if not is_home:
                self._note(heard)
            return PressResult(words=self._told(refusal.sentence), is_refused=True)
        except AdjournError as error:
            self._note(heard)
            return PressResult(words=self._told(error.sentence), is_refused=True)
        if not is_home:
            self._note(heard)
        if isinstance(settled, ApprovalAsk) and settled.is_open:  # others must approve it, too
            words = f"Your approval counts: {settled.count_words}"
            return PressResult(words=self._told(words), is_recorded=True)
        return PressResult(words=self._told(self._outcome(settled)), is_recorded=True)

    # --- what is told -----------------------------------------------------------------------------

    def _settled_before(self, opened: _OpenedStore, ask: Ask, press: Press) -> PressResult:
        """Say who was first, and change the message which was pressed so that it says it, too."""
        if press.handle:
            # If its channel does not answer, the next press will see it changed
            with suppress(NotDelivered):
                opened.messages.update(ask.id, ask.id, also=press.handle)
        by = ask.settlement.by if ask.settlement else ""
        words = self._outcome(ask)
        if by != press.principal:
            words = f"Too late: {words[:1].lower()}{words[1:]}"
        return PressResult(words=self._told(words), is_recorded=by == press.principal)

    def _changed(self, opened: _OpenedStore, ask: Ask, press: Press) -> PressResult:
        """Show again what changed since it was shown."""
        with suppress(NotDelivered):
            opened.messages.show_anew(ask, stale=press.handle)
        return PressResult(
            words="This has changed since it was shown. A new message has it as it is now.",
            is_refused=True,
        )

    def _outcome(self, ask: Ask) -> str:
        return outcome_words(self._redactor.ask(ask), approvers_in(read_config()))

    def _told(self, sentence: str) -> str:
        return plainly(prose(self._redactor.text(sentence)))

    def _text(self, ask: Ask, press: Press) -> str | None:
        if press.choice is not None and isinstance(ask, QuestionAsk):
            return ask.choices[press.choice] if press.choice < len(ask.choices) else None
        return press.text[:_LONGEST_ANSWER] if press.text else None

    # --- stores -----------------------------------------------------------------------------------

    def _note(self, heard: Callable[[Change], None] | None) -> None:
        if heard is None:
            return
        self.home.documents.keep_with(heard)

    def _principal(self, opened: _OpenedStore, press: Press) -> Principal:
        through = opened.controller.decisions.principal().name
        return Principal(name=press.principal, through=through)

    def _find(self, ask_id: str) -> tuple[_OpenedStore, Ask] | None:
        """Return the ask of that very id, and its store.

        While the own store cannot be read nothing is decided, and the press comes again.
        """
        home = self._open(self._root)
        with suppress(NotFound), home.controller.store.read() as view:
            return home, view.ask(ask_id)
        for root in registered_stores():
            with suppress(AdjournError):
                opened = self._open(root)
                with opened.controller.store.read() as view:
                    return opened, view.ask(ask_id)
        return None

    def _open(self, root: str) -> _OpenedStore:
        if root not in self._opened:
            controller = open_controller(root)
            messages = open_messages(
                self._channel,
                controller,
                commands=self._commands_for(root),
                redactor=self._redactor,
            )
            self._opened[root] = _OpenedStore(controller, messages)
        return self._opened[root]
