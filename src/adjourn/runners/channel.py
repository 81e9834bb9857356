"""JSON-RPC with a child process on its stdin and stdout, one message a line."""

import os
import select
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, Self

import msgspec

from adjourn.core.errors import AdjournError
from adjourn.runners.driver import StopRequest
from adjourn.runners.installed import find_tool

_PIECE = 1 << 16
_LEAVING = 1.0  # seconds from its last word to its end


class StopRequested(Exception):
    """Somebody wants the run to stop."""


class Silent(Exception):
    """Nothing was said in time."""


class Gone(Exception):
    """The other side has left, with an exit code or by a signal, if that could be seen."""

    def __init__(self, code: int | None = None) -> None:
        super().__init__()
        self.code = code


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message: a request, a notification or an answer."""

    id: int | str | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw(b"null")
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: "RpcError | None" = None


class RpcError(msgspec.Struct, frozen=True, kw_only=True):
    """What the other side says when it does not do what it was asked."""

    code: int = 0
    message: str = ""


class Refused(AdjournError):
    """The other side did not do what it was asked."""

    code = "agent_refused"
    refusal: RpcError

    @classmethod
    def of(cls, name: str, method: str, refusal: RpcError) -> Self:
        """Say who was asked, for what, and what was said to it."""
        refused = cls(f"{name} refused {method}: {refusal.message}")
        refused.refusal = refusal
        return refused


class Source(Protocol):
    """What else may bring messages of the other side, beside its stdout."""

    def fileno(self) -> int:
        """Return what to poll."""
        ...

    def heard(self) -> Iterator[Message]:
        """Return the messages that have come, each once."""
        ...

    def refuse_replaced(self) -> None:
        """Raise if somebody else may answer in our place."""
        ...


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """How a program speaks."""

    is_spoken_to: bool = True  # else it only tells events
    header: dict[str, str] = {}  # what each message to it begins with
    keeps_noise: bool = False  # what is no message goes to the complaints; else it is an error


class Channel:
    """A child process that speaks JSON, a message a line.

    Requests and answers, or events to which nobody answers.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        name: str,
        cwd: str,
        env: Mapping[str, str],
        complaints: str,
        bind: Callable[[], None],
        interrupts: StopRequest,
        source: Source | None = None,
        dialect: Dialect,
    ) -> None:
        self._name = name  # as people know the program
        self._child = _started(
            argv,
            cwd=cwd,
            env=env,
            complaints=complaints,
            bind=bind,
            is_spoken_to=dialect.is_spoken_to,
        )
        self._dialect = dialect
        sleep = find_tool("sleep", path=env.get("PATH", os.defpath), workspace=cwd)
        self._keeper = _keeping(self._stdin, sleep=sleep) if dialect.is_spoken_to else None
        self._source = source
        self._complaints = complaints
        self._interrupts = interrupts
        self._rest = bytearray()
        self._messages: deque[Message] = deque()
        self._last_id = 0

    def ask(self, method: str, params: object, *, within: float) -> msgspec.Raw:
        """Ask for something and return the answer.

        What else is said meanwhile is kept for `next`.
        """
        number, kept = self.begin(method, params), list[Message]()
        deadline = time.monotonic() + within
        while True:
            message = self.next(deadline - time.monotonic())
            if message.method is None and message.id == number:
                break
            kept.append(message)
        self._messages.extendleft(reversed(kept))
        if message.error:
            raise Refused.of(self._name, method, message.error)
        return message.result

    def begin(self, method: str, params: object) -> int:
        """Ask for something whose answer comes by `next`; return the id that the answer has."""
        self._last_id += 1
        self.send({"id": self._last_id, "method": method, "params": params})
        return self._last_id

    def send(self, message: Mapping[str, Any]) -> None:
        """Say something."""
        line = memoryview(msgspec.json.encode({**self._dialect.header, **message}) + b"\n")
        try:
            while line:
                line = line[os.write(self._stdin, line) :]
        except BrokenPipeError:
            raise self._gone() from None

    def next(self, within: float) -> Message:
        """Return the next message; raise Silent, Gone or StopRequested if none comes."""
        deadline = time.monotonic() + within
        while not self._messages:
            self._read(max(0.0, deadline - time.monotonic()))
        return self._messages.popleft()

    def _read(self, within: float) -> None:
        poll = select.poll()
        poll.register(self._stdout, select.POLLIN)
        poll.register(self._interrupts, select.POLLIN)
        if self._source:
            poll.register(self._source, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(within * 1000)}
        if self._source:
            self._source.refuse_replaced()
        if self._interrupts.fileno() in ready:
            raise StopRequested
        if not ready:
            raise Silent
        if self._source and self._source.fileno() in ready:
            self._messages.extend(self._source.heard())
        if self._stdout not in ready:
            return
        piece = os.read(self._stdout, _PIECE)
        if not piece:
            raise self._gone()
        self._take(piece)

    def _gone(self) -> Gone:
        with suppress(subprocess.TimeoutExpired):
            return Gone(self._child.wait(_LEAVING))
        return Gone()

    def _take(self, piece: bytes) -> None:
        *lines, rest = (
            (self._rest + piece).split(b"\n") if b"\n" in piece else (self._rest + piece,)
        )
        self._rest = bytearray(rest)
        for line in filter(bytes.strip, map(bytes, lines)):
            try:
                self._messages.append(
                    _message(line) if self._dialect.is_spoken_to else _event(line)
                )
            except msgspec.MsgspecError as error:
                if not self._dialect.keeps_noise:
                    what = f"{self._name} said something that is no message: {line[:200]!r}"
                    raise AdjournError(what) from error
                with open(self._complaints, "ab") as file:
                    file.write(line + b"\n")

    def close(self, *, within: float) -> None:
        """Say goodbye, and end the process if it does not leave by itself."""
        self._let_go()
        if self._child.stdin:
            self._child.stdin.close()
        try:
            while True:
                self.next(within)
        except (Gone, Silent, StopRequested):
            self.kill()

    def _let_go(self) -> None:
        if self._keeper:
            self._keeper.kill()
            self._keeper.wait()
            self._keeper = None

    def kill(self) -> int:
        """End the process and all that it started, at once; return its exit code."""
        # One that was seen to leave has no number of its own any more; what it left alone ends with
        # the run.
        below = _below(self._child.pid) if self._child.returncode is None else []
        self._child.kill()
        for pid in below:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        code = self._child.wait()
        self._let_go()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe:
                pipe.close()
        return code

    @property
    def _stdin(self) -> int:
        assert self._child.stdin  # noqa: S101 -- it is a pipe
        return self._child.stdin.fileno()

    @property
    def _stdout(self) -> int:
        assert self._child.stdout  # noqa: S101 -- it is a pipe
        return self._child.stdout.fileno()


