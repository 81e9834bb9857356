"""A client of the HTTP API, and asks made fast, past the program's start-up."""

import contextlib
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import httpx2
import pytest

from adjourn.controller.controller import Controller
from adjourn.core.ask import ApprovalAsk, Principal, question_of
from adjourn.core.task import Spec
from adjourn.wiring.controller import open_controller
from tests.e2e.shell import Document, Shell
from tests.web.served import SECONDS

PREFIX = "/api/v1"


class Api:
    """Sends requests with a token, as a program does."""

    def __init__(self, url: str, token: str) -> None:
        self.token = token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.http = httpx2.Client(base_url=url, headers=headers, timeout=SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.http.close()

    def get(self, path: str, *, expect: int = 200, **headers: str) -> Any:
        """Get a document."""
        answer = self.send("GET", path, **headers)
        assert answer.status_code == expect, answer.text
        return answer.json() if answer.content else None

    def post(self, path: str, body: object = None, *, expect: int = 200, **headers: str) -> Any:
        """Send a document, and insist on a status."""
        answer = self.send("POST", path, body, **headers)
        assert answer.status_code == expect, answer.text
        return answer.json() if answer.content else None

    def send(self, method: str, path: str, body: object = None, **headers: str) -> httpx2.Response:
        """Send a request, and return whatever comes."""
        given = {key.replace("_", "-"): value for key, value in headers.items()}
        path = path if path.startswith(("/healthz", "/metrics", "/mcp")) else f"{PREFIX}{path}"
        if body is None:
            return self.http.request(method, path, headers=given)
        return self.http.request(method, path, headers=given, json=body)

    def wait(self, task: str) -> Document:
        """Wait until a task has ended or needs a person."""
        document: Document = self.get(f"/tasks/{task}", Prefer="wait=30")
        return document


def new_token(shell: Shell, name: str, *options: str) -> str:
    """Make a token as a person does."""
    done = shell.adjourn("tokens", "add", name, *options, "--output", "json")
    token: str = done.doc["token"]
    return token


@contextlib.contextmanager
def controller_of(shell: Shell) -> Iterator[Controller]:
    """Return a controller on a shell's store, in this process."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in shell.environment.items():
            patch.setenv(name, value)
        controller = open_controller(str(shell.store))
        with contextlib.closing(controller.store):
            yield controller


def approvals(shell: Shell, count: int, *words: str) -> list[Document]:
    """Have so many commands wait for an approval; nothing of them has run."""
    argv = words or ("true",)
    return _made(
        shell,
        lambda controller, by: (
            controller.tasks.start(
                Spec(
                    runner="command",
                    argv=argv,
                    workspace=str(shell.place),
                    pause_on_approval=True,
                ),
                by=by,
            ).id
        ),
        count,
    )


def questions(shell: Shell, count: int, *choices: str) -> list[Document]:
    """Ask people so many questions."""
    question = question_of("Ship?", key=None, choices=choices, expires_after=None)
    return _made(
        shell,
        lambda controller, by: (
            controller.tasks.ask_people(question, workspace=str(shell.place), by=by).id
        ),
        count,
    )


def _made(shell: Shell, make: Any, count: int) -> list[Document]:
    with controller_of(shell) as controller:
        by: Principal = controller.decisions.principal()
        found: list[Document] = []
        for task_id in [make(controller, by) for _ in range(count)]:
            with controller.store.read() as view:
                ask = view.open_asks_of(task_id)[0]
                digest = None
                if isinstance(ask, ApprovalAsk):
                    digest = view.call(task_id, ask.call).digest
            found.append({"id": ask.id, "task": task_id, "digest": digest})
        return found


def approve(ask: Document, **more: object) -> Document:
    """Return the body of an approval of what was shown."""
    return {"verb": "approve", "digest": ask["digest"], **more}
