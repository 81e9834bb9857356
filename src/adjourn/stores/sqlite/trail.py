"""The audit trail, as rows."""

from adjourn.core.events import GENESIS, Event, seal_after
from adjourn.stores.bodies import event_body, event_of
from adjourn.stores.rows import Trail
from adjourn.stores.sqlite.steps import SQL, Steps


class TrailRows(Trail, Steps):
    """What happened, sealed as it is told and written all at once."""

    def _keep_event(self, no: int, event: Event, link: bytes) -> None:
        self._newest_seal = seal_after(self._last_seal(), link)
        self._events.append((no, event_body(event), self._newest_seal))

    def _untold(self, task_id: str, no: int) -> list[Event]:
        return [event_of(task_id, body) for owner, body, _ in reversed(self._events) if owner == no]

    def _last_seal(self) -> bytes:
        if self._newest_seal is not None:
            return self._newest_seal
        row = self._one("last_seal")
        return row[0] if row else GENESIS

    def _stored_head(self, task_id: str) -> tuple[int, bytes]:
        ((no, head),) = self._all("head", task_id)
        return no, head or GENESIS

    def flush(self) -> None:
        """Write the events and the heads of the chains that grew; the transaction is about to commit."""
        self._write_events()
        self._db.many(SQL["update_head"], list(self._heads.values()))
        self.discard()

    def seal_at(self, place: int) -> bytes | None:
        """Return the seal of the event at a place of the trail, if there is one."""
        row = self._one("seal_at", place)
        return bytes(row[0]) if row else None

    def _write_events(self) -> None:
        if self._events:
            self._db.many(SQL["insert_event"], self._events)
            self.written = (self._db.last_row(), bytes(self._events[-1][2]))
            self._events.clear()

    def discard(self) -> None:
        """Forget what was true in a view or a transaction that is over."""
        self._numbers.clear()
        self._heads.clear()
        self._events.clear()
        self._newest_seal = None

    def forget_task(self, task_id: str) -> None:
        """Drop an ended task and all that belongs to it, except the links of its events."""
        super().forget_task(task_id)
        self._numbers.pop(task_id, None)
