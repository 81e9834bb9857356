"""What the tests of processes have in common."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, ParamSpec, TypeVar

from adjourn.process.forks.client import ForkServer
from adjourn.process.linux import die_with
from adjourn.process.shim import Shim, ShimResult, ShimSpec, read_result

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PYTHON = (sys.executable, "-I", "-S")
SOON = 10.0  # seconds: longer than a loaded machine needs, shorter than a hang

Asked = ParamSpec("Asked")
Found = TypeVar("Found")


class Scene(NamedTuple):
    """A shim and the folder of its run."""

    shim: Shim
    run_dir: Path

    def result(self) -> ShimResult:
        """Return what the shim wrote, once it is gone."""
        assert self.shim.wait(30), "the shim did not end"
        result = read_result(str(self.run_dir))
        assert result is not None, [path.name for path in self.run_dir.iterdir()]
        return result

    def stdout(self) -> bytes:
        return (self.run_dir / "stdout").read_bytes()

    def stderr(self) -> bytes:
        return (self.run_dir / "stderr").read_bytes()


class Stage:
    """Sets scenes up, each in a folder of its own."""

    def __init__(self, forks: ForkServer, folder: Path) -> None:
        self.forks = forks
        self.folder = folder
        self.scenes: list[Scene] = []

    def spec(self, *argv: str, **changes: Any) -> ShimSpec:
        run_dir = self.folder / f"run-{len(list(self.folder.glob('run-*')))}"
        run_dir.mkdir()
        usual: dict[str, Any] = {
            "run_dir": str(run_dir),
            "argv": argv,
            "cwd": str(self.folder),
            "env": {"PATH": PATH},
            "grace": 1.0,
        }
        return ShimSpec(**(usual | changes))

    def ready(self, *argv: str, **changes: Any) -> Scene:
        """Return a scene whose gate is still shut."""
        spec = self.spec(*argv, **changes)
        scene = Scene(self.forks.fork_shim(spec), Path(spec.run_dir))
        self.scenes.append(scene)
        return scene

    def start(self, *argv: str, **changes: Any) -> Scene:
        """Return a scene whose gate is open."""
        scene = self.ready(*argv, **changes)
        scene.shim.open_gate()
        return scene

    def run(self, *argv: str, **changes: Any) -> ShimResult:
        """Return the result of a scene that came to its end."""
        return self.start(*argv, **changes).result()

    def clear(self) -> None:
        for scene in self.scenes:
            scene.shim.kill()
            scene.shim.wait(SOON)
            scene.shim.close()


def eventually(look: Callable[Asked, Found], *args: Asked.args, **kwargs: Asked.kwargs) -> Found:
    """Return what `look` sees once that is something, or the last it saw."""
    deadline = time.monotonic() + SOON
    while not (found := look(*args, **kwargs)) and time.monotonic() < deadline:
        time.sleep(0.005)
    return found


def alive_with(word: str) -> list[int]:
    """Return the living processes that have the word in their command line."""
    return [pid for pid in _pids() if pid != os.getpid() and word.encode() in _line(pid)]


def none_with(word: str) -> bool:
    """Say whether no living process has the word in its command line."""
    return not alive_with(word)


def fork(act: Callable[[], None]) -> int:
    """Return a child of the test that does this, and then waits to be killed."""
    test = os.getpid()
    pid = os.fork()
    if pid == 0:
        _act(act, test)
    return pid


def kill(pid: int) -> None:
    """Kill a child of the test the hard way, and reap it."""
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _act(act: Callable[[], None], test: int) -> NoReturn:
    try:
        die_with(test)
        act()
        signal.pause()
    finally:
        os._exit(1)


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdecimal())


def _line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
