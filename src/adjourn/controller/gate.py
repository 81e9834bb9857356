"""Judges a command before anything of it starts, and once more before its gate opens."""

from enum import Enum

import msgspec

from adjourn.controller import endings
from adjourn.controller.steps import POLICY, Steps, plain_command
from adjourn.core.ask import Ask
from adjourn.core.call import COMMAND, Call, Command, arguments_of, command_body, command_of, digest_of
from adjourn.core.judgement import Action, Judgement, Never, is_stricter, strictest
from adjourn.core.policy import NO_POLICY, Policy, decode_policy, encode_policy
from adjourn.core.states import AskMove, CallMove, CallState, Move, after
from adjourn.core.surroundings import NOTHING_SEEN, Surroundings, differences
from adjourn.core.task import Spec, Task
from adjourn.ports import Clock, Observe, Policies, View

GATE = "gate"  # stands where a run that never had a process has no supervisor
_KEPT = "policy:"


class Way(Enum):
    """What happens to a command that was judged."""

    RUN = "run"
    ASK = "ask"
    REFUSE = "refuse"


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """A command that is about to be queued: its exact bytes, and what the policy says of them."""

    command: Command
    judgement: Judgement
    is_gated: bool

    @property
    def way(self) -> Way:
        """Whether it runs, waits for a person, or is turned down."""
        if self.judgement.action is Action.NEVER:
            pauses = self.is_gated and self.judgement.never is Never.PAUSE
            return Way.ASK if pauses else Way.REFUSE
        return Way.ASK if self.is_gated and self.judgement.action is Action.PROMPT else Way.RUN

    @property
    def let_through_by(self) -> str | None:
        """Who let it run, if it was the policy."""
        return POLICY if self.judgement.action is Action.AUTO else None

    @property
    def told(self) -> str | None:
        """What the trail says of a call that runs though the policy would have asked a person first."""
        return self.judgement.action.value if self.judgement.why and not self.is_gated else None


class Obstacle(msgspec.Struct, frozen=True, kw_only=True):
    """Why a call that was let through may not start now."""

    call: Call
    ask: Ask | None
    opening: Opening
    changes: tuple[str, ...]


