"""How a value lies in a row, in every database.

What SQL compares is a column. All other fields are one body, so that a new field costs nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from adjourn.core.errors import UnreadableRow
from adjourn.core.task import ProcessId
from adjourn.stores.bodies import spec_body, spec_of

Value = TypeVar("Value", bound=msgspec.Struct)
Fields = dict[str, Any]
_fields = msgspec.msgpack.Decoder(Fields)
_processes = msgspec.json.Decoder(ProcessId)


class Column(NamedTuple):
    """How a field lies in its column, where that is not as it is in the value; None is NULL."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def _encode_process(shim: ProcessId) -> str:
    return msgspec.json.encode(shim).decode()


HEXADECIMAL = Column(bytes.fromhex, bytes.hex)  # digests: half as long as bytes
PROCESS = Column(_encode_process, _processes.decode)
FLAG = Column(int, bool)
SPEC = Column(spec_body, spec_of)
# What damaged bytes and columns make of a decoder, whatever they are
_DAMAGED = (msgspec.MsgspecError, ValueError, TypeError, AttributeError, RecursionError)


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
        """Put a value together.

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
            return msgspec.convert(fields, self._kind)
        except _DAMAGED:
            kind = self._kind.__name__.lower()
            raise UnreadableRow(kind, self._called.format_map(named)) from None
