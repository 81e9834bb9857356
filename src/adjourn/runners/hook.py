"""How a call that an agent is about to make reaches the driver of its run, and the answer it."""

import os
import selectors
import socket
import struct
from contextlib import closing, suppress
from hashlib import sha256
from typing import Any, Literal

import msgspec

from adjourn.core.errors import AdjournError, NotAllowed
from adjourn.core.text.json_text import decode_unambiguous

SOCKET = "hook.sock"
BLOCKS = 2  # the exit code that Claude Code takes for a no, whatever its settings
PATIENCE = 890.0  # seconds; a little less than Claude Code gives its hooks
_LARGEST = 64 * 1024 * 1024
_PIECE = 65_536
REPLACED = (
    "the socket at which the calls of this run wait was replaced: a process inside the run "
    "can have done that"
)


class HookRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A call that Claude Code is about to make.

    File paths in its input are absolute; in the stream they need not be.
    """

    session_id: str
    cwd: str
    tool_name: str
    tool_input: dict[str, Any]
    tool_use_id: str
    agent_id: str | None = None


class _Decision(msgspec.Struct, omit_defaults=True, rename="camel"):
    hook_event_name: Literal["PreToolUse"]
    permission_decision: Literal["allow", "deny", "defer"]
    permission_decision_reason: str | None = None
    updated_input: dict[str, Any] | None = None
    additional_context: str | None = None


class Answer(msgspec.Struct, omit_defaults=True, rename="camel"):
    """What Claude Code reads from its hook."""

    hook_specific_output: _Decision
    continue_: bool = msgspec.field(name="continue", default=True)


def allow(arguments: dict[str, Any], *, context: str | None = None) -> Answer:
    """Let the call run, with exactly these arguments."""
    return Answer(
        _Decision("PreToolUse", "allow", updated_input=arguments, additional_context=context)
    )


def deny(reason: str, *, context: str | None = None) -> Answer:
    """Keep the call from running; the model reads why, and goes on."""
    return Answer(_Decision("PreToolUse", "deny", reason, additional_context=context))


def deny_and_stop(reason: str) -> Answer:
    """Keep the call from running and the model from going on.

    Another call of its turn has to be decided first.
    """
    return Answer(_Decision("PreToolUse", "deny", reason), continue_=False)


def defer() -> Answer:
    """Have the session stop at the call; a resume asks for it again."""
    return Answer(_Decision("PreToolUse", "defer"))


# --- who is on the other side ---------------------------------------------------------------------

_CREDENTIALS = struct.Struct("3i")  # process, user, group, as the kernel saw them


def _is_driver_of_us(line: socket.socket) -> bool:
    """Return whether the listener is our parent, or a parent of that, and so on.

    The kernel keeps who called `listen`. What an agent starts can take the socket's place, but not
    that of the process which started the agent.
    """
    pid, user, _ = _CREDENTIALS.unpack(
        line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    return user == os.getuid() and _is_below(os.getpid(), pid)


def _is_below_us(line: socket.socket) -> bool:
    """Return whether the peer is our child, or a child of that, and so on."""
    pid, user, _ = _CREDENTIALS.unpack(
        line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    return user == os.getuid() and _is_below(pid, os.getpid())


def _is_below(pid: int, above: int) -> bool:
    """Say whether a process is another one or below it; where that cannot be read, it is not."""
    while pid > 0 and above > 0:
        if pid == above:
            return True
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return False
    return False


def proof_of(seal: str) -> str:
    """Return what a hook prints for a sealed yes.

    It may be known to everybody: the seal cannot be found from it.
    """
    return sha256(seal.encode()).hexdigest()


# --- the side of the hook -------------------------------------------------------------------------


def ask(place: str, request: bytes) -> bytes:
    """Send a hook's input to the driver that listens in that directory; return what to print.

    For a sealed yes, that is the proof of the seal and nothing else: what is broken cannot know it.
    """
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as line:
        line.settimeout(PATIENCE)
        _use_socket(place, line.connect)
        if not _is_driver_of_us(line):
            raise NotAllowed(f"Not run: who listens at {SOCKET} is not the driver of this run")
        line.sendall(request)
        line.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: line.recv(_PIECE), b""))
    said, _, seal = answer.partition(b"\n")
    # What is no whole answer must never be printed
    decision = msgspec.json.decode(said, type=Answer).hook_specific_output
    if seal and decision.permission_decision == "deny":
        raise NotAllowed(decision.permission_decision_reason or "adjourn refuses it")
    return proof_of(seal.decode()).encode() if seal else said


def _use_socket(place: str, use: Any) -> None:
    """Use the socket's path by way of its directory.

    A path of more than 107 bytes is too long for a socket.
    """
    directory = os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        use(f"/proc/self/fd/{directory}/{SOCKET}")
    finally:
        os.close(directory)


# --- the side of the driver -----------------------------------------------------------------------


class WaitingHook:
    """One hook that waits for its answer."""

    def __init__(self, line: socket.socket, listener: "HookListener") -> None:
        self._line = line
        self._listener = listener
        self._said = bytearray()
        self.request: HookRequest | None = None

    def fileno(self) -> int:
        """Return what to poll."""
        return self._line.fileno()

    def is_whole(self) -> bool:
        """Take in what has come; say whether that was all of it."""
        piece = self._line.recv(_PIECE)
        self._said += piece
        if piece and len(self._said) <= _LARGEST:
            return False
        self.request = decode_unambiguous(self._said, type=HookRequest)
        return True

    def answer(self, answer: Answer, *, seal: str = "") -> str:
        """Answer, let go, and return what was said.

        A hook that is gone was killed, which is a no. A seal shows who spoke.
        """
        said = msgspec.json.encode(answer)
        self._line.setblocking(True)  # noqa: FBT003 -- its only argument
        if not self._listener.is_own:  # the peer may stand between us and the hook
            self._line.close()
            return said.decode()
        with suppress(OSError):
            self._line.settimeout(PATIENCE)
            self._line.sendall(said + (f"\n{seal}".encode() if seal else b""))
        self._line.close()
        return said.decode()

    def drop(self) -> None:
        """Let go without an answer, which is a no."""
        self._line.close()


class HookListener:
    """Listens for hooks, in the private directory of a run."""

    def __init__(self, place: str, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._path = os.path.join(place, SOCKET)
        with suppress(FileNotFoundError):
            os.unlink(self._path)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        _use_socket(place, self._listener.bind)
        self._listener.listen(64)
        self._identity = _identity(self._path)
        self._listener.setblocking(False)  # noqa: FBT003 -- its only argument
        selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._asking: set[WaitingHook] = set()
        self.heard: list[WaitingHook] = []

    def _accept(self) -> None:
        with suppress(BlockingIOError):
            line, _ = self._listener.accept()
            if not _is_below_us(line):
                line.close()
                return
            line.setblocking(False)  # noqa: FBT003 -- its only argument
            asked = WaitingHook(line, self)
            self._asking.add(asked)
            self._selector.register(line, selectors.EVENT_READ, lambda: self._read(asked))

    def _read(self, asked: WaitingHook) -> None:
        try:
            is_whole = asked.is_whole()
        except BlockingIOError:
            return
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._forget(asked)
            asked.drop()
            return
        if is_whole:
            self._forget(asked)
            self.heard.append(asked)

    def _forget(self, asked: WaitingHook) -> None:
        self._selector.unregister(asked)
        self._asking.discard(asked)

    @property
    def is_own(self) -> bool:
        """Whether the socket that hooks find is ours.

        While we listen, the kernel gives its inode to no other file.
        """
        return _identity(self._path) == self._identity

    @property
    def is_replaced(self) -> bool:
        """Whether hooks find something else in the place of our socket.

        If they find nothing, none of them gets a yes.
        """
        return _identity(self._path) not in {self._identity, None}

    def take(self) -> list[WaitingHook]:
        """Return the hooks that have said all, each once."""
        heard, self.heard = self.heard, []
        return heard

    def close(self) -> None:
        """Stop listening; a hook that still asks gets no answer."""
        for asked in list(self._asking):
            self._forget(asked)
            asked.drop()
        for asked in self.take():
            asked.drop()
        self._selector.unregister(self._listener)
        is_own = self.is_own
        self._listener.close()
        if is_own:
            with suppress(FileNotFoundError):
                os.unlink(self._path)


def _identity(path: str) -> tuple[int, int] | None:
    """Return what names a file whatever its path is, or None if it is missing."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def refuse_replaced(listener: HookListener) -> None:
    """Raise if something else is in the place of the socket.

    Then nobody knows who answers the hooks.
    """
    if listener.is_replaced:
        raise AdjournError(REPLACED)
