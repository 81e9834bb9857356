"""What a child finds when it starts, and what is said when it cannot start."""

import os
import signal

import pytest

from adjourn.process.identity import identify, is_alive
from tests.process.scene import PATH, PYTHON, Stage, eventually

LOOK_AROUND = """
import os, signal
print(sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:-1], os.readlink("/proc/self/fd/0"))
print([number for number in range(1, 65) if number not in (9, 19, 32, 33) and signal.getsignal(number) not in
       (signal.SIG_DFL, signal.default_int_handler) and number not in (signal.SIGPIPE, signal.SIGXFSZ)])
print(signal.pthread_sigmask(signal.SIG_BLOCK, []))
print(os.getsid(0) == os.getpid() == os.getpgid(0), os.getcwd(), sorted(os.environ))
"""


def test_a_child_finds_a_clean_place(stage: Stage) -> None:
    scene = stage.start(*PYTHON, "-c", LOOK_AROUND, env={"PATH": PATH, "LC_ALL": "C.UTF-8"})
    assert scene.result().exit_code == 0, scene.stderr()
    assert scene.stdout().decode().splitlines() == [
        "[0, 1, 2] /dev/null",
        "[]",
        "set()",
        f"True {stage.folder} ['LC_ALL', 'PATH']",
    ]


def test_a_broken_pipe_and_a_hangup_end_a_child_as_anywhere_else(stage: Stage) -> None:
    scene = stage.start(
        "sh",
        "-c",
        "grep SigIgn /proc/self/status; (sleep 0.1; yes; echo $? >&2) | true; kill -HUP $$",
    )
    result = scene.result()
    assert scene.stdout().split() == [b"SigIgn:", b"0" * 16]
    assert scene.stderr() == b"141\n"
    assert (result.exit_code, result.signal) == (None, signal.SIGHUP)


@pytest.mark.parametrize("code", (0, 1, 10, 90, 255))
def test_the_exit_code_is_kept(stage: Stage, code: int) -> None:
    result = stage.run("sh", "-c", f"exit {code}")
    assert (result.started, result.exit_code, result.signal, result.error) == (
        True,
        code,
        None,
        None,
    )


def test_a_child_dies_with_its_shim(stage: Stage) -> None:
    scene = stage.start("sh", "-c", "echo $$; exec sleep 60")
    child = identify(int(eventually(scene.stdout)))
    assert child is not None
    os.kill(scene.shim.identity.pid, signal.SIGKILL)
    assert eventually(lambda: not is_alive(child))


@pytest.mark.parametrize(
    ("argv", "sentence"),
    (
        (("nosuch",), "no such command: nosuch"),
        (("",), "no such command: "),
        (("./nosuch",), "no such command: ./nosuch"),
        (("/etc/passwd",), "cannot run /etc/passwd: Permission denied"),
        (("/etc/passwd/x",), "no such command: /etc/passwd/x"),
        (("/tmp",), "cannot run /tmp: Permission denied"),
        (("true", "x" * 200_000), "cannot run true: Argument list too long"),
        (("true", "a\0b"), "cannot run true: embedded null byte"),
        (("./bad\udcff",), "no such command: ./bad\\udcff"),
        (("./lost",), "cannot run ./lost: the interpreter that it names is missing"),
        (("./odd",), "cannot run ./odd: it is neither a program nor a script that begins with #!"),
    ),
)
def test_a_command_that_cannot_start_is_told_in_a_sentence(
    stage: Stage, argv: tuple[str, ...], sentence: str
) -> None:
    for name, text in (("lost", "#!/nonexistent/interpreter\n"), ("odd", "\x7fELF but not really")):
        (stage.folder / name).write_text(text)
        (stage.folder / name).chmod(0o755)
    result = stage.run(*argv)
    assert (result.started, result.exit_code, result.signal, result.error) == (
        False,
        None,
        None,
        sentence,
    )


def test_a_folder_that_is_missing_is_told_in_a_sentence(stage: Stage) -> None:
    assert stage.run("true", cwd="/nonexistent").error == "no such directory: /nonexistent"
    assert stage.run("true", cwd="/etc/passwd").error == "cannot enter /etc/passwd: Not a directory"


def test_an_empty_command_is_told_in_a_sentence(stage: Stage) -> None:
    result = stage.run()
    assert not result.started
    assert result.error


def test_the_command_is_looked_up_in_the_childs_own_path(stage: Stage) -> None:
    (stage.folder / "bin").mkdir()
    tool = stage.folder / "bin" / "tool"
    tool.write_text("#!/bin/sh\necho mine\n")
    assert (
        stage.run("tool", env={"PATH": f"/usr/bin:{stage.folder}/bin"}).error
        == "cannot run tool: Permission denied"
    )
    tool.chmod(0o755)
    scene = stage.start("tool", env={"PATH": f"/usr/bin:{stage.folder}/bin:/bin"})
    assert scene.result().exit_code == 0
    assert scene.stdout() == b"mine\n"
    assert stage.run("tool", env={}).error == "no such command: tool"


def test_bytes_that_are_no_text_arrive_as_they_are(stage: Stage) -> None:
    raw = os.fsdecode(b"\xff\xfe caf\xe9")
    scene = stage.start(
        "sh", "-c", 'printf "%s|%s" "$1" "$RAW"', "sh", raw, env={"PATH": PATH, "RAW": raw}
    )
    assert scene.result().exit_code == 0
    assert scene.stdout() == b"\xff\xfe caf\xe9|\xff\xfe caf\xe9"


def test_a_grant_is_read_once_and_ends(stage: Stage) -> None:
    grant = bytes(range(256)) * 8
    scene = stage.start(
        "sh", "-c", 'eval "cat <&$ADJOURN_GRANT_FD; cat <&$ADJOURN_GRANT_FD"', grant=grant
    )
    assert scene.result().exit_code == 0, scene.stderr()
    assert scene.stdout() == grant


def test_without_a_grant_there_is_no_word_of_one(stage: Stage) -> None:
    scene = stage.start("env")
    assert scene.result().exit_code == 0
    assert scene.stdout() == f"PATH={PATH}\n".encode()
