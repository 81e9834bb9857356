"""JSON-RPC with a child process on its stdin and stdout, one message a line."""

import os
import select
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

import msgspec

from adjourn.core.errors import AdjournError
from adjourn.runners.driver import StopRequest
from adjourn.runners.hook import Answer, HookListener, WaitingHook, refuse_replaced
from adjourn.runners.installed import find_tool

HOOK = "hook"  # the method of what a hook asks
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


class ServerMessage(msgspec.Struct, frozen=True, kw_only=True):
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

    code = "codex_refused"
    refusal: RpcError

    @classmethod
    def of(cls, method: str, refusal: RpcError) -> Self:
        """Say what was asked, and what was said to it."""
        refused = cls(f"Codex refused {method}: {refusal.message}")
        refused.refusal = refusal
        return refused


class WaitingHooks:
    """The hooks that wait for an answer, each as if it were a request of the app-server."""

    def __init__(self, place: str, *, seal: str) -> None:
        self._place = place
        self._seal = seal
        self._waiting: dict[str, WaitingHook] = {}
        self._count = 0
        self.open()

    def open(self) -> None:
        """Listen, from now on or again."""
        self._selector = selectors.EpollSelector()
        self._listener = HookListener(self._place, self._selector)

    def fileno(self) -> int:
        """Return what to poll."""
        return self._selector.fileno()

    def heard(self) -> Iterator[ServerMessage]:
        """Take in what hooks say; yield those that have said all."""
        for key, _ in self._selector.select(0):
            key.data()
        for asked in self._listener.take():
            self._count += 1
            name = f"{HOOK}-{self._count}"
            self._waiting[name] = asked
            yield ServerMessage(
                id=name, method=HOOK, params=msgspec.Raw(msgspec.json.encode(asked.request))
            )

    def refuse_replaced(self) -> None:
        """Raise if hooks find something else in the place of our socket."""
        refuse_replaced(self._listener)

    def answer(self, name: str, answer: Answer) -> None:
        """Answer a hook."""
        refuse_replaced(self._listener)
        self._waiting.pop(name).answer(answer, seal=self._seal)

    def close(self) -> None:
        """Stop listening; whoever still asks gets no answer, which is a no."""
        for asked in self._waiting.values():
            asked.drop()
        self._waiting.clear()
        self._listener.close()
        self._selector.close()


class Channel:
    """A child process that speaks JSON, a message a line.

    Requests and answers, or events to which nobody answers.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        complaints: str,
        bind: Callable[[], None],
        hooks: WaitingHooks,
        interrupts: StopRequest,
        is_spoken_to: bool,
    ) -> None:
        self._child = _started(
            argv, cwd=cwd, env=env, complaints=complaints, bind=bind, is_spoken_to=is_spoken_to
        )
        self._is_spoken_to = is_spoken_to
        sleep = find_tool("sleep", path=env.get("PATH", os.defpath), workspace=cwd)
        self._keeper = _keeping(self._stdin, sleep=sleep) if is_spoken_to else None
        self._hooks = hooks
        self._interrupts = interrupts
        self._rest = bytearray()
        self._messages: deque[ServerMessage] = deque()
        self._last_id = 0

    def ask(self, method: str, params: object, *, within: float) -> msgspec.Raw:
        """Ask for something and return the answer.

        What else is said meanwhile is kept for `next`.
        """
        self._last_id += 1
        number, kept = self._last_id, list[ServerMessage]()
        self.send({"id": number, "method": method, "params": params})
        deadline = time.monotonic() + within
        while True:
            message = self.next(deadline - time.monotonic())
            if message.method is None and message.id == number:
                break
            kept.append(message)
        self._messages.extendleft(reversed(kept))
        if message.error:
            raise Refused.of(method, message.error)
        return message.result

    def send(self, message: Mapping[str, Any]) -> None:
        """Say something."""
        line = memoryview(msgspec.json.encode(message) + b"\n")
        try:
            while line:
                line = line[os.write(self._stdin, line) :]
        except BrokenPipeError:
            raise self._gone() from None

    def next(self, within: float) -> ServerMessage:
        """Return the next message; raise Silent, Gone or StopRequested if there is none."""
        deadline = time.monotonic() + within
        while not self._messages:
            self._read(max(0.0, deadline - time.monotonic()))
        return self._messages.popleft()

    def _read(self, within: float) -> None:
        poll = select.poll()
        poll.register(self._stdout, select.POLLIN)
        poll.register(self._interrupts, select.POLLIN)
        poll.register(self._hooks, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(within * 1000)}
        self._hooks.refuse_replaced()
        if self._interrupts.fileno() in ready:
            raise StopRequested
        if not ready:
            raise Silent
        if self._hooks.fileno() in ready:
            self._messages.extend(self._hooks.heard())
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
        read = _message if self._is_spoken_to else _event
        self._messages.extend(read(bytes(line)) for line in lines if line.strip())

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

    An end of it would have Codex write that before it dies with us.
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

    Whoever slips through ends with the run.
    """
    children: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                children += map(int, file.read().split())
    return children + [below for child in children for below in _below(child)]


def _message(line: bytes) -> ServerMessage:
    try:
        return msgspec.json.decode(line, type=ServerMessage)
    except msgspec.DecodeError as error:
        raise AdjournError(f"Codex said something that is no message: {line[:200]!r}") from error


class _Event(msgspec.Struct):
    type: str


def _event(line: bytes) -> ServerMessage:
    try:
        return ServerMessage(
            method=msgspec.json.decode(line, type=_Event).type, params=msgspec.Raw(line)
        )
    except msgspec.MsgspecError as error:
        raise AdjournError(f"Codex said something that is no event: {line[:200]!r}") from error


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
