"""Calls and turns, as rows."""

from adjourn.core.call import Call
from adjourn.core.errors import NotFound
from adjourn.core.states import CallState
from adjourn.ports.store import Turn
from adjourn.stores.bodies import short_digest
from adjourn.stores.rows import Belongings, Values
from adjourn.stores.sqlite.steps import Steps, as_json, as_shim


class CallRows(Belongings, Steps):
    """What is run at most once, and what belongs to a task beside it."""

    def call(self, task_id: str, number: int) -> Call:
        """Return one call, or raise NotFound."""
        row = self._one("call", self._key(task_id, number))
        if row is None:
            raise NotFound(f"no call {task_id}.tc_{number}", way_out=f"adjourn show {task_id}")
        return _call(task_id, row)

    def calls(self, task_id: str) -> list[Call]:
        """Return all calls of a task."""
        return [_call(task_id, row) for row in self._all("calls", *self._span(task_id))]

    def calls_in(self, task_id: str, state: CallState) -> list[Call]:
        """Return the calls of a task in one open state."""
        return [_call(task_id, row) for row in self._all("calls_in", *self._span(task_id), state)]

    def call_labelled(self, task_id: str, label: str) -> Call | None:
        """Return the call that an agent calls so."""
        row = self._one("call_labelled", label, *self._span(task_id))
        return _call(task_id, row) if row else None

    def add_call(self, call: Call) -> None:
        """Keep a new call."""
        no = self._key(call.task_id, call.number)
        self._run(
            "insert_call",
            no,
            call.state,
            call.version,
            call.tool,
            bytes.fromhex(call.digest),
            call.nonce,
            call.claimed_by,
            call.approved_by,
            call.ask,
            call.label,
            as_json(call.shim),
            call.attempt,
        )
        self._run("insert_call_body", no, call.body)

    def save_call(self, old: Call, new: Call) -> None:
        """Replace a call."""
        if new.state is CallState.EXECUTING:
            self.opens_gate = True
        no = self._key(old.task_id, old.number)
        self._swap(
            "update_call",
            new.state,
            new.version,
            bytes.fromhex(new.digest),
            new.claimed_by,
            new.approved_by,
            new.ask,
            as_json(new.shim),
            new.attempt,
            no,
            old.version,
            old.state,
            bytes.fromhex(old.digest),
            old.claimed_by,
            name=old.id,
        )
        if new.digest != old.digest:
            self._run("update_call_body", no, new.body)

    # --- turns -----------------------------------------------------------------------------------------------------

    def turns_left_open(self, run_id: str) -> list[Turn]:
        """Return what a run asked for and did not get."""
        rows = self._all("turns_left_open", self._run_key(run_id))
        return [Turn(run_id=run_id, key=kind, thing=thing, left_open=True) for kind, thing in rows]

    def add_turn(self, turn: Turn) -> None:
        """Remember a turn."""
        kind = turn.key.partition(":")[0] + ":"
        self._run("insert_turn", self._run_key(turn.run_id), short_digest(turn.key), kind, turn.thing, int(turn.left_open))


def _call(task_id: str, row: Values) -> Call:
    return Call(
        task_id=task_id,
        number=row[0],
        state=CallState(row[1]),
        version=row[2],
        tool=row[3],
        digest=row[4].hex(),
        nonce=row[5],
        claimed_by=row[6],
        approved_by=row[7],
        ask=row[8],
        label=row[9],
        shim=as_shim(row[10]),
        attempt=row[11],
        body=row[12],
    )
