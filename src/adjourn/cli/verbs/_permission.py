"""adjourn _permission: put what a person's own Claude Code session asks into their inbox.

`adjourn setup claude --interactive` has Claude Code start it, before every call (PreToolUse) and
beside its own permission prompt (PermissionRequest). The first answer decides.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import click
import msgspec

from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.core.errors import AdjournError, Rejected
from adjourn.core.policy.judgement import Action
from adjourn.core.states import ENDED, AskState, TaskState
from adjourn.core.task import Task
from adjourn.core.text.json_text import decode_unambiguous
from adjourn.core.text.render import block
from adjourn.library import approval
from adjourn.supervision.wait import wait_until
from adjourn.system.machine import now
from adjourn.wiring.own_program import own_environment, own_program, own_python
from adjourn.wiring.policies import explained

_LONGEST = 60.0  # seconds from a decision to the end of the run that asked for it
_SPARE = 30  # seconds after which an ask expires that nobody could withdraw
_LOOK = 1.0  # seconds between two looks at the session
_TAIL = 4 * 1024 * 1024  # bytes at the end of a session's file that are looked at
_LARGEST = 100_000  # bytes of a call: one word of a command line holds no more than 128 KB


class PermissionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What Claude Code tells a hook."""

    hook_event_name: str
    tool_name: str
    tool_input: dict[str, Any]
    cwd: str
    transcript_path: str = ""


class _Message(msgspec.Struct):
    content: list[dict[str, Any]]


class _SessionLine(msgspec.Struct):
    message: _Message


_content = msgspec.json.Decoder(_SessionLine)


@verb("_permission")
@click.option("--for", "seconds", type=int, default=600)
@click.option("--call", default=None)
def command(session: Session, *, seconds: int, call: str | None) -> int:
    """Answer Claude Code, or say nothing: then its own prompt counts, as always."""
    if call is not None:
        return _hold(call, seconds)
    if "ADJOURN_RUN_ID" in os.environ:  # a run has a hook of its own, and nobody at a terminal
        return 0
    try:
        request = decode_unambiguous(sys.stdin.buffer.read(), type=PermissionRequest)
    except (msgspec.MsgspecError, UnicodeError) as error:
        sentence = f"stdin is not a request of Claude Code's: {error}"
        # Not 2, the code of a wrong command line: Claude Code takes that for a no
        raise AdjournError(sentence, way_out="adjourn setup claude --interactive") from None
    os.chdir(request.cwd)
    session.find_root()
    answer: dict[str, Any] | None = None
    try:
        if request.hook_event_name == "PreToolUse":
            answer = _judged(session, request)
        elif request.hook_event_name == "PermissionRequest":
            answer = _decided(session, request, seconds)
    except AdjournError as error:
        # The person at the terminal decides then. A policy that cannot be read may say never.
        sys.stderr.write(f"adjourn: {block(error.sentence)}\n")
        if request.hook_event_name == "PreToolUse":
            answer = _permission("ask", f"adjourn: {error.sentence}")
    if answer:
        said = {"hookSpecificOutput": {"hookEventName": request.hook_event_name} | answer}
        sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
        sys.stdout.buffer.flush()
    return 0


def _permission(decision: str, reason: str) -> dict[str, Any]:
    return {"permissionDecision": decision, "permissionDecisionReason": reason}


def _judged(session: Session, request: PermissionRequest) -> dict[str, Any] | None:
    """Say what the policy says of a call; nothing where no rule is about it."""
    judgement = explained(
        session.root, request.cwd, request.tool_name, request.tool_input, now=now()
    ).explanation.judgement
    if judgement.is_default:
        return None
    decision = {Action.AUTO: "allow", Action.PROMPT: "ask", Action.NEVER: "deny"}
    return _permission(decision[judgement.action], f"adjourn: {'; '.join(judgement.why)}")


