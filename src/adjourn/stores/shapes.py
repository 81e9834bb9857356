"""How a value lies in a row, in every database.

What SQL compares is a column. All other fields are one body, so that a new field costs nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from hashlib import sha256
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from adjourn.core.ask import ApprovalAsk, Ask, AskKind, QuestionAsk, Terms, UncertainAsk
from adjourn.core.call import Word, exact, portable
from adjourn.core.errors import UnreadableRow
from adjourn.core.people import GivenApproval
from adjourn.core.states import AskState
from adjourn.core.task import Milliseconds, ProcessId, Spec
from adjourn.core.trail.events import Event, Sealed


class _EventBody(msgspec.Struct, array_like=True):
    """An event without its task."""

    kind: str
    by: str
    at: int
    facts: dict[str, str | int | None]


class _ExactWords(msgspec.Struct):
    """The words of a spec that come from the operating system, which need not be UTF-8."""

    argv: list[Word]
    workspace: Word


_specs = msgspec.json.Decoder(Spec)
_exact_words = msgspec.json.Decoder(_ExactWords)
_event_bodies = msgspec.msgpack.Decoder(_EventBody)


def spec_body(spec: Spec) -> bytes:
    """Return a spec as JSON; what is not UTF-8 is spelt out."""
    try:
        return msgspec.json.encode(spec)
    except UnicodeEncodeError:
        exact = {
            "argv": [portable(word) for word in spec.argv],
            "workspace": portable(spec.workspace),
        }
        return msgspec.json.encode(msgspec.structs.asdict(spec) | exact)


def spec_of(body: bytes) -> Spec:
    """Read a spec back, exactly."""
    try:
        return _specs.decode(body)
    except msgspec.ValidationError:
        words = _exact_words.decode(body)
        spec = msgspec.json.decode(body, type=dict[str, object])
        return msgspec.convert(
            spec
            | {"argv": [exact(word) for word in words.argv], "workspace": exact(words.workspace)},
            Spec,
        )


def event_body(event: Event) -> bytes:
    """Return an event without its task."""
    return msgspec.msgpack.encode(
        _EventBody(kind=event.kind, by=event.by, at=event.at, facts=event.facts)
    )


def event_of(task_id: str, body: bytes) -> Event:
    """Read an event back, or raise UnreadableRow."""
    try:
        event = _event_bodies.decode(body)
    except (msgspec.MsgspecError, ValueError):
        raise UnreadableRow.of("event", f"of task {task_id}") from None
    return Event(task_id=task_id, kind=event.kind, by=event.by, at=event.at, facts=event.facts)


def sealed_of(
    no: int, task_id: str | None, body: bytes | None, link: bytes | None, seal: bytes
) -> Sealed:
    """Return an event as it is kept; of one that somebody wrote over nothing is taken for true."""
    event = intact_event(task_id, body) if body is not None and link is None else None
    if event:
        return Sealed(event=event, seal=seal, place=no)
    return Sealed(
        event=None, link=None if body is not None else link, seal=seal, place=no, task_id=task_id
    )


def intact_event(task_id: str | None, body: bytes) -> Event | None:
    """Read an event back, or return None if somebody wrote over it."""
    try:
        event = _event_bodies.decode(body)
    except (msgspec.MsgspecError, ValueError):
        return None
    if task_id is None or msgspec.msgpack.encode(event) != body:
        return None
    return Event(task_id=task_id, kind=event.kind, by=event.by, at=event.at, facts=event.facts)


def name_or_none(word: str) -> str | None:
    """Return a name as a database can look for it.

    A word that is not UTF-8, or holds a NUL, names nothing.
    """
    try:
        word.encode()
    except UnicodeEncodeError:
        return None
    return None if "\0" in word else word


def prefix_range(prefix: str) -> tuple[str | None, str | None]:
    """Return the first string with the prefix, and one that sorts after all of them."""
    first = name_or_none(prefix)
    return (None, None) if first is None else (first, f"{first}\U0010ffff")


def short_digest(key: str) -> bytes:
    """Return enough of a digest to tell the keys of one run apart."""
    return sha256(key.encode("utf-8", "surrogatepass")).digest()[:16]


Value = TypeVar("Value", bound=msgspec.Struct)
Made = TypeVar("Made")
Fields = dict[str, Any]
_fields = msgspec.msgpack.Decoder(Fields)
_processes = msgspec.json.Decoder(ProcessId)
_approvals = msgspec.json.Decoder(tuple[GivenApproval, ...])


class Column(NamedTuple):
    """How a field lies in its column, where that is not as it is in the value; None is NULL."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def _encode_approvals(given: tuple[GivenApproval, ...]) -> str:
    return msgspec.json.encode(given).decode()


def _encode_process(shim: ProcessId) -> str:
    return msgspec.json.encode(shim).decode()


HEXADECIMAL = Column(bytes.fromhex, bytes.hex)  # digests: half as long as bytes
PROCESS = Column(_encode_process, _processes.decode)
FLAG = Column(int, bool)
APPROVALS = Column(_encode_approvals, _approvals.decode)
SPEC = Column(spec_body, spec_of)
# What damaged bytes and columns make of a decoder, whatever they are
_DAMAGED = (msgspec.MsgspecError, ValueError, TypeError, KeyError, AttributeError, RecursionError)


