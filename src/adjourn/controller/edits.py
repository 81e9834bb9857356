"""What happens to a call that a person changes before approving it."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from adjourn.controller.transaction import Transaction
from adjourn.core.ask import Reply
from adjourn.core.call import COMMAND, Call, Command, command_of, digest_of
from adjourn.core.edit.argument_schema import Schema
from adjourn.core.edit.edit import edited
from adjourn.core.errors import Misuse
from adjourn.core.kept_documents import EDITABLE, ORIGINAL
from adjourn.core.policy.opening import Surroundings
from adjourn.core.task import Spec, Task
from adjourn.ports.store import View

_arguments = msgspec.json.Decoder(dict[str, Any])


def changed(
    view: View, task: Task, call: Call, arguments: bytes, *, look: Callable[[Command], Surroundings]
) -> tuple[Call, Spec]:
    """Return a call with other arguments.

    A command whose files were looked at before is looked at with its new words.
    """
    plain, spec = _changed(view, task, call, arguments, files={})
    is_looked_at = call.tool == COMMAND and (
        task.spec.pause_on_approval or bool(command_of(call.body).files)
    )
    if not is_looked_at:
        return plain, spec
    return _changed(view, task, call, arguments, files=look(command_of(plain.body)).files)


def _changed(
    view: View, task: Task, call: Call, arguments: bytes, *, files: Mapping[str, str]
) -> tuple[Call, Spec]:
    body, spec = edited(
        call,
        spec_of(view, task, call),
        _arguments.decode(arguments),
        schema=schema_of(view, call),
        files=files,
    )
    return msgspec.structs.replace(
        call, body=body, digest=digest_of(body), version=call.version + 1
    ), spec


def as_edited(view: View, task: Task, call: Call, reply: Reply) -> tuple[Call, Spec]:
    """Return the call that a reply would rather have, and the task's spec with it."""
    return _changed(view, task, call, reply.edited or b"{}", files=reply.files or {})


def edit(tx: Transaction, task: Task, call: Call, reply: Reply, *, by: str) -> Call:
    """Return a call with other arguments, to be saved as it is approved.

    Keep the old, and have the task go on with the new.
    """
    new, spec = tell_edit(tx, task, call, reply, by=by)
    if spec != task.spec:
        tx.save(task, spec=spec)
    return new


def tell_edit(
    tx: Transaction, task: Task, call: Call, reply: Reply, *, by: str
) -> tuple[Call, Spec]:
    """Return a call with other arguments, not saved yet, and record the edit."""
    new, spec = as_edited(tx.rows, task, call, reply)
    if new.digest == call.digest:
        raise Misuse("the edited call is the same as before", way_out="approve it without an edit")
    if ORIGINAL.read_of(tx.rows, call) is None:
        ORIGINAL.keep_of(tx.rows, call, call.body)
    tx.tell(task.id, "call_edited", by=by, call=call.number, was=call.digest, digest=new.digest)
    return new, spec


def spec_of(view: View, task: Task, call: Call) -> Spec:
    """Return the spec that a task goes on with if its call is approved as it is now.

    An edit that others still have to approve is in the call, and not yet in the task.
    """
    original = ORIGINAL.read_of(view, call) if call.tool == COMMAND else None
    if original is None:
        return task.spec
    added = len(command_of(original).argv) - len(task.spec.argv)  # what adjourn adds
    command = command_of(call.body)
    argv = command.argv[: len(command.argv) - added]
    return msgspec.structs.replace(task.spec, argv=argv, workspace=command.cwd)


def schema_of(view: View, call: Call) -> Schema | None:
    """Return what the edited arguments of a call must look like.

    A process that does not take any is not given any.
    """
    if call.tool == COMMAND:
        return None
    kept = EDITABLE.read_of(view, call)
    if kept is None:
        sentence = (
            f"call {call.id} cannot be edited:"
            " its process does not say that it takes other arguments than its own"
        )
        raise Misuse(sentence, way_out="reject it with a reason; its process gets the reason")
    return _arguments.decode(kept)
