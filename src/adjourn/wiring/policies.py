"""Puts together what judges a command: the policies, and a look at what it depends on."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from adjourn.controller.controller import Controller
from adjourn.core.ask import ApprovalAsk
from adjourn.core.call import COMMAND, Call, Command, Json, arguments_of, portable
from adjourn.core.errors import BadPolicy, Conflict, Misuse, NotAllowed, UnreadableRow
from adjourn.core.policy.commands import SHELL_TOOLS, all_steps, programs_of, steps_of, words_of
from adjourn.core.policy.judge import allowed_call, explain
from adjourn.core.policy.judgement import Action, Judgement
from adjourn.core.policy.locations import directory_of, named_paths
from adjourn.core.policy.opening import NOTHING_SEEN, Surroundings
from adjourn.core.policy.policy import Allowance
from adjourn.core.states import ENDED
from adjourn.core.task import Milliseconds, Task
from adjourn.core.text.render import visible
from adjourn.core.text.toml import Problem
from adjourn.settings.allow_rules import change_allowances, read_allowances
from adjourn.settings.policies import FilePolicies, origins
from adjourn.settings.policy_text import rules_path
from adjourn.system.machine import new_id, now
from adjourn.views.policy import Explained
from adjourn.wiring.surroundings import observe, resolve


def explained(
    root: str,
    workspace: str,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    task: str | None = None,
    now: Milliseconds,
) -> Explained:
    """Judge a call in a workspace, and say what led to it."""
    policy = FilePolicies(root).current(workspace)
    seen = look_around(tool, arguments, workspace)
    explanation = explain(
        policy, tool, arguments, surroundings=seen, workspace=workspace, task=task, now=now
    )
    return Explained(
        tool=tool, explanation=explanation, policy=policy, origins=tuple(origins(root, workspace))
    )


def look_around(tool: str, arguments: Mapping[str, Json], workspace: str) -> Surroundings:
    """Find the programs of a call, be it a command or a shell text of another tool."""
    named = named_paths(tool, arguments, workspace=workspace)
    real = {path: resolve(path, tool) for path in (workspace, *named)} if named else {}
    is_command = tool == COMMAND or tool.casefold() in SHELL_TOOLS
    words = words_of(tool, arguments) if is_command else ()
    directory = directory_of(tool, arguments, workspace=workspace) or workspace
    seen = observe(Command(argv=words, cwd=directory), workspace) if words else NOTHING_SEEN
    return msgspec.structs.replace(seen, real=real)


MONTH: Milliseconds = 30 * 86_400_000
_LONGEST: Milliseconds = 366 * 86_400_000
_OF_LATE = 100
_HELP = "adjourn rules add --help"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The call that somebody wants to allow, and where."""

    tool: str
    arguments: dict[str, Any]
    workspace: str
    task: str | None = None


class LateCall(msgspec.Struct, frozen=True, kw_only=True):
    """One of the newest calls, as far as a rule looks at it."""

    id: str
    task: str
    workspace: str
    call: bytes


def allowances() -> tuple[Allowance, ...]:
    """Return all always-allow rules, also those that are over."""
    problems: list[Problem] = []
    found = read_allowances(rules_path(), problems) if os.path.lexists(rules_path()) else ()
    if problems:
        raise BadPolicy(str(problems[0]), way_out="adjourn policy check")
    return found


def wanted_of_command(argv: Sequence[str], *, workspace: str | None, task: Task | None) -> Wanted:
    """Return what a command line means, in a workspace or in a task."""
    place = task.spec.workspace if task else workspace or os.path.realpath(os.getcwd())
    words = [msgspec.to_builtins(portable(word)) for word in argv]
    return Wanted(
        tool=COMMAND, arguments={"argv": words}, workspace=place, task=task.id if task else None
    )


def wanted_of_ask(
    controller: Controller, text: str, *, workspace: str | None, task: Task | None
) -> Wanted:
    """Return what an ask is about; only what stands before a gate can ever run by itself."""
    ask = controller.decisions.find_ask(text)
    if not isinstance(ask, ApprovalAsk) or not ask.gate:
        raise Misuse(
            f"ask {ask.id} is a process's own question, which no rule answers",
            way_out=f"adjourn show {ask.task_id}",
        )
    with controller.store.read() as view:
        call, owner = view.call(ask.task_id, ask.call), view.task(ask.task_id)
    place = (task or owner).spec.workspace if task or not workspace else workspace
    return Wanted(
        tool=call.tool, arguments=_deciding(call), workspace=place, task=task.id if task else None
    )


