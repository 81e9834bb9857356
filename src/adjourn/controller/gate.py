"""Judges a command by policies and files: before anything of it starts, and once more before its gate opens."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from adjourn.controller.steps import POLICY_OF, plain_command
from adjourn.core.ask import Ask
from adjourn.core.call import COMMAND, Call, Command, arguments_of, command_body, command_of
from adjourn.core.driving import files_of
from adjourn.core.errors import BadPolicy
from adjourn.core.judgement import Action, Effect, Judgement, approved_on, is_stricter
from adjourn.core.opening import Obstacle, Opening, OwnAsk, Way, way_of
from adjourn.core.policy import NO_POLICY, Policy, decode_policy, encode_policy, judge_since, open_since
from adjourn.core.reading import steps_of, words_of
from adjourn.core.surroundings import NOTHING_SEEN, Surroundings, differences, without_pins
from adjourn.core.task import Spec, Task
from adjourn.ports.desk import Clock
from adjourn.ports.store import View

_STARTED_BY_US = frozenset({"command", "agent"})  # all others run what was let through themselves

Observe = Callable[[Command], Surroundings]


class Policies(Protocol):
    """Knows which rules hold where."""

    def current(self, workspace: str, /) -> Policy:
        """Return all rules that hold for a workspace now, or raise BadPolicy: where a file is wrong, nothing runs."""
        ...


class PolicyGate:
    """Knows the policies and the files of this machine. What it finds takes effect inside a transaction."""

    def __init__(self, policies: Policies, observe: Observe, clock: Clock) -> None:
        self._policies = policies
        self._observe = observe
        self._clock = clock

    def opening(self, spec: Spec) -> Opening:
        """Look at a new task's command and judge it."""
        policy = self._policies.current(spec.workspace)
        if spec.is_driven:  # the driver is ours; what its agent wants to call is judged call by call
            kept = encode_policy(policy) if policy != NO_POLICY else None
            return Opening(command=plain_command(spec), judgement=Judgement(), is_gated=False, policy=kept)
        if policy == NO_POLICY and not spec.pause_on_approval:
            return Opening(command=plain_command(spec), judgement=Judgement(), is_gated=False)
        opening = self._opening(spec, lambda seen, body: self._judge(policy, spec, body, seen))
        return msgspec.structs.replace(opening, policy=encode_policy(policy)) if policy != NO_POLICY else opening

    def opening_again(self, view: View, task: Task) -> Opening:
        """Judge the command of a task that goes on: by the policy that it began under, and by today's where that is stricter."""
        is_free = not task.spec.pause_on_approval and self._in_force(view, task) == (NO_POLICY, NO_POLICY)
        if is_free or task.spec.is_driven:
            return Opening(command=plain_command(task.spec), judgement=Judgement(), is_gated=False)
        return self._opening(task.spec, lambda seen, body: self._judge_since(view, task, COMMAND, body, seen))

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
        """Say what the policies in force say of a call that a process itself puts before a person."""
        is_worth_a_look = tool == COMMAND and any(policy != NO_POLICY for policy in self._in_force(view, task))
        return self._judge_since(view, task, tool, body, self._observe(command_of(body)) if is_worth_a_look else NOTHING_SEEN)

    def weigh(self, view: View, task: Task, tool: str, body: bytes) -> tuple[Judgement, dict[str, str]]:
        """Say what the policies in force say of an agent's call, and which files it was judged with."""
        seen = self._seen(task, tool, body)
        return self._judge_since(view, task, tool, body, seen), seen.files if task.spec.pause_on_approval else {}

    def _seen(self, task: Task, tool: str, body: bytes) -> Surroundings:
        arguments = arguments_of(body)
        words = words_of(tool, arguments) if steps_of(tool, arguments) else ()
        if not words:
            return NOTHING_SEEN
        seen = self._observe(Command(argv=words, cwd=task.spec.workspace))
        return seen if task.spec.runner in _STARTED_BY_US else without_pins(seen)

    def directories(self, view: View, task: Task) -> tuple[str, ...]:
        """Return where an agent may read and write beside its workspace: where it might when it began, and still may."""
        return open_since(*self._in_force(view, task))

    def drift(self, view: View, task: Task, call: Call) -> tuple[str, ...]:
        """Say what has changed since an agent's call was let through: the files that it depends on, or the policy."""
        judgement, files = self.weigh(view, task, call.tool, call.body)
        ask = view.ask_numbered(task.id, call.ask) if call.ask else None
        shown = files_of(call.body)
        changes = differences(shown, files) if shown else []
        if _is_outgrown(task, ask, judgement):
            changes += ["the policy is stricter than when it was let through", *judgement.why]
        return tuple(changes)

    def effect(self, view: View, task: Task, call: Call) -> Effect:
        """Say what a second run of a command would do; where a policy is wrong, nobody knows."""
        try:
            return self.judge(view, task, COMMAND, call.body).effect
        except BadPolicy:
            return Effect.UNKNOWN

    def own_ask(self, view: View, task: Task) -> OwnAsk:
        """Return what becomes part of the ask of a process that wants its own command approved.

        Where a policy is wrong, it is asked without: that a run has ended must be written down, and the start is judged again.
        """
        command = plain_command(task.spec)
        seen = self._observe(command)
        try:
            judgement = self._judge_since(view, task, COMMAND, command_body(command), seen)
        except BadPolicy:
            judgement = Judgement()
        return OwnAsk(
            files=seen.files,
            terms=judgement.terms_of_ask,
            expires_after=judgement.expiry(task.spec.expires_after),
        )

    def obstacle(self, view: View, task: Task, call: Call) -> Obstacle | None:
        """Say why a call that was let through may not start now, if it may not."""
        if task.spec.is_driven:
            return None
        began_under, today = self._in_force(view, task)
        shown = command_of(call.body)
        # A gated command was looked at even if it has no files: not even its program may have been there.
        was_looked_at = bool(shown.files) or task.spec.pause_on_approval
        if not was_looked_at and began_under == today == NO_POLICY:
            return None
        seen = self._observe(shown)
        ask = view.ask_numbered(task.id, call.ask) if call.ask else None
        judgement = self._judge_by((began_under, today), task, COMMAND, call.body, seen)
        approved = approved_on(ask.terms) if ask else self._judge(began_under, task.spec, call.body, seen)
        changes = differences(shown.files, seen.files) if was_looked_at else []
        if _is_barred(task, ask, judgement, approved):
            changes += ["the policy is stricter than when it was let through", *judgement.why]
        if not changes:
            return None
        command = msgspec.structs.replace(shown, files=seen.files if was_looked_at else {})
        opening = Opening(command=command, judgement=judgement, is_gated=task.spec.pause_on_approval or ask is not None)
        return Obstacle(call=call, ask=ask, opening=opening, changes=tuple(changes))

    def _in_force(self, view: View, task: Task) -> tuple[Policy, Policy]:
        kept = view.shared_document(f"{POLICY_OF}{task.spec.policy}") if task.spec.policy else None
        return decode_policy(kept) if kept else NO_POLICY, self._policies.current(task.spec.workspace)

    def _judge(self, policy: Policy, spec: Spec, body: bytes, seen: Surroundings) -> Judgement:
        arguments = arguments_of(body)
        return policy.judge(COMMAND, arguments, surroundings=seen, workspace=spec.workspace, now=self._clock())

    def _judge_since(self, view: View, task: Task, tool: str, body: bytes, seen: Surroundings) -> Judgement:
        return self._judge_by(self._in_force(view, task), task, tool, body, seen)

    def _judge_by(self, in_force: tuple[Policy, Policy], task: Task, tool: str, body: bytes, seen: Surroundings) -> Judgement:
        return judge_since(
            *in_force,
            tool,
            arguments_of(body),
            surroundings=seen,
            workspace=task.spec.workspace,
            task=task.id,
            now=self._clock(),
        )


def _is_barred(task: Task, ask: Ask | None, judgement: Judgement, approved: Judgement) -> bool:
    """Say whether what let a call through is not enough any more."""
    if ask is None and not task.spec.pause_on_approval:
        return judgement.action is Action.NEVER
    return is_stricter(judgement, than=approved)


def _is_outgrown(task: Task, ask: Ask | None, judgement: Judgement) -> bool:
    """Say whether what let an agent's call through would not let it through now."""
    if ask:
        return is_stricter(judgement, than=approved_on(ask.terms))
    return way_of(judgement, is_gated=task.spec.pause_on_approval) is not Way.RUN
