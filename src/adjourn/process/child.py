"""Makes the child: one fork, one exec, nothing handed down but what is meant for it."""

import contextlib
import errno
import fcntl
import os
import signal
from collections.abc import Iterator
from typing import NoReturn

from adjourn.process import linux
from adjourn.process.descriptors import close_all_but
from adjourn.process.entry import call
from adjourn.process.shim import ShimSpec
from adjourn.process.shortage import is_shortage
from adjourn.process.signals import IGNORED

_COULD_NOT_START = 127
_READY = b"."
SHORTAGE = b"\0"  # what a child's complaint begins with if the machine is the reason
_GRANT = 3  # one digit, for that is all that some shells can name
_OUT_OF_THE_WAY = 10


class CannotStart(Exception):
    """Why the child's program could not be started."""


class Child:
    """A child that is forked and made ready, and becomes its program when it is told to."""

    def __init__(self, spec: ShimSpec, *, stdout: int, stderr: int, cgroup: int | None) -> None:
        self._argv, self._env, self._cwd, self._entry = spec.argv, spec.env, spec.cwd, spec.entry
        self._streams = (os.open(os.devnull, os.O_RDONLY), stdout, stderr)
        self._grant = -1
        if spec.grant:
            self._grant = _pipe_with(spec.grant)
            self._env = spec.env | {"ADJOURN_GRANT_FD": str(_GRANT)}
        self._go, self._start = os.pipe()
        self.report, self._report = os.pipe()
        self.pid = self._fork(cgroup)
        os.read(self.report, 1)  # until it has let go of the gate: a dead shim must not seem to stand there
        os.set_blocking(self.report, False)

    def start(self) -> None:
        """Let it become its program; BrokenPipeError means that it is dead and never did.

        Then `report` ends when it has done so, or says why it could not.
        """
        os.write(self._start, b"!")
        os.close(self._start)

    def dismiss(self) -> None:
        """End it before it was started."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def _fork(self, cgroup: int | None) -> int:
        parent = os.getpid()
        pid = _fork(cgroup)
        if pid == 0:
            self._be_born(parent)
        for fd in {self._go, self._report, self._grant, *self._streams} - {-1}:
            os.close(fd)
        return pid

    def _be_born(self, parent: int) -> NoReturn:
        try:
            os.setsid()
            linux.die_with(parent)
            self._hand_down()
            os.write(self._report, _READY)
            if os.read(self._go, 1):
                _enter(self._cwd)
                if self._entry:
                    os.close(self._go)  # as an exec would: from here on it is the program
                    os.close(self._report)
                    call(self._entry, self._argv, self._env)
                _become(self._argv, self._env)
        except BaseException as error:  # noqa: BLE001 a copy of the shim must not go on as a second shim
            mark = SHORTAGE if isinstance(error, OSError) and is_shortage(error.errno) else b""
            sentence = _sentence(error, self._argv).encode(errors="backslashreplace")
            os.write(self._report, mark + sentence)
        finally:
            os._exit(_COULD_NOT_START)

    def _hand_down(self) -> None:
        """Keep what is meant for the child, and set what the exec will leave as it is."""
        self._go, self._report = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY) for fd in (self._go, self._report))
        for number, stream in enumerate(self._streams):
            os.dup2(stream, number)
        if self._grant >= 0:
            os.dup2(fcntl.fcntl(self._grant, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY), _GRANT)
        # Not the lock, nor the gate: while the child waits, nobody must take it for the shim.
        close_all_but(self._go, self._report, _GRANT if self._grant >= 0 else -1)
        for number in IGNORED:  # all others go back to their defaults with the exec
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _fork(cgroup: int | None) -> int:
    if cgroup is not None:
        with contextlib.suppress(OSError):  # an older kernel, or a container that forbids it
            return linux.fork_into(cgroup)
    return os.fork()


def _pipe_with(content: bytes) -> int:
    """Return the reading end of a pipe that holds exactly this."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        if os.write(writing, content) < len(content):
            raise OSError(errno.E2BIG, "the grant is too long for a pipe")
    finally:
        os.close(writing)
    return reading


def _enter(cwd: str) -> None:
    try:
        os.chdir(cwd)
    except FileNotFoundError:
        raise CannotStart(f"no such directory: {cwd}") from None
    except OSError as error:
        if is_shortage(error.errno):
            raise
        raise CannotStart(f"cannot enter {cwd}: {error.strerror}") from None


def _become(argv: tuple[str, ...], env: dict[str, str]) -> NoReturn:
    """Turn this process into the first program of that name that may be run."""
    refused: OSError | None = None
    for path in _candidates(argv[0], env):
        try:
            os.execve(path, argv, env)
        except (FileNotFoundError, NotADirectoryError):
            if os.path.exists(path):
                raise CannotStart(f"cannot run {path}: the interpreter that it names is missing") from None
        except PermissionError as error:
            refused = error
        except OSError as error:
            if error.errno == errno.ENOEXEC:
                raise CannotStart(f"cannot run {path}: it is neither a program nor a script that begins with #!") from None
            raise
    if refused:
        raise refused
    raise CannotStart(f"no such command: {argv[0]}")


def _candidates(name: str, env: dict[str, str]) -> Iterator[str]:
    if "/" in name:
        yield name
    elif name:
        yield from (os.path.join(folder, name) for folder in env.get("PATH", os.defpath).split(os.pathsep))


def _sentence(error: BaseException, argv: tuple[str, ...]) -> str:
    match error:
        case CannotStart():
            return str(error)
        case OSError():
            return f"cannot run {argv[0]}: {error.strerror}"
        case _:
            return f"cannot run {' '.join(argv[:1])}: {error}"