def _decided(session: Session, request: PermissionRequest, seconds: int) -> dict[str, Any] | None:
    """Put a call into the inbox, and wait until somebody decides, here or there, or for so long.

    A run of its own asks (`--call`), as any program does; so its policy, terms, notifications and
    trail are those of every ask.
    """
    call = {"tool": request.tool_name, "arguments": request.tool_input}
    body = msgspec.json.encode(call, order="sorted").decode()
    if len(body) > _LARGEST:
        return None
    answered_before = set(_answered(request))
    signals: list[int] = []  # Claude Code sends one when its own prompt is canceled
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: signals.append(number))

    words = ["_permission", "--for", str(seconds), "--call", body]
    child = [own_program(), *words] if own_program() else own_python(*words)
    task_id = _adjourn("run", "--no-pause-on-approval", "--", *child)["task_id"]
    controller = session.open_controller()

    def is_over(task: Task) -> bool:
        if task.state is not TaskState.WAITING or signals:
            return True
        return not answered_before.issuperset(_answered(request))

    task = wait_until(controller, task_id, is_over, look=lambda: None, timeout=seconds, every=_LOOK)
    if task.state is TaskState.WAITING:  # decided at the terminal, or by nobody
        _adjourn("cancel", task_id)
        return None
    if task.state is TaskState.QUEUED:  # approved; without a worker nobody else goes on
        _adjourn("resume", task_id)
    task = wait_until(
        controller, task_id, lambda task: task.state in ENDED, look=lambda: None, timeout=_LONGEST
    )
    with controller.store.read() as view:
        rejected = [ask for ask in view.asks(task_id) if ask.state is AskState.REJECTED]
    if task.state is TaskState.SUCCEEDED:
        return {"decision": {"behavior": "allow"}}
    if not rejected:
        return None
    settled, reply = rejected[0].settlement, rejected[0].reply
    message = f"Rejected by {settled.by if settled else 'the policy'}"
    if reply:
        message += f": {reply}"
    return {"decision": {"behavior": "deny", "message": message}}


def _adjourn(*words: str) -> dict[str, Any]:
    """Run a verb of this very adjourn, and return its document; how it ends is told there."""
    done = subprocess.run(
        own_python(words[0], "--output", "json", *words[1:]),
        env=own_environment(os.environ) | {"ADJOURN_PROMPT": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    try:
        return msgspec.json.decode(done.stdout, type=dict[str, Any])
    except msgspec.DecodeError:
        said = done.stderr.decode(errors="replace").strip()[-500:] or f"exit {done.returncode}"
        sentence = f"`adjourn {words[0]}` failed: {said}"
        raise AdjournError(sentence, way_out="adjourn doctor") from None


def _hold(call: str, seconds: int) -> int:
    """Ask for one call, inside a run. It is Claude Code that makes it."""
    asked = msgspec.json.decode(call, type=dict[str, Any])
    try:
        with approval(
            f"Claude Code, at a terminal, wants to call {asked['tool']}",
            tool=asked["tool"],
            arguments=asked["arguments"],
            expires_after=f"{seconds + _SPARE}s",
        ):
            return 0
    except Rejected as no:
        sys.stderr.write(f"{block(no.sentence)}\n")
        return 1


def _answered(request: PermissionRequest) -> Iterator[str]:
    """Yield the ids of such calls that have a result in the session's file."""
    try:
        with open(request.transcript_path, "rb") as file:
            file.seek(max(0, os.path.getsize(request.transcript_path) - _TAIL))
            lines = file.read().splitlines()
    except OSError:
        return
    calls: set[str] = set()
    own = request.tool_name, request.tool_input
    for line in lines:
        try:
            parts = _content.decode(line).message.content
        except msgspec.MsgspecError:  # something else of the session
            continue
        for part in parts:
            match part:
                case {"type": "tool_use", "id": str(name)}:
                    if (part.get("name"), part.get("input")) == own:
                        calls.add(name)
                case {"type": "tool_result", "tool_use_id": str(name)} if name in calls:
                    yield name
                case _:
                    pass
