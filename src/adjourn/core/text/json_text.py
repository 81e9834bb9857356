"""JSON text that decides something: each key of an object may be there only once."""

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def decode_unambiguous(content: bytes | bytearray | str, *, type: type[T]) -> T:  # noqa: A002 -- as msgspec calls it
    """Decode JSON as msgspec does, but raise DecodeError if an object has the same key twice.

    Of two values for one key some readers take the first and some the last. So two people, or a
    person and a program, could read different decisions in the same signed bytes.
    """
    # Slow to import, and seldom needed
    import json

    value = msgspec.json.decode(content, type=type)

    # msgspec has checked the syntax. Numbers stay texts, because a long one is slow to convert.
    text = content if isinstance(content, str) else content.decode()
    json.loads(
        text,
        object_pairs_hook=_refuse_duplicate_keys,
        parse_int=str,
        parse_float=str,
        parse_constant=str,
    )
    return value


def _refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise msgspec.DecodeError(f"the key {key!r} is there twice; write each key once")
        found[key] = value
    return found
