"""The audit trail, as rows."""

from adjourn.core.events import GENESIS, Event, link_after
from adjourn.stores.bodies import event_of, intact_event
from adjourn.stores.postgres.steps import FORESEEN, Known, Steps
from adjourn.stores.rows import Trail


class TrailRows(Trail, Steps):
    """What happened. It is put into the one chain of the store at the end of a transaction, or when somebody reads it before."""

    def _keep_event(self, no: int, event: Event, link: bytes) -> None:
        self._unsealed.append((no, event, link))
        self.opens_gate = self.opens_gate or event.kind == "call_executing"

    def _untold(self, task_id: str, no: int) -> list[Event]:
        return [event for owner, event, _ in reversed(self._unsealed) if owner == no and event.task_id == task_id]

    def beginning(self, task_id: str) -> Event | None:
        """Return the first event of a task."""
        body = self._known.beginnings.get(self._no(task_id))
        return intact_event(task_id, body) if body is not None else super().beginning(task_id)

    def told(self, task_id: str, *, limit: int) -> list[Event]:
        """Return what happened to a task last, newest first."""
        no = self._no(task_id)
        known = self._known.told.get(no)
        if known is None or (len(known) >= FORESEEN and not 0 <= limit <= FORESEEN):
            return super().told(task_id, limit=limit)
        kept = [event for body in known if (event := intact_event(task_id, body))]
        found = self._untold(task_id, no) + kept
        return found[:limit] if limit >= 0 else found

    def _write_events(self) -> None:
        self._seal()

    def _stored_head(self, task_id: str) -> tuple[int, bytes]:
        no = self._no(task_id)
        if no in self._known.heads:
            return no, self._known.heads[no]
        ((head,),) = self._all("head", no)
        return no, head or GENESIS

    def requester(self, task_id: str) -> str:
        """Return who asked for a task."""
        no = self._no(task_id)
        return self._known.requesters[no] if no in self._known.requesters else super().requester(task_id)

    def forget_task(self, task_id: str) -> None:
        """Drop an ended task and all that belongs to it, except the links of its events."""
        no = self._no(task_id)
        self._write_events()
        link = GENESIS
        places: list[int] = []
        links: list[bytes] = []
        for place, body in self._all("trail_of", no):
            link = link_after(link, event_of(task_id, body))
            places.append(place)
            links.append(link)
        self._run("forget_task", no, places, links)
        self._heads.pop(task_id, None)
        self._known = Known()
