"""The calls of an agent, one batch at a time.

What is let through, what a person is asked, and what runs next.
"""

from collections.abc import Sequence

import msgspec

from adjourn.controller.transaction import ASKED, POLICY, Transaction, approval_of
from adjourn.core.agent.calls import CallResult, Held, Proposed, is_tame, looked_at
from adjourn.core.ask import ApprovalAsk, AskReason
from adjourn.core.call import Call, call_name, digest_of
from adjourn.core.kept_documents import BATCH, EDITABLE, ORIGINAL, RESULT, WHY
from adjourn.core.policy.judgement import NOT_ALLOWED, Action, Judgement
from adjourn.core.policy.opening import Way, way_of
from adjourn.core.states import AskMove, CallMove, CallState, allows_ask
from adjourn.core.task import Run, Task
from adjourn.ports.store import Turn, View

_SETTLED = frozenset(
    {CallState.DONE, CallState.FAILED, CallState.REJECTED, CallState.EXPIRED, CallState.WITHDRAWN}
)

_LONGEST = 500  # characters of a reason in the trail

Judged = tuple[Proposed, Judgement, dict[str, str]]  # with the files that it was judged with


def hold(tx: Transaction, task: Task, run: Run, batch: Sequence[Judged]) -> None:
    """Write down a whole batch before anything of it acts.

    What may run, what waits for a person, what never may.
    """
    numbers: list[int] = []
    for proposed, judgement, files in batch:
        if is_just_made(proposed, judgement):
            numbers.append(0)
            continue
        body = looked_at(proposed.body, files)
        task = _hold(tx, task, run, msgspec.structs.replace(proposed, body=body), judgement)
        numbers.append(task.calls)
    BATCH.keep(tx.rows, task.id, numbers)


def is_just_made(proposed: Proposed, judgement: Judgement) -> bool:
    """Say whether a call changes nothing and no rule wants it asked about.

    Its driver makes it, and nobody counts it.
    """
    return proposed.read_only and (judgement.action is Action.AUTO or judgement.is_default)


def _hold(tx: Transaction, task: Task, run: Run, proposed: Proposed, judgement: Judgement) -> Task:
    way = way_of(judgement, is_gated=task.spec.pause_on_approval)
    tx.tell(
        task.id,
        "call_proposed",
        run=run.number,
        call=task.calls + 1,
        tool=proposed.tool,
        judged=judgement.action.value,
        digest=digest_of(proposed.body),
        # For people: a model is told no rule and no path
        why="; ".join(judgement.why)[:_LONGEST] or None if way is Way.REFUSE else None,
    )
    match way:
        case Way.RUN:
            by = POLICY if judgement.action is Action.AUTO else tx.rows.requester(task.id)
            call = _new_call(tx, task, proposed, state=CallState.APPROVED, by=by)
            return tx.save(task, calls=call.number)
        case Way.REFUSE:
            call = _new_call(tx, task, proposed, state=CallState.PENDING, by=None)
            tx.move(call, CallMove.REJECT)
            RESULT.keep_of(tx.rows, call, CallResult(ok=False, error=NOT_ALLOWED))
            return tx.save(task, calls=call.number)
        case Way.ASK:
            return _ask(tx, task, run, proposed, judgement)


def _ask(
    tx: Transaction,
    task: Task,
    run: Run,
    proposed: Proposed,
    judgement: Judgement,
    *,
    instead_of: ApprovalAsk | None = None,
    why: str = "",
) -> Task:
    call = _new_call(tx, task, proposed, state=CallState.PENDING, by=None, ask=task.asks + 1)
    if proposed.editable is not None:
        EDITABLE.keep_of(tx.rows, call, proposed.editable)
    counted = tx.save(task, calls=call.number)
    found, asking = tx.open_approval(
        counted,
        run,
        call.number,
        prompt=why or f"wants to call {proposed.tool}",
        label=call.label,
        manifest=proposed.words,
        terms=judgement.terms_of_ask,
        replaces=instead_of.id if instead_of else None,
        expires_after=judgement.expiry(task.spec.expires_after),
        remind_after=judgement.remind_after,
        escalate_to=judgement.escalate_to,
    )
    WHY.of(found.id).keep(tx.rows, task.id, AskReason(reasons=judgement.reasons_to_ask))
    tx.rows.add_turn(
        Turn(run_id=run.id, key=f"{ASKED}{call.tool_call_id}", thing=found.id, left_open=True)
    )
    return asking


def _new_call(
    tx: Transaction,
    task: Task,
    proposed: Proposed,
    *,
    state: CallState,
    by: str | None,
    ask: int | None = None,
) -> Call:
    label = free_label(tx.rows, task, proposed.label)
    return tx.new_tool_call(
        task, proposed.tool, proposed.body, state=state, by=by, ask=ask, label=label
    )


def free_label(view: View, task: Task, wanted: str | None) -> str:
    """Return what a new call of a driven task is called.

    As its agent calls it, if that is tame and names no other.
    """
    label = wanted if wanted and is_tame(wanted) else call_name(task.calls + 1, None)
    if view.call_labelled(task.id, label) is None:
        return label
    label = call_name(task.calls + 1, None)
    while view.call_labelled(task.id, label):
        label += "_"
    return label


def again(
    tx: Transaction,
    task: Task,
    run: Run,
    call: Call,
    judgement: Judgement,
    files: dict[str, str],
    *,
    why: str,
) -> None:
    """Take back a call that was let through and is not what it was, and ask for it as it is now."""
    ask = approval_of(tx.rows, call)
    tx.move(call, CallMove.WITHDRAW)
    parts = msgspec.json.decode(call.body)
    parts.pop("files", None)
    body = looked_at(msgspec.json.encode(parts, order="sorted"), files)
    proposed = Proposed(tool=call.tool, body=body, words=ask.manifest if ask else None)
    asking = _ask(tx, task, run, proposed, judgement, instead_of=ask, why=why)
    if ask and allows_ask(ask.state, AskMove.WITHDRAW):
        newest = tx.rows.open_asks_of(task.id)[-1]
        tx.settle_ask(ask, AskMove.WITHDRAW, text=f"replaced by {newest.id}", by=POLICY)
    numbers = [
        asking.calls if number == call.number else number for number in batch_of(tx.rows, task.id)
    ]
    BATCH.keep(tx.rows, task.id, numbers)


def batch_of(view: View, task_id: str) -> list[int]:
    """Return the numbers of the calls of the newest batch.

    0 stands for one that its driver just makes.
    """
    return BATCH.read(view, task_id) or []


def held(view: View, task_id: str) -> list[Held]:
    """Return the newest batch as it stands."""
    return [
        held_call(view, view.call(task_id, number)) if number else Held()
        for number in batch_of(view, task_id)
    ]


def held_call(view: View, call: Call) -> Held:
    """Return one call as it stands."""
    return Held(
        call=call,
        ask=approval_of(view, call),
        result=RESULT.read_of(view, call),
        original=ORIGINAL.read_of(view, call),
    )


def next_to_execute(view: View, task_id: str) -> Call | None:
    """Return the call that runs next beside its agent.

    In the order of the batch, and none while a person is asked.
    """
    calls = [view.call(task_id, number) for number in batch_of(view, task_id) if number]
    if any(call.state is CallState.PENDING for call in calls):
        return None
    first = next((call for call in calls if call.state not in _SETTLED), None)
    return first if first and first.state is CallState.APPROVED else None
