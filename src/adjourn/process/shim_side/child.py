"""Makes the child: one fork, one exec, nothing handed down but what is meant for it."""

import contextlib
import errno
import fcntl
import os
import signal
from collections.abc import Iterable
from typing import NoReturn

import msgspec

from adjourn.core.policy.opening import NOT_PINNED, unpinned
from adjourn.core.text.render import spelled
from adjourn.process import linux
from adjourn.process.linux import close_all_but
from adjourn.process.shim import ShimSpec
from adjourn.process.shim_side.python_child import call
from adjourn.system import pinning
from adjourn.system.machine import is_shortage
from adjourn.system.pinning import DIGEST, FileLookup, name_of
from adjourn.system.poll import IGNORED

_COULD_NOT_START = 127
_READY = b"."
_BUSY = b"\1"  # what it begins with if somebody is writing the program: later it may start
SHORTAGE = b"\0"  # what a child's complaint begins with if the machine is the reason
# The first byte of what a child reports; a sentence begins with neither
_EXECUTING, _REFUSING = b"=", b"~"
_GRANT = 3  # one digit, for that is all that some shells can name
_OUT_OF_THE_WAY = 10


class CannotStart(Exception):
    """Why the child's program could not be started."""


class OtherBytes(Exception):
    """A file is not the one that was let through, so nothing was started."""


class Executed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a child tells its shim just before it becomes its program."""

    program: str | None = None  # digests, as in the result
    script: str | None = None
    watched: dict[str, list[int]] = {}  # the marks of the files that cannot be pinned


class ChildReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a child reported until it became its program, or gave up."""

    executed: Executed = Executed()
    refused: str = ""
    complaint: str = ""
    is_shortage: bool = False  # whether the machine is why it complains
    is_busy: bool = False  # whether somebody was writing its program


def read_report(report: bytes) -> ChildReport:
    """Decode what a child has written into its report."""
    first, newline, rest = report.partition(b"\n")
    is_whole = first.startswith(_EXECUTING) and newline
    executed = msgspec.json.decode(first[1:], type=Executed) if is_whole else Executed()
    complaint = rest if is_whole else report
    if complaint.startswith(_REFUSING):
        return ChildReport(executed=executed, refused=complaint[1:].decode(errors="replace"))
    sentence = complaint.removeprefix(SHORTAGE).removeprefix(_BUSY).decode(errors="replace")
    return ChildReport(
        executed=executed,
        complaint=sentence,
        is_shortage=complaint.startswith(SHORTAGE),
        is_busy=complaint.startswith(_BUSY),
    )


