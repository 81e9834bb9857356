"""A tool call: its canonical bytes, their digest, and the journal of its states."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Any, Self

import msgspec

from adjourn.core.errors import Misuse, UnreadableRow
from adjourn.core.states import CallState
from adjourn.core.task import ProcessId

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]

COMMAND = "command"
AUTO_APPROVAL = "AUTO_APPROVAL"
DEFAULT_VALUE = "approved"
_DAMAGED = (msgspec.MsgspecError, ValueError, RecursionError)  # what no call of ours is


class Fate(StrEnum):
    """How a call ended, in the words that machines read: its state, or `not_made`."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    CLAIMED = "claimed"
    EXECUTING = "executing"
    DONE = "done"
    FAILED = "failed"
    UNCERTAIN = "uncertain"
    # It was approved, and its agent ended without making it
    NOT_MADE = "not_made"


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of a `command` call.

    A process, what adjourn adds to its environment, and the files it was judged with.
    """

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str] = {}
    files: dict[str, str] = {}


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call with an effect, approved by a person or by a rule."""

    task_id: str
    number: int
    tool: str
    body: bytes
    digest: str
    nonce: str
    state: CallState
    claimed_by: str | None = None
    approved_by: str | None = None
    ask: int | None = None
    version: int = 1
    label: str | None = None  # what the agent calls it, if that names no other call of the task
    shim: ProcessId | None = None  # what runs it, beside the process of its run
    attempt: int = 0  # how often it was taken to be run there

    @property
    def tool_call_id(self) -> str:
        """The call's name within its task."""
        return call_name(self.number, self.label)

    @property
    def place(self) -> str:
        """The name under which this attempt to run it keeps its files; no other attempt has it."""
        return f"{self.id}.{self.attempt}"

    @property
    def id(self) -> str:
        """The call's name in the store.

        The same on every attempt, so it serves as an idempotency key.
        """
        return f"{self.task_id}.{self.tool_call_id}"


class Once(msgspec.Struct, kw_only=True):
    """A call that is made once in all runs of a task: whether it was, and what it returned."""

    is_made: bool = False
    result: Any = None


def call_name(number: int | None, label: str | None) -> str:
    """Name a call within its task."""
    return label or f"tc_{number}"


def digest_of(body: bytes) -> str:
    """Return the digest that a decision binds to."""
    return sha256(body).hexdigest()


def slot_of(session_id: str, key: str, occurrence: int) -> str:
    """Name the n-th thing of that key in a session, however often the process starts again."""
    return sha256(canonical([session_id, portable(key), occurrence])).hexdigest()[:32]


def command_body(command: Command) -> bytes:
    """Return the canonical bytes of a command call.

    Equal calls, equal bytes, and the other way round.
    """
    arguments = {
        "argv": [portable(word) for word in command.argv],
        "cwd": portable(command.cwd),
        "env": {name: portable(value) for name, value in command.env.items()},
    }
    if command.files:
        arguments["files"] = {path: portable(found) for path, found in command.files.items()}
    return canonical({"arguments": arguments, "tool": COMMAND})


def argv_of(command: Command) -> Json:
    """Return a command's arguments as its call holds them."""
    words: Json = msgspec.to_builtins([portable(word) for word in command.argv])
    return words


def tool_body(tool: str, arguments: Mapping[str, object]) -> bytes:
    """Return the canonical bytes of any other call; what JSON cannot carry exactly is refused."""
    if tool == COMMAND:
        raise Misuse("the tool 'command' is adjourn's own", way_out="name the tool otherwise")
    try:
        body = canonical({"arguments": arguments, "tool": tool})
        is_exact = msgspec.json.decode(body) == msgspec.to_builtins(
            {"arguments": arguments, "tool": tool}, str_keys=True
        )
    except (TypeError, ValueError) as error:
        raise Misuse(
            f"the arguments of {tool} are not JSON: {error}",
            way_out="give texts, numbers, lists and mappings",
        ) from error
    if not is_exact:
        raise Misuse(
            f"the arguments of {tool} are not JSON",
            way_out="give texts, finite numbers, lists and mappings",
        )
    return body


