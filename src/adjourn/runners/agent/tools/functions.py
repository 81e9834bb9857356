"""Python functions as tools: whatever installed packages offer under the entry point group `adjourn.tools`."""

import inspect
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, get_type_hints

import msgspec

from adjourn.core.errors import Misuse
from adjourn.runners.agent.tools.foreign import Foreign
from adjourn.runners.agent.tools.tool import Arguments, ToolFailed

GROUP = "adjourn.tools"


def tools() -> list[Foreign]:
    """Describe every function that is installed."""
    return [_described(entry) for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)]


def _described(entry: EntryPoint) -> Foreign:
    try:
        function = entry.load()
        (shape,), parts = msgspec.json.schema_components([_shape(function)])
    except Exception as error:
        sentence = f"the tool {entry.name} ({entry.value}) cannot be used: {type(error).__name__}: {error}"
        raise Misuse(sentence, way_out="put the package right, or uninstall it") from error
    own = parts.pop(shape["$ref"].rpartition("/")[2])
    schema: dict[str, object] = {**own, **({"$defs": parts} if parts else {})}
    schema.pop("title", None)
    return Foreign(name=entry.name, description=inspect.getdoc(function) or entry.name, schema=schema, owned_name=entry.name)


def _shape(function: Callable[..., object]) -> type[msgspec.Struct]:
    """Return what a function takes, as a type that JSON can be checked against."""
    hints = get_type_hints(function, include_extras=True)
    fields: list[Any] = []
    for name, parameter in inspect.signature(function).parameters.items():
        kind = hints.get(name, Any)
        given = parameter.default is not inspect.Parameter.empty
        fields.append((name, kind, parameter.default) if given else (name, kind))
    return msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True, namespace={"__doc__": None})


def call(name: str, arguments: Arguments) -> str:
    """Call a function, and return what it returns as text."""
    found = [entry for entry in entry_points(group=GROUP) if entry.name == name]
    if not found:
        raise ToolFailed(f"the function {name} is not installed any more")
    function = found[0].load()
    try:
        taken = msgspec.convert(arguments, _shape(function))
    except msgspec.ValidationError as error:
        raise ToolFailed(f"{name}: {error}") from error
    try:
        returned = function(**{field: getattr(taken, field) for field in taken.__struct_fields__})
    except Exception as error:
        raise ToolFailed(f"{type(error).__name__}: {error}") from error
    return returned if isinstance(returned, str) else msgspec.json.encode(returned, enc_hook=str).decode()
