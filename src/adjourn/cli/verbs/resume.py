"""adjourn resume: go on with a task, with decisions or an answer if you like."""

from typing import Any

import click

from adjourn.cli.foreground import report, run_detached, supervising
from adjourn.cli.options import TASK_NAME, verb
from adjourn.cli.session import Session
from adjourn.cli.verbs._resuming import run_until_settled
from adjourn.cli.verbs._workspace import require_own_repository
from adjourn.controller.controller import Controller
from adjourn.controller.decisions import ENOUGH, require_named
from adjourn.core.errors import Misuse
from adjourn.core.resumption import PLAIN, Resumption
from adjourn.core.task import Task
from adjourn.supervision.workspace_notes import require_workspace

_LIMITS = ("max_steps", "max_tokens", "max_cost")


@verb("resume")
@click.argument("task", type=TASK_NAME, metavar="ID")
@click.argument("text", required=False)
@click.option(
    "--approve",
    multiple=True,
    metavar="TC",
    help="Approve this call; repeat it. Calls that are not named are rejected.",
)
@click.option("--reject", multiple=True, metavar="TC", help="Reject this call; repeat it.")
@click.option("--approve-all", is_flag=True, help="Approve every pending call.")
@click.option("--reject-all", is_flag=True, help="Reject every pending call.")
@click.option(
    "--answer",
    "answers",
    multiple=True,
    metavar="KEY=TEXT",
    help="Answer the question of that key; repeat it.",
)
@click.option(
    "--accept",
    is_flag=True,
    help="Accept the agent's last message as the end of its work. Nothing starts.",
)
@click.option(
    "--value", metavar="V", help="What the command gets as AUTO_APPROVAL (default: approved)."
)
@click.option("--reason", metavar="TEXT", help="Why calls are rejected.")
@click.option(
    "--input",
    metavar="JSON",
    help="JSON for an agent that was started with --resume-with, passed on unchanged.",
)
@click.option("--max-steps", metavar="N", help="Model turns until the built-in agent pauses again.")
@click.option("--max-tokens", metavar="N", help="Tokens that the whole task may use, or none.")
@click.option("--max-cost", metavar="USD", help="Dollars that the whole task may cost, or none.")
@click.option(
    "--override",
    metavar="REASON",
    help="With one --approve: why it may run although the policy says never.",
)
@click.option(
    "--detach", is_flag=True, help="Return at once; a copy of this command supervises the task."
)
@click.option("--workspace", metavar="PATH", help="The workspace, if it is not the current one.")
def command(
    session: Session, *, task: str, detach: bool, accept: bool, workspace: str | None, **words: Any
) -> int:
    """Go on with the task ID: a task id, a checkpoint id, or a unique prefix.

    TEXT answers the one open question. Where nothing is open, it is what you say next to an agent
    that was done or is paused: the task goes on in the same conversation.

    With decisions it is final: a pending call that is not named is rejected. Without any, a task
    whose asks are open is left as it is: its manifest is printed again and the exit code is 10.
    """
    limits = {name: words.pop(name) for name in _LIMITS}
    given = {name: value for name, value in limits.items() if value is not None}
    if words["input"] is not None:
        from adjourn.core.foreign import read_input  # seldom needed

        read_input(words["input"])
    resumption = Resumption(**words, limits=given)
    session.require_store()
    if accept:
        return _accepted(session, task, resumption)
    if detach:
        return run_detached(
            session, lambda controller: _queued(session, controller, task, workspace, resumption)
        )
    with supervising(session) as (controller, supervisor):
        found = _queued(
            session, controller, task, workspace, resumption, supervisor=supervisor.name
        )
        return run_until_settled(session, controller, supervisor, found)


def _accepted(session: Session, text: str, resumption: Resumption) -> int:
    if resumption != PLAIN:
        raise Misuse(
            "--accept stands alone: it answers nothing and decides nothing else",
            way_out=f"adjourn resume {text} --accept",
        )
    require_named(text)
    controller = session.open_controller()
    task = controller.decisions.find_task(text, shortest=ENOUGH)
    controller.tasks.require_newest(text, task)
    accepted = controller.tasks.accept(task.id, by=session.principal(controller.decisions))
    return report(session, controller, accepted)


def _queued(
    session: Session,
    controller: Controller,
    text: str,
    workspace: str | None,
    resumption: Resumption,
    *,
    supervisor: str | None = None,
) -> Task:
    if resumption.decides or resumption.answers_something:
        require_named(text)
    task = controller.decisions.find_task(text, shortest=ENOUGH)
    controller.tasks.require_newest(text, task)
    if task.spec.is_driven:
        from adjourn.wiring.runners import require_resumable  # seldom needed

        require_resumable(controller, task)
    require_workspace(controller, task)
    require_own_repository(session, task, verb="resume", named=workspace)
    setup: str | None = None
    if resumption.limits:
        from adjourn.wiring.runners import setup_with_limits  # seldom needed

        setup = setup_with_limits(task, resumption.limits)
    by = session.principal(controller.decisions)
    found = controller.tasks.resume(
        task.id, resumption, by=by, named=text, supervisor=supervisor, setup=setup
    )
    if session.verbose and (resumption.decides or resumption.answers_something):
        from adjourn.cli.verbs._replies import warn_receipts  # only where it is asked for

        warn_receipts(session, controller.decisions, task)
    return found
