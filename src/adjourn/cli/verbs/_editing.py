"""How a person changes a call before approving it: in an editor, or one argument at a time."""

import sys
from collections.abc import Mapping, Sequence

import click

from adjourn.cli.session import Session
from adjourn.cli.terminal import flush, is_pasted, wait_for_silence
from adjourn.controller.controller import Controller
from adjourn.core.ask import Reply, Verb
from adjourn.core.call import Call, Json, canonical
from adjourn.core.edit.edit import difference, editable, with_argument
from adjourn.core.errors import Misuse
from adjourn.core.text.render import WHOLE, visible
from adjourn.views.block import Block, line
from adjourn.views.call import call_blocks
from adjourn.views.task import difference_blocks
from adjourn.wiring.call_drafts import NOTHING, Draft, draft_of, edited_call, edited_in_editor


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
    draft = draft_of(controller, asks[0])
    arguments: Mapping[str, Json] = editable(draft.call, draft.task.spec)
    for assignment in sets:
        arguments = with_argument(arguments, assignment)
    if in_editor:
        arguments = edited_in_editor(session.root, draft)
    call, files = edited_call(controller, draft, arguments)
    _confirm(session, draft, call, value=value)
    return Reply(
        ask_id=draft.ask.id,
        verb=Verb.APPROVE,
        text=value,
        digest=draft.call.digest,
        edited=canonical(arguments),
        files=files,
    )


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
            f"it was not confirmed: {NOTHING}", way_out=f"adjourn show {draft.ask.task_id}"
        )
