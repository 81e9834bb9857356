"""Asks, as rows."""

import msgspec

from adjourn.core.ask import Ask, AskKind
from adjourn.core.states import AskState
from adjourn.core.terms import Terms
from adjourn.stores.rows import BITS, LAST, Asks, Values
from adjourn.stores.sqlite.steps import Steps, as_hex, blob


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


class AskRows(Asks, Steps):
    """What people are asked."""

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