class Shape(Generic[Value]):
    """Takes values of one kind apart, and puts them together again.

    `called` names a value by its fields, also if it cannot be read.
    """

    def __init__(
        self,
        kind: type[Value],
        *,
        called: str,
        columns: tuple[str, ...],
        apart: tuple[str, ...] = (),
        known: tuple[str, ...] = (),
        as_column: Mapping[str, Column] | None = None,
        read_body: Callable[[bytes], Fields] = _fields.decode,
    ) -> None:
        self._kind = kind
        self._called = called
        self._read_body = read_body
        self._columns = columns
        self._apart = apart
        self._special = as_column or {}
        elsewhere = {*columns, *apart, *known}
        self._inside = tuple(field for field in kind.__struct_fields__ if field not in elsewhere)

    def columns(self, value: Value, *, of: tuple[str, ...] | None = None) -> list[Any]:
        """Return what stands in columns, or in those of some fields, in order, as SQL knows it."""
        found: list[Any] = []
        for field in of or self._columns:
            each = getattr(value, field)
            special = self._special.get(field)
            if each is not None and special:
                each = special.encode(each)
            found.append(each.value if isinstance(each, Enum) else each)
        return found

    def body(self, value: Value) -> bytes:
        """Return all that stands in no column and nowhere else."""
        return msgspec.msgpack.encode({field: getattr(value, field) for field in self._inside})

    def apart(self, value: Value) -> bytes:
        """Return what nobody rewrites, and what therefore has a row of its own."""
        return msgspec.msgpack.encode({field: getattr(value, field) for field in self._apart})

    def value(self, columns: Iterable[Any], *bodies: bytes, **known: Any) -> Value:
        """Put a value together, or raise UnreadableRow with its name."""
        return self.made(
            lambda fields: msgspec.convert(fields, self._kind), columns, *bodies, **known
        )

    def made(
        self,
        make: Callable[[Fields], Made],
        columns: Iterable[Any],
        *bodies: bytes,
        **known: Any,
    ) -> Made:
        """Return what `make` makes of the fields of a row.

        What a column says counts, whatever a body says, and of two bodies the later. What cannot
        be read raises UnreadableRow, with its name.
        """
        fields: Fields = {}
        named = dict(zip(self._columns, columns, strict=True)) | known
        try:
            for body in bodies:
                fields |= self._read_body(body)
            fields |= named
            for field, special in self._special.items():
                if fields[field] is not None:
                    fields[field] = special.decode(fields[field])
            return make(fields)
        except _DAMAGED:
            kind = self._kind.__name__.removesuffix("Row").lower()
            raise UnreadableRow.of(kind, self._called.format_map(named)) from None


# --- asks -----------------------------------------------------------------------------------------

_KINDS: dict[str, type[Ask]] = {
    AskKind.APPROVAL: ApprovalAsk,
    AskKind.QUESTION: QuestionAsk,
    AskKind.UNCERTAIN: UncertainAsk,
}
# Stands for who settled an ask if its row does not say: only a row that was tampered with does not
_UNKNOWN = "unknown"


class AskRow(msgspec.Struct, frozen=True, kw_only=True):
    """An ask of any kind, as the tables have it: what a kind does not have is as it is here."""

    id: str
    task_id: str
    number: int
    run: int
    kind: AskKind
    prompt: str
    created_at: Milliseconds
    state: AskState
    key: str | None = None
    slot: str | None = None
    choices: tuple[str, ...] = ()
    call: int | None = None
    manifest: str | None = None
    gate: bool = False
    terms: Terms = Terms()
    replaces: str | None = None
    label: str | None = None
    review: bool = False
    level: str | None = None
    snoozed_until: Milliseconds | None = None
    expires_at: Milliseconds | None = None
    settled_at: Milliseconds | None = None
    settled_by: str | None = None
    reply: str | None = None
    approvals: int = 1  # how many it needs, for a database that counts them itself
    given: tuple[GivenApproval, ...] = ()
    remind_at: Milliseconds | None = None
    escalate_to: tuple[str, ...] = ()


def row_of(ask: Ask) -> AskRow:
    """Return an ask as it lies in its row."""
    row = msgspec.convert(ask, AskRow, from_attributes=True)
    if isinstance(ask, ApprovalAsk) and ask.terms.approvals != 1:
        row = msgspec.structs.replace(row, approvals=ask.terms.approvals)
    settled = ask.settlement
    if settled is None:
        return row
    return msgspec.structs.replace(
        row, settled_at=settled.at, settled_by=settled.by, level=settled.level
    )


def ask_of(fields: Fields) -> Ask:
    """Return the ask that the fields of a row make.

    Its kind says which type that is. Fields that the type does not have are passed over.
    """
    by = fields["settled_by"]
    if fields["state"] != AskState.PENDING:
        fields["settlement"] = {
            "state": fields["state"],
            "at": fields["settled_at"],
            "by": _UNKNOWN if by is None else by,
            "reply": fields["reply"],
            "level": fields["level"],
        }
    return msgspec.convert(fields, _KINDS[fields["kind"]])
