"""Whether a thread of Codex can still be resumed, and why not. It changes nothing."""

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence

from adjourn.core.agent.calls import Look
from adjourn.core.errors import AdjournError
from adjourn.core.task import Spec
from adjourn.runners.codex import program
from adjourn.runners.codex.memory import DOCUMENT, SESSION, Memory, memory_of
from adjourn.runners.codex.options import PROGRAM, VARIABLE, Setup, setup_of
from adjourn.runners.codex.session import is_whole, obstacle
from adjourn.runners.installed import start_words

_SECONDS = 20
_NAME = "codex"  # it begins the line in which the program says its version

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
    """Look at the thread and the program of a task that has left; `of` is the task's own session, `ref` the provider's.

    Only what is about to start the program `starts` it to ask for its version: who looks at a store runs nothing of it.
    """
    memory = memory_of(documents(DOCUMENT), session=of)
    if memory is None:
        yield Look(thing="session", fine=ref is None, says="it had not begun when it left")
    else:
        path = os.path.join(program.home(environment), memory.place)
        yield _look_at_thread(
            memory, ref or memory.thread, path, documents(SESSION), prompt=spec.prompt or ""
        )
    setup, before = setup_of((spec.setup or "").encode()), memory.version if memory else ""
    yield _look_at_program(setup, before, environment, workspace=spec.workspace, starts=starts)


def _look_at_thread(
    memory: Memory, name: str, path: str, copy: bytes | None, *, prompt: str
) -> Look:
    try:
        program.require_thread(name)
    except AdjournError as error:
        return Look(thing="session", fine=False, says=error.sentence)
    if name != memory.thread:
        return Look(
            thing="session",
            fine=False,
            says=f"{name} is not the thread that was kept, {memory.thread}",
        )
    if is_whole(path, copy=copy, prompt=prompt):
        return Look(thing="session", fine=True, says=f"{name}, in {path}")
    what = "its file is damaged" if os.path.exists(path) else "its file is not there"
    if copy and (place := obstacle(path)):
        says = f"{name}: {what}, and its copy cannot be put there: {place} is not a directory that can be written to"
        return Look(thing="session", fine=False, says=says)
    if copy:
        return Look(
            thing="session",
            fine=True,
            says=f"{name}: {what}, the copy in the store takes its place",
        )
    return Look(thing="session", fine=False, says=f"{name}: {what}, and there is no copy of it")


def _look_at_program(
    setup: Setup, before: str, environment: Mapping[str, str], *, workspace: str, starts: bool
) -> Look:
    try:
        binary = program.binary(setup, environment, workspace=workspace)
        if not starts:
            then = f"; it was {before} when the task left" if before else ""
            return Look(
                thing="program",
                fine=True,
                says=f"{binary}{then}; its version is checked when it starts",
            )
        now = installed_version(_words(binary, environment, workspace=workspace))
    except AdjournError as error:
        return Look(thing="program", fine=False, says=error.sentence)
    since = "" if before in {"", now} else f"; it was {before} when the task left"
    return Look(thing="program", fine=True, says=f"{setup.program} {now}{since}")


def _words(binary: str, environment: Mapping[str, str], *, workspace: str) -> list[str]:
    return start_words(binary, path=environment.get("PATH", os.defpath), workspace=workspace)


def installed_version(words: Sequence[str]) -> str:
    """Return the version of the program, or say what is wrong with it."""
    binary, argv = words[-1], [*words, "--version"]
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
            f"{binary} does not say its version", way_out="npm install -g @openai/codex"
        ) from error
    version = program.version_in(done.stdout) if _NAME in done.stdout else ()
    if not version:
        said = done.stdout.strip()[:100] or "of no known version"
        raise AdjournError(
            f"{binary} is {said}; it must be Codex", way_out="npm install -g @openai/codex"
        )
    program.refuse_too_old(version)
    return ".".join(map(str, version))


def diagnosis(environment: Mapping[str, str], *, workspace: str) -> Look | None:
    """Say what the installed program can do, for whoever wonders; nothing where there is none."""
    setup = Setup(program=environment.get(VARIABLE) or PROGRAM)
    try:
        words = _words(
            program.binary(setup, environment, workspace=workspace),
            environment,
            workspace=workspace,
        )
    except AdjournError:
        if VARIABLE in environment:
            raise
        return None
    version = installed_version(words)
    says = f"Codex {version}: {_way_in(words)}, its calls wait at a hook, and its threads can be resumed by id and by file"
    return Look(thing="codex", fine=True, says=says)


def _way_in(words: Sequence[str]) -> str:
    argv = [*words, "app-server", "--help"]
    done = subprocess.run(
        argv, capture_output=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL
    )
    return (
        "it has an app-server"
        if done.returncode == 0
        else "it has no app-server, so `codex exec` is used"
    )
