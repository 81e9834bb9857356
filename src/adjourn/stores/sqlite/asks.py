"""Asks, as rows."""

import msgspec

from adjourn.core.ask import Ask, AskKind
from adjourn.core.errors import NotFound
from adjourn.core.states import AskState
from adjourn.core.terms import Terms
from adjourn.stores.bodies import name_or_none, prefix_range
from adjourn.stores.sqlite.database import Values
from adjourn.stores.sqlite.steps import BITS, LAST, Steps, as_hex, blob


class _AskBody(msgspec.Struct, array_like=True):
    """What an ask says, apart from how it stands."""

    prompt: str
    choices: tuple[str, ...] = ()
    key: str | None = None
    manifest: str | None = None
    gate: bool = False
    terms: Terms = Terms()
    replaces: str | None = None
    label: str | None = None
    review: bool = False


_ask_bodies = msgspec.msgpack.Decoder(_AskBody)


class AskRows(Steps):
    """What people are asked."""

    def ask(self, ask_id: str) -> Ask:
        """Return the ask, or raise NotFound."""
        row = self._one("ask_by_id", name_or_none(ask_id))
        if row is None:
            raise NotFound(f"no ask {ask_id}", way_out="adjourn inbox")
        return self._ask(row)

    def asks_like(self, prefix: str) -> list[str]:
        """Return a few ids of asks that begin with the prefix."""
        return [row[0] for row in self._all("asks_like", *prefix_range(prefix))]

    def asks(self, task_id: str) -> list[Ask]:
        """Return all asks of a task."""
        return [self._ask(row) for row in self._all("asks", *self._span(task_id))]

    def asks_of_run(self, task_id: str, run: int) -> list[Ask]:
        """Return the asks that one run opened."""
        return [self._ask(row) for row in self._all("asks_of_run", *self._span(task_id), run)]

    def open_asks_of(self, task_id: str) -> list[Ask]:
        """Return the open asks of a task."""
        return [self._ask(row) for row in self._all("open_asks_of", *self._span(task_id))]

    def ask_in_slot(self, slot: str) -> Ask | None:
        """Return the newest ask in that slot that was not withdrawn."""
        row = self._one("ask_in_slot", bytes.fromhex(slot))
        return self._ask(row) if row else None

    def ask_numbered(self, task_id: str, number: int) -> Ask | None:
        """Return the n-th ask of a task, if there is one."""
        row = self._one("ask_by_no", self._key(task_id, number))
        return self._ask(row) if row else None

    def open_asks(self, *, limit: int, after: str | None = None, awake_at: int | None = None) -> list[Ask]:
        """Return open asks of all tasks, oldest first."""
        place = self._place(after) if after else (-1, -1)
        if awake_at is None:
            return [self._ask(row) for row in self._all("open_asks", *place, limit)]
        return [self._ask(row) for row in self._all("awake_asks", *place, limit, awake_at)]

    def snoozed_asks(self, *, now: int, limit: int) -> list[Ask]:
        """Return the open asks that are snoozed, those first that come back first."""
        return [self._ask(row) for row in self._all("snoozed_asks", now, limit)]

    def count_snoozed_asks(self, *, now: int) -> int:
        """Return how many open asks are snoozed."""
        ((count,),) = self._all("count_snoozed_asks", now)
        return int(count)

    def _place(self, ask_id: str) -> Values:
        row = self._one("ask_place", name_or_none(ask_id))
        if row is None:
            raise NotFound(f"no ask {ask_id}", way_out="adjourn inbox")
        return row

    def expired_asks(self, *, now: int) -> list[Ask]:
        """Return the open asks whose time is over."""
        return [self._ask(row) for row in self._all("expired_asks", now)]

    def count_open_asks(self) -> int:
        """Return how many asks are open."""
        ((count,),) = self._all("count_open_asks")
        return int(count)

    def add_ask(self, ask: Ask) -> None:
        """Keep a new ask."""
        no = self._key(ask.task_id, ask.number)
        self._run(
            "insert_ask",
            no,
            ask.id,
            ask.state,
            ask.kind,
            ask.run,
            ask.created_at,
            blob(ask.slot),
            ask.call,
            ask.expires_at,
            ask.settled_at,
            ask.settled_by,
            ask.reply,
            ask.level,
            ask.snoozed_until,
        )
        body = _AskBody(
            prompt=ask.prompt,
            choices=ask.choices,
            key=ask.key,
            manifest=ask.manifest,
            gate=ask.gate,
            terms=ask.terms,
            replaces=ask.replaces,
            label=ask.label,
            review=ask.review,
        )
        self._run("insert_ask_body", no, msgspec.msgpack.encode(body))

    def save_ask(self, old: Ask, new: Ask) -> None:
        """Replace an ask."""
        no = self._key(old.task_id, old.number)
        now = (new.state, new.expires_at, new.settled_at, new.settled_by, new.reply, new.level, new.snoozed_until)
        self._swap("update_ask", *now, no, old.state, name=old.id)

    def _ask(self, row: Values) -> Ask:
        self._numbers[row[15]] = row[0] >> BITS
        return _ask(row)


def _ask(row: Values) -> Ask:
    body = _ask_bodies.decode(row[14])
    return Ask(
        id=row[1],
        task_id=row[15],
        number=row[0] & LAST,
        state=AskState(row[2]),
        kind=AskKind(row[3]),
        run=row[4],
        created_at=row[5],
        slot=as_hex(row[6]),
        call=row[7],
        expires_at=row[8],
        settled_at=row[9],
        settled_by=row[10],
        reply=row[11],
        level=row[12],
        snoozed_until=row[13],
        prompt=body.prompt,
        choices=body.choices,
        key=body.key,
        manifest=body.manifest,
        gate=body.gate,
        terms=body.terms,
        replaces=body.replaces,
        label=body.label,
        review=body.review,
    )
