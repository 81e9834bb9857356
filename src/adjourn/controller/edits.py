"""What happens to a call that a person changes before approving it."""

from typing import Any

import msgspec

from adjourn.controller.steps import Steps
from adjourn.core.call import COMMAND, EDITABLE, ORIGINAL, Call, digest_of
from adjourn.core.edit import edited
from adjourn.core.errors import Misuse
from adjourn.core.schema import Schema
from adjourn.core.task import Task
from adjourn.ports import View

_arguments = msgspec.json.Decoder(dict[str, Any])


def edit(step: Steps, task: Task, call: Call, arguments: bytes, *, by: str) -> Task:
    """Put other arguments into a pending call, keep the old ones beside it, and let the task go on with the new."""
    body, spec = edited(call, task.spec, _arguments.decode(arguments), schema=schema_of(step.tx, call))
    changed = msgspec.structs.replace(call, body=body, digest=digest_of(body), version=call.version + 1)
    if changed.digest == call.digest:
        raise Misuse("the edited call is the one that was asked for", way_out="approve it without an edit")
    step.tx.save_call(call, changed)
    step.tx.keep_document(task.id, f"{ORIGINAL}{call.tool_call_id}", call.body)
    step.tell(task.id, "call_edited", by=by, call=call.number, was=call.digest, digest=changed.digest)
    return step.save(task, spec=spec) if spec != task.spec else task


def schema_of(view: View, call: Call) -> Schema | None:
    """Return what the edited arguments of a call must look like; a process that does not take any is not given any."""
    if call.tool == COMMAND:
        return None
    kept = view.document(call.task_id, f"{EDITABLE}{call.tool_call_id}")
    if kept is None:
        sentence = f"call {call.id} cannot be edited: its process does not say that it takes other arguments than its own"
        raise Misuse(sentence, way_out="reject it with a reason, which its process is told")
    return _arguments.decode(kept)
