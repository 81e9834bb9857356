"""Resources: the inbox, a task, its conversation, and what a run printed."""

import os

import msgspec

from adjourn.controller.controller import Controller
from adjourn.core.errors import AdjournError, NotFound
from adjourn.core.task import Task, number_of_run, run_id, task_of_run
from adjourn.core.text.when import stamp
from adjourn.mcp_server.protocol import NO_SUCH_RESOURCE, Json, Refused
from adjourn.mcp_server.shown_tasks import ShownTasks
from adjourn.system.files import open_plain, run_directory

SCHEME = "adjourn://"
INBOX = f"{SCHEME}inbox"
_MOST = 50
_LONGEST = 100_000  # characters of one piece of output

LIST: list[Json] = [
    {
        "uri": INBOX,
        "name": "inbox",
        "description": "What waits for a person, oldest first.",
        "mimeType": "application/json",
    }
]
TEMPLATES: list[Json] = [
    {
        "uriTemplate": f"{SCHEME}tasks/{{id}}",
        "name": "task",
        "description": "One task: status, result, what it asks.",
        "mimeType": "application/json",
    },
    {
        "uriTemplate": f"{SCHEME}tasks/{{id}}/transcript",
        "name": "transcript",
        "description": "The conversation of the built-in agent.",
        "mimeType": "text/plain",
    },
    {
        "uriTemplate": f"{SCHEME}runs/{{id}}/stdout{{?offset}}",
        "name": "stdout",
        "description": "What a run printed, from an offset on.",
        "mimeType": "text/plain",
    },
    {
        "uriTemplate": f"{SCHEME}runs/{{id}}/stderr{{?offset}}",
        "name": "stderr",
        "description": "What a run printed as errors, from an offset on.",
        "mimeType": "text/plain",
    },
]


class Resources:
    """Reads resources of one store."""

    def __init__(self, controller: Controller, *, root: str, shown: ShownTasks) -> None:
        self._controller = controller
        self._root = root
        self._shown = shown

    def read(self, uri: str) -> list[Json]:
        """Return the contents of a resource, or raise Refused."""
        path, _, query = uri.removeprefix(SCHEME).partition("?")
        words = path.split("/")
        try:
            if uri == INBOX:
                with self._controller.store.read() as view:
                    asks = view.open_asks(limit=_MOST, awake_at=self._controller.now())
                return _json(uri, self._shown.finished({"asks": self._shown.asks(asks)}))
            match words if uri.startswith(SCHEME) else []:
                case ["tasks", name]:
                    task = self._controller.decisions.find_task(name)
                    return _json(uri, self._shown.details(task.id))
                case ["tasks", name, "transcript"]:
                    task = self._controller.decisions.find_task(name)
                    return _plain(uri, self.text_of(task, "transcript"))
                case ["runs", name, ("stdout" | "stderr") as stream]:
                    task = self._controller.decisions.find_task(task_of_run(name))
                    key, _, offset = query.partition("=")
                    start = int(offset) if key == "offset" and offset.isdecimal() else 0
                    text = self._output(task.id, number_of_run(name), stream)
                    return _plain(uri, text[start : start + _LONGEST])
                case _:
                    raise NotFound(f"there is no resource {uri}")
        except AdjournError as error:
            raise Refused(NO_SUCH_RESOURCE, error.sentence, {"uri": uri}) from None

    def text_of(self, task: Task, name: str) -> str:
        """Return the output of a task's last run, its conversation, or its history, as text."""
        match name:
            case "stdout" | "stderr":
                return self._output(task.id, task.runs, name)
            case "events":
                with self._controller.store.read() as view:
                    events = view.events(task.id)
                lines = [
                    f"{stamp(each.at)} {each.kind} by {each.by} {each.facts}" for each in events
                ]
                text = "\n".join(lines)
            case _:
                text = self._transcript(task)
        return self._shown.redacted(text)

    def _transcript(self, task: Task) -> str:
        # Most sessions read none; it brings the layout of conversations along
        from adjourn.core.agent.transcript import Tally
        from adjourn.core.text.render import WHOLE
        from adjourn.views.block import lay_out
        from adjourn.views.transcript import transcript_blocks
        from adjourn.wiring.scenes import kept_transcript

        try:
            messages = kept_transcript(self._controller, task, shows_all=False)
        except AdjournError:
            return ""
        blocks = transcript_blocks(messages, Tally(messages), cut=WHOLE)
        return "\n".join("".join(span.text for span in row.spans) for row in lay_out(blocks, None))

    def _output(self, task_id: str, number: int, stream: str) -> str:
        place = run_directory(self._root, run_id(task_id, number))
        fd = open_plain(os.path.join(place, stream)) if number else None
        if fd is None:
            return ""
        with open(fd, encoding="utf-8", errors="replace") as file:
            return self._shown.redacted(file.read())


def uris_of(task_id: str, kind: str) -> list[str]:
    """Return the resources that an event of a task changes."""
    return [f"{SCHEME}tasks/{task_id}", *([INBOX] if kind.startswith("ask_") else [])]


def _json(uri: str, document: Json) -> list[Json]:
    text = msgspec.json.encode(document).decode()
    return [{"uri": uri, "mimeType": "application/json", "text": text}]


def _plain(uri: str, text: str) -> list[Json]:
    return [{"uri": uri, "mimeType": "text/plain", "text": text}]
