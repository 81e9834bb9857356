"""Judges a command by policies and files.

Before anything of it starts, and once more before its gate opens.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from adjourn.controller import endings
from adjourn.controller.transaction import POLICY, Transaction, approval_of, plain_command
from adjourn.core import kept_documents
from adjourn.core.agent.calls import files_of
from adjourn.core.ask import ApprovalAsk, AskReason
from adjourn.core.call import (
    COMMAND,
    Call,
    Command,
    Json,
    arguments_of,
    command_body,
    command_of,
    digest_of,
)
from adjourn.core.errors import BadPolicy
from adjourn.core.policy.commands import steps_of, words_of
from adjourn.core.policy.judgement import Action, Effect, Judgement, approved_on, is_stricter
from adjourn.core.policy.locations import directory_of, links_among, links_in, named_paths
from adjourn.core.policy.opening import (
    NOTHING_SEEN,
    Obstacle,
    Opening,
    OwnAsk,
    Surroundings,
    Way,
    differences,
    way_of,
    without_pins,
)
from adjourn.core.policy.policy import (
    NO_POLICY,
    Policy,
    decode_policy,
    encode_policy,
    open_since,
)
from adjourn.core.states import AskMove, CallMove, CallState, Move, after, allows_ask
from adjourn.core.task import Spec, Task
from adjourn.core.trail.reason import Grounds
from adjourn.ports.store import View
from adjourn.ports.world import Clock

_NO_RULE = "nobody approved it, and no rule allows it"

# Returns where a path really leads, as the kernel follows it, for a tool of that name
Resolve = Callable[[str, str], str]


class Observe(Protocol):
    """Looks at what a command depends on."""

    def __call__(self, command: Command, workspace: str | None = None, /) -> Surroundings:
        """Return what was found.

        A call of an agent may run elsewhere than in the workspace of its task.
        """
        ...


class Policies(Protocol):
    """Knows which rules hold where."""

    def current(self, workspace: str, /) -> Policy:
        """Return all rules that hold for a workspace now, or raise BadPolicy.

        Where a file is wrong, nothing runs.
        """
        ...


class PolicyGate:
    """Knows the policies and the files of this machine.

    What it finds takes effect inside a transaction.
    """

    def __init__(
        self,
        policies: Policies,
        observe: Observe,
        clock: Clock,
        *,
        resolve: Resolve | None = None,
        runs_own_calls: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._policies = policies
        self._observe = observe
        self._clock = clock
        # Without it, a call that names a directory or a link counts as one that nobody knows
        self._resolve = resolve
        # Which runners run what was let through themselves: nobody can pin their files
        self._runs_own_calls = runs_own_calls

    def opening(self, spec: Spec) -> Opening:
        """Look at a new task's command and judge it."""
        policy = self._policies.current(spec.workspace)
        # The driver is ours; what its agent wants to call is judged call by call
        if spec.is_driven:
            kept = encode_policy(policy) if policy != NO_POLICY else None
            return Opening(
                command=plain_command(spec), judgement=Judgement(), is_gated=False, policy=kept
            )
        if policy == NO_POLICY and not spec.pause_on_approval:
            return Opening(command=plain_command(spec), judgement=Judgement(), is_gated=False)
        opening = self._opening(spec, lambda seen, body: self._judge(policy, spec, body, seen))
        return (
            msgspec.structs.replace(opening, policy=encode_policy(policy))
            if policy != NO_POLICY
            else opening
        )

    def opening_again(self, view: View, task: Task) -> Opening:
        """Judge the command of a task that goes on.

        By the policy that it began under, and by today's where that is stricter.
        """
        is_free = not task.spec.pause_on_approval and self._in_force(view, task) == (
            NO_POLICY,
            NO_POLICY,
        )
        if is_free or task.spec.is_driven:
            return Opening(command=plain_command(task.spec), judgement=Judgement(), is_gated=False)
        return self._opening(
            task.spec, lambda seen, body: self._judge_since(view, task, COMMAND, body, seen)
        )

    def _opening(self, spec: Spec, judge: Callable[[Surroundings, bytes], Judgement]) -> Opening:
        command = plain_command(spec)
        seen = self._observe(command)
        looked_at = msgspec.structs.replace(command, files=seen.files)
        return Opening(
            command=looked_at if spec.pause_on_approval else command,
            judgement=judge(seen, command_body(looked_at)),
            is_gated=spec.pause_on_approval,
        )

    def look(self, command: Command) -> Surroundings:
        """Return what a command depends on, as it is now."""
        return self._observe(command)

    def judge(self, view: View, task: Task, tool: str, body: bytes) -> Judgement:
        """Judge a call that a process itself puts before a person, by the policies in force."""
        is_worth_a_look = tool == COMMAND and any(
            policy != NO_POLICY for policy in self._in_force(view, task)
        )
        return self._judge_since(
            view,
            task,
            tool,
            body,
            self._observe(command_of(body)) if is_worth_a_look else NOTHING_SEEN,
        )

    def weigh(
        self, view: View, task: Task, tool: str, body: bytes
    ) -> tuple[Judgement, dict[str, str]]:
        """Judge an agent's call by the policies in force, and return its files with that."""
        seen = self._seen(task, tool, body)
        return self._judge_since(
            view, task, tool, body, seen
        ), seen.files if task.spec.pause_on_approval else {}

    def _seen(self, task: Task, tool: str, body: bytes) -> Surroundings:
        """Look at what an agent's call depends on.

        Its programs and files in its own directory, and where links lead.
        """
        arguments, workspace = arguments_of(body), task.spec.workspace
        directory = directory_of(tool, arguments, workspace=workspace)
        words = words_of(tool, arguments) if steps_of(tool, arguments) else ()
        seen = (
            self._observe(Command(argv=words, cwd=directory or workspace), workspace)
            if words
            else NOTHING_SEEN
        )
        if words and self._runs_own_calls(task.spec.runner):
            seen = without_pins(seen)
        real = self._real_paths(tool, arguments, workspace)
        links = links_among(tool, arguments, real, workspace=workspace)
        return msgspec.structs.replace(seen, files=seen.files | links, real=real) if real else seen

    def _real_paths(
        self, tool: str, arguments: Mapping[str, Json], workspace: str
    ) -> dict[str, str]:
        """Return where the directories and files that a call names really are."""
        named = named_paths(tool, arguments, workspace=workspace) if self._resolve else []
        return (
            {path: self._resolve(path, tool) for path in (workspace, *named)}
            if self._resolve and named
            else {}
        )

    def directories(self, view: View, task: Task) -> tuple[str, ...]:
        """Return where an agent may read and write beside its workspace.

        Where it might when it began, and still may.
        """
        return open_since(*self._in_force(view, task))

    def drift(self, view: View, task: Task, call: Call, grounds: Grounds) -> tuple[str, ...]:
        """Say what has changed since an agent's call was let through.

        The files that it depends on, or the policy.
        """
        judgement, files = self.weigh(view, task, call.tool, call.body)
        ask = approval_of(view, call)
        shown = files_of(call.body)
        # A call that a person edited was not looked at. Where links lead counts for it all the
        # same.
        changes = differences(shown, files) if shown else differences({}, links_in(files))
        if grounds is Grounds.RULE and judgement.action is not Action.AUTO:
            changes += [_NO_RULE, *judgement.why]
        elif _is_outgrown(ask, judgement):
            changes += ["the policy is stricter than when it was let through", *judgement.why]
        return tuple(changes)

    def effect(self, view: View, task: Task, call: Call) -> Effect:
        """Say what a second run of a command would do; where a policy is wrong, nobody knows."""
        try:
            return self.judge(view, task, COMMAND, call.body).effect
        except BadPolicy:
            return Effect.UNKNOWN

    def own_ask(self, view: View, task: Task, argv: Sequence[str] = ()) -> OwnAsk:
        """Return what becomes part of the ask of a process that wants its own command approved.

        Or `argv`, the command that resumes it.

        Where a policy is wrong, it is asked without: that a run has ended must be written down, and
        the start is judged again.
        """
        command = plain_command(task.spec)
        if argv:
            command = msgspec.structs.replace(command, argv=tuple(argv))
        seen = self._observe(command)
        try:
            judgement = self._judge_since(view, task, COMMAND, command_body(command), seen)
        except BadPolicy:
            judgement = Judgement()
        return OwnAsk(
            files=seen.files,
            reasons=judgement.reasons_to_ask if judgement.terms_of_ask.override else (),
            terms=judgement.terms_of_ask,
            expires_after=judgement.expiry(task.spec.expires_after),
            remind_after=judgement.remind_after,
            escalate_to=judgement.escalate_to,
        )

    def obstacle(self, view: View, task: Task, call: Call, grounds: Grounds) -> Obstacle | None:
        """Say why a call that was let through may not start now, if it may not."""
        if grounds is Grounds.DRIVER:
            return None
        began_under, today = self._in_force(view, task)
        shown = command_of(call.body)
        # A gated command was looked at even if it has no files: not even its program may have been
        # there.
        was_looked_at = bool(shown.files) or task.spec.pause_on_approval
        if not was_looked_at and began_under == today == NO_POLICY and grounds is not Grounds.RULE:
            return None
        seen = self._observe(shown)
        ask = approval_of(view, call)
        judgement = self._judge_by((began_under, today), task, COMMAND, call.body, seen)
        approved = (
            approved_on(ask.terms_met)
            if ask
            else self._judge(began_under, task.spec, call.body, seen)
        )
        changes = differences(shown.files, seen.files) if was_looked_at else []
        if grounds is Grounds.RULE and judgement.action is not Action.AUTO:
            changes += [_NO_RULE, *judgement.why]
        elif _is_barred(ask, judgement, approved, grounds):
            changes += ["the policy is stricter than when it was let through", *judgement.why]
        if not changes:
            return None
        command = msgspec.structs.replace(shown, files=seen.files if was_looked_at else {})
        is_gated = grounds is not Grounds.UNGATED or task.spec.pause_on_approval
        opening = Opening(command=command, judgement=judgement, is_gated=is_gated)
        return Obstacle(call=call, ask=ask, opening=opening, changes=tuple(changes))

    def _in_force(self, view: View, task: Task) -> tuple[Policy, Policy]:
        kept = kept_documents.POLICY.read(view, task.spec.policy) if task.spec.policy else None
        return decode_policy(kept) if kept else NO_POLICY, self._policies.current(
            task.spec.workspace
        )

    def _judge(self, policy: Policy, spec: Spec, body: bytes, seen: Surroundings) -> Judgement:
        # A run without a policy starts without what judges (bench resume)
        from adjourn.core.policy.judge import judge

        arguments = arguments_of(body)
        seen = self._with_real_paths(COMMAND, arguments, seen, spec.workspace)
        return judge(
            policy,
            COMMAND,
            arguments,
            surroundings=seen,
            workspace=spec.workspace,
            now=self._clock(),
        )

    def _with_real_paths(
        self, tool: str, arguments: Mapping[str, Json], seen: Surroundings, workspace: str
    ) -> Surroundings:
        real = {} if seen.real else self._real_paths(tool, arguments, workspace)
        return msgspec.structs.replace(seen, real=real) if real else seen

    def _judge_since(
        self, view: View, task: Task, tool: str, body: bytes, seen: Surroundings
    ) -> Judgement:
        return self._judge_by(self._in_force(view, task), task, tool, body, seen)

    def _judge_by(
        self,
        in_force: tuple[Policy, Policy],
        task: Task,
        tool: str,
        body: bytes,
        seen: Surroundings,
    ) -> Judgement:
        # A run without a policy starts without what judges (bench resume)
        from adjourn.core.policy.judge import judge_since

        arguments = arguments_of(body)
        return judge_since(
            *in_force,
            tool,
            arguments,
            surroundings=self._with_real_paths(tool, arguments, seen, task.spec.workspace),
            workspace=task.spec.workspace,
            task=task.id,
            now=self._clock(),
        )


