"""The audit trail and the outboxes, as rows."""

import msgspec

from adjourn.core.events import GENESIS, Event, Happened, Sealed, link_after, seal_after
from adjourn.core.outbox import Outbox
from adjourn.stores.bodies import author_of, event_body, event_of, moment_of, sealed_of
from adjourn.stores.sqlite.steps import NEWEST, SQL, Steps


class TrailRows(Steps):
    """What happened, in the one chain of the store."""

    def events(self, task_id: str) -> list[Event]:
        """Return what happened to a task."""
        self._write_events()
        return [event_of(task_id, body) for (body,) in self._all("events", self._no(task_id))]

    def requester(self, task_id: str) -> str:
        """Return who asked for a task."""
        row = self._one("first_event", self._no(task_id))
        if row is None:  # it was made in this very transaction
            self._write_events()
            row = self._one("first_event", self._no(task_id))
        return author_of(row[0]) if row and row[0] is not None else ""

    def last_events(self, task_id: str, *, limit: int) -> list[Happened]:
        """Return what happened to a task last, newest first."""
        self._write_events()
        rows = self._all("last_events", self._no(task_id), limit)
        return [Happened(place=no, event=event_of(task_id, body), seal=seal) for no, body, seal in rows]

    def trail(self, *, after: int = 0, limit: int = -1) -> list[Sealed]:
        """Return the audit trail of the whole store."""
        self._write_events()
        return [sealed_of(*row) for row in self._all("trail", after, limit)]

    def chain_head(self, task_id: str) -> bytes:
        """Return the link of the newest event of a task."""
        return (self._heads.get(task_id) or self._stored_head(task_id))[1]

    def trail_head(self) -> tuple[int, bytes]:
        """Return the place and the seal of the newest event."""
        self._write_events()
        row = self._one("trail_head")
        return (int(row[0]), bytes(row[1])) if row else (0, GENESIS)

    def happened(self, *, after: int, limit: int) -> list[Happened]:
        """Return what happened after a place of the trail."""
        self._write_events()
        rows = self._all("happened", after, limit)
        return [Happened(place=no, event=event_of(task_id, body), seal=seal) for no, task_id, body, seal in rows]

    def place_before(self, moment: int) -> int:
        """Return the place after which everything happened at that moment or later."""
        self._write_events()
        place = NEWEST
        while page := self._all("events_before", place):
            for no, body in page:
                if moment_of(body) < moment:
                    return int(no)
            place = page[-1][0]
        return 0

    def outbox(self, notifier: str) -> Outbox | None:
        """Return how far a notifier is."""
        row = self._one("outbox", notifier)
        return msgspec.msgpack.decode(row[0], type=Outbox) if row else None

    def save_outbox(self, notifier: str, outbox: Outbox) -> None:
        """Keep how far a notifier is."""
        self._run("save_outbox", notifier, msgspec.msgpack.encode(outbox))

    def append(self, event: Event) -> None:
        """Add to the audit trail."""
        no, head = self._heads.get(event.task_id) or self._stored_head(event.task_id)
        link = link_after(head, event)
        self._seal = seal_after(self._last_seal(), link)
        self._heads[event.task_id] = (no, link)
        self._events.append((no, event_body(event), self._seal))

    def flush(self) -> None:
        """Write the events and the heads of the chains that grew; the transaction is about to commit."""
        self._write_events()
        self._db.many(SQL["update_head"], list(self._heads.values()))
        self.discard()

    def _write_events(self) -> None:
        self._db.many(SQL["insert_event"], self._events)
        self._events.clear()

    def discard(self) -> None:
        """Forget what was true in a view or a transaction that is over."""
        self._numbers.clear()
        self._heads.clear()
        self._events.clear()
        self._seal = None

    def _stored_head(self, task_id: str) -> tuple[int, bytes]:
        ((no, head),) = self._all("head", task_id)
        return no, head or GENESIS

    def _last_seal(self) -> bytes:
        if self._seal is not None:
            return self._seal
        row = self._one("last_seal")
        return row[0] if row else GENESIS

    def forget_task(self, task_id: str) -> None:
        """Drop an ended task and all that belongs to it, except the links of its events."""
        no, span = self._no(task_id), self._span(task_id)
        self._forget_events(task_id, no)
        for table in ("runs", "calls", "call_bodies", "asks", "ask_bodies", "turns", "messages"):
            self._run(f"forget_{table}", *span)
        self._run("forget_documents", no)
        self._run("forget_spec", no)
        self._run("forget_task", no)
        self._heads.pop(task_id, None)
        self._numbers.pop(task_id, None)

    def _forget_events(self, task_id: str, no: int) -> None:
        self._write_events()
        link = GENESIS
        for event_no, body in self._all("trail_of", no):
            link = link_after(link, event_of(task_id, body))
            self._run("forget_event", event_no, link)
