"""Shows asks to a messenger, and changes what was shown when somebody settles them, anywhere."""

import secrets
from collections.abc import Mapping
from hashlib import sha256

import msgspec

from adjourn.controller.controller import Controller
from adjourn.core.ask import Ask, Principal, Verb, expiry_of
from adjourn.core.kept_documents import LINKS, SENT, SentMessage, SettlingLink
from adjourn.core.redact import Redactor, plainly
from adjourn.core.scene import Scene
from adjourn.core.task import Milliseconds
from adjourn.core.text.render import title
from adjourn.core.trail.events import Event, Happened
from adjourn.ports.notifier import Message, Messenger
from adjourn.ports.world import Clock
from adjourn.views.block import CommandWriter
from adjourn.views.message import ask_message, plain_message
from adjourn.views.notice import Occasion, notice_of, occasion_of

_TOUCHING = frozenset(
    {
        "approval_given",
        "ask_approved",
        "ask_rejected",
        "ask_answered",
        "ask_settled",
        "ask_expired",
        "ask_withdrawn",
    }
)
_ASKING = frozenset({Occasion.PAUSE, Occasion.UNCERTAIN, Occasion.REMINDER})
_TITLE = 200
_MOST_LINKS = 8  # of one ask: a message that is tried again has another one
# A link to an ask that does not expire is good for so long
_LIFETIME: Milliseconds = 7 * 86_400_000


