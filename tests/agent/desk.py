"""A person's shell with the built-in agent in it, and the model that the agent talks to."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.e2e.shell import Document, Done, Shell
from tests.model.script import ToolUse, Turn
from tests.model.server import Model, playing


class Desk(Shell):
    """A shell whose agent asks a scripted model."""

    def __init__(self, place: Path, model: Model, *, database: str | None = None) -> None:
        super().__init__(place)
        if database:
            self.share(database)
        # So that no store further up is ever found, and decided in
        self.store.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.model = model
        self.environment["ADJOURN_AGENT_MODEL"] = "openai:scripted"
        self.environment["ADJOURN_AGENT_BASE_URL"] = model.openai

    def agent_run(self, *words: str, expect: int, env: Mapping[str, str] | None = None) -> Document:
        """Have the agent work on something, gated, and return the manifest."""
        return self.json(
            "run", "--pause-on-approval", *words, "deploy to staging", expect=expect, env=env
        )

    def resumed(
        self, manifest: Document, *words: str, expect: int, env: Mapping[str, str] | None = None
    ) -> Document:
        """Go on from a manifest's checkpoint."""
        return self.json("resume", manifest["checkpoint_id"], *words, expect=expect, env=env)

    def as_told(self, manifest: Document, *, expect: int) -> Document:
        """Run the resume hint exactly as it was printed, for a document."""
        return self.line(f"{manifest['resume_hint']} --output json", expect=expect).doc

    def transcript(self, task: str) -> list[Document]:
        """Return the messages of a task."""
        messages: list[Document] = self.json("show", task, "--transcript")["messages"]
        return messages

    def sent(self, number: int = -1) -> list[Document]:
        """Return the messages of one request as the model got them, without the instructions."""
        messages: list[Document] = self.model.asked[number].body["messages"]
        return [message for message in messages if message["role"] != "system"]

    def results(self, number: int = -1) -> dict[str, str]:
        """Return the tool results of one request, by the ids of their calls."""
        return {
            message["tool_call_id"]: message["content"]
            for message in self.sent(number)
            if message["role"] == "tool"
        }


def say(text: str) -> Turn:
    """Return an answer of words alone."""
    return Turn(text=text)


def use(*calls: ToolUse, text: str = "") -> Turn:
    """Return an answer with calls."""
    return Turn(text=text, calls=calls)


def command(line: str, name: str | None = None, **more: Any) -> ToolUse:
    """Return the call of a command."""
    return ToolUse(name="run_command", arguments={"command": line, **more}, id=name)


def finish(message: str = "Deployment complete.") -> Turn:
    """Return the answer that ends the work."""
    return use(ToolUse(name="finish", arguments={"message": message}))


@contextlib.contextmanager
def desk(place: Path, *turns: Turn, database: str | None = None) -> Iterator[Desk]:
    """Sit down at a desk whose model plays these turns; afterwards nothing may be left running."""
    with playing(turns) as model:
        made = Desk(place, model, database=database)
        yield made
        assert made.end() == {}


def out_of_order(messages: list[Document]) -> str | None:
    """Say how a conversation breaks the ordering rules of the model APIs, if it does."""
    waiting: list[str] = []
    for message in messages:
        if waiting and message["role"] != "tool":
            return f"{message['role']} before the results of {waiting}"
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return f"a result for {message['tool_call_id']}, which nobody called"
            waiting.remove(message["tool_call_id"])
        if message["role"] == "assistant":
            waiting = [call["id"] for call in message.get("tool_calls", [])]
    return f"no results for {waiting}" if waiting else None


__all__ = ["Desk", "Document", "Done", "command", "desk", "finish", "out_of_order", "say", "use"]
