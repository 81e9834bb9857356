"""What the pane of a TUI shows: an ask, a task, its output, transcript or plan, a rule, an event.

All of it is laid out by the views that the command line prints.
"""

import os
from codecs import getincrementaldecoder
from collections import deque

import msgspec

from adjourn.controller.controller import Controller
from adjourn.core.agent.transcript import Tally
from adjourn.core.ask import ApprovalAsk, Ask, Principal, QuestionAsk, Verb
from adjourn.core.errors import NotFound
from adjourn.core.states import TaskState
from adjourn.core.task import Task, run_id
from adjourn.core.text.render import WHOLE, block, prose
from adjourn.core.text.when import ago, stamp
from adjourn.ports.store import Store
from adjourn.system.files import open_plain, run_directory
from adjourn.system.machine import now as this_moment
from adjourn.views.agent import resumability_blocks
from adjourn.views.allowance import allowance_lines
from adjourn.views.block import (
    BLANK,
    Block,
    CommandWriter,
    Id,
    Line,
    Span,
    cut_of,
    lay_out,
    line,
    lines,
)
from adjourn.views.call import unique_name
from adjourn.views.plan import graph_block, standing_blocks
from adjourn.views.task import ask_blocks, settled_blocks, settling_blocks, work_blocks
from adjourn.views.transcript import transcript_blocks
from adjourn.views.workspace import workspace_blocks
from adjourn.wiring.plan_files import open_plan
from adjourn.wiring.policies import allowances, calls_of_late, matched
from adjourn.wiring.scenes import (
    gather_task,
    kept_transcript,
    resumability_of,
    task_page,
    workspace_since,
)

