"""YAML or JSON as texts, lists and mappings.

Nothing is constructed, no alias is followed, and no type is guessed.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from adjourn.core.errors import Misuse
from adjourn.core.text.render import visible

Tree = str | None | list["Tree"] | dict[str, "Tree"]

_DEEPEST = 16


class NotYet(Exception):
    """The text is not whole; somebody may still be writing it."""


def read_mapping(content: bytes) -> dict[str, Tree]:
    """Return what a file says by names; an empty one says nothing."""
    try:
        found = parsed(content.decode().removeprefix("\ufeff"))
    except UnicodeDecodeError as error:
        raise NotYet("it is not UTF-8") from error
    if found is not None and not isinstance(found, dict):
        raise Misuse("it is not a mapping of names to values", way_out="write NAME: VALUE")
    return found or {}


def parsed(text: str) -> Tree:
    """Return what a text says; one that begins with a brace is JSON."""
    return _from_json(text) if text.lstrip()[:1] == "{" else _from_yaml(text)


def _from_json(text: str) -> Tree:
    import json

    keep = {"parse_int": str, "parse_float": str, "parse_constant": str}
    try:
        value = json.loads(text, object_pairs_hook=_without_duplicates, **cast("Any", keep))
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise NotYet(f"it is not whole JSON: {error}") from error
    return _texts(value)


def _texts(value: Any) -> Tree:
    if isinstance(value, dict):
        return {name: _texts(item) for name, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_texts(item) for item in cast("Sequence[Any]", value)]
    if isinstance(value, bool):
        return "true" if value else "false"
    return cast("str | None", value)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        _refuse_duplicate(name, found)
        found[name] = value
    return found


def _refuse_duplicate(name: str, found: Mapping[str, Any]) -> None:
    if name in found:
        raise Misuse(f"the key {visible(name)} is there twice", way_out="give each key once")


def _from_yaml(text: str) -> Tree:
    import yaml

    package: Any = yaml
    loader = getattr(package, "CSafeLoader", yaml.SafeLoader)
    try:
        value = _document(package.parse(text, Loader=loader))
    except (yaml.YAMLError, ValueError) as error:
        raise NotYet(f"it is not whole YAML: {' '.join(str(error).split())}") from error
    return value


def _document(events: Iterator[Any]) -> Tree:
    import yaml

    value: Tree = None
    for event in events:
        if isinstance(event, yaml.NodeEvent):
            value = _node(event, events, depth=0)
        if isinstance(event, yaml.DocumentEndEvent):
            break
    if any(isinstance(event, yaml.DocumentStartEvent) for event in events):
        raise Misuse("it is more than one document", way_out="write one response")
    return value


def _node(event: Any, events: Iterator[Any], *, depth: int) -> Tree:
    import yaml

    if isinstance(event, yaml.AliasEvent) or event.anchor:
        raise Misuse("it has an anchor or an alias", way_out="write every answer out")
    if event.tag is not None:
        raise Misuse(f"it has the tag {visible(str(event.tag))}", way_out="write plain text")
    if depth > _DEEPEST:
        raise Misuse("it is nested too deeply", way_out="see docs/how-to/clarifications.md")
    match event:
        case yaml.ScalarEvent():
            # Nothing at all is not a text
            return str(event.value) if event.value or event.style else None
        case yaml.SequenceStartEvent():
            return [
                _node(item, events, depth=depth + 1)
                for item in _until(yaml.SequenceEndEvent, events)
            ]
        case _:
            return _pairs(events, depth=depth + 1)


def _pairs(events: Iterator[Any], *, depth: int) -> dict[str, Tree]:
    import yaml

    found: dict[str, Tree] = {}
    for item in _until(yaml.MappingEndEvent, events):
        name = _node(item, events, depth=depth)
        if not isinstance(name, str):
            raise Misuse("a key is not a text", way_out="see docs/how-to/clarifications.md")
        _refuse_duplicate(name, found)
        found[name] = _node(next(events), events, depth=depth)
    return found


def _until(end: type[Any], events: Iterator[Any]) -> Iterator[Any]:
    for event in events:
        if isinstance(event, end):
            return
        yield event