class AskMessages:
    """What one messenger shows of a store."""

    def __init__(
        self,
        controller: Controller,
        messenger: Messenger,
        *,
        name: str,
        clock: Clock,
        commands: CommandWriter,
        redactor: Redactor,
        names: Mapping[str, str],
        public_url: str | None,
    ) -> None:
        self._controller = controller
        self._messenger = messenger
        self._name = name
        self._clock = clock
        self._commands = commands
        self._redactor = redactor
        self._names = names
        self._public_url = public_url

    def is_touched(self, event: Event) -> bool:
        """Return whether an event is about an ask that was shown."""
        ask_id = event.facts.get("ask")
        return event.kind in _TOUCHING and bool(self._sent(event.task_id, str(ask_id)))

    def tell(self, happened: Happened) -> None:
        """Show what an event asks, or change what was shown of it. Raise NotDelivered.

        It can be told again: an ask that is shown already is not shown twice.
        """
        event = happened.event
        occasion = occasion_of(event)
        if self.is_touched(event):
            self.update(str(event.facts["ask"]), happened.id)
            return
        scene = self._controller.scene(event.task_id)
        if occasion not in _ASKING or not scene.open_asks:
            self._messenger.send_message(self._notice(happened, scene))
            return
        only = str(event.facts.get("ask")) if occasion is Occasion.REMINDER else None
        for ask in scene.open_asks:
            if only in {None, ask.id}:
                self.show(ask, scene, happened.id, is_reminder=only is not None)

    def show(self, ask: Ask, scene: Scene, event_id: str, *, is_reminder: bool = False) -> None:
        """Send a message about an ask, unless it is shown already as it is now."""
        call = scene.call_of(ask)
        digest = call.digest if call else None
        earlier = self._sent(ask.task_id, ask.id)
        if any(
            each.digest == digest and (not is_reminder or each.event == event_id)
            for each in earlier
        ):
            return
        message = self._message(ask, scene, event_id, is_reminder=is_reminder)
        handle = self._messenger.send_message(message)
        if handle is not None:
            sent = SentMessage(handle=handle, digest=digest, event=event_id)
            self._keep(ask, (*earlier, sent))

    def update(self, ask_id: str, event_id: str, *, also: str | None = None) -> None:
        """Show an ask as it stands now wherever it is shown; `also` is the handle of one more."""
        with self._controller.store.read() as view:
            ask = view.ask(ask_id)
        scene = self._controller.scene_of(ask)
        call = scene.call_of(ask)
        sent = self._sent(ask.task_id, ask.id)
        message = self._message(ask, scene, event_id)
        digest = call.digest if call else None
        events = {also: event_id} if also else {}
        events |= {each.handle: each.event for each in sent}
        for handle in events:
            self._messenger.update_message(handle, message)
        changed = tuple(
            SentMessage(handle=handle, digest=digest, event=event)
            for handle, event in events.items()
        )
        if changed != sent:
            self._keep(ask, changed)

    def adopt(self, ask: Ask, handle: str, *, digest: str | None) -> None:
        """Note that a message shows an ask, if that is not known.

        A sender that is killed between sending and keeping the handle sends again, and leaves a
        message behind that nobody would change. Its first press shows that.
        """
        sent = self._sent(ask.task_id, ask.id)
        if all(each.handle != handle for each in sent):
            self._keep(ask, (*sent, SentMessage(handle=handle, digest=digest, event=ask.id)))

    def show_anew(self, ask: Ask, *, stale: str | None) -> None:
        """Send an ask as it stands now, and take the buttons off the message that shows it not."""
        scene = self._controller.scene_of(ask)
        message = self._message(ask, scene, ask.id)
        old = [each.handle for each in self._sent(ask.task_id, ask.id)]
        handle = self._messenger.send_message(message)
        call = scene.call_of(ask)
        if handle is not None:
            digest = call.digest if call else None
            self._keep(ask, (SentMessage(handle=handle, digest=digest, event=ask.id),))
        words = "This has changed since it was shown here. A newer message has it as it is now."
        moved = msgspec.structs.replace(
            message, text=f"{message.subject}\n{words}", buttons=None, link=None
        )
        for each in dict.fromkeys((*old, *filter(None, (stale,)))):
            self._messenger.update_message(each, moved)

    # --- what is shown ----------------------------------------------------------------------------

    def _message(
        self, ask: Ask, scene: Scene, event_id: str, *, is_reminder: bool = False
    ) -> Message:
        clean = self._redactor
        why_not = None
        if self._public_url and ask.is_open:
            # Everybody who presses is the same principal here, so that is known before
            by = Principal(name=f"link:{self._name}")
            with self._controller.store.read() as view:
                why_not = self._controller.decisions.why_not(view, ask, Verb.APPROVE, by=by)
        message = ask_message(
            event_id,
            clean.ask(ask),
            clean.scene(scene),
            commands=self._commands,
            now=self._clock(),
            columns=self._messenger.columns,
            names=self._names,
            why_no_approval=why_not,
            is_reminder=is_reminder,
        )
        message = msgspec.structs.replace(
            message, text=plainly(message.text), title=plainly(message.title)
        )
        # Once more as a finished document: no list of fields can forget one. A link comes after
        # that, for its token is a secret which is meant for these readers.
        message = clean.copied(message)
        if self._public_url and ask.is_open:
            return msgspec.structs.replace(message, link=self._new_link(ask))
        return message

    def _notice(self, happened: Happened, scene: Scene) -> Message:
        clean = self._redactor
        ask_id = happened.event.facts.get("ask")
        with self._controller.store.read() as view:
            ask = view.ask(str(ask_id)) if ask_id else None
        scene = clean.scene(scene)
        notice = notice_of(
            happened,
            scene,
            ask=clean.ask(ask) if ask else None,
            commands=self._commands,
            now=self._clock(),
        )
        message = plain_message(
            happened.id,
            plainly(notice.text),
            task_title=plainly(title(scene.task.spec, columns=_TITLE)),
            show=self._commands("show", scene.task.id, "--full"),
        )
        return clean.copied(message)

    # --- what is kept -----------------------------------------------------------------------------

    def _sent(self, task_id: str, ask_id: str) -> tuple[SentMessage, ...]:
        document = SENT.of(f"{self._name}:{ask_id}")
        return self._controller.documents.read(task_id, document) or ()

    def _keep(self, ask: Ask, sent: tuple[SentMessage, ...]) -> None:
        self._controller.documents.keep(ask.task_id, SENT.of(f"{self._name}:{ask.id}"), sent)

    def _new_link(self, ask: Ask) -> str:
        """Return a link that settles an ask; only the hash of its token is kept."""
        token = secrets.token_urlsafe(32)
        now = self._clock()
        link = SettlingLink(
            hash=sha256(token.encode()).hexdigest(),
            expires_at=expiry_of(ask) or now + _LIFETIME,
        )
        document = LINKS.of(f"{self._name}:{ask.id}")
        earlier = self._controller.documents.read(ask.task_id, document) or ()
        self._controller.documents.keep(ask.task_id, document, (*earlier, link)[-_MOST_LINKS:])
        return f"{self._public_url}/d/{ask.id}.{token}"
