"""The fork server is small, hears no terminal, and goes with its supervisor, but not before its last shim."""

import os
import resource
import signal
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from adjourn.core.task import ProcessId
from adjourn.process.forks.client import ForkServer
from adjourn.process.identity import identify, is_alive
from adjourn.process.shim import MachineFailed, ShimResult, ShimSpec, read_result
from tests.process.scene import Stage, eventually, fork, kill


def session_of(pid: int) -> int:
    return os.getsid(pid)


def is_dead(process: ProcessId) -> bool:
    return not is_alive(process)


def name_of(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip()


def open_in(pid: int) -> list[str]:
    return sorted(
        os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0] for fd in os.listdir(f"/proc/{pid}/fd")
    )


def test_it_holds_nothing_of_the_supervisors(tmp_path: Path) -> None:
    with open(tmp_path / "store.db", "wb"):
        server = ForkServer.start()
        eventually(lambda: name_of(server.pid) == "adjourn-forks")
        scene = Stage(server, tmp_path).ready("true")
    assert open_in(server.pid) == ["/dev/null", "/dev/null", "/dev/null", "pipe", "pipe", "socket"]
    assert "store.db" not in " ".join(open_in(scene.shim.identity.pid))
    assert session_of(server.pid) == server.pid
    assert session_of(scene.shim.identity.pid) == scene.shim.identity.pid
    assert name_of(scene.shim.identity.pid) == "adjourn-shim"
    scene.shim.close()
    server.close()


def test_a_signal_to_the_supervisors_group_reaches_neither_server_nor_shim() -> None:
    def lead_a_group() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.setpgid(0, 0)
        servers.append(ForkServer.start())
        os.write(ready, b"%d" % servers[0].pid)

    servers: list[ForkServer] = []
    for _ in range(5):
        told, ready = os.pipe()
        pid = fork(lead_a_group)
        server = identify(int(os.read(told, 10)))
        assert server is not None
        os.killpg(pid, signal.SIGINT)
        time.sleep(0.05)
        assert is_alive(server)
        kill(pid)
        assert eventually(is_dead, server)


def test_it_goes_with_its_supervisor_but_not_before_the_last_shim(stage: Stage) -> None:
    spec = stage.spec("sleep", "60")
    told, ready = os.pipe()
    kept = []

    def supervise() -> None:
        server = ForkServer.start()
        shim = server.fork_shim(spec)
        kept.extend([server, shim])
        shim.open_gate()
        os.write(ready, b"%d %d" % (server.pid, shim.identity.pid))

    pid = fork(supervise)
    server, shim = (identify(int(word)) for word in os.read(told, 20).split())
    assert server is not None
    assert shim is not None
    kill(pid)
    time.sleep(0.1)
    assert is_alive(shim)
    assert is_alive(server), "nobody is left to end the tree should the shim be killed"
    os.kill(shim.pid, signal.SIGUSR1)
    assert eventually(lambda: not is_alive(shim) and not is_alive(server))
    result = read_result(spec.run_dir)
    assert result is not None
    assert result.killed == "kill"


def test_one_that_is_killed_is_replaced_and_the_shims_that_there_are_go_on(tmp_path: Path) -> None:
    server = ForkServer.start()
    stage = Stage(server, tmp_path)
    scene = stage.start("sh", "-c", "sleep 0.3; echo done")
    before = server.pid
    for _ in range(3):
        kill(server.pid)
        again = stage.start("sh", "-c", "echo again")
        assert again.result().exit_code == 0
        assert again.stdout() == b"again\n"
        again.shim.close()
    assert server.pid != before
    assert scene.result().exit_code == 0
    assert scene.stdout() == b"done\n"
    scene.shim.close()
    server.close()


def test_a_new_one_holds_nothing_of_the_supervisors_either(tmp_path: Path) -> None:
    with open(tmp_path / "store.db", "wb"):
        server = ForkServer.start()
        kill(server.pid)
        scene = Stage(server, tmp_path).ready("true")
    assert open_in(server.pid) == ["/dev/null", "/dev/null", "/dev/null", "pipe", "pipe", "socket"]
    assert "store.db" not in " ".join(open_in(scene.shim.identity.pid))
    assert session_of(server.pid) == server.pid
    assert name_of(server.pid) == "adjourn-forks"
    assert os.readlink(f"/proc/{server.pid}/cwd") == "/"
    ours = identify(server.pid)
    assert ours is not None
    scene.shim.close()
    server.close()
    assert eventually(is_dead, ours)


def test_one_that_is_killed_during_a_start_fails_that_start_for_the_machines_reason(
    tmp_path: Path,
) -> None:
    """It is stopped, asked and killed; a shim that it may have forked never finds its gate open."""
    server = ForkServer.start()
    stage = Stage(server, tmp_path)
    for _ in range(5):
        stage.ready("true").shim.close()
        os.kill(server.pid, signal.SIGSTOP)
        killer = fork(partial(kill_soon, server.pid))
        with pytest.raises(MachineFailed, match="the fork server is gone"):
            stage.ready("touch", str(tmp_path / "ran"))
        kill(killer)
    assert not (tmp_path / "ran").exists()
    server.close()


def kill_soon(pid: int) -> None:
    time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)


def test_a_machine_without_room_for_another_one_says_so_and_gets_it_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ForkServer.start()
    stage = Stage(server, tmp_path)
    kill(server.pid)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")), most[1]))
    try:
        with pytest.raises(MachineFailed, match="no new one can be started"):
            stage.forks.fork_shim(ShimSpec(run_dir="/", argv=("true",), cwd="/", env={}))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, most)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(MachineFailed, match="No such file or directory"):
        stage.ready("true")
    monkeypatch.undo()
    assert stage.run("true").exit_code == 0
    stage.clear()
    server.close()


def test_a_question_that_was_broken_off_spoils_no_other_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(_channel: object) -> int:
        raise KeyboardInterrupt

    server = ForkServer.start()
    stage = Stage(server, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("adjourn.process.forks.client.receive_reply", break_off)
        with pytest.raises(KeyboardInterrupt):
            stage.ready("true")
    assert stage.run("true").exit_code == 0, "another server answers"
    stage.clear()
    assert eventually(read_result, str(tmp_path / "run-0")) == ShimResult(started=False)
    server.close()
