"""A scenario's own little world.

A directory, the processes that act in it, and what they did outside.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import stat
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import msgspec

from tests.crash import inject
from tests.crash.inject import Aim, Control, Shot
from tests.crash.tools import Tools

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LINE = 256
CRASHED = 70


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """How one command of a scenario ended; a negative code is the signal that ended it."""

    number: int
    code: int
    said: str
    complained: str
    seconds: float
    hung: bool = False


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the recorder: something happened in the outside world."""

    what: str
    call: str
    run: str
    task: str
    auto: str
    pid: str


class Stage:
    """Where one scenario is played, one command at a time.

    Must be the only thing its process does.
    """

    def __init__(self, root: Path, *, tools: Tools) -> None:
        self.root = root
        self.tools = tools
        self.work = root / "work"
        self.effects_file = root / "effects"
        self.work.mkdir(parents=True)
        # What is kept outside of the store lies on the same disk. The image of a disk is a copy:
        # the key makes it ours.
        os.environ["XDG_STATE_HOME"] = str(self.work / "state")
        os.environ["ADJOURN_STORE_KEY"] = "every image of a disk is a copy of the same store"
        self.control = Control(root / "control")
        self.aimed = Aim()
        self._played = 0

    def adopt_orphans(self) -> None:
        """Make this process the parent of whatever a killed command leaves behind, as init would be."""
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def end_with(self, parent: int) -> None:
        """Kill everyone, and leave, should the parent of this process die."""

        def leave(*_: object) -> None:
            self.clear()
            os._exit(1)

        signal.signal(signal.SIGTERM, leave)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            leave()

    # ── Playing ──

    def play(self, act: Callable[[], int], *, aim: Aim | None = None, patience: float = 20) -> Ran:
        """Run `act` in a process of its own, armed if it is aimed at, and wait for it while reaping everyone else."""
        number = self._played
        self._played += 1
        sys.stdout.flush()
        begun = time.monotonic()
        child = os.fork()
        if child == 0:
            self._be(act, number=number, aim=aim)
        code = self._wait_for(child, patience=patience)
        hung = code is None
        if code is None:
            code = _slay(child)
        assert code != CRASHED, self._output("err", number)
        inject.mark(f"exit {number} {code}")
        return Ran(
            number=number,
            code=code,
            said=self._output("out", number),
            complained=self._output("err", number),
            seconds=time.monotonic() - begun,
            hung=hung,
        )

    def shot(self, aim: Aim) -> Shot:
        """Return what became of the aim."""
        return self.control.shot(aim)

    def _be(self, act: Callable[[], int], *, number: int, aim: Aim | None) -> None:
        code = CRASHED
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._enter(number)
            inject.use(self.control)
            if aim is not None and not aim.role:
                inject.arm(aim)
            code = act()
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else int(left.code is not None)
        except BaseException:  # noqa: BLE001 -- the child reports anything, and never returns into the driver
            import traceback

            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.flush()
            os._exit(code)

    def _enter(self, number: int) -> None:
        os.chdir(self.work)
        for fd, name in ((1, "out"), (2, "err")):
            opened = os.open(
                self.root / f"{name}.{number}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600
            )
            os.dup2(opened, fd)
            os.close(opened)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.environ["INJECT_CONTROL"] = str(self.control.path)

    def _wait_for(self, child: int, *, patience: float) -> int | None:
        with _alarm(patience):
            while True:
                pid, status = os.waitpid(-1, 0)
                if pid == child:
                    return os.waitstatus_to_exitcode(status)
        return None

    def _output(self, name: str, number: int) -> str:
        path = self.root / f"{name}.{number}"
        return path.read_text(errors="replace") if path.exists() else ""

    # ── Who is left ──

    def survivors(self, *, patience: float) -> list[str]:
        """Wait until every process of the scenario is gone; return those that are not, by name."""
        deadline = time.monotonic() + patience
        while (living := self.living()) and time.monotonic() < deadline:
            time.sleep(0.002)
        return [_name(pid) for pid in living]

    def living(self) -> list[int]:
        """Return the living descendants of this process; the dead are reaped."""
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        return list(_descendants(os.getpid()))

    def clear(self) -> None:
        """Kill whatever is left."""
        while living := self.living():
            for pid in living:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.001)

    # ── What happened outside ──

    def effects(self) -> list[Effect]:
        """Return every line of the recorder; a line that is not whole is a fault of the harness."""
        if not self.effects_file.exists():
            return []
        text = self.effects_file.read_bytes()
        assert len(text) % LINE == 0, "the recorder was cut short"
        return [read_effect(text[at : at + LINE]) for at in range(0, len(text), LINE)]

    # ── Templates ──

    def keep(self, template: Path) -> None:
        """Remember the scenario as it is now."""
        _copy(self.work, template / "work")
        if self.effects_file.exists():
            shutil.copyfile(self.effects_file, template / "effects")

    def restore(self, template: Path) -> None:
        """Put everything back to where it was when it was kept; paths stay the same."""
        shutil.rmtree(self.work)
        for left in self.root.iterdir():
            if left.name.startswith(("out.", "err.", "effects", "killed")):
                left.unlink()
        _copy(template / "work", self.work)
        if (template / "effects").exists():
            shutil.copyfile(template / "effects", self.effects_file)


def read_effect(line: bytes) -> Effect:
    """Parse one fixed-length line, checksum and all."""
    body, crc = line[: LINE - 9], line[LINE - 9 : LINE - 1]
    assert zlib.crc32(body) == int(crc, 16), f"the recorder's line is damaged: {line!r}"
    return parse_effect(body.decode().removesuffix(" crc="))


def parse_effect(text: str) -> Effect:
    """Parse the words of a line of the recorder, which are also those of its mark in the journal."""
    what, *fields = text.split()
    return Effect(what=what, **dict(field.split("=", 1) for field in fields))


class _Overdue(BaseException):
    """Patience is at an end."""


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise _Overdue

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with contextlib.suppress(_Overdue):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _slay(child: int) -> int:
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _descendants(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            children = Path(f"/proc/{pid}/task/{task}/children").read_text()
            for child in map(int, children.split()):
                if not _is_zombie(child):
                    yield child
                yield from _descendants(child)


def _is_zombie(pid: int) -> bool:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return fields.rpartition(")")[2].split()[0] in "ZX"


def _name(pid: int) -> str:
    try:
        words = (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
        return f"{pid} {Path(f'/proc/{pid}/comm').read_text().strip()}: {words[:100]}"
    except OSError:
        return f"{pid} (gone)"


def _copy(source: Path, target: Path) -> None:
    """Copy a tree with its modes; sockets belong to processes that are gone."""
    target.mkdir(parents=True)
    for entry in os.scandir(source):
        if entry.is_dir(follow_symlinks=False):
            _copy(Path(entry.path), target / entry.name)
        elif entry.is_symlink():
            (target / entry.name).symlink_to(os.readlink(entry.path))
        elif stat.S_ISREG(entry.stat().st_mode):
            shutil.copyfile(entry.path, target / entry.name)
            shutil.copymode(entry.path, target / entry.name)
    shutil.copymode(source, target)
