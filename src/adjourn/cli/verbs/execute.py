"""adjourn execute: execute a plan."""

from collections.abc import Iterator

import click

from adjourn.cli.foreground import supervising
from adjourn.cli.options import verb
from adjourn.cli.screen import Screen
from adjourn.cli.session import Session
from adjourn.cli.verbs._reviewing import may_review, review_now
from adjourn.cli.verbs.run import enclosing_run
from adjourn.controller.controller import Controller
from adjourn.core.plan.plan import Progress, Stand
from adjourn.core.states import ENDED
from adjourn.core.task import Task
from adjourn.supervision.plan import Execution
from adjourn.supervision.supervisor import Watcher
from adjourn.system.signals import Signals, deferred_signals
from adjourn.views.next_step import command as next_command
from adjourn.views.plan import report_plan
from adjourn.wiring.plans import executing, open_plan, specs_of


@verb("execute")
@click.argument("plan", metavar="[PLAN]", default="plan.toml")
@click.option(
    "--review",
    is_flag=True,
    help="Stop after each task for a person to look at its work, whatever the plan says.",
)
@click.option(
    "--anew",
    is_flag=True,
    help="Begin all tasks again; those of before must have ended, and stay in the history.",
)
def command(session: Session, *, plan: str, review: bool, anew: bool) -> int:
    """Execute the tasks of PLAN, one at a time, each when those that it needs have succeeded.

    It exits 0 when all have succeeded, 10 when a person is needed, 1 when one failed and nothing else can go on. Ctrl+C
    pauses the task that runs, and starts no other. Said again, it goes on with what is ready; what was begun is not begun
    twice. PLAN is a file, plan.toml if none is named:

    \b
    [[task]]
    id = "build"
    command = ["make", "all"]

    \b
    [[task]]
    id = "notes"
    runner = "claude"
    prompt = "Write the release notes."
    needs = ["build"]
    """  # noqa: D301 -- click keeps the lines of a paragraph that begins with a backspace
    found = open_plan(plan)
    session.use_store_of(found.workspace)
    specs = specs_of(found, review=review, parent_run=enclosing_run(session))
    with (
        supervising(session) as (controller, supervisor),
        executing(session.root, found),
        deferred_signals() as signals,
    ):
        by = controller.decisions.principal(inside_run=session.inside_run)
        if anew:
            controller.plans.begin_plan_anew(found.path, by=by)
        onlooker = Stage(session, controller)
        execution = Execution(controller, supervisor, found, specs=specs, by=by, onlooker=onlooker)
        for note in _notes(session, execution.progress()):
            session.warn(f"adjourn: {note}")
        progress = execution.execute_ready(signals)
        _leave_open(session, controller, progress)
        return report_plan(session, controller, progress, named=plan)


def _notes(session: Session, progress: Progress) -> Iterator[str]:
    """Say where a plan has changed and what was begun is not begun again for it."""
    for stand in progress.stands:
        if not stand.is_changed or stand.task is None:
            continue
        if stand.can_start:
            yield f"{stand.item.id} begins anew: its words have changed since task {stand.task.id} came to nothing"
        elif stand.task.state in ENDED:
            yield f"{stand.item.id} is done, and its words have changed since: give it another id to have it done again"
        else:
            way = next_command(session, "cancel", stand.task.id)
            yield f"{stand.item.id} goes on as it was begun; its words have changed since. To begin it anew: {way}"


def _leave_open(session: Session, controller: Controller, progress: Progress) -> None:
    """Inside a run: let that one wait for what the plan has not done."""
    outer = enclosing_run(session)
    for stand in progress.stands if outer else ():
        if outer and stand.task and stand.task.state not in ENDED:
            controller.tasks.leave_open(outer, stand.task)


class Stage:
    """Shows a plan at work."""

    def __init__(self, session: Session, controller: Controller) -> None:
        self._session = session
        self._controller = controller
        self._screen: Screen | None = None

    def begins(self, stand: Stand, task: Task) -> Watcher | None:
        """Say which task is next, and show what it prints."""
        if not self._session.wants_json:
            self._session.say(f"[{stand.item.id}] task {task.id}")
            self._session.flush()
        self._screen = Screen(self._session)
        return self._screen.follow if self._screen.is_wanted else None

    def left(self, stand: Stand, task: Task) -> None:
        """Show the rest of what it printed, and how it stands."""
        if self._screen:
            self._screen.close()
        self._screen = None
        if not self._session.wants_json:
            self._session.say(f"[{stand.item.id}] {task.state}")
            self._session.flush()

    def reviews(self, task: Task, signals: Signals) -> bool:
        """Have the person at the terminal review a task's work, if one is there."""
        return may_review(self._session) and review_now(
            self._session, self._controller, task, signals
        )
