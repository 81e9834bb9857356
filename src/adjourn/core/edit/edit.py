"""A call as a person would rather have it.

What may be changed, how it is written down, and what comes of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from adjourn.core.call import (
    COMMAND,
    Call,
    Command,
    Json,
    Word,
    canonical,
    command_body,
    command_of,
    exact,
    portable,
    tool_body,
)
from adjourn.core.documents import json_escape
from adjourn.core.edit.argument_schema import Schema, problems
from adjourn.core.errors import Misuse
from adjourn.core.policy.opening import differences
from adjourn.core.task import Spec
from adjourn.core.text.render import WHOLE, argv_lines, call_lines, prose, visible

_HELP = "adjourn approve --help"


class _EditedCommand(msgspec.Struct, forbid_unknown_fields=True):
    argv: list[Word]
    cwd: Word


def editable(call: Call, spec: Spec) -> dict[str, Json]:
    """Return the arguments of a call that a person may change.

    Of a command these are its words and its directory.
    """
    if call.tool != COMMAND:
        arguments: dict[str, Json] = msgspec.json.decode(call.body, type=_EditedBody).arguments
        return arguments
    own = Command(argv=spec.argv, cwd=spec.workspace)
    return {
        name: msgspec.to_builtins(value)
        for name, value in (("argv", [*map(portable, own.argv)]), ("cwd", portable(own.cwd)))
    }


class _EditedBody(msgspec.Struct):
    arguments: dict[str, Any]


def edited(
    call: Call,
    spec: Spec,
    arguments: Mapping[str, Json],
    *,
    schema: Schema | None,
    files: Mapping[str, str] | None = None,
) -> tuple[bytes, Spec]:
    """Return the bytes of the call with other arguments, and the spec that its task has then.

    Raise Misuse if the arguments do not fit. `files` are those that an edited command depends on,
    if they were checked.
    """
    if call.tool == COMMAND:
        return _edited_command(call, spec, arguments, files or {})
    for problem in problems(arguments, schema or {}):
        raise Misuse(f"the edited call does not fit: {problem}", way_out=_HELP)
    return tool_body(call.tool, arguments), spec


def _edited_command(
    call: Call, spec: Spec, arguments: Mapping[str, Json], files: Mapping[str, str]
) -> tuple[bytes, Spec]:
    shown = command_of(call.body)
    given = _command_arguments(arguments)
    new = msgspec.structs.replace(
        spec, argv=tuple(map(exact, given.argv)), workspace=exact(given.cwd)
    )
    _require_command(new)
    added = shown.argv[len(spec.argv) :]  # what adjourn adds for the decision
    return command_body(
        Command(argv=(*new.argv, *added), cwd=new.workspace, env=shown.env, files=dict(files))
    ), new


def _command_arguments(arguments: Mapping[str, Json]) -> _EditedCommand:
    for key in arguments:
        if key not in {"argv", "cwd"}:
            raise Misuse(
                f"'{prose(key)}' of a command cannot be edited: only 'argv' and 'cwd' can",
                way_out=_HELP,
            )
    try:
        return msgspec.convert(arguments, _EditedCommand)
    except msgspec.ValidationError as error:
        raise Misuse(
            f"the edited command does not fit: {prose(str(error))}", way_out=_HELP
        ) from error


def _require_command(spec: Spec) -> None:
    if not spec.argv or not spec.argv[0]:
        raise Misuse("'argv' must name a program", way_out=_HELP)
    for number, word in enumerate(spec.argv):
        if "\0" in word:
            raise Misuse(
                f"'argv.{number}' holds a NUL, which no process can be given", way_out=_HELP
            )
    if not spec.workspace.startswith("/") or "\0" in spec.workspace:
        raise Misuse(
            f"'cwd' must be an absolute path, not {visible(spec.workspace)}", way_out=_HELP
        )


# --- as text --------------------------------------------------------------------------------------


def written(arguments: Mapping[str, Json], remarks: Sequence[str]) -> str:
    """Write arguments for an editor.

    JSON below remarks, with everything that cannot be seen spelled out.
    """
    text = msgspec.json.format(canonical(arguments), indent=2).decode()
    return "".join(f"# {remark}\n" for remark in remarks) + _spelled_out(text) + "\n"


def _spelled_out(text: str) -> str:
    if text.isascii() and "\x7f" not in text:
        return text
    return "".join(
        char if " " <= char <= "~" or char == "\n" or _is_plain(char) else json_escape(char)
        for char in text
    )


def _is_plain(char: str) -> bool:
    return not char.isascii() and prose(char) == char


def read_back(text: str) -> dict[str, Json] | None:
    """Read what an editor left.

    A line that begins with # does not count; None if nothing else is there.
    """
    lines = [line for line in text.split("\n") if not line.lstrip().startswith("#")]
    if not any(line.strip() for line in lines):
        return None
    value = _json("\n".join(lines))
    if not isinstance(value, Mapping):
        raise Misuse("what the editor left is not a mapping of arguments", way_out=_HELP)
    return dict(value)


def _json(text: str) -> Json:
    # Slow to import, and seldom needed
    import json

    try:
        return cast("Json", json.loads(text, object_pairs_hook=_once, parse_constant=_no_number))
    except (ValueError, RecursionError) as error:
        raise Misuse(f"what is given is not JSON: {prose(str(error))}", way_out=_HELP) from error


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"the key {key!r} is there twice")
    return dict(pairs)


def _no_number(word: str) -> Json:
    raise ValueError(f"{word} is not a number that JSON knows")


# --- one argument at a time -----------------------------------------------------------------------


def with_argument(arguments: Mapping[str, Json], assignment: str) -> dict[str, Json]:
    r"""Return the arguments with one changed, as in `argv.2=staging`: a path, and its new value.

    The path is made of keys and numbers and must exist; a dot in a key is written `\.`. The new
    value of a string is the text itself. Any other new value is read as JSON and must have the
    same type.
    """
    path, equals, text = assignment.partition("=")
    if not equals or not path:
        raise Misuse(f"--set {visible(assignment)} is not KEY=VALUE", way_out=_HELP)
    keys = [key.replace("\0", ".") for key in path.replace("\\.", "\0").split(".")]
    return cast("dict[str, Json]", _with(arguments, keys, text, path=path))


def _with(value: Json, keys: Sequence[str], text: str, *, path: str) -> Json:
    if not keys:
        return _like(value, text, path=path)
    match value:
        case Mapping() if keys[0] in value:
            return {**value, keys[0]: _with(value[keys[0]], keys[1:], text, path=path)}
        case list() if keys[0].isascii() and keys[0].isdigit() and int(keys[0]) < len(value):
            at = int(keys[0])
            return [*value[:at], _with(value[at], keys[1:], text, path=path), *value[at + 1 :]]
        case _:
            raise Misuse(
                f"--set: there is nothing at '{prose(path)}'; --edit can add and take away",
                way_out=_HELP,
            )


def _like(old: Json, text: str, *, path: str) -> Json:
    if isinstance(old, str):
        return text
    new = _json(text)
    if old is not None and _kind(new) != _kind(old):
        raise Misuse(
            f"--set: '{prose(path)}' is {_kind(old)}, and {visible(text)} is not", way_out=_HELP
        )
    return new


def _kind(value: Json) -> str:
    match value:
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case Mapping():
            return "a mapping"
        case None:
            return "null"
        case _:
            return "a list"


# --- the difference -------------------------------------------------------------------------------


def difference(tool: str, old: bytes, new: bytes) -> list[str]:
    """Show how two versions of a call differ, line by line of what a person would see of each."""
    if tool != COMMAND:
        return list(_changed(_argument_lines(tool, old), _argument_lines(tool, new)))
    was, is_now = command_of(old), command_of(new)
    lines = list(_changed(_word_lines(was), _word_lines(is_now)))
    return lines + [f"  file {prose(line)}" for line in differences(was.files, is_now.files)]


def _argument_lines(tool: str, body: bytes) -> list[str]:
    return call_lines(tool, msgspec.json.decode(body, type=_EditedBody).arguments, cut=WHOLE)


def _word_lines(command: Command) -> list[str]:
    words = [line.lstrip().partition(" ")[2].lstrip() for line in argv_lines(command.argv)]
    return [
        *words,
        f"in   {visible(command.cwd)}",
        *(f"with {visible(k)}={visible(v)}" for k, v in command.env.items()),
    ]


def _changed(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    # Seldom needed, and slow to import: a resume does without (bench/resume.py)
    from difflib import SequenceMatcher

    for what, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what != "equal":
            yield from (f"- {line}" for line in old[i:j])
            yield from (f"+ {line}" for line in new[k:m])
