"""adjourn rules: list, add and revoke always-allow rules."""

import os
from collections.abc import Iterable, Iterator, Sequence

import click

from adjourn.cli.options import DURATION, TAKE_ALL, CommandAfterDashes, verb
from adjourn.cli.session import Session
from adjourn.controller.controller import Controller
from adjourn.core.ask import Principal
from adjourn.core.authority.scopes import refuse_inside
from adjourn.core.call import arguments_of
from adjourn.core.errors import Ambiguous, Misuse, NotFound
from adjourn.core.policy.judgement import Action, Judgement
from adjourn.core.policy.policy import Allowance
from adjourn.core.text.render import visible
from adjourn.core.text.when import stamp
from adjourn.settings.allow_rules import change_allowances
from adjourn.system.machine import now
from adjourn.views.allowance import allowance_lines, tool_of
from adjourn.wiring.policies import (
    MONTH,
    LateCall,
    Wanted,
    allow,
    allowances,
    calls_of_late,
    judged_now,
    matched,
    operands_of,
    refuse_ended,
    refuse_never,
    wanted_of_ask,
    wanted_of_command,
)


@click.group("rules", no_args_is_help=False)
def command() -> None:
    """List, add and revoke always-allow rules.

    Each makes exactly one call run by itself, somewhere, until a day.
    """


# --- list -----------------------------------------------------------------------------------------


@verb("list")
def list_all(session: Session) -> None:
    """List the rules: what each matches, where, until when, and how many of the last 100 calls."""
    rules = allowances()
    late = calls_of_late(session.open_controller()) if rules and session.has_store else None
    if session.wants_json:
        session.print_document(
            {"schema_version": 1, "rules": [_document(rule, late) for rule in rules]}
        )
    elif rules:
        session.print("\n\n".join("\n".join(_lines(rule, late)) for rule in rules))
    else:
        session.print("There are no always-allow rules.")


def _document(rule: Allowance, late: list[LateCall] | None) -> dict[str, object]:
    return {
        "id": rule.id,
        "tool": tool_of(rule),
        "arguments": arguments_of(rule.call),
        "programs": rule.programs,
        "files": rule.files,
        "workspace": rule.workspace,
        "task": rule.task,
        "until": stamp(rule.until),
        "is_in_force": now() < rule.until,
        "by": rule.by,
        "at": stamp(rule.at),
        "matched": None if late is None else {"calls": matched(rule, late), "of": len(late)},
    }


def _lines(rule: Allowance, late: list[LateCall] | None) -> Iterator[str]:
    yield from allowance_lines(rule, now=now())
    if late is not None:
        calls = matched(rule, late)
        yield f"  would have matched {len(calls)} of the last {len(late)} calls{_some(calls)}"


def _some(calls: Sequence[str]) -> str:
    return f": {', '.join(calls[:3])}{', …' if len(calls) > 3 else ''}" if calls else ""  # noqa: PLR2004 -- three say enough


# --- add and revoke -------------------------------------------------------------------------------


