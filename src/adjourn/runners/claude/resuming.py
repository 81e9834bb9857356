"""Whether a session of Claude Code can still be resumed, and why not. It changes nothing."""

import subprocess
from collections.abc import Callable, Iterator, Mapping

import msgspec

from adjourn.core.driving import Look
from adjourn.core.errors import AdjournError
from adjourn.core.task import Spec
from adjourn.runners.claude import progress, session
from adjourn.runners.claude.progress import Progress
from adjourn.runners.claude.setup import OLDEST, OLDEST_THAT_BLOCKS, Setup, dotted, plain_ref, version_of

_SECONDS = 20
_INSTALL = "npm install -g @anthropic-ai/claude-code"

Documents = Callable[[str], bytes | None]


def looks(spec: Spec, *, of: str, ref: str | None, documents: Documents, environment: Mapping[str, str]) -> Iterator[Look]:
    """Look at the session and the program of a task that has left; `of` is the task's own session, `ref` the provider's."""
    left = progress.decode(documents(progress.DOCUMENT), of=of)
    if left is None or not left.started:
        yield Look(thing="session", fine=left is None and ref is None, says="it had not begun when it left")
    else:
        yield _look_at_session(left, ref, documents, environment)
    yield _look_at_program(msgspec.json.decode(spec.setup or "{}", type=Setup), left.version if left else "")


def _look_at_session(left: Progress, ref: str | None, documents: Documents, environment: Mapping[str, str]) -> Look:
    try:
        plain_ref(ref or left.session)
    except AdjournError as error:
        return Look(thing="session", fine=False, says=error.sentence)
    if ref not in {None, left.session}:
        return Look(thing="session", fine=False, says=f"{ref} is not the session that was kept, {left.session}")
    paths = session.files_of(left.session, environment)
    if session.read(left.session, paths):
        return Look(thing="session", fine=True, says=f"{left.session}, in {paths[0]}")
    what = "its file cannot be resumed" if paths else "its file is not there"
    if documents(progress.SESSION):
        return Look(thing="session", fine=True, says=f"{left.session}: {what}, the copy in the store takes its place")
    return Look(thing="session", fine=False, says=f"{left.session}: {what}, and there is no copy of it")


def _look_at_program(setup: Setup, before: str) -> Look:
    try:
        now = installed_version(setup.program)
    except AdjournError as error:
        return Look(thing="program", fine=False, says=error.sentence)
    since = "" if before in {"", dotted(now)} else f"; it was {before} when the task left"
    return Look(thing="program", fine=True, says=f"{setup.program} {dotted(now)}{since}")


def installed_version(program: str) -> tuple[int, ...]:
    """Return the version of the program, or say what is wrong with it."""
    argv = [program, "--version"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise AdjournError(f"{program} cannot be started: {_why(error)}", way_out=_INSTALL) from error
    version = version_of(done.stdout)
    if version < OLDEST:
        said = done.stdout.strip()[:100] or "of no known version"
        sentence = f"{program} is {said}; it must be Claude Code {dotted(OLDEST)} or newer"
        raise AdjournError(sentence, way_out=_INSTALL)
    return version


def _why(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return f"it is not there; {_INSTALL}, or name it with --option program=PATH"
    return error.strerror or "the system refuses" if isinstance(error, OSError) else "it does not say its version"


def diagnosis(program: str) -> Look:
    """Say what the installed program can do, for whoever wonders."""
    version = installed_version(program)
    says = f"Claude Code {dotted(version)}: its hook can defer calls, and its sessions can be resumed by id and by file"
    if version < OLDEST_THAT_BLOCKS:
        says += f"; from {dotted(OLDEST_THAT_BLOCKS)} on it would take a broken hook for a no by itself"
    return Look(thing="claude", fine=True, says=says)
