"""What a judgement does to a task, inside one transaction: its command runs, waits for a person, or is turned down."""

import msgspec

from adjourn.controller import endings
from adjourn.controller.steps import POLICY, POLICY_OF, Steps
from adjourn.core.ask import Ask
from adjourn.core.call import digest_of
from adjourn.core.opening import Obstacle, Opening, Way
from adjourn.core.states import AskMove, CallMove, CallState, Move, after, allows_ask
from adjourn.core.task import Spec, Task

_LONGEST = 500  # characters of a reason in the trail
GATE = "gate"  # stands where a run that never had a process has no supervisor


def under_policy(step: Steps, spec: Spec, opening: Opening) -> Spec:
    """Keep the policy that a task begins under, once for all tasks that do, and return a spec that names it."""
    if opening.policy is None:
        return spec
    digest = digest_of(opening.policy)
    if step.tx.shared_document(f"{POLICY_OF}{digest}") is None:
        step.tx.keep_shared_document(f"{POLICY_OF}{digest}", opening.policy)
    return msgspec.structs.replace(spec, policy=digest)


def let_through_by(opening: Opening, by: str) -> str:
    """Return who let a command run: the policy, or whoever wanted to be asked nothing."""
    return POLICY if opening.is_let_through_by_policy else by


def enter(step: Steps, task: Task, opening: Opening, *, by: str) -> Task:
    """Let a queued task's command through, put it before a person, or turn it down."""
    match opening.way:
        case Way.RUN:
            call = step.new_call(task, opening.command, state=CallState.APPROVED, by=let_through_by(opening, by))
            step.tell(task.id, "call_let_through", by=call.approved_by or by, call=call.number, digest=call.digest)
            return step.save(task, calls=call.number, next_call=call.number)
        case Way.ASK:
            return hold(step, task, opening, prompt="it needs approval before it starts")
        case Way.REFUSE:
            return refuse(step, task, opening)


def hold(step: Steps, task: Task, opening: Opening, *, prompt: str, instead_of: Ask | None = None) -> Task:
    """Put a queued task's command before a person instead of starting it: a run that ends where it begins, without a process."""
    started = step.save(task, state=after(task.state, Move.START), runs=task.runs + 1, next_call=None)
    run = step.new_run(task, call=task.calls + 1, supervisor=GATE)
    return endings.ask_for_approval(
        step,
        started,
        run,
        opening.command,
        prompt=prompt,
        manifest=instead_of.manifest if instead_of else None,
        gate=instead_of.gate if instead_of else True,
        terms=opening.judgement.terms_of_ask,
        expires_after=opening.judgement.expiry(task.spec.expires_after),
        replaces=instead_of.id if instead_of else None,
    )


def refuse(step: Steps, task: Task, opening: Opening) -> Task:
    """Fail a queued task that the policy never allows."""
    call = step.new_call(task, opening.command, state=CallState.PENDING, by=None)
    step.move_call(task.id, call.number, CallMove.REJECT)
    why = "; ".join(opening.judgement.why)
    message = f"the policy never allows this command: {why}" if why else "the policy never allows this command"
    failed = step.save(task, state=after(task.state, Move.FAIL), message=message, next_call=None, calls=call.number)
    step.tell(failed.id, "task_refused", by=POLICY, call=call.number, digest=call.digest)
    step.wake_parent(failed)
    return failed


def stop(step: Steps, task: Task, obstacle: Obstacle) -> Task:
    """Take back what was let through, and ask again; the new ask says what is different."""
    step.move_call(task.id, obstacle.call.number, CallMove.WITHDRAW)
    step.tell(task.id, "start_refused", call=obstacle.call.number, why="; ".join(obstacle.changes)[:_LONGEST])
    for ask in step.tx.open_asks_of(task.id):  # a task that is truly queued has none
        if obstacle.ask is None or ask.id != obstacle.ask.id:
            step.withdraw(ask)
    task = step.tx.task(task.id)
    if obstacle.opening.way is Way.REFUSE:
        return refuse(step, task, obstacle.opening)
    prompt = "; ".join(obstacle.changes)
    held = hold(step, task, obstacle.opening, prompt=prompt, instead_of=obstacle.ask)
    if obstacle.ask and allows_ask(obstacle.ask.state, AskMove.WITHDRAW):
        newest = step.tx.open_asks_of(task.id)[-1]
        step.settle_ask(obstacle.ask, AskMove.WITHDRAW, text=f"replaced by {newest.id}", by=POLICY)
    return held
