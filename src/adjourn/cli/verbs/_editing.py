"""How a person changes a call before approving it: in an editor, or one argument at a time."""

import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

import click
import msgspec

from adjourn.cli.session import Session
from adjourn.cli.terminal import flush, is_pasted, wait_for_silence
from adjourn.controller.controller import Controller
from adjourn.controller.edits import schema_of, spec_of
from adjourn.core.ask import ApprovalAsk, Reply, Verb, require_open
from adjourn.core.call import COMMAND, Call, Json, canonical, command_of
from adjourn.core.edit.argument_schema import Schema
from adjourn.core.edit.edit import difference, editable, read_back, with_argument, written
from adjourn.core.errors import Misuse
from adjourn.core.task import Task
from adjourn.core.text.render import WHOLE, visible
from adjourn.system.files import private_directory, write_whole
from adjourn.views.block import Block, line
from adjourn.views.call import call_blocks
from adjourn.views.task import difference_blocks

_LARGEST = 64 * 1024 * 1024
_NOTHING = "nothing is recorded"
_HELP = "adjourn approve --help"


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is being edited, and what its arguments must look like."""

    ask: ApprovalAsk
    task: Task
    call: Call
    schema: Schema | None


def edited_reply(
    session: Session,
    controller: Controller,
    asks: Sequence[str],
    *,
    value: str | None,
    in_editor: bool,
    sets: Sequence[str],
) -> Reply:
    """Return an approval of the call as the person changed it.

    On a terminal they see the whole of it and say yes first.
    """
    if len(asks) != 1 or (in_editor and sets):
        raise Misuse(
            "one call is edited at a time, with --edit or with --set",
            way_out="adjourn approve ASK --edit",
        )
    draft = _draft(controller, asks[0])
    arguments: Mapping[str, Json] = editable(draft.call, draft.task.spec)
    for assignment in sets:
        arguments = with_argument(arguments, assignment)
    if in_editor:
        arguments = _edited_in_editor(session, draft)
    call = controller.decisions.edited(draft.ask.id, canonical(arguments))
    if call.digest == draft.call.digest:
        raise Misuse(f"nothing was changed: {_NOTHING}", way_out=f"adjourn approve {draft.ask.id}")
    files: dict[str, str] = {}
    if call.tool == COMMAND:
        command = command_of(call.body)
        if not os.path.isdir(command.cwd):
            raise Misuse(f"'cwd' is not a directory: {visible(command.cwd)}", way_out=_HELP)
        files = command.files
    _confirm(session, draft, call, value=value)
    return Reply(
        ask_id=draft.ask.id,
        verb=Verb.APPROVE,
        text=value,
        digest=draft.call.digest,
        edited=canonical(arguments),
        files=files,
    )


def _draft(controller: Controller, ask_id: str) -> Draft:
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


# --- in an editor ---------------------------------------------------------------------------------


def _edited_in_editor(session: Session, draft: Draft) -> Mapping[str, Json]:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise Misuse(
            "neither VISUAL nor EDITOR names an editor",
            way_out=f"EDITOR=vi adjourn approve {draft.ask.id} --edit",
        )
    text = written(editable(draft.call, draft.task.spec), _remarks(draft))
    with _private_file(session, text) as path:
        _run_editor(editor, path)
        left = _read(path)
    arguments = None if left == text else read_back(left)
    if arguments is None:
        raise Misuse(f"nothing was changed: {_NOTHING}", way_out=f"adjourn approve {draft.ask.id}")
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
def _private_file(session: Session, text: str) -> Generator[str, None, None]:
    """Keep the text inside the store while it is edited.

    It may hold secrets, and so may what an editor puts beside it.
    """
    place = private_directory(
        os.path.join(private_directory(os.path.join(session.root, "edits")), f"{os.getpid()}")
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
            f"the editor left with {code}: {_NOTHING}",
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


# --- before it is recorded ------------------------------------------------------------------------


def _confirm(session: Session, draft: Draft, call: Call, *, value: str | None) -> None:
    """Show the whole call and how it differs, and take only a yes for a yes.

    Where nobody is looking, nobody is asked.
    """
    if session.wants_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return
    changes = difference(call.tool, draft.call.body, call.body)
    blocks: list[Block] = [
        line("what changes:"),
        *difference_blocks(changes, indent="    ", cut=WHOLE),
        line("what would run:"),
        *call_blocks(call, cut=WHOLE),
    ]
    session.show([*blocks, line(f"    approved with {visible(value)}")] if value else blocks)
    flush()
    wait_for_silence()
    if not click.confirm("Approve it so?", default=False) or is_pasted():
        raise Misuse(
            f"it was not confirmed: {_NOTHING}", way_out=f"adjourn show {draft.ask.task_id}"
        )
