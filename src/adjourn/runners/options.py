"""Refuses a wrong setting of a runner, and says what the setting takes."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, get_args

import msgspec

from adjourn.core.errors import Misuse

_KINDS: dict[Any, str] = {bool: "true or false", int: "a whole number", float: "a number"}


def refuse_wrong(
    values: Mapping[str, object], setup: type[msgspec.Struct], *, way_out: str, dash: str = "_"
) -> None:
    """Refuse the first value that its setting does not take.

    Settings are called as people call them, with a dash of theirs.
    """
    for field in msgspec.structs.fields(setup):
        if field.name in values and not _takes(field, values[field.name]):
            name = field.name.replace("_", dash)
            raise Misuse(f"{name} is {_wanted(field)}, not {values[field.name]}", way_out=way_out)


def _takes(field: msgspec.structs.FieldInfo, value: object) -> bool:
    try:
        msgspec.convert(value, field.type, strict=False)
    except msgspec.ValidationError:
        return False
    return True


def _wanted(field: msgspec.structs.FieldInfo) -> str:
    kinds = get_args(field.type) or (field.type,)
    return " or ".join(_words(kind) for kind in kinds if kind is not type(None))


def _words(kind: Any) -> str:
    if isinstance(kind, type) and issubclass(kind, Enum):
        *most, last = [str(each.value) for each in kind]
        return f"{', '.join(most)} or {last}"
    return _KINDS.get(kind, "of another kind")


def split(arguments: str) -> list[str]:
    """Split arguments as a shell would."""
    import shlex  # slow to import, and seldom needed

    try:
        return shlex.split(arguments)
    except ValueError as error:
        raise Misuse(
            f"these arguments have a quote that is not closed: {arguments}", way_out="close it"
        ) from error
