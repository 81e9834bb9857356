"""How a value lies in a row.

What SQL compares is a column, all other fields are one body, so that a new field costs nothing.
"""

from typing import Any, Generic, TypeVar

import msgspec

Value = TypeVar("Value", bound=msgspec.Struct)
Fields = dict[str, Any]
_fields = msgspec.msgpack.Decoder(Fields)


class Shape(Generic[Value]):
    """Takes values of one kind apart and puts them together again."""

    def __init__(
        self,
        kind: type[Value],
        *,
        columns: tuple[str, ...],
        apart: tuple[str, ...] = (),
        known: tuple[str, ...] = (),
    ) -> None:
        self._kind = kind
        self._columns = columns
        self._apart = apart
        elsewhere = {*columns, *apart, *known}
        self._inside = tuple(field for field in kind.__struct_fields__ if field not in elsewhere)

    def columns(self, value: Value) -> list[Any]:
        """Return what stands in columns, in their order, as SQL knows it."""
        return [msgspec.to_builtins(getattr(value, field)) for field in self._columns]

    def body(self, value: Value) -> bytes:
        """Return all that stands in no column and nowhere else."""
        return msgspec.msgpack.encode({field: getattr(value, field) for field in self._inside})

    def apart(self, value: Value) -> bytes:
        """Return what nobody rewrites, and what therefore has a row of its own."""
        return msgspec.msgpack.encode({field: getattr(value, field) for field in self._apart})

    def value(self, columns: tuple[Any, ...], *bodies: bytes, **known: Any) -> Value:
        """Put a value together.

        What a column says counts, whatever a body says, and of two bodies the later.
        """
        fields: Fields = {}
        for body in bodies:
            fields |= _fields.decode(body)
        return msgspec.convert(
            fields | dict(zip(self._columns, columns, strict=True)) | known, self._kind
        )
