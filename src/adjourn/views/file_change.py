"""What a call would change in files, as one difference: from its own words and adjourn's copies.

Lines are left out between changes only where the text before is adjourn's own copy. An agent that
says what is there now could otherwise hide what it writes.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from adjourn.core.call import Json, canonical
from adjourn.core.policy.locations import PATCH_TOOL
from adjourn.core.text.render import visible
from adjourn.views.block import Role

Copies = Mapping[str, str | None]

# By tool: the argument that names the file, and the one that has all of its text
_WRITES = {"write_file": ("path", "content"), "Write": ("file_path", "content")}
# By tool: the file, the text to replace, the text to put there, whether every place is meant
_EDITS = {
    "edit_file": ("path", "old", "new", "all"),
    "Edit": ("file_path", "old_string", "new_string", "replace_all"),
}
# What the built-in agent adds for those who read the arguments themselves
_ADDED = frozenset({"before", "after", "diff"})
_NO_NEWLINE = "\\ no newline at the end"
_CONTEXT = 2
_LARGEST = 256 << 10  # characters of a text that is compared


class ChangedText(msgspec.Struct, frozen=True, kw_only=True):
    """What would become of one file, line by line."""

    path: str
    remark: str = ""
    lines: tuple[str, ...] = ()


class ShownChange(msgspec.Struct, frozen=True, kw_only=True):
    """The files that a call would change, and its arguments that say more than that."""

    files: tuple[ChangedText, ...]
    others: dict[str, Json]


def change_of(tool: str, arguments: Mapping[str, Json], copies: Copies) -> ShownChange | None:
    """Return what a call would change in files; None if it does not say so as one of these tools.

    No argument is left out that the difference does not tell.
    """
    match _parts(tool, arguments):
        case (str(path), [*edits], others):
            change = _file_change(path, edits, copies)
            return ShownChange(files=(change,), others=others) if change else None
        case _:
            pass
    if tool != PATCH_TOOL:
        return None
    patch, changes = arguments.get("patch"), arguments.get("changes")
    if isinstance(patch, str):
        others = {name: value for name, value in arguments.items() if name != "patch"}
        return ShownChange(files=tuple(_patched_files(patch)), others=others)
    if isinstance(changes, Sequence) and not isinstance(changes, str):
        files = [_told_change(each) for each in changes]
        others = {name: value for name, value in arguments.items() if name != "changes"}
        if files and all(files):
            return ShownChange(files=tuple(each for each in files if each), others=others)
    return None


def difference_lines(before: str, after: str) -> list[str]:
    """Return the lines in which two texts differ, with a few around them."""
    # Slow to import, and only for those who look at a file
    from difflib import SequenceMatcher

    old, new = before.split("\n"), after.split("\n")
    # The last piece is what follows the last newline: nothing, or a line without one
    ends = (old.pop() if not old[-1] else None, new.pop() if not new[-1] else None)
    if before == after:
        return []
    lines: list[str] = []
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT):
        lines.append(f"@@ line {group[0][3] + 1}")
        for what, i, j, k, m in group:
            if what == "equal":
                lines += [f"  {visible(text)}" for text in new[k:m]]
                continue
            lines += [f"- {visible(text)}" for text in old[i:j]]
            lines += [f"+ {visible(text)}" for text in new[k:m]]
    if (ends[0] is None) != (ends[1] is None) and before and after:
        lines.append(f"{'+' if ends[1] is None else '-'} {_NO_NEWLINE}")
    elif after and ends[1] is None:
        lines.append(f"  {_NO_NEWLINE}")
    return lines


def role_of_line(text: str) -> Role:
    """Return how a surface may colour a line of a difference."""
    match text[:1]:
        case "+":
            return "added"
        case "-":
            return "removed"
        case "@":
            return "muted"
        case _:
            return "plain"


def _parts(
    tool: str, arguments: Mapping[str, Json]
) -> tuple[str, list[tuple[str | None, str, bool]], dict[str, Json]] | None:
    """Return the file, the edits and the other arguments of a call that writes.

    An edit is the text to replace (None: all there is), the text to put there, and whether every
    place is meant.
    """
    if tool in _WRITES:
        name, content = _WRITES[tool]
        path, text = arguments.get(name), arguments.get(content)
        told = {name, content}
        edits: list[tuple[str | None, str, bool]] | None = (
            [(None, text, False)] if isinstance(text, str) else None
        )
    elif tool in _EDITS:
        name, *fields = _EDITS[tool]
        path, told = arguments.get(name), {name, *fields}
        edit = _edit_of(arguments, fields)
        edits = [edit] if edit else None
    elif tool == "MultiEdit":
        path, told = arguments.get("file_path"), {"file_path", "edits"}
        given = arguments.get("edits")
        each = given if isinstance(given, Sequence) and not isinstance(given, str) else ()
        fields = list(_EDITS["Edit"][1:])
        read = [
            _edit_of(one, fields) if isinstance(one, Mapping) and set(one) <= set(fields) else None
            for one in each
        ]
        edits = [one for one in read if one] if read and all(read) else None
    else:
        return None
    if not isinstance(path, str) or edits is None:
        return None
    hidden = told | _ADDED if tool in {"write_file", "edit_file"} else told
    return path, edits, {key: value for key, value in arguments.items() if key not in hidden}


def _edit_of(
    arguments: Mapping[str, Json], fields: Sequence[str]
) -> tuple[str | None, str, bool] | None:
    old, new, every = (arguments.get(field) for field in fields)
    is_plain = isinstance(old, str) and isinstance(new, str) and isinstance(every, bool | None)
    return (str(old), str(new), bool(every)) if is_plain else None


def _file_change(
    path: str, edits: Sequence[tuple[str | None, str, bool]], copies: Copies
) -> ChangedText | None:
    before = copies.get(path)
    is_known = path in copies and all(len(new) <= _LARGEST for _, new, _ in edits)
    if len(edits) == 1 and edits[0][0] is None:
        content = edits[0][1]
        if is_known:
            lines = difference_lines(before or "", content)
            remark = "new file" if before is None else ("" if lines else "no change")
            return ChangedText(path=path, remark=remark, lines=tuple(lines))
        remark = "all of it is written; no copy of what is there now is kept"
        return ChangedText(path=path, remark=remark, lines=tuple(_whole_lines("+", content)))

    after: str | None = before if is_known else None
    for old, new, is_every in edits:
        count = after.count(old) if after is not None and old else 0
        if after is None or old is None or count < 1 or (count > 1 and not is_every):
            after = None
            break
        after = after.replace(old, new)
    if before is not None and after is not None:
        return ChangedText(path=path, lines=tuple(difference_lines(before, after)))
    lines = [
        text
        for old, new, is_every in edits
        for text in (
            "@@ in every place" if is_every else "@@ in one place",
            *_whole_lines("-", old or ""),
            *_whole_lines("+", new),
        )
    ]
    return ChangedText(path=path, lines=tuple(lines))


def _whole_lines(sign: str, text: str) -> Iterator[str]:
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    yield from (f"{sign} {visible(each)}" for each in lines)


def _patched_files(patch: str) -> Iterator[ChangedText]:
    """Yield the files of a patch as Codex writes it, each with its lines as they are."""
    path, lines = "", list[str]()
    for text in patch.removesuffix("\n").split("\n"):
        if text.startswith("*** ") and " File: " in text:
            if path or lines:
                yield ChangedText(path=path, lines=tuple(lines))
            path, lines = text.removeprefix("*** "), []
        elif text not in {"*** Begin Patch", "*** End Patch"}:
            lines.append(_spaced(text))
    yield ChangedText(path=path, lines=tuple(lines))


def _told_change(change: Json) -> ChangedText | None:
    """Return a change that Codex tells as a path, a kind and a difference."""
    match change:
        case {"path": str(path), "kind": kind, "diff": str(text), **others} if not others:
            more = (
                {name: value for name, value in kind.items() if value is not None}
                if isinstance(kind, Mapping)
                else {"type": kind}
            )
            told = str(more.pop("type", ""))
            sign = {"add": "+", "delete": "-"}.get(told)
            texts = text.removesuffix("\n").split("\n")
            lines = _whole_lines(sign, text) if sign else map(_spaced, texts)
            remark = f"{told} {canonical(more).decode()}" if more else told
            return ChangedText(path=path, remark=remark, lines=tuple(lines))
        case _:
            return None


def _spaced(text: str) -> str:
    """Return a line of a patch with a blank behind its sign."""
    if text.startswith("@@"):
        return visible(text)
    return f"{text[0]} {visible(text[1:])}" if text[:1] in {"+", "-"} else f" {visible(text)}"
