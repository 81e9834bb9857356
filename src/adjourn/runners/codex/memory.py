"""What a task remembers of its Codex thread between two runs, and how it is kept in the store."""

import os
from collections.abc import Mapping

import msgspec

from adjourn.core import kept_documents
from adjourn.core.agent.calls import Report
from adjourn.core.errors import CannotResume
from adjourn.ports.drive import Drive
from adjourn.runners.codex import program
from adjourn.runners.codex.session import Rollout, copy_of, put_back
from adjourn.runners.codex.usage import CodexUsage

DOCUMENT = kept_documents.CODEX.name
SESSION = kept_documents.SESSION.name  # names the document with the copy of the thread's file


class Put(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was put before the policy.

    Codex's name for it, and the call of the model that it is part of.
    """

    item: str
    call: str
    name: str  # adjourn's name for it


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """A command that a script of the model had run before the script was stopped."""

    call: str
    line: str
    output: str = ""
    exit_code: int | None = None

    @property
    def told(self) -> str:
        """What ran and how it ended, on one line."""
        return f"{self.line} (exit code {self.exit_code})"


class Queried(msgspec.Struct, frozen=True, kw_only=True):
    """A question of the model, the call that it is part of, and the ask that it became."""

    call: str
    id: str
    ask: str


class CodexMemory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the thread is, and what Codex has still to be told."""

    session: str  # adjourn's own; a restart begins another
    thread: str
    place: str  # the thread's file below Codex's home
    version: str = ""
    usage: CodexUsage = CodexUsage()
    answers: int = 0  # of the model
    put: tuple[Put, ...] = ()
    # Calls of which Codex was told that they were approved, and that it shall repeat them
    told: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()  # calls that were ended while the model had gone on
    ran: tuple[Ran, ...] = ()
    queried: tuple[Queried, ...] = ()
    keys: tuple[str, ...] = ()  # of all questions so far: no two share one
    reviews: int = 0  # wishes of reviewers that a turn has answered


def memory_of(body: bytes | None, *, session: str) -> CodexMemory | None:
    """Read what was remembered, if it belongs to this session."""
    found = msgspec.json.decode(body, type=CodexMemory) if body else None
    return found if found and found.session == session else None


class MemoryKeeper:
    """The memory of a task's thread, in the store."""

    def __init__(self, drive: Drive, environment: Mapping[str, str]) -> None:
        self._drive = drive
        self._home = program.home(environment)
        self._prompt = drive.task.spec.prompt or ""
        session = drive.task.session_id
        self.known: CodexMemory | None = memory_of(drive.document(DOCUMENT), session=session)
        self.memory = self.known or CodexMemory(session=session, thread="", place="")
        self._used_before = self.memory.usage
        self._answers_before = self.memory.answers
        self.is_resumable = False
        self.steps = 0

    def remember(self, **changes: object) -> None:
        """Change what is remembered."""
        memory = msgspec.structs.replace(self.memory, **changes)
        if memory != self.memory:
            self.memory = self.known = memory
            self._drive.keep(DOCUMENT, msgspec.json.encode(memory))

    def rollout(self, path: str) -> Rollout:
        """Return the thread's file, to be read."""
        return Rollout(path, prompt=self._prompt)

    def opened(self, thread: str, rollout: Rollout, *, version: str) -> None:
        """Remember a thread as soon as its name is known."""
        self.remember(
            thread=thread, place=os.path.relpath(rollout.path, self._home), version=version
        )
        self.note_session(rollout)

    def bring_back(self) -> None:
        """Put the thread's file where Codex looks for it, or refuse to go on."""
        path, copy = os.path.join(self._home, self.memory.place), self._drive.document(SESSION)
        if copy:
            put_back(path, copy, prompt=self._prompt)
        if not self.rollout(path).read_on().has_prompt:
            why = (
                f"the file of Codex thread {self.memory.thread} is gone, or the task is not "
                f"in it: {path}"
            )
            raise CannotResume(why, way_out=f"adjourn restart {self._drive.task.id}")

    def note_session(self, rollout: Rollout) -> None:
        """Say whether the thread could be resumed right now: it is on disk, with the task in it."""
        self.is_resumable = rollout.read_on().has_prompt
        self._drive.session(self.memory.thread, resumable=self.is_resumable)

    @property
    def can_go_on(self) -> bool:
        """Whether the thread can be resumed.

        As far as this run saw, or as the run before left it.
        """
        return self.is_resumable or self._drive.run.resumable

    def keep(self, rollout: Rollout, *, told: CodexUsage | None) -> None:
        """Keep all of a thread whose app-server has ended.

        Its usage reports come late, and the last one never comes.
        """
        self.note_session(rollout)
        self.steps = max(self.steps, rollout.answers - self._answers_before)
        self.remember(
            usage=rollout.usage if rollout.answers else told or self.memory.usage,
            answers=rollout.answers,
        )
        copy = copy_of(rollout.path)
        if copy:
            self._drive.keep(SESSION, copy)

    def report(self, message: str | None) -> None:
        """Say what the run has done and used; Codex itself counts over all runs of a thread."""
        used = self.memory.usage.since(self._used_before)
        self._drive.report(
            Report(
                message=message,
                steps=self.steps,
                input_tokens=used.input_tokens,
                cached_input_tokens=used.cached_input_tokens,
                output_tokens=used.output_tokens,
                details={
                    "cached_input_tokens": used.cached_input_tokens,
                    "reasoning_output_tokens": used.reasoning_output_tokens,
                },
            )
        )
