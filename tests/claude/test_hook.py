"""The hook fails closed.

Whatever is broken, Claude Code gets exit code 2 and not a word that it could take for a yes.
"""

import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from adjourn.runners import hook
from adjourn.runners.claude import options
from tests.e2e.shell import ADJOURN

CALL = {
    "session_id": "s",
    "cwd": "/w",
    "tool_name": "Bash",
    "tool_input": {"command": "rm -rf /"},
    "tool_use_id": "toolu_A",
}
YES = msgspec.json.encode(hook.allow({"command": "true"}))
Reply = Callable[[socket.socket], None]


def ask(
    place: Path, *, line: str = options.hook_command(str(ADJOURN)), **env: str
) -> "subprocess.CompletedProcess[bytes]":
    """Have a shell run the hook's command, as Claude Code does."""
    known = {"ADJOURN_RUN_ID": "task.1", "ADJOURN_STORE": str(place), "PATH": os.environ["PATH"]}
    request = msgspec.json.encode(CALL)
    return subprocess.run(
        ["sh", "-c", line],
        input=request,
        env=known | env,
        capture_output=True,
        check=False,
        timeout=60,
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a store whose run has a private directory."""
    (tmp_path / "runs" / "task.1" / "driver").mkdir(parents=True)
    return tmp_path


def socket_of(place: Path) -> Path:
    return place / "runs" / "task.1" / "driver" / hook.SOCKET


@contextlib.contextmanager
def driver(place: Path, reply: Reply) -> Iterator[None]:
    """Play a driver that does something to everyone who asks."""
    with socket.socket(socket.AF_UNIX) as listener:
        before = Path.cwd()
        os.chdir(socket_of(place).parent)  # a long path is too long for a socket
        listener.bind(hook.SOCKET)
        os.chdir(before)
        listener.listen()

        def serve() -> None:
            with contextlib.suppress(OSError), listener.accept()[0] as line:
                reply(line)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def says(answer: bytes) -> Reply:
    """Return a driver that hears all and says that."""

    def reply(line: socket.socket) -> None:
        while line.recv(65_536):
            pass
        line.sendall(answer)

    return reply


def hangs_up(line: socket.socket) -> None:
    line.close()


def test_a_yes_reaches_claude_code_as_it_is(place: Path) -> None:
    with driver(place, says(YES)):
        done = ask(place)
    assert (done.returncode, done.stdout) == (0, YES)


BROKEN: dict[str, Reply] = {
    "hangs up before it hears": hangs_up,
    "says nothing": says(b""),
    "says half of it": says(YES[:-2]),
    "says it twice": says(YES + YES),
    "says no JSON": says(b"allow"),
    "says other JSON": says(b'"allow"'),
    "says an empty object": says(b"{}"),
    "says a list": says(b"[" + YES + b"]"),
    "is not UTF-8": says(b'{"hookSpecificOutput":"\xff"}'),
    "knows no decision": says(b'{"hookSpecificOutput":{"hookEventName":"PreToolUse"}}'),
    "invents a decision": says(YES.replace(b'"allow"', b'"yes"')),
    "asks instead": says(YES.replace(b'"allow"', b'"ask"')),
    "speaks of another event": says(YES.replace(b"PreToolUse", b"PostToolUse")),
    "gives an input that is none": says(YES.replace(b'{"command":"true"}', b"7")),
}


@pytest.mark.parametrize("reply", BROKEN.values(), ids=list(BROKEN))
def test_a_driver_that_is_out_of_its_mind_is_a_no(place: Path, reply: Reply) -> None:
    with driver(place, reply):
        done = ask(place)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Not run" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_driver_that_is_not_there_is_a_no(place: Path) -> None:
    assert (ask(place).returncode, ask(place).stdout) == (2, b"")


def test_a_file_in_the_place_of_the_socket_is_a_no(place: Path) -> None:
    socket_of(place).write_text("allow")
    assert ask(place).returncode == 2


def test_a_socket_that_nobody_listens_at_is_a_no(place: Path) -> None:
    with driver(place, hangs_up):
        pass
    assert socket_of(place).exists()
    assert ask(place).returncode == 2


def test_a_hook_outside_of_a_run_is_a_no(place: Path) -> None:
    assert ask(place, ADJOURN_RUN_ID="").returncode == 2
    assert ask(place, ADJOURN_STORE="").returncode == 2
    assert ask(place, ADJOURN_RUN_ID="../../etc").returncode == 2


def test_an_adjourn_that_cannot_start_is_a_no(place: Path) -> None:
    with driver(place, says(YES)):
        broken = ask(place, PYTHONHOME="/nonexistent")
    assert (broken.returncode, broken.stdout) == (2, b"")
    line = options.hook_command("/nonexistent/adjourn")
    done = subprocess.run(["sh", "-c", line], input=b"{}", capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")


def test_a_hook_that_cannot_print_is_a_no(place: Path) -> None:
    with driver(place, says(YES)):
        done = ask(place, line=f"({options.hook_command(str(ADJOURN))}) >/dev/full")
    assert done.returncode == 2


def test_a_hook_that_is_killed_is_a_no(place: Path) -> None:
    heard = threading.Event()

    def kills(line: socket.socket) -> None:
        heard.set()
        pid = int.from_bytes(
            line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], "little"
        )
        os.kill(pid, 9)

    with driver(place, kills):
        done = ask(place)
    assert heard.is_set()
    assert (done.returncode, done.stdout) == (2, b"")
