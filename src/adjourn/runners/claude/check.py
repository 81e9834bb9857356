"""Whether a session of Claude Code can still be resumed, and why not. It changes nothing."""

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from adjourn.core.agent.calls import Look
from adjourn.core.errors import AdjournError
from adjourn.core.task import Spec
from adjourn.runners.claude import memory, session
from adjourn.runners.claude.memory import Progress
from adjourn.runners.claude.options import (
    OLDEST,
    OLDEST_THAT_BLOCKS,
    Setup,
    dotted,
    plain_ref,
    version_of,
)
from adjourn.runners.installed import find_program, start_words

_SECONDS = 20
_INSTALL = "npm install -g @anthropic-ai/claude-code"

Documents = Callable[[str], bytes | None]


def looks(
    spec: Spec,
    *,
    of: str,
    ref: str | None,
    documents: Documents,
    environment: Mapping[str, str],
    starts: bool,
) -> Iterator[Look]:
    """Look at the session and the program of a task that has left; `of` is the task's own session, `ref` the provider's.

    Only what is about to start the program `starts` it to ask for its version: who looks at a store runs nothing of it.
    """
    left = memory.decode(documents(memory.DOCUMENT), of=of)
    if left is None or not left.started:
        yield Look(
            thing="session", fine=left is None and ref is None, says="it had not begun when it left"
        )
    else:
        yield _look_at_session(left, ref, documents, environment)
    setup = msgspec.json.decode(spec.setup or "{}", type=Setup)
    before = left.version if left else ""
    yield _look_at_program(setup, before, environment, workspace=spec.workspace, starts=starts)


def _look_at_session(
    left: Progress, ref: str | None, documents: Documents, environment: Mapping[str, str]
) -> Look:
    try:
        plain_ref(ref or left.session)
    except AdjournError as error:
        return Look(thing="session", fine=False, says=error.sentence)
    if ref not in {None, left.session}:
        return Look(
            thing="session",
            fine=False,
            says=f"{ref} is not the session that was kept, {left.session}",
        )
    paths = session.files_of(left.session, environment)
    if session.read(left.session, paths):
        return Look(thing="session", fine=True, says=f"{left.session}, in {paths[0]}")
    what = "its file cannot be resumed" if paths else "its file is not there"
    if documents(memory.SESSION):
        return Look(
            thing="session",
            fine=True,
            says=f"{left.session}: {what}, the copy in the store takes its place",
        )
    return Look(
        thing="session", fine=False, says=f"{left.session}: {what}, and there is no copy of it"
    )


def _look_at_program(
    setup: Setup, before: str, environment: Mapping[str, str], *, workspace: str, starts: bool
) -> Look:
    try:
        words = program_words(setup.program, environment, workspace=workspace)
        if not starts:
            then = f"; it was {before} when the task left" if before else ""
            return Look(
                thing="program",
                fine=True,
                says=f"{words[-1]}{then}; its version is checked when it starts",
            )
        now = installed_version(words)
    except AdjournError as error:
        return Look(thing="program", fine=False, says=error.sentence)
    since = "" if before in {"", dotted(now)} else f"; it was {before} when the task left"
    return Look(thing="program", fine=True, says=f"{setup.program} {dotted(now)}{since}")


def program_words(program: str, environment: Mapping[str, str], *, workspace: str) -> list[str]:
    """Return the words that start the program that a setup names, or say why there are none."""
    path = environment.get("PATH", os.defpath)
    try:
        found = find_program(program, path=path, workspace=workspace)
        words = start_words(found, path=path, workspace=workspace) if found else []
    except AdjournError as error:
        raise AdjournError(
            f"{program} cannot be started: {error.sentence}", way_out=error.way_out
        ) from error
    if not words:
        raise AdjournError(
            f"{program} cannot be started: {_why(FileNotFoundError())}", way_out=_INSTALL
        )
    return words


def installed_version(words: Sequence[str]) -> tuple[int, ...]:
    """Return the version of the program, or say what is wrong with it."""
    program, argv = words[-1], [*words, "--version"]
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise AdjournError(
            f"{program} cannot be started: {_why(error)}", way_out=_INSTALL
        ) from error
    version = version_of(done.stdout)
    if version < OLDEST:
        said = done.stdout.strip()[:100] or "of no known version"
        sentence = f"{program} is {said}; it must be Claude Code {dotted(OLDEST)} or newer"
        raise AdjournError(sentence, way_out=_INSTALL)
    return version


def _why(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return f"it is not there; {_INSTALL}, or name it with --option program=PATH"
    return (
        error.strerror or "the system refuses"
        if isinstance(error, OSError)
        else "it does not say its version"
    )


def diagnosis(program: str, environment: Mapping[str, str], *, workspace: str) -> Look:
    """Say what the installed program can do, for whoever wonders."""
    version = installed_version(program_words(program, environment, workspace=workspace))
    says = f"Claude Code {dotted(version)}: its hook can defer calls, and its sessions can be resumed by id and by file"
    if version < OLDEST_THAT_BLOCKS:
        says += (
            f"; from {dotted(OLDEST_THAT_BLOCKS)} on it would take a broken hook for a no by itself"
        )
    return Look(thing="claude", fine=True, says=says)
