"""What a task remembers of its agent's session between two runs, and how it is kept."""

import time

import msgspec

from adjourn.core import kept_documents
from adjourn.core.agent.calls import Report
from adjourn.ports.drive import Drive
from adjourn.runners.acp.protocol import Usage

DOCUMENT = kept_documents.ACP.name
SESSION = kept_documents.SESSION.name
_MADE = 20  # calls that the model is told it has made, the newest


class Memory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the session is, and what its agent has still to be told."""

    of: str  # the task's own session: after a restart there is another
    session: str = ""  # the agent's
    mode: str = ""
    version: str = ""
    began: float = 0.0  # when the agent opened it, in seconds of the clock
    has_begun: bool = False  # whether anything came of the task's prompt
    held: tuple[str, ...] = ()  # calls that a person was asked about, until the model was told
    untold: tuple[str, ...] = ()  # those of them whose fate the model was not told
    made: tuple[str, ...] = ()  # calls that were let through in the newest run
    # What was asked and not answered to the agent yet, and the key that it was asked under
    questions: dict[str, str] = {}
    asked: int = 0  # how many questions there were
    reviews: int = 0  # how many wishes of people the model was told
    cost: float = 0.0  # what the whole session has cost, in US dollars


def memory_of(body: bytes | None, *, session: str) -> Memory | None:
    """Return what the run before left, unless the task was restarted since."""
    found = msgspec.json.decode(body, type=Memory) if body else None
    return found if found and found.of == session else None


class MemoryKeeper:
    """The memory of a task's session, in the store."""

    def __init__(self, drive: Drive) -> None:
        self._drive = drive
        session = drive.task.session_id
        self.memory = memory_of(drive.document(DOCUMENT), session=session) or Memory(of=session)
        self._cost_before = self.memory.cost
        self._used = Usage()
        self.steps = 0

    def remember(self, **changes: object) -> None:
        """Change what is remembered."""
        memory = msgspec.structs.replace(self.memory, **changes)
        if memory != self.memory:
            self.memory = memory
            self._drive.keep(DOCUMENT, msgspec.json.encode(memory))

    def opened(self, session: str, *, mode: str, version: str) -> None:
        """Remember a session as soon as its name is known."""
        began = self.memory.began if session == self.memory.session else time.time()
        self.remember(session=session, mode=mode, version=version, began=began)
        self._drive.session(session, resumable=self.memory.has_begun)

    def begun(self) -> None:
        """Remember that the agent works on the task: from now on its session can be resumed."""
        self.remember(has_begun=True, untold=(), reviews=len(self._drive.feedback))
        self._drive.session(self.memory.session, resumable=True)

    def made(self, names: tuple[str, ...]) -> None:
        """Remember calls before they are let through."""
        self.remember(made=(*self.memory.made, *names)[-_MADE:])

    def note_use(self, used: Usage, cost: float | None) -> None:
        """Add what a turn took; an agent counts the cost over its whole session."""
        self._used = Usage(
            input_tokens=self._used.input_tokens + used.input_tokens,
            output_tokens=self._used.output_tokens + used.output_tokens,
            cached_read_tokens=(self._used.cached_read_tokens or 0)
            + (used.cached_read_tokens or 0),
        )
        if cost is not None:
            self.remember(cost=cost)

    def report(self, message: str | None) -> None:
        """Say what the run has done and used, as far as its agent tells."""
        cost = self.memory.cost - self._cost_before
        self._drive.report(
            Report(
                message=message,
                steps=self.steps,
                input_tokens=self._used.input_tokens,
                cached_input_tokens=self._used.cached_read_tokens or 0,
                output_tokens=self._used.output_tokens,
                cost=f"{cost:.6f}" if cost > 0 else None,
                details={"mode": self.memory.mode, "version": self.memory.version},
            )
        )