def _keeping(stdin: int, *, sleep: str) -> "subprocess.Popen[bytes]":
    """Start what holds a pipe open when we die.

    An end of it would have the agent write that before it dies with us.
    """
    null = subprocess.DEVNULL
    return subprocess.Popen(
        [sleep, "infinity"],
        stdin=null,
        stdout=null,
        stderr=null,
        pass_fds=(stdin,),
        start_new_session=True,
    )


def _below(pid: int) -> list[int]:
    """Return what a process started, and what that started in turn.

    A process that slips through ends with the run.
    """
    children: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                children += map(int, file.read().split())
    return children + [below for child in children for below in _below(child)]


def _message(line: bytes) -> Message:
    return msgspec.json.decode(line, type=Message)


class _Event(msgspec.Struct):
    type: str


def _event(line: bytes) -> Message:
    return Message(method=msgspec.json.decode(line, type=_Event).type, params=msgspec.Raw(line))


def _started(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    complaints: str,
    bind: Callable[[], None],
    is_spoken_to: bool,
) -> "subprocess.Popen[bytes]":
    pipe = subprocess.PIPE
    # What it is not told there it would wait for
    stdin = pipe if is_spoken_to else subprocess.DEVNULL
    try:
        with open(complaints, "ab") as stderr:
            # A session of its own: the interrupt that pauses a run must not reach it, or it would
            # tell its model of it. For the
            # same reason it dies with us: left alone, it would write into the thread that somebody
            # stopped it on purpose.
            return subprocess.Popen(
                argv,
                cwd=cwd,
                env=env,
                stdin=stdin,
                stdout=pipe,
                stderr=stderr,
                bufsize=0,
                start_new_session=True,
                preexec_fn=bind,  # noqa: PLW1509 -- one call of the system, which takes no lock
            )
    except OSError as error:
        raise AdjournError(
            f"{argv[0]} cannot be started: {error.strerror}", way_out="adjourn doctor"
        ) from error
