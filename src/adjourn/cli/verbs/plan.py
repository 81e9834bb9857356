"""adjourn plan: show how a plan stands."""

import click

from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.core.plan.plan import Plan, Progress, progress_of
from adjourn.views.plan import drawn, say_plan
from adjourn.wiring.plans import open_plan


@click.group("plan", no_args_is_help=False)
def command() -> None:
    """Show how a plan stands."""


@verb("show")
@click.argument("plan", metavar="[PLAN]", default="plan.toml")
def show(session: Session, *, plan: str) -> None:
    """Draw the graph of a plan, and say how each of its tasks stands. Nothing is started.

    PLAN is a file, plan.toml if none is named.
    """
    found = open_plan(plan)
    session.use_store_of(found.workspace)
    progress = _progress(session, found)
    if session.wants_json:
        say_plan(session, session.controller if session.has_store else None, progress, named=plan)
    else:
        session.say(drawn(session, progress))


def _progress(session: Session, plan: Plan) -> Progress:
    if not session.has_store:
        return progress_of(plan, {})
    return session.controller.plans.progress(plan)


command.add_command(show)
