"""YAML or JSON as texts, lists and mappings.

No object is constructed, no alias is followed, and no type is guessed.
"""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from adjourn.core.errors import Misuse
from adjourn.core.text.render import visible

Tree = str | None | list["Tree"] | dict[str, "Tree"]

_DEEPEST = 16
_HELP = "adjourn clarify --help"


class NotYet(Exception):
    """The text is not complete; somebody may still be writing it."""


def read_mapping(content: bytes) -> dict[str, Tree]:
    """Return the names and values in a file; an empty one has none."""
    try:
        found = parse(content.decode().removeprefix("\ufeff"))
    except UnicodeDecodeError as error:
        raise NotYet("it is not UTF-8") from error
    if found is not None and not isinstance(found, dict):
        raise Misuse("it is not a mapping of names to values", way_out="write NAME: VALUE")
    return found or {}


def parse(text: str) -> Tree:
    """Return what a text says; one that begins with a brace is JSON."""
    return _parse_json(text) if text.lstrip()[:1] == "{" else _parse_yaml(text)


def _parse_json(text: str) -> Tree:
    import json  # slow to import, and most runs and stores have no such file

    keep = {"parse_int": str, "parse_float": str, "parse_constant": str}
    try:
        value = json.loads(text, object_pairs_hook=_unique, **cast("Any", keep))
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise NotYet(f"it is not whole JSON: {error}") from error
    return _texts(value)


def _texts(value: Any) -> Tree:
    match value:
        case dict():
            mapping = cast("dict[str, Any]", value)
            return {name: _texts(item) for name, item in mapping.items()}
        case list():
            return [_texts(item) for item in cast("Sequence[Any]", value)]
        case bool():
            return "true" if value else "false"
        case _:
            return cast("str | None", value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise Misuse(f"the key {visible(name)} is there twice", way_out="give each key once")
        found[name] = value
    return found


def _parse_yaml(text: str) -> Tree:
    """Build the tree from the parser's events.

    PyYAML's loaders, even BaseLoader, follow aliases, accept duplicate keys, and read nothing at
    all as an empty text.
    """
    import yaml  # slow to import, and most runs and stores have no YAML

    package: Any = yaml
    loader = getattr(package, "CSafeLoader", yaml.SafeLoader)
    value: Tree = None
    try:
        events: Iterator[Any] = package.parse(text, Loader=loader)
        for event in events:
            if isinstance(event, yaml.NodeEvent):
                value = _node(event, events, depth=0)
            if isinstance(event, yaml.DocumentEndEvent):
                break
        if any(isinstance(event, yaml.DocumentStartEvent) for event in events):
            raise Misuse("it is more than one document", way_out="write one response")
    except (yaml.YAMLError, ValueError) as error:
        raise NotYet(f"it is not whole YAML: {' '.join(str(error).split())}") from error
    return value


def _node(event: Any, events: Iterator[Any], *, depth: int) -> Tree:
    import yaml  # as above

    if isinstance(event, yaml.AliasEvent) or event.anchor:
        raise Misuse("it has an anchor or an alias", way_out="write every answer out")
    if event.tag is not None:
        raise Misuse(f"it has the tag {visible(str(event.tag))}", way_out="write plain text")
    if depth > _DEEPEST:
        raise Misuse("it is nested too deeply", way_out=_HELP)
    if isinstance(event, yaml.ScalarEvent):
        # Nothing at all is not a text
        return str(event.value) if event.value or event.style else None
    items: list[Tree] = []
    while not isinstance(item := next(events), (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
        items.append(_node(item, events, depth=depth + 1))
    if isinstance(event, yaml.SequenceStartEvent):
        return items
    # The events of a mapping are its keys and values in turn
    names = [name for name in items[::2] if isinstance(name, str)]
    if len(names) < len(items[::2]):
        raise Misuse("a key is not a text", way_out=_HELP)
    return _unique(list(zip(names, items[1::2], strict=True)))
