"""How values lie in a store's rows as bytes, the same in every store."""

import msgspec

from adjourn.core.call import Word, exact, portable
from adjourn.core.digest import sha256
from adjourn.core.errors import UnreadableRow
from adjourn.core.task import Spec
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
    return sha256(key.encode("utf-8", "surrogatepass"))[:16]