def _is_barred(
    ask: ApprovalAsk | None, judgement: Judgement, approved: Judgement, grounds: Grounds
) -> bool:
    """Say whether what let a call through is not enough any more."""
    if ask is None and grounds is Grounds.UNGATED:
        return judgement.action is Action.NEVER
    return is_stricter(judgement, than=approved)


def _is_outgrown(ask: ApprovalAsk | None, judgement: Judgement) -> bool:
    """Say whether what let an agent's call through would not let it through now."""
    if ask:
        return is_stricter(judgement, than=approved_on(ask.terms_met))
    return way_of(judgement, is_gated=False) is not Way.RUN


_LONGEST = 500  # characters of a reason in the trail
GATE = "gate"  # stands where a run that never had a process has no supervisor


def under_policy(tx: Transaction, spec: Spec, opening: Opening) -> Spec:
    """Keep the policy that a task begins under, and return a spec that names it.

    Tasks under the same policy share one document.
    """
    if opening.policy is None:
        return spec
    digest = digest_of(opening.policy)
    if kept_documents.POLICY.read(tx.rows, digest) is None:
        kept_documents.POLICY.keep(tx.rows, opening.policy, digest)
    return msgspec.structs.replace(spec, policy=digest)


def let_through_by(opening: Opening, by: str) -> str:
    """Return who let a command run: the policy, or the requester, who wanted no questions."""
    return POLICY if opening.is_let_through_by_policy else by


