"""Sends one notifier what happened: in order for each task, at least once, and off other paths."""

import os
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager

import msgspec

from adjourn.controller.controller import Controller
from adjourn.core.documents import plain_json
from adjourn.core.errors import NotFound, StoreProblem, UnreadableRow
from adjourn.core.outbox import Outbox, is_ahead
from adjourn.core.redact import Redactor, plainly
from adjourn.core.task import Milliseconds
from adjourn.core.trail.events import Happened
from adjourn.ports.notifier import NotDelivered, Notifier
from adjourn.ports.world import Clock
from adjourn.supervision.ask_messages import AskMessages
from adjourn.system.files import hold_lock, private_directory
from adjourn.system.poll import Poll
from adjourn.views.block import CommandWriter
from adjourn.views.notice import Occasion, notice_of, occasion_of

_PAGE = 200
_LOOK_MS = 5_000  # repairs a lost wake-up; everything else is an event
_RECORD_S = 0.2  # of what was delivered since, a killed process sends again
# A notifier that comes back after that long is not told all that it missed
_TOO_OLD: Milliseconds = 7 * 86_400_000
_FOLDER = "notify"


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one round."""

    delivered: int
    failed: int
    why: str | None
    again_in: Milliseconds | None


class Sender:
    """Sends one notifier what happened. Of several for the same name, one sends at a time."""

    def __init__(
        self,
        controller: Controller,
        receiver: Notifier | AskMessages,
        *,
        name: str,
        on: frozenset[Occasion],
        root: str,
        clock: Clock,
        commands: CommandWriter,
        redactor: Redactor,
        since: Milliseconds,
        also_called: frozenset[str] = frozenset(),
    ) -> None:
        self.controller = controller
        self._receiver = receiver
        self.name = name
        self._on = on
        self._root = root
        self._clock = clock
        self._commands = commands
        self._redactor = redactor
        self._since = since
        # What `escalate_to` may call it: its own name, and the people and teams that it reaches
        self._called = also_called | {name}
        self._box = Outbox(cursor=0)
        self._saved_at = 0.0
        self._saved_cursor = 0
        self._is_news = False

    def send_due(
        self, *, at_once: bool = False, goes_on: Callable[[], bool] = lambda: True
    ) -> Round:
        """Send all that is due; `at_once`, also what would be tried later."""
        delivered = failed = 0
        self.controller.decisions.remind_due()
        with self._turn():
            if at_once:
                self._box = self._box.without_pauses()
                self._is_news = True
            while goes_on() and (happened := self._next()):
                why = self._refusal(happened)
                if why and not goes_on():
                    break  # broken off: nobody knows whether it was taken, so it is told again
                self._remember(happened, why)
                delivered, failed = (delivered, failed + 1) if why else (delivered + 1, failed)
            self._save()
        now = self._clock()
        next_at = self._box.next_at(now=now)
        why = self._box.last_error if failed else None
        return Round(
            delivered=delivered,
            failed=failed,
            why=why,
            again_in=None if next_at is None else max(0, next_at - now),
        )

    @contextmanager
    def _turn(self) -> Generator[None, None, None]:
        folder = private_directory(os.path.join(self._root, _FOLDER))
        held = hold_lock(os.path.join(folder, f"{self.name}.lock"))
        try:
            self._load()
            yield
        finally:
            held.close()

    # --- what is to be told next ------------------------------------------------------------------

    def _next(self) -> Happened | None:
        now = self._clock()
        if is_ahead(self._box.not_before, now=now):
            return None
        while parked := self._box.due(now=now):
            with self.controller.store.read() as view:
                found = view.happened(after=parked.place - 1, limit=1)
            if found and found[0].place == parked.place:
                return found[0]
            self._box = self._box.past(parked.place)  # its task was pruned
        return None if self._box.is_full else self._next_of_the_trail(now=now)

    def _next_of_the_trail(self, *, now: Milliseconds) -> Happened | None:
        while page := self._page():
            for happened in page:
                if not self._concerns(happened, now=now):
                    self._box = self._box.past(happened.place)
                elif self._box.holds_back(happened.event.task_id):
                    self._box = self._box.behind(happened.place, task_id=happened.event.task_id)
                else:
                    return happened
        return None

    def _concerns(self, happened: Happened, *, now: Milliseconds) -> bool:
        occasion = occasion_of(happened.event)
        is_wanted = occasion in self._on
        if occasion is Occasion.REMINDER and not is_wanted:
            to = str(happened.event.facts.get("to") or "").split()
            is_wanted = not self._called.isdisjoint(to)
        if not is_wanted and isinstance(self._receiver, AskMessages):
            # What was shown is changed when it is settled, whatever else the receiver wants
            is_wanted = self._receiver.is_touched(happened.event)
        return is_wanted and now - happened.event.at < _TOO_OLD

    def _page(self) -> list[Happened]:
        with self.controller.store.read() as view:
            return view.happened(after=self._box.cursor, limit=_PAGE)

    def count_waiting(self) -> int:
        """Return how many events are still to be told."""
        self._load()
        count = len(self._box.parked)
        while page := self._page():
            count += sum(self._concerns(happened, now=self._clock()) for happened in page)
            self._box = self._box.past(page[-1].place)
        return count

    # --- one try ----------------------------------------------------------------------------------

    def _remember(self, happened: Happened, why: str | None) -> None:
        """Take down what came of one try."""
        self._is_news = True
        if why is None:
            self._box = self._box.delivered(happened.place)
        else:
            self._box = self._box.failed(
                happened.place, task_id=happened.event.task_id, now=self._clock(), why=why
            )
        is_message = isinstance(self._receiver, AskMessages)
        if why or is_message or time.monotonic() - self._saved_at > _RECORD_S:
            self._save()

    def _refusal(self, happened: Happened) -> str | None:
        try:
            if isinstance(self._receiver, AskMessages):
                self._receiver.tell(happened)
            else:
                self._receiver.send(happened.id, self._document(happened), at=self._clock())
        except NotFound:
            return None  # its task was pruned just now: there is nothing left to tell
        except StoreProblem:
            raise
        except UnreadableRow as error:
            return error.sentence
        except NotDelivered as refusal:
            return str(refusal)
        except Exception as defect:  # noqa: BLE001 -- one document that cannot be made must not keep all others back
            return f"a defect in adjourn: {type(defect).__name__}: {defect}"
        return None

    def _document(self, happened: Happened) -> bytes:
        """Return what is sent of an event, without secrets."""
        event, clean = happened.event, self._redactor
        ask_id = event.facts.get("ask")
        scene = self.controller.scene(event.task_id)
        with self.controller.store.read() as view:
            ask = view.ask(str(ask_id)) if ask_id else None
        notice = notice_of(
            happened,
            clean.scene(scene),
            ask=clean.ask(ask) if ask else None,
            commands=self._commands,
            now=self._clock(),
        )
        told = msgspec.structs.replace(notice, text=plainly(notice.text))
        # Once more as a finished document: no list of fields can forget one
        return plain_json(msgspec.json.encode(clean.document(told)).decode()).encode()

    # --- what is remembered -----------------------------------------------------------------------

    def _load(self) -> None:
        """Read how far we are: another process may have sent meanwhile."""
        with self.controller.store.read() as view:
            kept = view.outbox(self.name)
            self._box = kept or Outbox(cursor=view.place_before(self._since))
        self._is_news = kept is None
        self._saved_cursor = self._box.cursor
        self._saved_at = time.monotonic()

    def _save(self) -> None:
        """Save how far we are, unless only a few events happened that concern nobody."""
        self._saved_at = time.monotonic()
        if not self._is_news and self._box.cursor - self._saved_cursor < _PAGE:
            return
        with self.controller.store.change() as change:
            change.save_outbox(self.name, self._box)
        self._saved_cursor = self._box.cursor
        self._is_news = False


class NotifierStop:
    """Tells senders to leave.

    At once if nothing is due, and at the latest when their time is over.
    """

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC)
        self._deadline = float("inf")

    def fileno(self) -> int:
        """Return what to poll."""
        return self._reader

    def within(self, seconds: float) -> None:
        """Let everybody finish within that time."""
        self._deadline = time.monotonic() + seconds
        os.write(self._writer, b"x")

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self._deadline


def send_until(stop: NotifierStop, sender: Sender, *, log: Callable[..., None]) -> None:
    """Send whatever happens until told to stop; then only what is due still, and leave."""
    with closing(sender.controller.store.listen()) as listener:
        poll = Poll(listener)
        poll.add(stop.fileno())
        is_last = False
        while not is_last:
            is_last = stop.fileno() in poll.wait(0)
            wait = _send_round(sender, stop=stop, log=log)
            poll.wait(0 if is_last else wait / 1000)


def _send_round(sender: Sender, *, stop: NotifierStop, log: Callable[..., None]) -> Milliseconds:
    """Deliver what is due and return for how long nothing will be, unless something happens."""
    try:
        sent = sender.send_due(goes_on=lambda: not stop.is_over)
    except StoreProblem as error:
        log("store_error", error=error.sentence, way_out=error.way_out)
        return _LOOK_MS
    if sent.why:
        log("not_delivered", notifier=sender.name, failed=sent.failed, why=sent.why)
    return min(_LOOK_MS, sent.again_in if sent.again_in is not None else _LOOK_MS)
