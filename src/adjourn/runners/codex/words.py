"""What Codex is told about its calls: decisions, the policy's word, and results."""

from collections.abc import Sequence
from typing import Any

import msgspec

from adjourn.core.agent.calls import CallResult, Held, rejection
from adjourn.core.ask import Ask
from adjourn.core.call import Call, arguments_of
from adjourn.core.states import AskState, CallState
from adjourn.runners.codex.memory import Queried, Ran
from adjourn.runners.codex.protocol import SHELL_TOOL

NOT_ASKED = (
    "Not executed: the run was stopped before it could be. Make the call again if it is "
    "still needed."
)
REFUSED = "Not executed: Codex itself refused it."
LEFT = (
    "Ended: the run left for a person while this command was running. It may have partially "
    "run; look before you repeat it."
)
DONE_BEFORE = "Ended with the run: this command was still running when Codex was done."
INTERRUPTED = (
    "Interrupted: the run was paused while this call was running. It may have partially run; "
    "look before you repeat it."
)


def call_told(held: Held) -> str:
    """Say how a call stands, as its output."""
    call = held.call
    if call is None:
        return NOT_ASKED
    match call.state:
        case CallState.APPROVED:
            return _approved(held, call)
        case CallState.REJECTED | CallState.EXPIRED:
            return _rejected(held)
        case CallState.DONE | CallState.FAILED if held.result:
            return result_told(held.result)
        case _:
            return NOT_ASKED


def _approved(held: Held, call: Call) -> str:
    if held.original is None:
        return (
            f"Approved by {call.approved_by}, and not executed yet. Repeat the identical call "
            "now: it will run without asking."
        )
    arguments = msgspec.json.encode(arguments_of(call.body)).decode()
    return (
        f"Approved by {call.approved_by} with changes, and not executed yet. Make exactly "
        f"this call now: {arguments}"
    )


def _rejected(held: Held) -> str:
    reason = held.ask.reply if held.ask else (held.result.error if held.result else None)
    if held.ask and held.ask.state is AskState.EXPIRED:
        reason = "nobody decided in time"
    return rejection(reason)


def result_told(result: CallResult) -> str:
    """Write a result as Codex writes the output of a command."""
    if result.settled_by:
        return (
            f"{'It ran' if result.ok else 'It did not run'}, says {result.settled_by}; its "
            "output was lost."
        )
    parts = [f"Process exited with code {result.exit_code}"] if result.exit_code is not None else []
    parts += [result.error] if result.error else []
    return "\n".join([*parts, f"Output:\n{result.output}"])


def cell_told(ran: Sequence[Ran], told: Sequence[tuple[str, str]]) -> str:
    """Say how far a script got that was stopped.

    What had run, and how the calls stand at which it was stopped.
    """
    lines = ["Script stopped before its end; the rest of it did not run."]
    lines += [f"Ran before: {each.told}\n{each.output}" for each in ran]
    lines += [f"{line}\n{text}" for line, text in told]
    return "\n\n".join(lines)


def answers_told(queried: Sequence[Queried], asks: Sequence[Ask]) -> str:
    """Write answers as Codex itself hands them to the model."""
    replies = {ask.id: ask.reply for ask in asks if ask.state is AskState.ANSWERED}
    given = {
        each.id: {"answers": [reply] if (reply := replies.get(each.ask)) is not None else []}
        for each in queried
    }
    return msgspec.json.encode({"answers": given}).decode()


def line_of(call: Call) -> str:
    """Write a call on one line."""
    return shown_arguments(call.tool, arguments_of(call.body))


def shown_arguments(tool: str, arguments: Any) -> str:
    """Write what a call would do on one line."""
    command = arguments.get("command") if tool == SHELL_TOOL else None
    return (
        f"`{command}`"
        if isinstance(command, str)
        else f"{tool} {msgspec.json.encode(arguments).decode()}"
    )
