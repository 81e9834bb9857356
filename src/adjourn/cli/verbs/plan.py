"""adjourn plan: show how a plan stands."""

import sys

import click

from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.cli.terminal import columns_of
from adjourn.core.plan.document import plan_doc
from adjourn.core.plan.plan import Progress, progress_of
from adjourn.views.block import BLANK, Table
from adjourn.views.plan import graph_block, standing_blocks
from adjourn.wiring.plan_files import open_plan
from adjourn.wiring.scenes import item_hints, redacted_progress


@click.group("plan", no_args_is_help=False)
def command() -> None:
    """Show the state of a plan."""


@verb("show")
@click.argument("plan", metavar="[PLAN]", default="plan.toml")
def show(session: Session, *, plan: str) -> None:
    """Draw the graph of a plan, with the state of each task. Nothing is started.

    PLAN is a file, plan.toml if none is named.
    """
    found = open_plan(plan)
    session.find_root(start=found.workspace)
    controller = session.open_controller() if session.has_store else None
    progress = controller.plans.progress(found) if controller else progress_of(found, {})
    if session.wants_json:
        commands = session.commands
        hints = item_hints(controller, progress, commands=commands) if controller else {}
        session.print_document(plan_doc(progress, hint=commands("execute", plan), hints=hints))
    else:
        progress = without_secrets(session, progress)
        below = standing_blocks(progress, session.commands, named=plan)
        session.show([graph_of(progress), *([BLANK, *below] if below else [])])


def without_secrets(session: Session, progress: Progress) -> Progress:
    """Return how a plan stands as stdout may have it: where nobody looks, without secrets."""
    if sys.stdout.isatty():
        return progress
    return redacted_progress(progress, session.open_redactor())


def graph_of(progress: Progress) -> Table:
    """Draw the graph of a plan for stdout."""
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    columns = columns_of(sys.stdout)
    return graph_block(progress, columns=columns, has_unicode=encoding == "utf8")


command.add_command(show)
