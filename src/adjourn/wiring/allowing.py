"""Makes always-allow rules, and says which calls of late they would have matched."""

import os
from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec

from adjourn.controller.whole import Controller
from adjourn.core.call import COMMAND, Call, Json, arguments_of, portable
from adjourn.core.errors import BadPolicy, Conflict, Misuse
from adjourn.core.judgement import Judgement
from adjourn.core.judging import allowed_call
from adjourn.core.policy import Allowance
from adjourn.core.reading import all_steps, programs_of, steps_of
from adjourn.core.render import visible
from adjourn.core.states import ENDED
from adjourn.core.surroundings import Surroundings
from adjourn.core.task import Milliseconds, Task
from adjourn.core.toml import Problem
from adjourn.wiring import new_id, now
from adjourn.wiring.explanation import explained, look_around
from adjourn.wiring.policies import rules_path
from adjourn.wiring.rules import change_allowances, read_allowances

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
    return Wanted(tool=COMMAND, arguments={"argv": words}, workspace=place, task=task.id if task else None)


def wanted_of_ask(controller: Controller, text: str, *, workspace: str | None, task: Task | None) -> Wanted:
    """Return what an ask is about; only what stands before a gate can ever run by itself."""
    ask = controller.find_ask(text)
    if not ask.gate or ask.call is None:
        raise Misuse(f"ask {ask.id} is a process's own question, which no rule answers", way_out=f"adjourn show {ask.task_id}")
    with controller.store.read() as view:
        call, owner = view.call(ask.task_id, ask.call), view.task(ask.task_id)
    place = (task or owner).spec.workspace if task or not workspace else workspace
    return Wanted(tool=call.tool, arguments=_deciding(call), workspace=place, task=task.id if task else None)


def _deciding(call: Call) -> dict[str, Json]:
    return arguments_of(allowed_call(call.tool, arguments_of(call.body)))


def allow(wanted: Wanted, *, until: Milliseconds, by: str) -> Allowance:
    """Write down a rule for exactly this call, or say why there cannot be one."""
    if not 0 < until <= _LONGEST:
        raise Misuse("a rule counts for some time, and for a year at most", way_out=_HELP)
    moment = now()
    seen = _seen(wanted)
    rule = Allowance(
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
    change_allowances(lambda before: [*before, rule])
    return rule


def operands_of(wanted: Wanted) -> list[str]:
    """Return the files that a call names and whose content no rule pins: what they hold may change, and the rule still holds."""
    seen = look_around(wanted.tool, wanted.arguments, wanted.workspace)
    known = {*seen.content, *seen.programs.values(), *(each for found in seen.readers.values() for each in found)}
    known.update(each for found in seen.searched.values() for each in found)
    return [path for path in seen.files if os.path.realpath(path) not in known]


def _seen(wanted: Wanted) -> Surroundings:
    """Look at the programs of a call; one that nothing could make auto is refused."""
    step = steps_of(wanted.tool, wanted.arguments)
    unread = [why for each in all_steps(step) for why in each.unread] if step else []
    if unread:
        raise Misuse(f"no rule can make this run by itself: {unread[0]}", way_out="put it into a script, and allow that")
    seen = look_around(wanted.tool, wanted.arguments, wanted.workspace)
    for name in programs_of(wanted.tool, wanted.arguments):
        if name not in seen.programs:
            raise Misuse(f"there is no program {visible(name)}", way_out="say it where the command would run")
    return seen


def judged_now(root: str, wanted: Wanted) -> Judgement:
    """Say what the policies make of a call now that there is a rule for it."""
    found = explained(root, wanted.workspace, wanted.tool, wanted.arguments, task=wanted.task, now=now())
    return found.explanation.judgement


def refuse_ended(task: Task) -> None:
    """Refuse a rule for a task that is over."""
    if task.state in ENDED:
        raise Conflict(f"task {task.id} is {task.state}: a rule for it would match nothing", way_out=_HELP)


def calls_of_late(controller: Controller) -> list[LateCall]:
    """Return the newest calls of a store."""
    with controller.store.read() as view:
        newest = ((task, call) for task in view.tasks(limit=_OF_LATE) for call in reversed(view.calls(task.id)))
        return [_late_call(task, call) for task, call in islice(newest, _OF_LATE)]


def _late_call(task: Task, call: Call) -> LateCall:
    return LateCall(
        id=call.id, task=task.id, workspace=task.spec.workspace, call=allowed_call(call.tool, arguments_of(call.body))
    )


def matched(rule: Allowance, calls: Sequence[LateCall]) -> list[str]:
    """Return those that a rule would have matched, by their words and their place."""
    return [
        each.id
        for each in calls
        if each.call == rule.call and (rule.task == each.task if rule.task else rule.workspace == each.workspace)
    ]
