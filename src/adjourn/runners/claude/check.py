"""Whether a session of Claude Code can still be resumed, and why not. It changes nothing."""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from adjourn.core.agent.calls import SessionCheck
from adjourn.core.errors import AdjournError
from adjourn.core.task import Spec
from adjourn.ports.runner import LeftSession
from adjourn.runners.claude import session
from adjourn.runners.claude.memory import DOCUMENT, SESSION, ClaudeMemory, memory_of
from adjourn.runners.claude.options import (
    OLDEST,
    OLDEST_THAT_BLOCKS,
    VARIABLE,
    ClaudeSetup,
    dotted,
    plain_ref,
    version_of,
)
from adjourn.runners.installed import check_program, find_program, print_of, start_argv

TYPE_CHECKING = False

if TYPE_CHECKING:  # a driver does without
    from adjourn.core.agent.transcript import Message

_INSTALL = "npm install -g @anthropic-ai/claude-code"
_NOT_THERE = f"it is not there; {_INSTALL}, or name it with --option program=PATH"


def check_session(spec: Spec, left: LeftSession) -> Iterator[SessionCheck]:
    """Check the session and the program of a task that has left."""
    kept = memory_of(left.documents(DOCUMENT), session=left.of)
    if kept is None or not kept.started:
        is_fine = kept is None and left.ref is None
        yield SessionCheck(thing="session", fine=is_fine, says="it had not begun when it left")
    else:
        is_fine, says = _look_at_session(kept, left)
        yield SessionCheck(thing="session", fine=is_fine, says=says)
    setup = msgspec.json.decode(spec.setup or "{}", type=ClaudeSetup)
    yield check_program(
        setup.program,
        before=kept.version if kept else "",
        starts=left.starts,
        find=lambda: find_claude(setup.program, left.environment, workspace=spec.workspace),
        version=lambda argv: dotted(installed_version(argv)),
    )


def _look_at_session(kept: ClaudeMemory, left: LeftSession) -> tuple[bool, str]:
    """Return whether the session can be resumed, and where it is or why not."""
    try:
        plain_ref(left.ref or kept.session)
    except AdjournError as error:
        return False, error.sentence
    if left.ref not in {None, kept.session}:
        return False, f"{left.ref} is not the session that was kept, {kept.session}"
    paths = session.files_of(kept.session, left.environment)
    if session.read(kept.session, paths):
        return True, f"{kept.session}, in {paths[0]}"
    what = "its file cannot be resumed" if paths else "its file is not there"
    if left.documents(SESSION):
        return True, f"{kept.session}: {what}, the copy in the store takes its place"
    return False, f"{kept.session}: {what}, and there is no copy of it"


def read_transcript(spec: Spec, left: LeftSession) -> "list[Message]":
    """Return the conversation of a task: from the session's file, or from its copy in the store."""
    del spec
    kept = memory_of(left.documents(DOCUMENT), session=left.of)
    name = kept.session if kept else ""
    paths = session.files_of(plain_ref(name), left.environment) if name else []
    return session.messages_in(session.read(name, paths) or left.documents(SESSION) or b"")


def find_claude(program: str, environment: Mapping[str, str], *, workspace: str) -> list[str]:
    """Return the arguments that start the program of that name, or raise AdjournError."""
    path = environment.get("PATH", os.defpath)
    try:
        found = find_program(program, path=path, workspace=workspace)
        if found:
            return start_argv(found, path=path, workspace=workspace)
    except AdjournError as error:
        raise AdjournError(
            f"{program} cannot be started: {error.sentence}", way_out=error.way_out
        ) from error
    raise AdjournError(f"{program} cannot be started: {_NOT_THERE}", way_out=_INSTALL)


def installed_version(argv: Sequence[str]) -> tuple[int, ...]:
    """Return the version of the program, or raise AdjournError if adjourn cannot use it."""
    program = argv[-1]
    try:
        printed = print_of(argv, "--version").stdout
    except FileNotFoundError as error:
        why = f"{program} cannot be started: {_NOT_THERE}"
        raise AdjournError(why, way_out=_INSTALL) from error
    except OSError as error:
        why = f"{program} cannot be started: {error.strerror or 'the system refuses'}"
        raise AdjournError(why, way_out=_INSTALL) from error
    except (subprocess.TimeoutExpired, ValueError) as error:
        why = f"{program} cannot be started: it does not say its version"
        raise AdjournError(why, way_out=_INSTALL) from error
    version = version_of(printed)
    if version < OLDEST:
        said = printed.strip()[:100] or "of no known version"
        sentence = f"{program} is {said}; it must be Claude Code {dotted(OLDEST)} or newer"
        raise AdjournError(sentence, way_out=_INSTALL)
    return version


def diagnose(environment: Mapping[str, str], *, workspace: str) -> str | None:
    """Say what the installed program can do, or None if it is not installed."""
    path = environment.get("PATH", os.defpath)
    program = environment.get(VARIABLE) or find_program("claude", path=path, workspace=workspace)
    if program is None:
        return None
    version = installed_version(find_claude(program, environment, workspace=workspace))
    says = f"Claude Code {dotted(version)}: its hook can defer calls, "
    says += "and its sessions can be resumed by id and by file"
    if version < OLDEST_THAT_BLOCKS:
        newer = dotted(OLDEST_THAT_BLOCKS)
        says += f"; from {newer} on it would take a broken hook for a no by itself"
    return says