_CHUNK = 64 * 1024  # bytes of output that are read at a time
_MOST_ROWS = 5_000  # of output that stay in the pane


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What the pane shows, and what keys act on."""

    blocks: list[Block]
    ask: Ask | None = None
    digest: str | None = None  # of the call that is shown: nothing else is approved
    task: Task | None = None
    plan: str | None = None  # the path of the task's plan


class ShortIds:
    """Writes commands with the beginnings of ids that name nothing else in a store."""

    def __init__(self, commands: CommandWriter, store: Store) -> None:
        self._commands = commands
        self._store = store

    def __call__(self, *words: str) -> str:
        """Return a command, ready to paste."""
        return self._commands(*(self._name(w) if isinstance(w, Id) else w for w in words))

    def _name(self, identifier: str) -> str:
        with self._store.read() as view:
            return unique_name(
                lambda text: {*view.tasks_like(text), *view.asks_like(text)}, identifier
            )


def ask_page(
    controller: Controller, ask_id: str, *, commands: CommandWriter, by: Principal
) -> Page:
    """Lay out an ask, whole, then its task: what it is, what changed, whether it can go on."""
    with controller.store.read() as view:
        ask = view.ask(ask_id)
        verb = Verb.ANSWER if isinstance(ask, QuestionAsk) else Verb.APPROVE
        refusal = controller.decisions.why_not(view, ask, verb, by=by) if ask.is_open else None
    scene = controller.scene_of(ask)
    now = controller.now()
    call = scene.call_of(ask)
    edited = call.digest if call and scene.original_of(ask) is not None else None

    # Short for the eye, unless anything were left out: what is approved is shown whole
    cut = cut_of(ask.id, commands)
    shown = ask_blocks(ask, scene, now=now, cut=cut)
    if any(cut.rest in row.text for row in lay_out(shown, None)):
        cut = WHOLE
        shown = ask_blocks(ask, scene, now=now, cut=cut)
    blocks: list[Block] = []
    if ask.settlement:
        settled = ask.settlement
        when = f", {ago(settled.at, now=now)}"
        said = f": {prose(settled.reply)}" if settled.reply else ""
        told = f"This was {settled.state} by {prose(settled.by)}{when}{said}."
        blocks += [line(Span(told, "strong")), BLANK]
    blocks += shown
    if refusal:
        blocks.append(line(Span(f"  You cannot {verb} it: {prose(refusal)}", "danger")))
    if ask.is_open:
        blocks += [BLANK, *settling_blocks(ask, commands, digest=edited)]
    else:
        blocks += settled_blocks(msgspec.structs.replace(scene, asks=(ask,)), cut=cut)

    task = scene.task
    blocks += [BLANK, line(Span("task ", "strong"), Span(task.id), f"  {task.state}")]
    if task.spec.is_driven:  # the call of any other is all that it does, and stands above
        blocks += work_blocks(scene, cut=cut_of(task.id, commands))
    if since := workspace_since(controller, scene):
        blocks += [BLANK, *workspace_blocks(since)]
    if resumability := resumability_of(controller, task, commands=commands):
        blocks += [BLANK, *resumability_blocks(resumability)]
    digest = call.digest if call and isinstance(ask, ApprovalAsk) else None
    return Page(blocks=blocks, ask=ask, digest=digest, task=task, plan=task.spec.plan)


def whole_task_page(
    controller: Controller, root: str, task_id: str, *, commands: CommandWriter
) -> Page:
    """Lay out a task as `show` does."""
    with controller.store.read() as view:
        task = view.task(task_id)
    whole = gather_task(controller, root, task, commands=commands, shows_all=False)
    cut = cut_of(task_id, commands)
    blocks = task_page(controller, root, whole, commands=commands, cut=cut)
    return Page(blocks=blocks, task=whole.scene.task, plan=task.spec.plan)


def transcript_page(controller: Controller, task_id: str) -> Page:
    """Lay out the conversation of the built-in agent."""
    with controller.store.read() as view:
        task = view.task(task_id)
    messages = kept_transcript(controller, task, shows_all=False)
    blocks = transcript_blocks(messages, Tally(messages), cut=WHOLE)
    return Page(blocks=blocks, task=task, plan=task.spec.plan)


def plan_page(
    controller: Controller, path: str, task_id: str, *, commands: CommandWriter, columns: int
) -> Page:
    """Draw the graph of a plan with the state of each of its tasks."""
    with controller.store.read() as view:
        task = view.task(task_id)
    progress = controller.plans.progress(open_plan(path))
    graph = graph_block(progress, columns=columns)
    below = standing_blocks(progress, commands, named=path)
    head = line(Span(f"plan {prose(path)}", "strong"))
    return Page(blocks=[head, BLANK, graph, BLANK, *below], task=task, plan=path)


def rule_page(controller: Controller, rule_id: str, *, commands: CommandWriter) -> Page:
    """Lay out an always-allow rule, with the recent calls that it would have matched."""
    rule = next((each for each in allowances() if each.id == rule_id), None)
    if rule is None:
        raise NotFound(f"rule {rule_id} was revoked", way_out="adjourn rules list")
    late = calls_of_late(controller)
    count = len(matched(rule, late))
    told = [
        *allowance_lines(rule, now=this_moment()),
        f"  would have matched {count} of the last {len(late)} calls",
    ]
    revoke = Span(commands("rules", "revoke", rule.id), "code")
    return Page(blocks=[*lines(told), BLANK, line("Revoke with: ", revoke)])


def event_page(controller: Controller, place: int, *, commands: CommandWriter) -> Page:
    """Lay out one event of the audit trail with all its facts."""
    with controller.store.read() as view:
        found = view.happened(after=place - 1, limit=1)
    if not found or found[0].place != place:
        raise NotFound(f"event {place} was pruned", way_out="adjourn audit verify")
    event = found[0].event
    facts = [f"  {name}: {prose(str(fact))}" for name, fact in event.facts.items()]
    blocks: list[Block] = [
        line(Span(f"event {place:,}: {event.kind.replace('_', ' ')}", "strong")),
        line(f"  task {event.task_id}"),
        line(f"  by {prose(event.by)}"),
        line(f"  at {stamp(event.at)}"),
        *lines(facts),
        BLANK,
        line("All of them: ", Span(commands("audit", "export", event.task_id), "code")),
    ]
    return Page(blocks=blocks)


class Output:
    """What the newest run of a task prints, read on from where the last reading ended."""

    def __init__(self, root: str, task: Task) -> None:
        self.task_id = task.id
        self._root = root
        self._run = 0
        self._rows: deque[Line] = deque(maxlen=_MOST_ROWS)
        self._start(task)

    def _start(self, task: Task) -> None:
        self._run = task.runs
        self._offsets = {"stdout": 0, "stderr": 0}
        self._decoders = {
            name: getincrementaldecoder("utf-8")("surrogateescape") for name in self._offsets
        }
        if self._run:
            self._rows.append(line(Span(f"run {self._run}", "muted")))

    @property
    def blocks(self) -> list[Block]:
        """All rows that are kept, each with the name of its stream: a run cannot fake ours."""
        return list(self._rows)

    def read(self, task: Task) -> bool:
        """Read what is new, of a newer run too; return whether anything is."""
        if task.runs != self._run:
            self._start(task)
        place = run_directory(self._root, run_id(self.task_id, self._run))
        has_more = False
        for name, mark in (("stdout", "out"), ("stderr", "err")):
            fd = open_plain(os.path.join(place, name)) if self._run else None
            if fd is None:
                continue
            with open(fd, "rb") as file:
                file.seek(self._offsets[name])
                while chunk := file.read(_CHUNK):
                    self._offsets[name] += len(chunk)
                    self._add(mark, self._decoders[name].decode(chunk))
                    has_more = True
        return has_more

    def _add(self, mark: str, text: str) -> None:
        rows = block(text).split("\n")
        last = rows.pop()
        for row in [*rows, *([last] if last else [])]:
            self._rows.append(line(Span(f"{mark} │ ", "muted"), Span(row)))


def is_under_way(task: Task) -> bool:
    """Return whether a task may print more without anybody doing anything."""
    return task.state in {TaskState.QUEUED, TaskState.RUNNING}