class Child:
    """A child that is forked and made ready, and becomes its program when it is told to."""

    def __init__(self, spec: ShimSpec, *, stdout: int, stderr: int, cgroup: int | None) -> None:
        self._argv, self._env, self._cwd, self._entry = spec.argv, spec.env, spec.cwd, spec.entry
        self._files, self._own = spec.files, spec.own
        self._streams = (os.open(os.devnull, os.O_RDONLY), stdout, stderr)
        self._grant = -1
        if spec.grant:
            self._grant = _pipe_with(spec.grant)
            self._env = spec.env | {"ADJOURN_GRANT_FD": str(_GRANT)}
        self._go, self._start = os.pipe()
        self.report, self._report = os.pipe()
        self.pid = self._fork(cgroup)
        # Until it has let go of the gate: a dead shim must not seem to stand there
        first = os.read(self.report, 1)
        # How what it complains of begins, if it is not even ready
        self.complaint = first.removeprefix(_READY)
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
        parent, pid = os.getpid(), -1
        if cgroup is not None:
            # Refused by an older kernel, or by a container
            with contextlib.suppress(OSError):
                pid = linux.fork_into(cgroup)
        if pid < 0:
            pid = os.fork()
        if pid == 0:
            self._be_child(parent)
        for fd in {self._go, self._report, self._grant, *self._streams} - {-1}:
            os.close(fd)
        return pid

    def _be_child(self, parent: int) -> NoReturn:
        """Wait for the start, become the program, or report why not.

        This is a copy of the shim: whatever happens, it must never return into the shim's frames
        and go on as a second shim. It dies with the shim, and holds none of its descriptors.
        """
        try:
            os.setsid()
            linux.die_with(parent)
            self._hand_down()
            os.write(self._report, _READY)
            if os.read(self._go, 1):
                try:
                    os.chdir(self._cwd)
                except FileNotFoundError:
                    raise CannotStart(f"no such directory: {self._cwd}") from None
                except OSError as error:
                    if is_shortage(error.errno):
                        raise
                    raise CannotStart(f"cannot enter {self._cwd}: {error.strerror}") from None
                if self._entry:
                    os.close(self._go)  # as an exec would: from here on it is the program
                    os.close(self._report)
                    call(self._entry, self._argv, self._env)
                files = FileLookup(self._cwd, self._env.get("PATH", os.defpath), own=self._own)
                if self._files:
                    self._become_pinned(files)
                _exec_first(files.candidates(self._argv[0]), self._argv, self._env)
        except OtherBytes as other:
            os.write(self._report, _REFUSING + str(other).encode(errors="backslashreplace"))
        except BaseException as error:  # noqa: BLE001 see above
            number = error.errno if isinstance(error, OSError) else None
            mark = SHORTAGE if is_shortage(number) else _BUSY if number == errno.ETXTBSY else b""
            why = error.strerror if isinstance(error, OSError) else error
            is_said = isinstance(error, CannotStart)
            sentence = str(error) if is_said else f"cannot run {' '.join(self._argv[:1])}: {why}"
            os.write(self._report, mark + sentence.encode(errors="backslashreplace"))
        finally:
            os._exit(_COULD_NOT_START)

    def _hand_down(self) -> None:
        """Keep what is meant for the child, and set what the exec will leave as it is."""
        self._go, self._report = (
            fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY)
            for fd in (self._go, self._report)
        )
        for number, stream in enumerate(self._streams):
            os.dup2(stream, number)
        if self._grant >= 0:
            os.dup2(fcntl.fcntl(self._grant, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY), _GRANT)
        # Not the lock, nor the gate: while the child waits, nobody must take it for the shim.
        close_all_but(self._go, self._report, _GRANT if self._grant >= 0 else -1)
        for number in IGNORED:  # all others go back to their defaults with the exec
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def _become_pinned(self, files: FileLookup) -> None:
        """Become the program whose bytes were let through, or raise OtherBytes.

        Return if there is no such program at all.
        """
        found = files.program(self._argv[0])
        if found is None:
            return
        start = pinning.plan_start(self._argv, files)
        if start and start.script and self._is_unpinned(files.absolute(start.script)):
            start = None  # it was shown as not pinned, so its path is what counts
        watched = _watched(self._files)
        if start is None:
            program = self._digest_by_path(files.absolute(found))
            self._report_start(Executed(program=program, watched=watched))
            _exec_first([found], self._argv, self._env)
        script = self._pin_script(files.absolute(start.script)) if start.script else None
        whole = files.absolute(start.program)
        if (
            pinning.is_out_of_reach(whole)
            or not self._shown(whole).startswith(DIGEST)
            or self._is_unpinned(whole)
        ):
            self._report_start(
                Executed(program=self._digest_by_path(whole), script=script, watched=watched)
            )
            _exec_first([start.program], start.argv, self._env)
        with pinning.opened(whole) as fd:
            self._report_start(
                Executed(program=self._pin_program(whole, fd), script=script, watched=watched)
            )
            try:
                os.execve(fd, start.argv, self._env)
            except FileNotFoundError:
                raise CannotStart(
                    f"cannot run {found}: the interpreter that it names is missing"
                ) from None

    def _shown(self, path: str) -> str:
        """Return what was let through for a file, by the path that leads to it."""
        name = spelled(name_of(path))
        if name not in self._files:
            raise OtherBytes(f"{self._argv[0]} is now {name}, which was not shown")
        return self._files[name]

    def _is_unpinned(self, path: str) -> bool:
        return self._shown(path).endswith(NOT_PINNED)

    def _pin_program(self, path: str, fd: int) -> str:
        """Keep writers out of an open program until its exec; return its digest if it was shown."""
        try:
            pinning.lease(fd)
        except BlockingIOError:
            raise OtherBytes(f"{path} is open for writing") from None
        except OSError as error:
            raise OtherBytes(f"{path} cannot be pinned: {error.strerror}") from None
        digest = self._required(path, pinning.digest_of(fd))
        if not pinning.is_leased(fd):
            raise OtherBytes(f"{path} was opened for writing")
        return digest

    def _pin_script(self, path: str) -> str:
        """Put a script's bytes where only the shell reads them; return their digest."""
        content = pinning.read_script(path)
        digest = self._required(path, pinning.digest_of_bytes(content))
        copy = pinning.in_memory(content)
        os.dup2(copy, pinning.SCRIPT_FD, inheritable=True)
        os.close(copy)
        return digest

    def _required(self, path: str, digest: str) -> str:
        shown = self._shown(path)
        if shown != digest:
            raise OtherBytes(f"{path} was {shown} and is {digest}")
        return digest

    def _digest_by_path(self, path: str) -> str | None:
        """Return the digest of a program that its path alone names.

        One that was to be pinned is not started that way.
        """
        shown = self._shown(path)
        if not shown.startswith(DIGEST):
            return None  # it was shown as not covered
        if pinning.is_out_of_reach(path):
            return shown
        with pinning.opened(path) as fd:
            digest = pinning.digest_of(fd)
        self._required(path, f"{digest}{NOT_PINNED}")
        return digest

    def _report_start(self, executed: Executed) -> None:
        report = _EXECUTING + msgspec.json.encode(executed) + b"\n"
        while report:
            report = report[os.write(self._report, report) :]


def _watched(files: dict[str, str]) -> dict[str, list[int]]:
    """Return the marks of files that cannot be pinned; raise OtherBytes if one has changed."""
    watched: dict[str, list[int]] = {}
    for name in unpinned(files):
        shown = files[name].removesuffix(NOT_PINNED)
        watched[name] = pinning.marks_of(name)
        for path in pinning.paths_of(name):
            try:
                with pinning.opened(path) as fd:
                    digest = pinning.digest_of(fd)
            except OSError as error:
                raise OtherBytes(f"{name} cannot be read any more: {error.strerror}") from None
            if shown != digest:
                raise OtherBytes(f"{name} was {shown} and is {digest}")
    return watched


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


def _exec_first(paths: Iterable[str], argv: tuple[str, ...], env: dict[str, str]) -> NoReturn:
    """Turn this process into the first program of these that may be run."""
    refused: OSError | None = None
    for path in paths:
        try:
            os.execve(path, argv, env)
        except (FileNotFoundError, NotADirectoryError):
            if os.path.exists(path):
                raise CannotStart(
                    f"cannot run {path}: the interpreter that it names is missing"
                ) from None
        except PermissionError as error:
            refused = error
        except OSError as error:
            if error.errno == errno.ENOEXEC:
                raise CannotStart(
                    f"cannot run {path}: it is neither a program nor a script that begins with #!"
                ) from None
            raise
    if refused:
        raise refused
    raise CannotStart(f"no such command: {argv[0]}")
