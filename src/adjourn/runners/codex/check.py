"""Whether a thread of Codex can still be resumed, and why not. It changes nothing."""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence

from adjourn.core.agent.calls import SessionCheck
from adjourn.core.errors import AdjournError
from adjourn.core.task import Spec
from adjourn.ports.runner import LeftSession
from adjourn.runners.codex import program
from adjourn.runners.codex.memory import DOCUMENT, SESSION, CodexMemory, memory_of
from adjourn.runners.codex.options import PROGRAM, VARIABLE, CodexSetup, setup_of
from adjourn.runners.codex.session import (
    copy_of,
    is_whole,
    messages_in,
    obstacle,
    provider_in,
)
from adjourn.runners.installed import check_program, print_of, start_argv

TYPE_CHECKING = False

if TYPE_CHECKING:  # a driver does without
    from adjourn.core.agent.transcript import Message

_NAME = "codex"  # it begins the line in which the program prints its version
_INSTALL = "npm install -g @openai/codex"


def check_session(spec: Spec, left: LeftSession) -> Iterator[SessionCheck]:
    """Check the thread and the program of a task that has left."""
    memory = memory_of(left.documents(DOCUMENT), session=left.of)
    if memory is None:
        yield SessionCheck(
            thing="session", fine=left.ref is None, says="it had not begun when it left"
        )
    else:
        is_fine, says = _look_at_thread(memory, left, prompt=spec.prompt or "")
        yield SessionCheck(thing="session", fine=is_fine, says=says)
    setup = setup_of((spec.setup or "").encode())
    if memory:
        yield from _look_at_provider(memory, left, setup)
    yield check_program(
        setup.program,
        before=memory.version if memory else "",
        starts=left.starts,
        find=lambda: _find_codex(setup, left.environment, workspace=spec.workspace),
        version=installed_version,
    )


def read_transcript(spec: Spec, left: LeftSession) -> "list[Message]":
    """Return the conversation of a task: from the thread's file, or from its copy in the store."""
    memory = memory_of(left.documents(DOCUMENT), session=left.of)
    copy = left.documents(SESSION)
    path = os.path.join(program.home(left.environment), memory.place) if memory else ""
    is_there = bool(path) and is_whole(path, copy=copy, prompt=spec.prompt or "")
    return messages_in((copy_of(path) if is_there else None) or copy or b"")


def _look_at_thread(memory: CodexMemory, left: LeftSession, *, prompt: str) -> tuple[bool, str]:
    """Return whether the thread can be resumed, and where it is or why not."""
    name, copy = left.ref or memory.thread, left.documents(SESSION)
    path = os.path.join(program.home(left.environment), memory.place)
    try:
        program.require_thread(name)
    except AdjournError as error:
        return False, error.sentence
    if name != memory.thread:
        return False, f"{name} is not the thread that was kept, {memory.thread}"
    if is_whole(path, copy=copy, prompt=prompt):
        return True, f"{name}, in {path}"
    what = "its file is damaged" if os.path.exists(path) else "its file is not there"
    if not copy:
        return False, f"{name}: {what}, and there is no copy of it"
    if place := obstacle(path):
        why = f"{place} is not a directory that can be written to"
        return False, f"{name}: {what}, and its copy cannot be put there: {why}"
    return True, f"{name}: {what}, the copy in the store takes its place"


def _look_at_provider(
    memory: CodexMemory, left: LeftSession, setup: CodexSetup
) -> Iterator[SessionCheck]:
    """Check that the settings still name the provider of models that the thread was made with."""
    home = program.home(left.environment)
    kept = left.documents(SESSION) or copy_of(os.path.join(home, memory.place))
    before, now = provider_in(kept or b""), program.provider_of(setup, home)
    if before and before != now:
        says = (
            f"its thread was made with {before}, and Codex's settings name {now};"
            f" set model_provider to {before} again to go on"
        )
        yield SessionCheck(thing="provider", fine=False, says=says)


def _find_codex(setup: CodexSetup, environment: Mapping[str, str], *, workspace: str) -> list[str]:
    binary = program.binary(setup, environment, workspace=workspace)
    return start_argv(binary, path=environment.get("PATH", os.defpath), workspace=workspace)


def installed_version(argv: Sequence[str]) -> str:
    """Return the version of the program, or raise AdjournError if adjourn cannot use it."""
    binary = argv[-1]
    try:
        printed = print_of(argv, "--version").stdout
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise AdjournError(f"{binary} does not say its version", way_out=_INSTALL) from error
    version = program.version_in(printed) if _NAME in printed else ()
    if not version:
        said = printed.strip()[:100] or "of no known version"
        raise AdjournError(f"{binary} is {said}; it must be Codex", way_out=_INSTALL)
    program.refuse_too_old(version)
    return ".".join(map(str, version))


def diagnose(environment: Mapping[str, str], *, workspace: str) -> str | None:
    """Say what the installed program can do, or None if it is not installed."""
    setup = CodexSetup(program=environment.get(VARIABLE) or PROGRAM)
    try:
        argv = _find_codex(setup, environment, workspace=workspace)
    except AdjournError:
        if VARIABLE in environment:
            raise
        return None
    version = installed_version(argv)
    has_app_server = print_of(argv, "app-server", "--help").returncode == 0
    speaks = "it has an app-server" if has_app_server else ""
    speaks = speaks or "it has no app-server, so `codex exec` is used"
    says = f"Codex {version}: {speaks}, its calls wait at a hook"
    return f"{says}, and its threads can be resumed by id and by file"
