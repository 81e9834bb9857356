"""A warm server hands its forks what it has imported and built, and nothing else.

It is replaced when it is not fresh.
"""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adjourn.process.forks import warm
from adjourn.process.forks.client import ForkServer
from adjourn.process.forks.warm import WarmForks, WarmServer
from tests.process.scene import PATH, Scene, Stage, eventually

HERE = "tests.process.rehearsed"


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """Return the code that the modules are made of."""
    file = tmp_path / "code.py"
    file.write_text("pass")
    return file


@pytest.fixture
def warmth(forks: ForkServer, code: Path) -> Iterator[WarmForks]:
    made = warmth_of(forks, code, "build")
    yield made
    made.drop()


def warmth_of(forks: ForkServer, code: Path, rehearsal: str) -> WarmForks:
    return WarmForks(
        forks,
        modules=[HERE],
        rehearsal=f"{HERE}:{rehearsal}",
        entry=f"{HERE}:tell",
        files=lambda: [str(code)],
    )


def ready(warmth: WarmForks) -> WarmServer:
    server = eventually(warmth.server)
    assert server is not None
    return server


def told(stage: Stage, warmth: WarmForks, **env: str) -> dict[str, Any]:
    """Return what a fork finds that gets this environment."""
    spec = stage.spec("adjourn", "_agent", env={"PATH": PATH, **env})
    shim = eventually(lambda: warmth.fork_shim(spec))
    assert shim
    scene = Scene(shim, Path(spec.run_dir))
    scene.shim.open_gate()
    assert scene.result().exit_code == 7, scene.stderr()
    found: dict[str, Any] = json.loads(scene.stdout())
    return found


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()


def test_a_fork_has_its_own_environment_and_nothing_of_the_one_before(
    stage: Stage, warmth: WarmForks
) -> None:
    os.environ["TOKEN"] = "of the worker"  # noqa: S105 -- what must not get there
    try:
        first, second = told(stage, warmth, SECRET="one"), told(stage, warmth, OTHER="two")  # noqa: S106 -- the same
    finally:
        del os.environ["TOKEN"]
    assert first["environment"] == {"PATH": PATH, "SECRET": "one"}
    assert second["environment"] == {"PATH": PATH, "OTHER": "two"}
    assert first["built"] == second["built"] == ["built"]
    assert first["chance"] != second["chance"]
    for found in (first, second):
        assert found["words"] == ["_agent"]
        assert found["handed_down"] == []  # no connection, no store, no channel
        assert found["threads"] == 1
        assert found["cwd"] == str(stage.folder)


def test_a_fork_that_leaves_from_deep_inside_leaves_with_its_own_code_and_in_silence(
    stage: Stage, warmth: WarmForks
) -> None:
    spec = stage.spec("adjourn", "_agent", env={"PATH": PATH}, entry=f"{HERE}:leave")
    scene = Scene(ready(warmth).fork_shim(spec), Path(spec.run_dir))
    scene.shim.open_gate()
    assert scene.result().exit_code == 75
    assert scene.stderr() == b""


def test_it_is_replaced_when_the_code_changes(warmth: WarmForks, code: Path) -> None:
    before = ready(warmth).pid
    assert ready(warmth).pid == before
    code.write_text("pass  # changed")
    assert warmth.server() is None  # what starts meanwhile starts cold, with the new code
    assert ready(warmth).pid != before


def test_it_is_replaced_when_it_has_grown(warmth: WarmForks) -> None:
    before = ready(warmth).pid
    os.kill(before, signal.SIGUSR2)
    assert eventually(lambda: warmth.server() is None)
    assert ready(warmth).pid != before


def test_what_a_rehearsal_leaves_running_is_never_forked(forks: ForkServer, code: Path) -> None:
    """A fork of a process with threads has their locks and not the threads."""
    warmth = warmth_of(forks, code, "leave_a_thread")
    assert warmth.server() is None
    assert eventually(children, forks.pid)
    assert eventually(lambda: not children(forks.pid)), "it goes on with a thread"
    assert warmth.server() is None
    warmth.drop()


def test_one_that_dies_while_it_warms_is_replaced(forks: ForkServer, code: Path) -> None:
    warmth = warmth_of(forks, code, "build")
    assert warmth.server() is None
    (warming,) = children(forks.pid)
    os.kill(int(warming), signal.SIGKILL)
    assert ready(warmth).pid != int(warming)
    warmth.drop()


def test_one_that_is_stopped_while_it_warms_is_killed_and_replaced(
    forks: ForkServer, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warmth = warmth_of(forks, code, "build")
    with monkeypatch.context() as patch:
        patch.setattr(warm, "_WARMING_LIMIT", 0.5)
        assert warmth.server() is None
    (warming,) = children(forks.pid)
    os.kill(int(warming), signal.SIGSTOP)
    assert ready(warmth).pid != int(warming)
    assert warming not in children(forks.pid)
    warmth.drop()


def test_one_that_was_killed_costs_no_start(stage: Stage, warmth: WarmForks) -> None:
    server = ready(warmth)
    os.kill(server.pid, signal.SIGKILL)
    assert eventually(server.has_hung_up)
    assert warmth.fork_shim(stage.spec("adjourn", "_agent")) is None
    assert told(stage, warmth)["built"] == ["built"]


def test_a_rehearsal_that_fails_costs_time_and_nothing_else(
    stage: Stage, forks: ForkServer, code: Path
) -> None:
    warmth = warmth_of(forks, code, "fail")
    assert told(stage, warmth)["built"] == []
    warmth.drop()
