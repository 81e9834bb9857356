"""Counts approvals where several people must approve, or only some may."""

from collections.abc import Callable

from adjourn.controller.edits import spec_of, tell_edit
from adjourn.controller.transaction import Transaction
from adjourn.core.ask import ApprovalAsk, Principal, Reply
from adjourn.core.authority.scopes import Level
from adjourn.core.call import Call
from adjourn.core.errors import Conflict
from adjourn.core.people import GivenApproval
from adjourn.core.states import AskMove, CallMove
from adjourn.core.text.when import stamp
from adjourn.ports.store import View

Require = Callable[[View, ApprovalAsk, Call], None]


def count_approval(
    tx: Transaction,
    ask: ApprovalAsk,
    reply: Reply,
    *,
    by: Principal,
    person: str,
    level: Level,
    require_allowed: Require,
) -> ApprovalAsk:
    """Record one person's approval; the last that is needed settles the ask.

    An edit voids the approvals before it: they were for other bytes.
    """
    asked = call = tx.rows.call(ask.task_id, ask.call)
    task, earlier = tx.rows.task(ask.task_id), ask.given
    if reply.edited is not None:
        call, _ = tell_edit(tx, task, asked, reply, by=by.name)
        earlier = ()
    if ask.terms.override or reply.edited is not None:
        require_allowed(tx.rows, ask, call)
    own = next((each for each in earlier if each.person == person), None)
    if own:
        raise Conflict(
            f"{person} approved ask {ask.id} already, as {own.by} at {stamp(own.at)};"
            f" {ask.count_words}",
            way_out=f"adjourn show {ask.task_id}",
        )

    override = reply.reason_to_override if ask.terms.override else None
    approval = GivenApproval(person=person, by=by.name, at=tx.now, level=level, digest=call.digest)
    given = (*earlier, approval)
    tx.tell(
        ask.task_id,
        "approval_given",
        by=by.name,
        ask=ask.id,
        call=ask.call,
        level=level,
        digest=call.digest,
        person=person,
        number=len(given),
        needed=ask.terms.approvals,
        override=override,
        comment=reply.comment,
    )
    ask = tx.save_ask(ask, given=given)
    if len(given) < ask.terms.approvals:
        if call is not asked:
            tx.save_call(asked, body=call.body, digest=call.digest)
        return ask

    spec = spec_of(tx.rows, task, call)
    if spec != task.spec:  # only now: what was edited runs only if all approved it
        tx.save(task, spec=spec)
    tx.move(asked, CallMove.APPROVE, body=call.body, digest=call.digest, approved_by=by.name)
    return tx.settle_ask(
        ask,
        AskMove.APPROVE,
        text=reply.text,
        by=by.name,
        level=level,
        digest=call.digest,
        override=override,
    )


def remind(tx: Transaction) -> None:
    """Tell once of each open ask whose reminder is due. It decides nothing."""
    for ask in tx.rows.asks_to_remind(now=tx.now):
        if isinstance(ask, ApprovalAsk):
            tx.save_ask(ask, remind_at=None)
            to = " ".join(ask.escalate_to) or None
            tx.tell(ask.task_id, "ask_reminded", ask=ask.id, call=ask.call, to=to)
