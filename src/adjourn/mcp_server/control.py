"""What the tools do: each over the one controller, for one principal.

A process of a run starts, watches and asks. Outside, an agent decides for what it started.
Every refusal is recorded in the trail of the task that it is about.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from adjourn.controller.decisions import ENOUGH
from adjourn.core.ask import ApprovalAsk, Principal, QuestionAsk, Reply, Verb, question_of
from adjourn.core.call import slot_of
from adjourn.core.errors import AdjournError, Conflict, Misuse, NotAllowed, NothingRecorded
from adjourn.core.resumption import Resumption
from adjourn.core.states import ENDED, TaskState
from adjourn.core.task import SESSION_RUNNER, Spec, Task, task_of_run
from adjourn.core.text.when import milliseconds
from adjourn.mcp_server import tools
from adjourn.mcp_server.launch import Launcher
from adjourn.mcp_server.protocol import Json, Request, Waiting, is_object
from adjourn.mcp_server.resources import Resources
from adjourn.mcp_server.shown_tasks import ShownTasks
from adjourn.mcp_server.waiting import Pause, TaskWait, ceiling_of
from adjourn.process.ancestry import parent_run_in
from adjourn.process.identity import identify
from adjourn.settings.config import open_redactor, wants_pauses
from adjourn.supervision.workspace_notes import require_workspace
from adjourn.views.block import CommandWriter
from adjourn.wiring.controller import open_controller
from adjourn.wiring.runners import (
    command_work,
    find_kind,
    prompt_work,
    require_resumable,
    spec_of,
)

_LONGEST_PIECE = 12_000  # characters of included text


class Control:
    """The tools of one connection."""

    def __init__(
        self, root: str, *, name: str, inside_run: str | None, commands: CommandWriter
    ) -> None:
        self.controller = open_controller(root)
        self.by = Principal(
            name=name,
            inside_run=inside_run,
            through=self.controller.decisions.principal().name,
        )
        self._root = root
        self._commands = commands
        self._parent_run = parent_run_in(root) if inside_run else None
        self._launcher = Launcher(root)
        self.shown = ShownTasks(
            self.controller, by=self.by, commands=commands, redactor=open_redactor()
        )
        self.resources = Resources(self.controller, root=root, shown=self.shown)
        self._told: dict[str, Pause] = {}
        self._started: dict[str, str] = {}  # tasks by the host's calls, inside a run
        self._left_open: set[str] = set()
        self.tools: dict[str, Callable[[Any, Request], Json | Waiting]] = {
            "run_command_task": self._run_command_task,
            "subagent_task": self._subagent_task,
            "wait_for_tasks": self._wait_for_tasks,
            "get_task_details": self._get_task_details,
            "list_tasks": self._list_tasks,
            "list_asks": self._list_asks,
            "resume_task": self._resume_task,
            "answer": self._answer,
            "cancel_task": self._cancel_task,
            "restart_task": self._restart_task,
            "ask_human": self._ask_human,
        }

    def call(self, name: str, arguments: tools.Arguments, request: Request) -> Json | Waiting:
        """Call a tool, or raise what keeps it from being done. A refusal is told in the trail."""
        self.settle()
        try:
            if self.by.inside_run and not tools.TOOLS[name].inside:
                raise NotAllowed(
                    f"{name} is refused inside a run: what runs under adjourn may start, watch and"
                    " ask, never decide",
                    way_out="a person decides from a terminal",
                )
            return self.tools[name](arguments, request)
        except (NotAllowed, NothingRecorded) as error:
            self._tell_refusal(name, arguments, error)
            raise

    def settle(self) -> None:
        """Settle the runs whose supervisor is gone."""
        self._launcher.reap()
        self.controller.runs.recover()

    def _tell_refusal(self, name: str, arguments: tools.Arguments, error: AdjournError) -> None:
        if isinstance(error, NothingRecorded) and not any(
            isinstance(item.error, NotAllowed) for item in error.items
        ):
            return
        named = getattr(arguments, "task_id", None)
        if named is None and (ask_id := getattr(arguments, "ask_id", None)):
            with suppress(AdjournError):
                named = self.controller.decisions.find_ask(ask_id).task_id
        if named is None and self.by.inside_run:
            named = self.controller.decisions.task_around(self.by.inside_run)
        with suppress(AdjournError):
            task = self.controller.decisions.find_task(named or "", shortest=ENOUGH)
            why = error.sentence
            self.controller.decisions.tell_refusal(task.id, verb=name, why=why, by=self.by)

    # --- starting ---------------------------------------------------------------------------------

    def _run_command_task(self, given: tools.RunCommandTask, request: Request) -> Json:
        if not given.command[0]:
            raise Misuse("command begins with the name of a program", way_out='["make", "deploy"]')
        is_gated = wants_pauses() if given.pause_on_approval is None else given.pause_on_approval
        work, parent = command_work(given.command), self._parent_run
        spec = spec_of(work, given.cwd, is_gated=is_gated, parent_run=parent)
        return self._start(spec, given.key, request)

    def _subagent_task(self, given: tools.SubagentTask, request: Request) -> Json:
        kind = find_kind(given.runner)
        if not kind.driver:
            raise Misuse(f"{given.runner} is no agent", way_out="runner: agent, claude or codex")
        is_gated = given.pause_on_approval
        if is_gated is None:
            is_gated = True  # a parent is there to see the pause
        work = prompt_work(given.runner, given.prompt, given.options)
        spec = spec_of(work, given.cwd, is_gated=is_gated, parent_run=self._parent_run)
        return self._start(spec, given.key, request)

    def _start(self, spec: Spec, key: str | None, request: Request) -> Json:
        # Inside a run a child is found again by what it does, so that a parent that is run again
        # gets the child that it had; a repeated call of its host by the host's id.
        name = self._call_key(key, request)
        if self._parent_run:
            if name not in self._started:
                words = "\0".join((*spec.argv, spec.prompt or ""))
                launch = self._launcher.start(spec.pool, slot="-")
                task = self._launcher.commit(
                    launch,
                    lambda: self.controller.tasks.start(
                        spec, by=self.by, key=f"run:{spec.workspace}\0{words}"
                    ),
                )
                self._started[name] = task.id
            return self._shown_task(self._started[name])
        slot = slot_of(f"mcp:{self.by.name}", name, 1)
        with self.controller.store.read() as view:
            found = view.task_in_slot(slot)
        if found:
            self._adopt(found)
            return self._shown_task(found.id)
        launch = self._launcher.start(spec.pool, slot=slot)
        task = self._launcher.commit(
            launch, lambda: self.controller.tasks.start(spec, by=self.by, slot=slot)
        )
        return self._shown_task(task.id)

    def _adopt(self, task: Task) -> None:
        """Give a queued task a supervisor that was left without one, if it is ours to start."""
        self._launcher.adopt(task, now=self.controller.now())

    def _call_key(self, key: str | None, request: Request) -> str:
        """Name a call, so that the same call of the same host finds what it started."""
        if key:
            return f"key:{key}"
        meta = request.meta
        call = meta.get("claudecode/toolUseId") or meta.get("callId")
        if not isinstance(call, str):
            return f"once:{os.urandom(16).hex()}"
        turn = meta.get("x-codex-turn-metadata")
        session = turn.get("session_id") if is_object(turn) else None
        host = session if isinstance(session, str) else msgspec.json.encode(_host()).decode()
        return f"call:{host}\0{call}"

    # --- watching ---------------------------------------------------------------------------------

    def _shown_task(self, task_id: str) -> Json:
        self._leave_open(task_id)
        return self.shown.brief(task_id)

    def _leave_open(self, task_id: str) -> None:
        """Note that the run that we are part of was told whether a child of it is done."""
        if self._parent_run is None:
            return
        task = self.controller.decisions.find_task(task_id)
        if task.parent_task != task_of_run(self._parent_run):
            return
        if task.state in ENDED:
            self.controller.tasks.close_left(self._parent_run, task)
        elif task_id not in self._left_open:
            self.controller.tasks.leave_open(self._parent_run, task)
            self._left_open.add(task_id)

    def _wait_for_tasks(self, given: tools.WaitForTasks, request: Request) -> Json | Waiting:
        names = [given.task_ids] if isinstance(given.task_ids, str) else given.task_ids
        ids = [self._task(name).id for name in names]
        ceiling = ceiling_of(request.client.name)
        wait = TaskWait(
            self.controller,
            ids,
            until=given.until,
            timeout=min(given.timeout, ceiling),
            told=self._told,
            describe=lambda is_late: self._waited(ids, is_late=is_late, cut_from=given.timeout),
            adopt=self._adopt,
        )
        result = wait.result(is_late=given.timeout <= 0)
        return wait if result is None else result

    def _waited(self, ids: list[str], *, is_late: bool, cut_from: float) -> Json:
        document: Json = {
            "tasks": [self._shown_task(name) for name in dict.fromkeys(ids)],
            "timed_out": is_late,
        }
        if is_late:
            document["next"] = "nothing changed in that time: call wait_for_tasks again"
            document["asked_to_wait"] = cut_from
        return self.shown.finished(document)

    def _get_task_details(self, given: tools.GetTaskDetails, request: Request) -> Json:
        del request
        task = self._task(given.task_id)
        self._leave_open(task.id)
        document = self.shown.details(task.id)
        for name in given.include:
            text = self.resources.text_of(task, name)
            piece = text[given.offset : given.offset + _LONGEST_PIECE]
            rest = len(text) - given.offset - len(piece)
            document[name] = piece
            if rest > 0:
                document[f"{name}_rest"] = f"{rest} more: offset={given.offset + len(piece)}"
        return document

    def _list_tasks(self, given: tools.ListTasks, request: Request) -> Json:
        del request
        states = [TaskState(state) for state in given.states]
        before = self._task(given.before).id if given.before else None
        with self.controller.store.read() as view:
            found = view.tasks(states=states, limit=given.limit, before=before)
        return self.shown.finished({"tasks": [self.shown.brief(task.id) for task in found]})

    def _list_asks(self, given: tools.ListAsks, request: Request) -> Json:
        del request
        after = self.controller.decisions.find_ask(given.after).id if given.after else None
        now = self.controller.now()
        with self.controller.store.read() as view:
            found = view.open_asks(limit=given.limit, after=after, awake_at=now)
            count = view.count_open_asks()
        return self.shown.finished({"asks": self.shown.asks(found), "count": count})

    def _task(self, name: str) -> Task:
        return self.controller.decisions.find_task(name, shortest=ENOUGH)

    # --- deciding ---------------------------------------------------------------------------------

    def _resume_task(self, given: tools.ResumeTask, request: Request) -> Json:
        del request
        if (given.tool_decisions is None) == (given.prompt is None):
            both = "both were given" if given.prompt is not None else "neither was given"
            raise Misuse(
                f"resume_task takes tool_decisions or prompt, exactly one: {both}",
                way_out='tool_decisions=[{"tool_call_id": "…", "approved": true}] or prompt="…"',
            )
        task = self._task(given.task_id)
        self.controller.tasks.require_newest(given.task_id, task)
        if given.tool_decisions is not None:
            resumption = self._resumption(task, given.tool_decisions)
        else:
            resumption = Resumption(text=given.prompt)
        require_workspace(self.controller, task)
        if task.spec.is_driven:
            require_resumable(self.controller, task)
        return self._go_on(
            task,
            lambda: self.controller.tasks.resume(
                task.id, resumption, by=self.by, named=given.task_id
            ),
        )

    def _resumption(self, task: Task, decisions: list[tools.ToolDecision]) -> Resumption:
        """Turn decisions into a resumption whose approvals carry the digests that were shown."""
        if not decisions:
            raise Misuse("tool_decisions is empty: it decides nothing", way_out="get_task_details")
        with self.controller.store.read() as view:
            asks = [
                ask
                for ask in view.asks_of_run(task.id, task.runs)
                if isinstance(ask, ApprovalAsk) and ask.is_open
            ]
        digests: dict[str, str] = {}
        for decision in decisions:
            named = [ask for ask in asks if decision.tool_call_id in {ask.tool_call_id, ask.id}]
            for ask in named if decision.approved else ():
                digest = decision.digest or self.shown.digests.get(ask.id)
                if digest is None:
                    raise Conflict(
                        f"call {ask.tool_call_id} was not shown here, or not whole: what was not"
                        " seen cannot be approved",
                        way_out=f'get_task_details(task_id="{task.id}"), or a person with:'
                        f" {self._commands('approve', ask.id)}",
                    )
                digests[ask.id] = digest
        return Resumption(
            approve=tuple(each.tool_call_id for each in decisions if each.approved),
            reject=tuple(each.tool_call_id for each in decisions if not each.approved),
            digests=digests,
        )

    def _answer(self, given: tools.Answer, request: Request) -> Json:
        del request
        ask = self.controller.decisions.find_ask(given.ask_id)
        if not isinstance(ask, QuestionAsk):
            raise Misuse(f"{ask.id} is an {ask.kind}: use resume_task", way_out="resume_task")
        task = self._task(ask.task_id)
        reply = Reply(ask_id=ask.id, verb=Verb.ANSWER, text=given.text)

        def commit() -> Task:
            self.controller.decisions.decide([reply], by=self.by)
            return self._task(task.id)

        return self._go_on(task, commit)

    def _restart_task(self, given: tools.RestartTask, request: Request) -> Json:
        del request
        task = self._task(given.task_id)
        require_workspace(self.controller, task)
        return self._go_on(
            task,
            lambda: self.controller.tasks.restart(
                task.id, by=self.by, workspace=task.spec.workspace
            ),
        )

    def _go_on(self, task: Task, commit: Callable[[], Task]) -> Json:
        """Record a decision, with a supervisor at hand for what it lets go on."""
        self._told.pop(task.id, None)
        if task.spec.runner == SESSION_RUNNER:
            return self._shown_task(commit().id)
        launch = self._launcher.start(task.spec.pool, task_id=task.id)
        return self._shown_task(self._launcher.commit(launch, commit).id)

    def _cancel_task(self, given: tools.CancelTask, request: Request) -> Json:
        del request
        task = self._task(given.task_id)
        self.controller.tasks.cancel(task.id, by=self.by)
        return self._shown_task(task.id)

    # --- asking -----------------------------------------------------------------------------------

    def _ask_human(self, given: tools.AskHuman, request: Request) -> Json:
        try:
            expires = milliseconds(given.expires_after) if given.expires_after else None
        except ValueError:
            raise Misuse(
                f"expires_after {given.expires_after!r} is not a length of time",
                way_out="write it as 90s, 15m, 8h or 2d",
            ) from None
        question = question_of(
            given.question, key=None, choices=tuple(given.choices), expires_after=expires
        )
        if self._parent_run:
            # The same question of a run that is run again is the question that it had
            session = task_of_run(self._parent_run)
            slot = slot_of(f"mcp:{session}", f"ask:{given.key or given.question}", 1)
        else:
            slot = slot_of(f"mcp:{self.by.name}", self._call_key(given.key, request), 1)
        task = self.controller.tasks.ask_people(
            question,
            workspace=os.getcwd(),
            by=self.by,
            parent_run=self._parent_run,
            slot=slot,
        )
        return self._shown_task(task.id)


def _host() -> object:
    """Return which process started this server: of one session of a host, it is always the same."""
    return identify(os.getppid())