def enter(tx: Transaction, task: Task, opening: Opening, *, by: str) -> Task:
    """Let a queued task's command through, put it before a person, or turn it down."""
    match opening.way:
        case Way.RUN:
            call = tx.new_call(
                task, opening.command, state=CallState.APPROVED, by=let_through_by(opening, by)
            )
            tx.tell(
                task.id,
                "call_let_through",
                by=call.approved_by or by,
                call=call.number,
                digest=call.digest,
            )
            return tx.save(task, calls=call.number, next_call=call.number)
        case Way.ASK:
            return hold(tx, task, opening, prompt="it needs approval before it starts")
        case Way.REFUSE:
            return refuse(tx, task, opening)


def hold(
    tx: Transaction,
    task: Task,
    opening: Opening,
    *,
    prompt: str,
    instead_of: ApprovalAsk | None = None,
) -> Task:
    """Put a queued task's command before a person instead of starting it.

    A run that ends where it begins, without a process.
    """
    started = tx.save(task, state=after(task.state, Move.START), runs=task.runs + 1, next_call=None)
    run = tx.new_run(task, call=task.calls + 1, supervisor=GATE)
    return endings.ask_for_approval(
        tx,
        started,
        run,
        opening.command,
        prompt=prompt,
        why=AskReason(reasons=opening.judgement.reasons_to_ask),
        manifest=instead_of.manifest if instead_of else None,
        gate=instead_of.gate if instead_of else True,
        terms=opening.judgement.terms_of_ask,
        expires_after=opening.judgement.expiry(task.spec.expires_after),
        remind_after=opening.judgement.remind_after,
        escalate_to=opening.judgement.escalate_to,
        replaces=instead_of.id if instead_of else None,
    )