def command_of(body: bytes) -> Command:
    """Read a command back from its canonical bytes, exactly, or raise UnreadableRow."""
    try:
        arguments = msgspec.json.decode(body, type=_CommandBody).arguments
        return Command(
            argv=tuple(exact(word) for word in arguments.argv),
            cwd=exact(arguments.cwd),
            env={name: exact(value) for name, value in arguments.env.items()},
            files={path: exact(found) for path, found in arguments.files.items()},
        )
    except _DAMAGED:
        raise _unreadable(body) from None


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """What a process can read once to know that it was approved, by whom, and for which bytes."""

    call_id: str
    digest: str
    nonce: str
    approved_by: str | None
    value: str | None


def grant_of(call: Call) -> bytes:
    """Return the proof of an approved call."""
    value = command_of(call.body).env.get(AUTO_APPROVAL)
    return canonical(
        Grant(
            call_id=call.id,
            digest=call.digest,
            nonce=call.nonce,
            approved_by=call.approved_by,
            value=value,
        )
    )


def arguments_of(body: bytes) -> dict[str, Json]:
    """Return a call's arguments as JSON values, or raise UnreadableRow."""
    try:
        return msgspec.json.decode(body, type=_AnyBody).arguments
    except _DAMAGED:
        raise _unreadable(body) from None


def require_readable(call: Call) -> None:
    """Raise UnreadableRow, with the name of the call, where its bytes say nothing."""
    try:
        arguments_of(call.body)
        if call.tool == COMMAND:
            command_of(call.body)
    except UnreadableRow:
        raise UnreadableRow.of("call", call.id) from None


def _unreadable(body: bytes) -> UnreadableRow:
    return UnreadableRow.of("call", f"with the digest {digest_of(body)[:12]}")


def canonical(value: object) -> bytes:
    """Encode with sorted keys and no white space, so that equal values have equal bytes."""
    return msgspec.json.encode(value, order="sorted")


class Bytes(msgspec.Struct, frozen=True):
    """A word that is not UTF-8."""

    bytes: str


Word = str | Bytes


class _CommandArguments(msgspec.Struct):
    argv: list[Word]
    cwd: Word
    env: dict[str, Word]
    files: dict[str, Word] = {}


class _CommandBody(msgspec.Struct):
    arguments: _CommandArguments


class _AnyBody(msgspec.Struct):
    arguments: dict[str, Any]


def portable(word: str) -> Word:
    """Return a word of the operating system as JSON can carry it.

    It need not be UTF-8, and a JSON string must be.
    """
    try:
        word.encode()
    except UnicodeEncodeError:
        from base64 import b64encode  # seldom needed

        return Bytes(b64encode(word.encode("utf-8", "surrogateescape")).decode())
    return word


def exact(word: Word) -> str:
    """Return the word that was made portable."""
    if isinstance(word, str):
        return word
    # Slow to import, and seldom needed
    from base64 import b64decode

    return b64decode(word.bytes).decode("utf-8", "surrogateescape")


def exact_word(word: Json) -> str | None:
    """Return the word that a JSON value carries, or None if it carries none."""
    match word:
        case str():
            return word
        case {"bytes": str(encoded), **rest} if not rest:
            return _exact_or_none(encoded)
        case _:
            return None


def _exact_or_none(encoded: str) -> str | None:
    try:
        return exact(Bytes(encoded))
    except ValueError:
        return None


class Approved(str):
    """The value of an approval, a text, that also carries the arguments that were approved.

    Where a person changed them, they are not those that were asked for: make the call with
    `arguments`, and with nothing else.
    """

    __slots__ = ("_arguments", "_is_read", "is_edited")

    is_edited: bool
    _arguments: Mapping[str, Any]
    _is_read: bool

    def __new__(cls, value: str, arguments: Mapping[str, Any], *, is_edited: bool) -> Self:
        """Make one."""
        made = super().__new__(cls, value)
        made._arguments = arguments
        made._is_read = False
        made.is_edited = is_edited
        return made

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that were approved."""
        self._is_read = True
        return dict(self._arguments)

    @property
    def is_ignored(self) -> bool:
        """Whether a person changed the arguments and nobody looked at them."""
        return self.is_edited and not self._is_read
