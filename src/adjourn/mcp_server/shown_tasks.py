"""Tasks and asks as results show them: the manifest's words, and what the caller may do."""

from collections.abc import Iterable
from typing import Any, assert_never

import msgspec

from adjourn.controller.controller import Controller
from adjourn.core.ask import ApprovalAsk, Ask, Principal, QuestionAsk, UncertainAsk, Verb
from adjourn.core.call import Call, arguments_of
from adjourn.core.documents import manifest_of
from adjourn.core.redact import Redactor
from adjourn.core.scene import Scene
from adjourn.core.states import TaskState
from adjourn.core.task import SESSION_RUNNER
from adjourn.core.text.when import stamp
from adjourn.ports.store import View
from adjourn.views.block import CommandWriter
from adjourn.views.task import resume_hint

Json = dict[str, Any]

STATUS = {
    TaskState.QUEUED: "Pending",
    TaskState.RUNNING: "Running",
    TaskState.WAITING: "Paused",
    TaskState.PAUSED: "Paused",
    TaskState.SUCCEEDED: "Completed",
    TaskState.FAILED: "Failed",
    TaskState.CANCELED: "Cancelled",
}
LARGEST = 20_000  # characters of a result: hosts put longer ones aside
_LONGEST_TITLE = 200
_MOST_ASKS = 50
_DEEPEST = 8
_CUT = "cut: too long for a result; a person sees it whole with the command"


class ShownTasks:
    """Describes tasks for one principal, and remembers which calls were shown whole."""

    def __init__(
        self, controller: Controller, *, by: Principal, commands: CommandWriter, redactor: Redactor
    ) -> None:
        self._controller = controller
        self._by = by
        self._commands = commands
        self._redactor = redactor
        self.digests: dict[str, str] = {}  # of the calls that were shown whole, by ask

    def brief(self, task_id: str) -> Json:
        """Describe how a task stands, with all that it or a task below it asks."""
        scene = self._controller.scene(task_id)
        task = scene.task
        asks = list(self._asks_below(scene))
        title = task.spec.prompt or " ".join(task.spec.argv)
        if task.spec.runner == SESSION_RUNNER:
            title = scene.asks[0].prompt if scene.asks else ""
        document: Json = {
            "task_id": task.id,
            "status": STATUS[task.state],
            "state": task.state.value,
            "runner": task.spec.runner,
            "title": title[:_LONGEST_TITLE],
            "message": task.message,
            "waiting_on": list(scene.waiting_on),
            "asks": asks,
            "next": self._next(scene, asks),
        }
        if task.state is TaskState.SUCCEEDED:
            document["final_message"] = document.pop("message")
        return self.finished(document)

    def details(self, task_id: str) -> Json:
        """Describe a task whole: the manifest of machines, with who may decide what."""
        scene = self._controller.scene(task_id)
        hint = resume_hint(scene, self._commands)
        manifest: Json = msgspec.to_builtins(manifest_of(scene, hint=hint))
        asks = list(self._asks_below(scene))
        manifest |= {
            "status": STATUS[scene.task.state],
            "runner": scene.task.spec.runner,
            "workspace_path": scene.task.spec.workspace,
            "asks": asks,
            "next": self._next(scene, asks),
        }
        return self.finished(manifest)

    def asks(self, asks: Iterable[Ask]) -> list[Json]:
        """Describe asks of any tasks."""
        with self._controller.store.read() as view:
            return [self._ask(view, ask) for ask in asks]

    def finished(self, document: Json) -> Json:
        """Return a document without secrets, cut where it is too long, and say so.

        What was cut cannot be approved from here.
        """
        clean: Json = self._redactor.document(document)
        if len(msgspec.json.encode(clean)) <= LARGEST:
            for ask in _asks_in(clean):
                if ask.get("digest"):
                    self.digests[ask["ask_id"]] = ask["digest"]
            return clean
        for ask in _asks_in(clean):
            if "arguments" in ask:
                ask["arguments"], ask["digest"] = _CUT, None
            ask["prompt"] = _shortened(ask["prompt"])
        for key in ("calls", "agent_message", "final_message", "message", "pause_reason"):
            if key in clean:
                clean[key] = _shortened(clean[key]) if isinstance(clean[key], str) else _CUT
        if len(msgspec.json.encode(clean)) > LARGEST:
            clean["asks"] = clean.get("asks", [])[:3]
        clean["is_cut"] = True
        return clean

    def redacted(self, text: str) -> str:
        """Return a text without secrets."""
        return self._redactor.text(text)

    # --- parts ------------------------------------------------------------------------------------

    def _asks_below(self, scene: Scene, depth: int = 0) -> Iterable[Json]:
        """Describe the open asks of a task and of those that it waits for."""
        with self._controller.store.read() as view:
            found = [self._ask(view, ask, scene.call_of(ask)) for ask in scene.open_asks]
        for child in scene.waiting_on if depth < _DEEPEST else ():
            found += self._asks_below(self._controller.scene(child), depth + 1)
        return found[:_MOST_ASKS]

    def _ask(self, view: View, ask: Ask, call: Call | None = None) -> Json:
        commands, verb = self._commands, Verb.APPROVE
        document: Json = {
            "ask_id": ask.id,
            "task_id": ask.task_id,
            "kind": ask.kind.value,
            "prompt": ask.prompt,
            "created_at": stamp(ask.created_at),
        }
        match ask:
            case ApprovalAsk():
                call = call or view.call(ask.task_id, ask.call)
                document |= {
                    "tool_call_id": ask.tool_call_id,
                    "tool": call.tool,
                    "arguments": arguments_of(call.body),
                    "digest": call.digest,
                }
                command = commands("approve", ask.id)
            case QuestionAsk():
                document |= {"choices": list(ask.choices)}
                verb, command = Verb.ANSWER, commands("answer", ask.id, "TEXT")
            case UncertainAsk():
                document |= {"tool_call_id": ask.tool_call_id}
                verb, command = Verb.SETTLE, commands("show", ask.task_id)
            case _:
                assert_never(ask)
        is_uncertain = isinstance(ask, UncertainAsk)
        why_not = (
            "only a person can say whether a call ran that nobody saw end"
            if is_uncertain
            else self._controller.decisions.why_not(view, ask, verb, by=self._by)
        )
        who = "you, or a person" if why_not is None else f"a person ({why_not})"
        return document | {
            "you_may_decide": why_not is None,
            "who_may_decide": who,
            "command": command,
        }

    def _next(self, scene: Scene, asks: list[Json]) -> str:
        task = scene.task
        match task.state:
            case TaskState.QUEUED | TaskState.RUNNING:
                return f'wait_for_tasks(task_ids=["{task.id}"])'
            case TaskState.WAITING if any(ask["you_may_decide"] for ask in asks):
                return "decide with resume_task or answer, then wait_for_tasks"
            case TaskState.WAITING:
                return "tell the user what is asked and the command; then wait_for_tasks again"
            case TaskState.PAUSED:
                return "resume_task with a prompt, or restart_task"
            case TaskState.SUCCEEDED:
                return "report the result"
            case TaskState.FAILED | TaskState.CANCELED:
                return "report it; restart_task runs it again from nothing"


def _asks_in(document: Json) -> list[Json]:
    found = list(document.get("asks", []))
    for task in document.get("tasks", []):
        found += task.get("asks", [])
    return found


def _shortened(text: str) -> str:
    most = 1_000
    return text if len(text) <= most else f"{text[:most]} … ({len(text):,} characters)"
