"""What is kept beside the tables, each with its name and its type.

A task, or the store, keeps a document under a name. Every name is declared here, and nowhere else,
with how its value becomes bytes and is read from them. Documents of `bytes` belong to parts that
core does not know: those encode them themselves. (One is declared elsewhere: `places`, in
process.ancestry, which short commands read.)
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Generic, Protocol, TypeVar

import msgspec

from adjourn.core.agent.calls import CallResult, Report
from adjourn.core.ask import AskReason
from adjourn.core.authority.delegation import Delegation
from adjourn.core.authority.signed import Signed
from adjourn.core.call import Call
from adjourn.core.clarification import Clarification
from adjourn.core.diffstat import Noted
from adjourn.core.errors import UnreadableRow
from adjourn.core.plan.plan import Record
from adjourn.core.resumption import FollowUp

T = TypeVar("T")


class SentMessage(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A message that shows an ask: where it is, and which bytes of the call it shows."""

    handle: str
    digest: str | None
    event: str  # for which it was sent


class SettlingLink(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A link whose holder may settle an ask, until a time. Its token is not kept."""

    hash: str  # of the token, SHA-256
    expires_at: int


class Reads(Protocol):
    """A view of the store, as far as documents go."""

    def document(self, task_id: str, name: str) -> bytes | None:
        """Return what a task keeps under that name, if anything."""
        ...

    def shared_document(self, name: str) -> bytes | None:
        """Return what the store keeps under that name, if anything."""
        ...


class Writes(Protocol):
    """A transaction of the store, as far as documents go."""

    def keep_document(self, task_id: str, name: str, body: bytes | None) -> None:
        """Keep a document of a task; None keeps nothing."""
        ...

    def keep_shared_document(self, name: str, body: bytes) -> None:
        """Keep a document of the store."""
        ...


class TaskDocument(Generic[T]):
    """A document that a task keeps under one name."""

    def __init__(
        self, name: str, encode: Callable[[T], bytes], decode: Callable[[bytes], T]
    ) -> None:
        self.name = name
        self.encode = encode
        self.decode = decode

    def of(self, part: str | int) -> "TaskDocument[T]":
        """Return the document of one run, call or ask, where a task keeps one for each."""
        return TaskDocument(f"{self.name}{part}", self.encode, self.decode)

    def read(self, view: Reads, task_id: str) -> T | None:
        """Return what a task keeps, if anything."""
        body = view.document(task_id, self.name)
        return None if body is None else _decoded(body, self.decode, f"{self.name} of {task_id}")

    def keep(self, rows: Writes, task_id: str, value: T) -> None:
        """Keep a value in the place of what was there."""
        rows.keep_document(task_id, self.name, self.encode(value))

    def drop(self, rows: Writes, task_id: str) -> None:
        """Keep nothing any more."""
        rows.keep_document(task_id, self.name, None)

    def read_of(self, view: Reads, call: Call) -> T | None:
        """Return what is kept for a call, if anything."""
        return self.of(call.tool_call_id).read(view, call.task_id)

    def keep_of(self, rows: Writes, call: Call, value: T) -> None:
        """Keep a value for a call."""
        self.of(call.tool_call_id).keep(rows, call.task_id, value)


class SharedDocument(Generic[T]):
    """A document that the store keeps, one for each key."""

    def __init__(
        self, prefix: str, encode: Callable[[T], bytes], decode: Callable[[bytes], T]
    ) -> None:
        self._prefix = prefix
        self._encode = encode
        self._decode = decode

    def read(self, view: Reads, key: str = "") -> T | None:
        """Return what the store keeps, if anything; a transaction holds its row until it ends."""
        name = self._prefix + key
        body = view.shared_document(name)
        return None if body is None else _decoded(body, self._decode, name)

    def keep(self, rows: Writes, value: T, key: str = "") -> None:
        """Keep a value in the place of what was there."""
        rows.keep_shared_document(self._prefix + key, self._encode(value))


def _decoded(body: bytes, decode: Callable[[bytes], T], name: str) -> T:
    try:
        return decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise UnreadableRow.of("document", name) from None


def _raw(name: str) -> TaskDocument[bytes]:
    return TaskDocument(name, bytes, bytes)


def _number(name: str) -> TaskDocument[int]:
    return TaskDocument(name, lambda number: str(number).encode(), int)


def _json(name: str, type_: type[T]) -> TaskDocument[T]:
    return TaskDocument(
        name, msgspec.json.encode, lambda body: msgspec.json.decode(body, type=type_)
    )


def _encode_reach(reach: tuple[int, int]) -> bytes:
    return f"{reach[0]} {reach[1]}".encode()


def _decode_reach(body: bytes) -> tuple[int, int]:
    began, reached = body.split()
    return int(began), int(reached)


# --- of a call: NAME and the name of the call -----------------------------------------------------

RESULT = _json("result:", CallResult)  # what a call gave back
ORIGINAL = _raw("original:")  # the bytes of a call before a person edited it
EDITABLE = _raw("editable:")  # the schema of arguments that its process takes in place of its own

# --- of an ask, or a run --------------------------------------------------------------------------

WHY = _json("why:", AskReason)  # and an ask's id: why it is asked
# And an ask's id: the texts of files that its call depends on or changes, as they were when it was
# asked; None of a file that was not there
COPIES: TaskDocument[dict[str, str | None]] = TaskDocument(
    "copies:",
    msgspec.json.encode,
    lambda body: msgspec.json.decode(body, type=dict[str, str | None]),
)
SIGNED = _json("signed:", Signed)  # and an ask's id: the signature under its reply
# And a notifier's name, a colon and an ask's id: the messages that show the ask now
SENT: TaskDocument[tuple[SentMessage, ...]] = TaskDocument(
    "sent:",
    msgspec.json.encode,
    lambda body: msgspec.json.decode(body, type=tuple[SentMessage, ...]),
)
# And a notifier's name, a colon and an ask's id: the links by which it may be settled
LINKS: TaskDocument[tuple[SettlingLink, ...]] = TaskDocument(
    "links:",
    msgspec.json.encode,
    lambda body: msgspec.json.decode(body, type=tuple[SettlingLink, ...]),
)
REPORT = _json("report:", Report)  # and a run's number: what an agent's run reported
# And a run's number: the messages before its session, and all of them when it ended
REACHED = TaskDocument("reached:", _encode_reach, _decode_reach)

# --- of a task ------------------------------------------------------------------------------------

# And a session: what a framework keeps of its state, as its own bytes
FRAMEWORK = _raw("framework:")
# And a slot: what a call that was made in a process of ours returned, as JSON
RETURNED = _raw("returned:")
SAVED = _raw("saved")  # what its process saved for the next run, as JSON
CLARIFICATION = _json("clarification", Clarification)  # the newest
CHECKPOINT = _raw("checkpoint")  # the checkpoint file that its process left
RESPONSE = _raw("response")  # the digest of the response file that was taken
BATCH = _json("batch", list[int])  # the numbers of the newest calls; 0: its driver just makes it
# The numbers of calls that were approved and never made, although their task had ended
NOT_MADE = _json("not_made", list[int])
FOLLOW_UPS = _json("follow_ups", list[FollowUp])  # what an agent that had left is told
# The asks of an agent's tools whose replies its session does not know yet
UNTOLD = _json("untold", list[str])
BEGAN = _number("began")  # how many messages belong to sessions before the last restart
HEAD = _raw("head")  # what its workspace had checked out at a pause (supervision.workspace_notes)
BEFORE = _raw("before")  # its workspace before it began (workspace.sketch)
LEFT = _raw("left:")  # and a run's number: its workspace when that run ended (workspace.sketch)
CHANGES = _json("changes", Noted)  # what it changed, when its work was done


# --- of a driver ----------------------------------------------------------------------------------

SESSION = _raw("session")  # a copy of the file in which a provider keeps its session
CLAUDE = _raw("claude")  # what a driver knows of its session (runners.claude.memory)
ACP = _raw("acp")  # (runners.acp.memory)
CODEX = _raw("codex")  # (runners.codex.memory)
TOOLS = _raw("tools")  # the tools that others bring (runners.agent.driver)
UNMADE = _raw("unmade")  # calls of the agent that were not made (runners.agent.calls)

# --- of the store ---------------------------------------------------------------------------------

POLICY = SharedDocument("policy:", bytes, bytes)  # and its digest
# And the digest of its path: what was begun of a plan
PLAN = SharedDocument(
    "plan:", msgspec.json.encode, lambda body: msgspec.json.decode(body, type=Record)
)
# And the id of an item: the newest task that was begun for it, by the path of its plan
ITEM = SharedDocument(
    "item:", msgspec.json.encode, lambda body: msgspec.json.decode(body, type=dict[str, str])
)
# And the digest of its path. It is never kept: its reader holds it, so that of two tasks of
# plans that begin at the same moment one waits for the other.
WORKSPACE = SharedDocument("workspace:", bytes, bytes)
# For which tasks agents may decide that did not start them
DELEGATIONS: SharedDocument[tuple[Delegation, ...]] = SharedDocument(
    "delegations",
    msgspec.json.encode,
    lambda body: msgspec.json.decode(body, type=tuple[Delegation, ...]),
)
# And a notifier's name and its bot: the first update that was not taken yet
HEARD: SharedDocument[int] = SharedDocument("heard:", lambda number: str(number).encode(), int)
USED_ONCE = SharedDocument("", bytes, bytes)  # and the name of a decision that counts once


def plan_key(path: str) -> str:
    """Return the key of a plan, which is known by its path."""
    return sha256(path.encode()).hexdigest()