@verb(
    "add",
    cls=CommandAfterDashes,
    options_metavar="[OPTIONS] -- COMMAND [ARGUMENT]...",
    context_settings=TAKE_ALL,
)
@click.option("--ask", metavar="ASK", help="Allow what this ask is about, instead of a command.")
@click.option(
    "--workspace", metavar="DIR", help="Only there (default: here, or where the ask's task is)."
)
@click.option("--task", metavar="ID", help="Only in that task.")
@click.option(
    "--until",
    type=DURATION,
    default=MONTH,
    metavar="TIME",
    help="How long it counts: 8h, 7d (default: 30d).",
)
@click.pass_context
def add(
    context: click.Context,
    session: Session,
    *,
    ask: str | None,
    workspace: str | None,
    task: str | None,
    until: int,
) -> None:
    """Allow exactly this COMMAND without asking, in one workspace or task, for a time."""
    controller = session.open_controller() if session.has_store else None
    by = session.principal(controller.decisions if controller else None)
    _authorise(controller, by, "rules add")
    argv: list[str] = context.meta.get("command", [])
    if context.args or bool(ask) == bool(argv):
        raise Misuse(
            "give a command after two dashes, or --ask ASK",
            way_out="adjourn rules add -- COMMAND [ARGUMENT]...",
        )
    if workspace and task:
        raise Misuse(
            "a rule is bound to a workspace or to a task, not to both",
            way_out="adjourn rules add --help",
        )
    if (ask or task) and controller is None:
        session.require_store()
    wanted = _wanted(controller, ask=ask, argv=argv, workspace=workspace, task=task)
    refuse_never(judged_now(session.root, wanted))
    rule = allow(wanted, until=until, by=by.name)
    late = calls_of_late(controller) if controller else None
    judgement = judged_now(session.root, wanted)
    if session.wants_json:
        session.print_document(
            {
                "schema_version": 1,
                "outcome": "added",
                "action": judgement.action,
                "rule": _document(rule, late),
            }
        )
    else:
        session.print(
            "\n".join(["Added.", *_lines(rule, late), *_left_open(wanted), *_in_vain(judgement)])
        )


def _left_open(wanted: Wanted) -> Iterator[str]:
    """Say which files of a new rule may change without an end to the rule."""
    if operands := operands_of(wanted):
        paths = ", ".join(map(visible, operands))
        yield f"  not pinned: {paths}: the rule holds also if the content changes"


def _in_vain(judgement: Judgement) -> Iterator[str]:
    """Say what stands in the way of a new rule."""
    if judgement.action is not Action.AUTO:
        yield f"  yet it stays {judgement.action}: {'; '.join(judgement.why)}"


def _wanted(
    controller: Controller | None,
    *,
    ask: str | None,
    argv: list[str],
    workspace: str | None,
    task: str | None,
) -> Wanted:
    bound = controller.decisions.find_task(task) if controller and task else None
    if bound:
        refuse_ended(bound)
    place = os.path.realpath(workspace) if workspace else None
    if place and not os.path.isdir(place):
        raise Misuse(f"{workspace} is not a directory", way_out="name one with --workspace DIR")
    if controller and ask:
        return wanted_of_ask(controller, ask, workspace=place, task=bound)
    return wanted_of_command(argv, workspace=place, task=bound)


@verb("revoke")
@click.argument("rules", metavar="RULE...", nargs=-1, required=True)
def revoke(session: Session, *, rules: tuple[str, ...]) -> None:
    """Revoke rules: what they allowed needs a person again."""
    controller = session.open_controller() if session.has_store else None
    _authorise(
        controller, session.principal(controller.decisions if controller else None), "rules revoke"
    )
    gone: list[str] = []

    def without(before: Sequence[Allowance]) -> Iterable[Allowance]:
        gone.extend(_the_one(text, before) for text in rules)
        return [rule for rule in before if rule.id not in gone]

    change_allowances(without)
    if session.wants_json:
        session.print_document({"schema_version": 1, "outcome": "revoked", "rules": gone})
    else:
        session.print("\n".join(f"Revoked {rule}." for rule in gone))


def _the_one(text: str, rules: Sequence[Allowance]) -> str:
    found = [rule.id for rule in rules if text and rule.id.startswith(text)]
    if not found:
        raise NotFound(f"no rule {text}", way_out="adjourn rules list")
    if len(found) > 1:
        raise Ambiguous(f"several rules begin with {text}", way_out="adjourn rules list")
    return found[0]


def _authorise(controller: Controller | None, by: Principal, verb_name: str) -> None:
    """Refuse a caller without the right, also where no store exists.

    Rules hold for all stores of the user: a run of another store may not make one either.
    """
    # Who only lists rules does without
    from adjourn.wiring.ownership import require_outside_of_all_runs

    refuse_inside(by, verb_name)
    require_outside_of_all_runs(verb_name)
    if controller:
        controller.decisions.authorise_alone(by, verb_name)


for each in (list_all, add, revoke):
    command.add_command(each)
