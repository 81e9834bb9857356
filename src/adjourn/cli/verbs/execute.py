"""adjourn execute: execute a plan."""

import click

from adjourn.cli.foreground import standing, supervising
from adjourn.cli.options import verb
from adjourn.cli.screen import Screen
from adjourn.cli.session import Session
from adjourn.cli.terminal import flush
from adjourn.cli.verbs._reviewing import can_review, review_now
from adjourn.cli.verbs.plan import graph_of, without_secrets
from adjourn.cli.verbs.run import ungated_line
from adjourn.controller.controller import Controller
from adjourn.core import exits
from adjourn.core.ask import Principal
from adjourn.core.plan.document import plan_doc
from adjourn.core.plan.plan import Progress, Stand
from adjourn.core.states import ENDED
from adjourn.core.task import Task
from adjourn.process.ancestry import parent_run_in
from adjourn.supervision.plan_execution import Execution
from adjourn.supervision.supervisor import Watcher
from adjourn.system.poll import Signals, deferred_signals
from adjourn.views.block import BLANK
from adjourn.views.plan import changes_since_start, plan_blocks
from adjourn.wiring.plan_files import executing, open_plan, specs_of
from adjourn.wiring.scenes import item_hints, note_paused_items

_EXIT_CODES = {"completed": exits.COMPLETED, "paused": exits.PAUSED, "failed": exits.FAILED}


@verb("execute")
@click.argument("plan", metavar="[PLAN]", default="plan.toml")
@click.option(
    "--review",
    is_flag=True,
    help="Stop after each task for a person to review its work, whatever the plan says.",
)
@click.option(
    "--start-over",
    is_flag=True,
    help="Start all tasks again. The earlier ones must have ended; they stay in the history.",
)
def command(session: Session, *, plan: str, review: bool, start_over: bool) -> int:
    """Execute the tasks of PLAN, one at a time, each when those that it needs have succeeded.

    It exits 0 when all have succeeded, 10 when a person is needed, 1 when one failed and nothing
    else can go on. Ctrl+C pauses the task that runs, and starts no other. Run it again to go on
    with what is ready; no task starts twice. PLAN is a file, plan.toml if none is
    named:

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
    session.find_root(start=found.workspace)
    outer = parent_run_in(session.root)
    specs = specs_of(found, review=review, parent_run=outer)
    with (
        supervising(session) as (controller, supervisor),
        executing(session.root, found),
        deferred_signals() as signals,
    ):
        by = session.principal(controller.decisions)
        if start_over:
            controller.plans.start_plan_over(found.path, by=by)
        display = PlanDisplay(session, controller, by)
        execution = Execution(controller, supervisor, found, specs=specs, by=by, observer=display)
        free = {
            each.runner for each in specs.values() if each.prompt and not each.pause_on_approval
        }
        for runner in sorted(free):
            session.warn(ungated_line(runner))
        for note in changes_since_start(execution.progress(), session.commands):
            session.warn(f"adjourn: {note}")
        progress = execution.execute_ready(signals)
        for stand in progress.stands if outer else ():
            # Inside a run, that one waits for what the plan has not done
            if outer and stand.task and stand.task.state not in ENDED:
                controller.tasks.leave_open(outer, stand.task)
        return _report(session, controller, progress, named=plan)


def _report(session: Session, controller: Controller, progress: Progress, *, named: str) -> int:
    """Write the manifests of what is paused, print how the plan stands, return the exit code."""
    scenes = note_paused_items(controller, progress)
    for scene in scenes:
        session.write_manifest(scene)
    if session.wants_json:
        hints = item_hints(controller, progress, commands=session.commands)
        hint = session.commands("execute", named)
        session.print_document(plan_doc(progress, hint=hint, hints=hints))
        return _EXIT_CODES[progress.outcome]
    for scene in scenes:
        if len(scenes) > 1:
            session.print(f"[{scene.task.spec.item}]")
        session.show([*standing(session, scene, now=controller.now()), BLANK])
    progress = without_secrets(session, progress)
    next_blocks = plan_blocks(progress, session.commands, named=named)
    session.show([graph_of(progress), BLANK, *next_blocks])
    return _EXIT_CODES[progress.outcome]


class PlanDisplay:
    """Shows a plan at work."""

    def __init__(self, session: Session, controller: Controller, by: Principal) -> None:
        self._session = session
        self._controller = controller
        self._by = by
        self._screen: Screen | None = None

    def begins(self, stand: Stand, task: Task) -> Watcher | None:
        """Print which task is next, and show what it prints."""
        session = self._session
        if not session.wants_json:
            session.print(f"[{stand.item.id}] task {task.id}")
            flush()
        self._screen = Screen(wants_json=session.wants_json, verbose=session.verbose)
        return self._screen.follow if self._screen.is_wanted else None

    def left(self, stand: Stand, task: Task) -> None:
        """Show the rest of what it printed, and how it stands."""
        if self._screen:
            self._screen.close()
        self._screen = None
        if not self._session.wants_json:
            self._session.print(f"[{stand.item.id}] {task.state}")
            flush()

    def reviews(self, task: Task, signals: Signals) -> bool:
        """Have the person at the terminal review a task's work, if one is there."""
        return can_review(self._session, self._by) and review_now(
            self._session, self._controller, task, signals, by=self._by
        )
