"""The audit trail and the outboxes, as rows."""

import msgspec

from adjourn.core.events import GENESIS, Event, Happened, Sealed, link_after
from adjourn.core.outbox import Outbox
from adjourn.stores.bodies import author_of, event_of, moment_of, sealed_of
from adjourn.stores.postgres.steps import NEWEST, Known, Steps, most


class TrailRows(Steps):
    """What happened. It is put into the one chain of the store at the end of a transaction, or when somebody reads it before."""

    def events(self, task_id: str) -> list[Event]:
        """Return what happened to a task."""
        self._seal()
        return [event_of(task_id, body) for (body,) in self._all("events", self._no(task_id))]

    def requester(self, task_id: str) -> str:
        """Return who asked for a task."""
        no = self._no(task_id)
        if no in self._known.requesters:
            return self._known.requesters[no]
        row = self._one("first_event", no)
        if row is None:  # it was made in this very transaction
            self._seal()
            row = self._one("first_event", self._no(task_id))
        return author_of(row[0]) if row and row[0] is not None else ""

    def last_events(self, task_id: str, *, limit: int) -> list[Happened]:
        """Return what happened to a task last, newest first."""
        self._seal()
        rows = self._all("last_events", self._no(task_id), most(limit))
        return [Happened(place=no, event=event_of(task_id, body), seal=seal) for no, body, seal in rows]

    def trail(self, *, after: int = 0, limit: int = -1) -> list[Sealed]:
        """Return the audit trail of the whole store."""
        self._seal()
        return [sealed_of(*row) for row in self._all("trail", after, most(limit))]

    def chain_head(self, task_id: str) -> bytes:
        """Return the link of the newest event of a task."""
        no = self._no(task_id)
        _, head = self._heads.get(task_id) or (no, self._stored_head(no))
        return head

    def trail_head(self) -> tuple[int, bytes]:
        """Return the place and the seal of the newest event."""
        self._seal()
        row = self._one("trail_head")
        return (int(row[0]), bytes(row[1])) if row else (0, GENESIS)

    def happened(self, *, after: int, limit: int) -> list[Happened]:
        """Return what happened after a place of the trail."""
        self._seal()
        rows = self._all("happened", after, most(limit))
        return [Happened(place=no, event=event_of(task_id, body), seal=seal) for no, task_id, body, seal in rows]

    def place_before(self, moment: int) -> int:
        """Return the place after which everything happened at that moment or later."""
        self._seal()
        place = NEWEST
        while page := self._all("events_before", place):
            for no, body in page:
                if moment_of(body) < moment:
                    return int(no)
            place = page[-1][0]
        return 0

    def append(self, event: Event) -> None:
        """Add to the audit trail."""
        no = self._no(event.task_id)
        _, head = self._heads.get(event.task_id) or (no, self._stored_head(no))
        link = link_after(head, event)
        self._heads[event.task_id] = (no, link)
        self._unsealed.append((no, event, link))

    def _stored_head(self, no: int) -> bytes:
        if no in self._known.heads:
            return self._known.heads[no]
        ((head,),) = self._all("head", no)
        return head or GENESIS

    def forget_task(self, task_id: str) -> None:
        """Drop an ended task and all that belongs to it, except the links of its events."""
        no, span = self._no(task_id), self._span(task_id)
        self._forget_events(task_id, no)
        for table in ("runs", "calls", "call_bodies", "asks", "ask_bodies", "turns", "messages"):
            self._run(f"forget_{table}", *span)
        ((family,),) = self._all("family", no)
        for query in ("retire", "forget_documents", "forget_spec", "forget_task"):
            self._run(query, no)
        self._run("forget_family", family)
        self._known = Known()
        self._heads.pop(task_id, None)

    def _forget_events(self, task_id: str, no: int) -> None:
        self._seal()
        link = GENESIS
        for event_no, body in self._all("trail_of", no):
            link = link_after(link, event_of(task_id, body))
            self._run("forget_event", event_no, link)

    def outbox(self, notifier: str) -> Outbox | None:
        """Return how far a notifier is."""
        row = self._one("outbox", notifier)
        return msgspec.msgpack.decode(row[0], type=Outbox) if row else None

    def save_outbox(self, notifier: str, outbox: Outbox) -> None:
        """Keep how far a notifier is."""
        self._run("save_outbox", notifier, msgspec.msgpack.encode(outbox))
