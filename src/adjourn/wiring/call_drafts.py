"""How a call is changed before it is approved: a draft, an editor, and what it becomes."""

import os
import shutil
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager

import msgspec

from adjourn.controller.controller import Controller
from adjourn.controller.edits import schema_of, spec_of
from adjourn.core.ask import ApprovalAsk, require_open
from adjourn.core.call import COMMAND, Call, Json, canonical, command_of
from adjourn.core.edit.argument_schema import Schema
from adjourn.core.edit.edit import editable, read_back, written
from adjourn.core.errors import Misuse
from adjourn.core.task import Task
from adjourn.core.text.render import visible
from adjourn.system.files import private_directory, write_whole

NOTHING = "nothing is recorded"
_LARGEST = 64 * 1024 * 1024
_HELP = "adjourn approve --help"


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is being edited, and what its arguments must look like."""

    ask: ApprovalAsk
    task: Task
    call: Call
    schema: Schema | None


def draft_of(controller: Controller, ask_id: str) -> Draft:
    """Return the call of an open ask, ready to be edited."""
    with controller.store.read() as view:
        ask = view.ask(ask_id)
        require_open(ask)
        if not isinstance(ask, ApprovalAsk):
            raise Misuse(
                f"{ask.id} is {ask.kind.noun}: it has no call to edit",
                way_out=f"adjourn show {ask.task_id}",
            )
        call = view.call(ask.task_id, ask.call)
        task = view.task(ask.task_id)
        task = msgspec.structs.replace(task, spec=spec_of(view, task, call))
        return Draft(ask=ask, task=task, call=call, schema=schema_of(view, call))


def edited_in_editor(root: str, draft: Draft) -> Mapping[str, Json]:
    """Return the arguments of a call as a person left them in their editor."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise Misuse(
            "neither VISUAL nor EDITOR names an editor",
            way_out=f"EDITOR=vi adjourn approve {draft.ask.id} --edit",
        )
    text = written(editable(draft.call, draft.task.spec), _remarks(draft))
    with _private_file(root, text) as path:
        _run_editor(editor, path)
        left = _read(path)
    arguments = None if left == text else read_back(left)
    if arguments is None:
        raise Misuse(f"nothing was changed: {NOTHING}", way_out=f"adjourn approve {draft.ask.id}")
    return arguments


def _remarks(draft: Draft) -> list[str]:
    what = f"{draft.call.id}, {visible(draft.call.tool)}"
    remarks = [
        f"The arguments of {what}: what you leave here is what runs.",
        "Lines that begin with # do not count. Leave it as it is, or empty, to record nothing.",
    ]
    if draft.call.tool == COMMAND:
        remarks.append(
            "What adjourn adds for the decision, AUTO_APPROVAL say,"
            " is not here and cannot be edited."
        )
    if draft.schema:
        remarks.append(f"They must fit: {visible(canonical(draft.schema).decode())}")
    return remarks


@contextmanager
def _private_file(root: str, text: str) -> Generator[str, None, None]:
    """Keep the text inside the store while it is edited.

    It may hold secrets, and so may what an editor puts beside it.
    """
    place = private_directory(
        os.path.join(private_directory(os.path.join(root, "edits")), f"{os.getpid()}")
    )
    path = os.path.join(place, "call.json")
    try:
        write_whole(path, text.encode())
        yield path
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _run_editor(editor: str, path: str) -> None:
    """Run the editor as git does.

    Its words go through a shell, so that `EDITOR='sed -i …'` means what it says.
    """
    try:
        code = subprocess.run(
            ["/bin/sh", "-c", f'{editor} "$@"', editor, path], check=False
        ).returncode
    except (OSError, ValueError) as error:
        raise Misuse(
            f"the editor could not be started: {error}",
            way_out="set EDITOR to a command that edits a file",
        ) from error
    if code:
        raise Misuse(
            f"the editor left with {code}: {NOTHING}",
            way_out="set EDITOR to a command that edits a file",
        )


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(_LARGEST)
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise Misuse("what the editor left is not UTF-8", way_out=_HELP) from error


def edited_call(
    controller: Controller, draft: Draft, arguments: Mapping[str, Json]
) -> tuple[Call, dict[str, str]]:
    """Return what a call becomes with these arguments, checked, and the files that it depends on.

    Nothing is recorded.
    """
    call = controller.decisions.edited(draft.ask.id, canonical(arguments))
    if call.digest == draft.call.digest:
        raise Misuse(f"nothing was changed: {NOTHING}", way_out=f"adjourn approve {draft.ask.id}")
    if call.tool != COMMAND:
        return call, {}
    command = command_of(call.body)
    if not os.path.isdir(command.cwd):
        raise Misuse(f"'cwd' is not a directory: {visible(command.cwd)}", way_out=_HELP)
    return call, command.files
