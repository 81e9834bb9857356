"""Starts, resumes, restarts, cancels and pauses tasks by keys, through the one controller."""

import os

from adjourn.controller.controller import Controller
from adjourn.core.errors import AdjournError
from adjourn.core.states import TaskState
from adjourn.core.task import Task
from adjourn.core.text.render import prose, visible
from adjourn.tui.listings import RowKey
from adjourn.tui.own_run import OwnRun, read_new_work, restart_task, resume_task, start_work
from adjourn.tui.pages import is_under_way
from adjourn.tui.surface import READ_ONLY, Surface
from adjourn.views.block import BLANK, Block, Id, Span, line
from adjourn.views.call import short

_WAITS = "It waits for you: settle it with the keys below, then press u."
_PAUSED = "Paused. Ctrl+C again to quit."


class Running:
    """What the keys for tasks do, and the run that was started here."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self.own: OwnRun | None = None
        self._store = 0  # that of our own run

    def press_resume(self) -> None:
        """Go on with the task in the pane; one that waits is brought to what it asks."""
        surface = self._surface
        page, key = surface.page, surface.page_key
        if page is None or page.task is None or key is None:
            return
        if surface.is_read_only:
            surface.say(READ_ONLY)
        elif page.task.state is not TaskState.WAITING:
            surface.spawn(self._go_on(key.store, page.task, "resume"))
        elif page.ask is not None:
            surface.say(_WAITS)
        else:
            surface.spawn(self._show_ask(key.store, page.task))

    async def _show_ask(self, at: int, task: Task) -> None:
        surface = self._surface
        asks = await surface.done(at, lambda controller: controller.scene(task.id).open_asks)
        if asks:
            surface.show_key(RowKey(at, "ask", asks[0].id))
            surface.say(_WAITS)
        elif asks is not None:
            surface.say("It waits for another task.")

    async def _go_on(self, at: int, task: Task, verb: str) -> None:
        surface = self._surface
        start = resume_task if verb == "resume" else restart_task

        def go_on(controller: Controller) -> OwnRun:
            with controller.store.read() as view:
                newest = view.task(task.id)
            by = surface.principal(controller)
            return start(controller, surface.root(at), newest, by=by)

        own = await surface.done(at, go_on)
        if own is not None:
            self.own, self._store = own, at
            surface.note(at, (verb, Id(task.id)), "It goes on. Ctrl+C pauses it.")
            surface.show_key(RowKey(at, "task", task.id), face="output")

    def press_restart(self) -> None:
        """Run the task in the pane again from nothing, if the person says yes."""
        question = "Restart it from nothing? Its history stays; answers are asked for again."
        self._surface.spawn(self._confirm("restart", question))

    def press_cancel(self) -> None:
        """End the task in the pane, if the person says yes."""
        question = "Cancel it? Its open asks are withdrawn."
        self._surface.spawn(self._confirm("cancel", question))

    async def _confirm(self, verb: str, question: str) -> None:
        surface = self._surface
        page, key = surface.page, surface.page_key
        if page is None or page.task is None or key is None:
            return
        if surface.is_read_only:
            surface.say(READ_ONLY)
            return
        task, at = page.task, key.store
        blocks: list[Block] = [
            line(Span(f"task {task.id}", "strong"), f"  {task.state}"),
            line(f"  {surface.what(key)}"),
            line(f"  in {visible(task.spec.workspace)}"),
            BLANK,
            line("The same as: ", Span(surface.commands(at)(verb, task.id), "code")),
        ]
        if not await surface.confirm(blocks, question):
            return
        if verb == "restart":
            await self._go_on(at, task, verb)
            return

        def cancel(controller: Controller) -> Task:
            return controller.tasks.cancel(task.id, by=surface.principal(controller))

        if await surface.done(at, cancel):
            surface.note(at, (verb, Id(task.id)), "Canceled.")

    def press_new(self) -> None:
        """Start a task or a plan."""
        if self._surface.is_read_only:
            self._surface.say(READ_ONLY)
        else:
            self._surface.spawn(self._start())

    async def _start(self) -> None:
        surface = self._surface
        asked = [
            line("Start here what `adjourn` would start:"),
            line("  run -- COMMAND    run --runner NAME PROMPT    execute PLAN"),
            line(f"  in {visible(os.getcwd())}"),
        ]

        def check(text: str) -> str | None:
            try:
                read_new_work(text)
            except AdjournError as error:
                return prose(error.sentence)
            return None

        text = await surface.ask_line(asked, value="run -- ", check=check)
        if text is None:
            return
        new = read_new_work(text)
        own = await surface.done(
            0,
            lambda controller: start_work(
                controller, surface.root(0), new, by=surface.principal(controller)
            ),
        )
        if own is not None:
            self.own, self._store = own, 0
            surface.note(0, new.words, "Started. Ctrl+C pauses it.")
            if own.task_id:
                surface.show_key(RowKey(0, "task", own.task_id), face="output")

    # --- Ctrl+C -----------------------------------------------------------------------------------

    async def interrupt(self) -> None:
        """Pause the run that was started here; kill it the second time; quit where none is."""
        surface, own = self._surface, self.own
        if own is None:
            surface.quit()
            return
        if own.is_pausing:
            own.kill()
            surface.say("Killing it.")
            return

        def pause(controller: Controller) -> list[Task]:
            by = surface.principal(controller)
            task = own.pause(controller, surface.root(self._store), by=by)
            return [task] if task else []

        paused = await surface.done(self._store, pause)
        if paused is None:
            return
        if not paused:  # nothing of it runs
            self.own = None
            surface.quit()
            return
        (task,) = paused
        own.is_pausing = task.state is TaskState.RUNNING
        surface.note(self._store, ("pause", Id(task.id)), "Pausing. Ctrl+C again kills it.")
        if not own.is_pausing:
            self._tell_paused()

    def _tell_paused(self) -> None:
        self.own = None
        self._surface.say(Span(_PAUSED, "strong"))

    async def notice(self, changed: set[str]) -> None:
        """Notice that the run which was started here has paused or ended."""
        own = self.own
        if own is None or own.task_id not in changed:
            return
        name = own.task_id
        task = await self._surface.done(
            self._store, lambda controller: controller.decisions.find_task(name)
        )
        if task is None or is_under_way(task) or self.own is not own:
            return
        own.reap()
        if own.is_pausing and task.state is TaskState.PAUSED:
            self._tell_paused()
        elif own.plan is None:
            self.own = None
            self._surface.say(f"Task {short(task.id)} is {task.state}.")