def refuse(tx: Transaction, task: Task, opening: Opening) -> Task:
    """Fail a queued task that the policy never allows."""
    call = tx.new_call(task, opening.command, state=CallState.PENDING, by=None)
    tx.move_call(task.id, call.number, CallMove.REJECT)
    why = "; ".join(opening.judgement.why)
    message = (
        f"the policy never allows this command: {why}"
        if why
        else "the policy never allows this command"
    )
    failed = tx.save(
        task, state=after(task.state, Move.FAIL), message=message, next_call=None, calls=call.number
    )
    tx.tell(failed.id, "task_refused", by=POLICY, call=call.number, digest=call.digest)
    tx.wake_parent(failed)
    return failed


def stop(tx: Transaction, task: Task, obstacle: Obstacle) -> Task:
    """Take back what was let through, and ask again; the new ask says what is different."""
    tx.move_call(task.id, obstacle.call.number, CallMove.WITHDRAW)
    tx.tell(
        task.id,
        "start_refused",
        call=obstacle.call.number,
        why="; ".join(obstacle.changes)[:_LONGEST],
    )
    for ask in tx.rows.open_asks_of(task.id):  # a task that is truly queued has none
        if obstacle.ask is None or ask.id != obstacle.ask.id:
            tx.withdraw(ask)
    task = tx.rows.task(task.id)
    if obstacle.opening.way is Way.REFUSE:
        return refuse(tx, task, obstacle.opening)
    prompt = "; ".join(obstacle.changes)
    held = hold(tx, task, obstacle.opening, prompt=prompt, instead_of=obstacle.ask)
    if obstacle.ask and allows_ask(obstacle.ask.state, AskMove.WITHDRAW):
        newest = tx.rows.open_asks_of(task.id)[-1]
        tx.settle_ask(obstacle.ask, AskMove.WITHDRAW, text=f"replaced by {newest.id}", by=POLICY)
    return held