def _deciding(call: Call) -> dict[str, Json]:
    return arguments_of(allowed_call(call.tool, arguments_of(call.body)))


def allow(wanted: Wanted, *, until: Milliseconds, by: str) -> Allowance:
    """Write down a rule for exactly this call, or say why there cannot be one."""
    rule = allowance_of(wanted, until=until, by=by)
    keep_allowance(rule)
    return rule


def keep_allowance(rule: Allowance) -> None:
    """Write down a rule that a person has seen."""
    change_allowances(lambda before: [*before, rule])


def allowance_of(wanted: Wanted, *, until: Milliseconds, by: str) -> Allowance:
    """Return the rule for exactly this call; nothing is written down."""
    if not 0 < until <= _LONGEST:
        raise Misuse("a rule counts for some time, and for a year at most", way_out=_HELP)
    moment = now()
    seen = _seen(wanted)
    return Allowance(
        id=new_id(),
        call=allowed_call(wanted.tool, wanted.arguments),
        programs=seen.programs,
        files=seen.content,
        workspace=None if wanted.task else wanted.workspace,
        task=wanted.task,
        until=moment + until,
        by=by,
        at=moment,
    )


def operands_of(wanted: Wanted) -> list[str]:
    """Return the files that a call names and whose content no rule pins.

    What they hold may change, and the rule still holds.
    """
    seen = look_around(wanted.tool, wanted.arguments, wanted.workspace)
    known = {
        *seen.content,
        *seen.programs.values(),
        *(each for found in seen.readers.values() for each in found),
    }
    known.update(each for found in seen.searched.values() for each in found)
    return [path for path in seen.files if os.path.realpath(path) not in known]


def _seen(wanted: Wanted) -> Surroundings:
    """Look at the programs of a call; one that nothing could make auto is refused."""
    step = steps_of(wanted.tool, wanted.arguments)
    unread = [why for each in all_steps(step) for why in each.unread] if step else []
    if unread:
        raise Misuse(
            f"no rule can make this run by itself: {unread[0]}",
            way_out="put it into a script, and allow that",
        )
    seen = look_around(wanted.tool, wanted.arguments, wanted.workspace)
    for name in programs_of(wanted.tool, wanted.arguments):
        if name not in seen.programs:
            raise Misuse(
                f"there is no program {visible(name)}", way_out="say it where the command would run"
            )
    return seen


def judged_now(root: str, wanted: Wanted) -> Judgement:
    """Return how the policies judge a call now that a rule for it exists."""
    found = explained(
        root, wanted.workspace, wanted.tool, wanted.arguments, task=wanted.task, now=now()
    )
    return found.explanation.judgement


def refuse_never(judgement: Judgement) -> None:
    """Refuse a rule for what the policy never allows: it would change nothing."""
    if judgement.action is Action.NEVER:
        raise NotAllowed(
            f"{judgement.reasons_to_ask[0]}; an always-allow rule does not override that",
            way_out="adjourn policy check",
        )


def refuse_ended(task: Task) -> None:
    """Refuse a rule for a task that is over."""
    if task.state in ENDED:
        raise Conflict(
            f"task {task.id} is {task.state}: a rule for it would match nothing", way_out=_HELP
        )


def calls_of_late(controller: Controller) -> list[LateCall]:
    """Return the newest calls of a store."""
    with controller.store.read() as view:
        found: list[LateCall] = []
        for task in view.tasks(limit=_OF_LATE):
            try:
                found += [_late_call(task, call) for call in reversed(view.calls(task.id))]
            except UnreadableRow as error:
                error.note_in(view.unreadable)
            if len(found) >= _OF_LATE:
                break
        return found[:_OF_LATE]


def _late_call(task: Task, call: Call) -> LateCall:
    return LateCall(
        id=call.id,
        task=task.id,
        workspace=task.spec.workspace,
        call=allowed_call(call.tool, arguments_of(call.body)),
    )


def matched(rule: Allowance, calls: Sequence[LateCall]) -> list[str]:
    """Return those that a rule would have matched, by their words and their place."""
    return [
        each.id
        for each in calls
        if each.call == rule.call
        and (rule.task == each.task if rule.task else rule.workspace == each.workspace)
    ]
