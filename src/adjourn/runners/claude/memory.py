"""What one run of Claude Code leaves for the next."""

import msgspec

from adjourn.core import kept_documents


class ClaudeMemory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the next run of a task has to know of this one."""

    of: str  # the task's own session: after a restart there is another
    session: str  # Claude Code's
    version: str = ""
    started: bool = False  # whether the program was ever told to begin
    deferred: str | None = None  # the call that the session stopped at, as Claude Code names it
    # Calls that were held, as Claude Code names them, and as the task does
    calls: dict[str, str] = {}
    # Calls that the model is told to make again once they are decided, and their fingerprints
    untold: dict[str, str] = {}
    # Calls that were let through, by both names, until the session's file shows what came of them
    made: dict[str, str] = {}
    # Fingerprints of questions that were asked, and their keys
    questions: dict[str, tuple[str, ...]] = {}
    reviews: int = 0  # how many wishes of reviewers the model was told
    asked: int = 0  # how many questions were asked so far
    cost: float = 0.0  # what the whole session has cost, in US dollars


DOCUMENT = kept_documents.CLAUDE.name  # under this name the task keeps it
SESSION = kept_documents.SESSION.name  # and under this one, the copy of the session's file


def memory_of(body: bytes | None, *, session: str) -> ClaudeMemory | None:
    """Return what the run before left, unless the task was restarted since."""
    found = msgspec.json.decode(body, type=ClaudeMemory) if body else None
    return found if found and found.of == session else None