class Gate:
    """Knows the policies and the files of this machine. What it finds takes effect inside a transaction."""

    def __init__(self, policies: Policies, observe: Observe, clock: Clock) -> None:
        self._policies = policies
        self._observe = observe
        self._clock = clock

    def under_policy(self, spec: Spec) -> tuple[Spec, Policy]:
        """Return a spec that names the policy of this moment, and that policy."""
        policy = self._policies.current(spec.workspace)
        if policy == NO_POLICY:
            return spec, policy
        return msgspec.structs.replace(spec, policy=digest_of(encode_policy(policy))), policy

    def opening(self, spec: Spec, *policies: Policy, task_id: str | None = None) -> Opening:
        """Look at a task's command and judge it by all of these policies."""
        command = plain_command(spec)
        if not spec.pause_on_approval and all(policy == NO_POLICY for policy in policies):
            return Opening(command=command, judgement=Judgement(), is_gated=False)
        surroundings = self._observe(command)
        body = command_body(msgspec.structs.replace(command, files=surroundings.files))
        judgement = self._judge(COMMAND, body, surroundings, spec, task_id, policies)
        files = surroundings.files if spec.pause_on_approval else {}
        return Opening(
            command=msgspec.structs.replace(command, files=files), judgement=judgement, is_gated=spec.pause_on_approval
        )

    def opening_again(self, view: View, task: Task) -> Opening:
        """Judge the command of a task that goes on: by the policy that it began under, and by today's where that is stricter."""
        return self.opening(task.spec, *self._in_force(view, task), task_id=task.id)

    def look(self, command: Command) -> Surroundings:
        """Return what a command depends on, as it is now."""
        return self._observe(command)

    def judge(self, view: View, task: Task, tool: str, body: bytes) -> Judgement:
        """Say what the policies in force say of a call that a process itself puts before a person."""
        in_force = self._in_force(view, task)
        return self._judge(tool, body, NOTHING_SEEN, task.spec, task.id, in_force)

    def obstacle(self, view: View, task: Task, call: Call) -> Obstacle | None:
        """Say why an approved call may not start now, if it may not."""
        began_under, today = self._in_force(view, task)
        shown = command_of(call.body)
        if not shown.files and began_under == today == NO_POLICY:
            return None
        found = self._observe(shown)
        changes = differences(shown.files, found.files) if shown.files else []
        ask = view.ask_numbered(task.id, call.ask) if call.ask else None
        judgement = self._judge(COMMAND, call.body, found, task.spec, task.id, (began_under, today))
        approved = _approved_as(ask) or self._judge(COMMAND, call.body, found, task.spec, task.id, (began_under,))
        if not changes and not _is_barred(task, ask, judgement, approved):
            return None
        command = msgspec.structs.replace(shown, files=found.files if shown.files else {})
        opening = Opening(command=command, judgement=judgement, is_gated=task.spec.pause_on_approval or ask is not None)
        why = () if changes else ("the policy is stricter than when it was let through", *judgement.why)
        return Obstacle(call=call, ask=ask, opening=opening, changes=(*changes, *why))

    def _in_force(self, view: View, task: Task) -> tuple[Policy, Policy]:
        kept = view.shared_document(f"{_KEPT}{task.spec.policy}") if task.spec.policy else None
        began_under = decode_policy(kept) if kept else NO_POLICY
        return began_under, self._policies.current(task.spec.workspace)

    def _judge(
        self,
        tool: str,
        body: bytes,
        surroundings: Surroundings,
        spec: Spec,
        task_id: str | None,
        policies: tuple[Policy, ...],
    ) -> Judgement:
        arguments, now = arguments_of(body), self._clock()
        judged: Judgement | None = None
        for policy in policies:
            said = policy.judge(tool, arguments, surroundings=surroundings, workspace=spec.workspace, task=task_id, now=now)
            judged = strictest(judged, said) if judged else said
        return judged or Judgement()


def _is_barred(task: Task, ask: Ask | None, judgement: Judgement, approved: Judgement) -> bool:
    """Say whether what let a call through is not enough any more."""
    if ask is None and not task.spec.pause_on_approval:
        return judgement.action is Action.NEVER
    return is_stricter(judgement, than=approved)


def _approved_as(ask: Ask | None) -> Judgement | None:
    """Return what a person's approval is worth: the terms on which it was given."""
    if ask is None:
        return None
    return Judgement(action=Action.NEVER if ask.terms.by_name else Action.PROMPT, terms=ask.terms)


# --- what a judgement does, inside a transaction ---------------------------------------------------------------------------


def keep(step: Steps, policy: Policy) -> None:
    """Keep the policy that a task begins under, once for all tasks that do."""
    body = encode_policy(policy)
    name = f"{_KEPT}{digest_of(body)}"
    if policy != NO_POLICY and step.tx.shared_document(name) is None:
        step.tx.keep_shared_document(name, body)


def enter(step: Steps, task: Task, opening: Opening, *, by: str) -> Task:
    """Let a queued task's command through, put it before a person, or turn it down."""
    match opening.way:
        case Way.RUN:
            call = step.new_call(task, opening.command, state=CallState.APPROVED, by=opening.let_through_by or by)
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
    if obstacle.opening.way is Way.REFUSE:
        return refuse(step, task, obstacle.opening)
    prompt = "; ".join(obstacle.changes)
    held = hold(step, task, obstacle.opening, prompt=prompt, instead_of=obstacle.ask)
    if obstacle.ask:
        newest = step.tx.open_asks_of(task.id)[-1]
        step.settle_ask(obstacle.ask, AskMove.WITHDRAW, text=f"replaced by {newest.id}", by=POLICY)
    return held
