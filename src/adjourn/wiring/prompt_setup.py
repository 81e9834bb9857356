"""Puts adjourn behind the permission prompts of a person's own Claude Code sessions, and back."""

import difflib
import os
import shlex

import msgspec

from adjourn.core.errors import AdjournError
from adjourn.core.text.json_text import decode_unambiguous
from adjourn.system.files import write_whole
from adjourn.wiring.host_setup import HostChange
from adjourn.wiring.own_program import own_program

_OURS = "_permission"  # the verb by which our hooks are known
_EVENTS = ("PreToolUse", "PermissionRequest")
_GRACE = 90  # seconds that Claude Code gives the hook beyond the time that a person has
Hook = dict[str, object]


def change_prompts(*, is_project: bool, seconds: int | None) -> HostChange:
    """Write the hooks into Claude Code's settings, or take them out where no time is given.

    Whatever else stands in the settings stays.
    """
    if is_project:
        # The file of a project that is the user's own: Claude Code keeps it out of the repository
        path = os.path.join(os.getcwd(), ".claude", "settings.local.json")
    else:
        folder = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")
        path = os.path.join(folder, "settings.json")
    try:
        with open(path, encoding="utf-8") as file:
            before = file.read()
    except FileNotFoundError:
        before = ""
    try:
        settings = decode_unambiguous(before or "{}", type=dict[str, object])
        hooks = msgspec.convert(settings.get("hooks", {}), dict[str, list[Hook]])
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        raise AdjournError(
            f"{path} is not settings of Claude Code: {error}", way_out=f"mend {path} first"
        ) from None
    kept = {
        event: [each for each in entries if _OURS not in msgspec.json.encode(each).decode()]
        for event, entries in hooks.items()
    }
    if seconds is not None:
        words = [own_program() or "adjourn", _OURS, "--for", str(seconds)]
        for event in _EVENTS:
            ours: Hook = {
                "type": "command",
                "command": shlex.join(words),
                "timeout": seconds + _GRACE,
            }
            kept[event] = [*kept.get(event, []), {"matcher": "*", "hooks": [ours]}]
    left = {event: entries for event, entries in kept.items() if entries}
    settings = {name: value for name, value in settings.items() if name != "hooks"}
    if left:
        settings["hooks"] = left
    after = msgspec.json.format(msgspec.json.encode(settings), indent=2).decode() + "\n"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write_whole(path, after.encode())
    rows = difflib.unified_diff(
        before.splitlines(), after.splitlines(), "before", "after", n=1, lineterm=""
    )
    check = "removed" if seconds is None else f"{own_program() or 'adjourn'} is what it will start"
    return HostChange(host="claude", config=path, difference="\n".join(rows), check=check)
