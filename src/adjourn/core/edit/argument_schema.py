"""What a tool's arguments must look like.

A small part of JSON Schema, checked before an edited call counts.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from adjourn.core.call import Json
from adjourn.core.errors import Misuse
from adjourn.core.text.render import prose, visible

Schema = Mapping[str, Any]

_LONGEST_PATTERN = 200
_LONGEST_MATCHED = 10_000
_DEEPEST = 8
_REMARKS = frozenset({"title", "description", "default", "examples", "$schema", "$comment"})


def require_schema(schema: object) -> None:
    """Refuse a schema with anything in it that is not checked.

    What nobody checks would be a promise that nobody keeps.
    """
    for problem in _faults(schema, "the schema", depth=0):
        raise Misuse(problem, way_out="adjourn approve --help")


def problems(value: Json, schema: Schema, *, at: str = "") -> Iterator[str]:
    """Say, key by key, how a value breaks its schema."""
    kinds = _listed(schema.get("type"))
    if kinds and not any(_TYPES[kind](value) for kind in kinds):
        yield f"{_name(at)} must be {' or '.join(kinds)}"
        return
    if "enum" in schema and not any(_same(value, allowed) for allowed in schema["enum"]):
        allowed = ", ".join(visible(str(each)) for each in schema["enum"])
        yield f"{_name(at)} must be one of {allowed}"
    match value:
        case bool() | None:
            return
        case int() | float():
            yield from _number_problems(value, schema, at)
        case str():
            yield from _text_problems(value, schema, at)
        case Mapping():
            yield from _mapping_problems(value, schema, at)
        case _:
            yield from _list_problems(value, schema, at)


# --- what a value may be --------------------------------------------------------------------------


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


_TYPES: dict[str, Callable[[object], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": _is_number,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "object": lambda value: isinstance(value, Mapping),
    "array": _is_list,
}


def _number_problems(value: float, schema: Schema, at: str) -> Iterator[str]:
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{_name(at)} must be at least {schema['minimum']}"
    if "maximum" in schema and value > schema["maximum"]:
        yield f"{_name(at)} must be at most {schema['maximum']}"


def _text_problems(value: str, schema: Schema, at: str) -> Iterator[str]:
    if "minLength" in schema and len(value) < schema["minLength"]:
        yield f"{_name(at)} must have at least {schema['minLength']} characters"
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        yield f"{_name(at)} must have at most {schema['maxLength']} characters"
    if "pattern" in schema and (
        len(value) > _LONGEST_MATCHED or not re.search(schema["pattern"], value)
    ):
        yield f"{_name(at)} must match {visible(schema['pattern'])}"


def _mapping_problems(value: Mapping[str, Json], schema: Schema, at: str) -> Iterator[str]:
    known: Mapping[str, Schema] = schema.get("properties", {})
    for key in schema.get("required", ()):
        if key not in value:
            yield f"{_name(_below(at, key))} is missing"
    for key, item in value.items():
        if key in known:
            yield from problems(item, known[key], at=_below(at, key))
        elif schema.get("additionalProperties") is False:
            yield f"{_name(_below(at, key))} is not an argument of this tool"
        elif isinstance(schema.get("additionalProperties"), Mapping):
            yield from problems(item, schema["additionalProperties"], at=_below(at, key))


def _list_problems(value: Sequence[Json], schema: Schema, at: str) -> Iterator[str]:
    if "minItems" in schema and len(value) < schema["minItems"]:
        yield f"{_name(at)} must have at least {schema['minItems']} elements"
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        yield f"{_name(at)} must have at most {schema['maxItems']} elements"
    for number, item in enumerate(value) if "items" in schema else ():
        yield from problems(item, schema["items"], at=_below(at, str(number)))


def _same(one: Json, other: Json) -> bool:
    """Compare as JSON does: 1 is not true, though Python says so."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _below(at: str, key: str) -> str:
    return f"{at}.{key}" if at else key


def _name(at: str) -> str:
    return f"'{prose(at)}'" if at else "what is given"


# --- what a schema may be -------------------------------------------------------------------------


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_text_list(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in _listed(value))


def _is_types(value: object) -> bool:
    return bool(_listed(value)) and all(
        isinstance(kind, str) and kind in _TYPES for kind in _listed(value)
    )


def _is_pattern(value: object) -> bool:
    """Say whether a pattern can be used; one that could take for ever is not used at all."""
    # Most commands print no copy (bench start)
    from adjourn.core.redact import is_tame

    return isinstance(value, str) and len(value) <= _LONGEST_PATTERN and is_tame(value)


_KEYWORDS: dict[str, Callable[[object], bool]] = {
    "type": _is_types,
    "enum": lambda value: isinstance(value, list | tuple) and bool(_listed(value)),
    "minimum": _is_number,
    "maximum": _is_number,
    "minLength": _is_count,
    "maxLength": _is_count,
    "minItems": _is_count,
    "maxItems": _is_count,
    "pattern": _is_pattern,
    "required": _is_text_list,
    "properties": lambda value: isinstance(value, Mapping),
    "items": lambda value: isinstance(value, Mapping),
    "additionalProperties": lambda value: isinstance(value, bool | Mapping),
}


def _faults(schema: object, at: str, *, depth: int) -> Iterator[str]:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        yield f"{at} is not a mapping" if depth <= _DEEPEST else f"{at} is nested too deep"
        return
    words = cast("Schema", schema)
    for word, said in words.items():
        if word not in _KEYWORDS and word not in _REMARKS:
            yield f"{at} has '{prose(str(word))}', which adjourn does not check"
        elif word in _KEYWORDS and not _KEYWORDS[word](said):
            yield f"'{word}' of {at} cannot be used"
    for place, inner in _inner(words):
        yield from _faults(inner, f"{at}'s {prose(place)}", depth=depth + 1)


def _inner(schema: Schema) -> Iterator[tuple[str, object]]:
    if isinstance(schema.get("properties"), Mapping):
        yield from ((str(key), inner) for key, inner in schema["properties"].items())
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), Mapping):
            yield word, schema[word]


def _listed(value: Any) -> Sequence[Any]:
    return (
        cast("Sequence[Any]", value)
        if isinstance(value, list | tuple)
        else ()
        if value is None
        else (value,)
    )
