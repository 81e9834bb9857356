"""What adjourn says to the model of an agent."""

from collections.abc import Sequence

import msgspec

from adjourn.core.agent.calls import Held
from adjourn.core.ask import QuestionAsk
from adjourn.core.call import Call, arguments_of
from adjourn.core.states import AskState, CallState

_LONG = 2_000
PAUSED = (
    "You were paused and now go on. If a tool call was interrupted, its outcome is unknown: check"
    " what it did before you repeat it. Then continue with the task."
)
NOT_ASKED = "Not executed: the run was stopped before it could be."
LEFT = (
    "Ended: the run left for a person while this call was running. It may have partially run;"
    " look before you repeat it."
)
INTERRUPTED = (
    "Interrupted: the run was paused while this call was running. It may have partially run; look"
    " before you repeat it."
)
_NEWS = "You were paused. Your tool calls ended like this:"


def news(held: Sequence[Held], answers: Sequence[QuestionAsk]) -> str:
    """Say how the calls of earlier turns ended, and what was answered; empty if nothing."""
    lines = [f"- {_line(each.call)}\n  {_fate(each, each.call)}" for each in held if each.call]
    lines += [f"- You asked: {ask.prompt}\n  The answer is: {ask.reply}" for ask in answers]
    return "\n".join([_NEWS, *lines, "Continue with the task."]) if lines else ""


def rejected(held: Sequence[Held]) -> str:
    """Say which calls were turned down while the turn went on."""
    return news(held, ()).replace(_NEWS, "Some of your tool calls were not run:")


def _fate(held: Held, call: Call) -> str:
    match call.state:
        case CallState.APPROVED:
            return (
                f"Approved by {call.approved_by}, and not executed yet. Repeat the identical call"
                " now, with exactly the same input: it will run."
            )
        case CallState.REJECTED | CallState.EXPIRED:
            reason = (held.ask.reply if held.ask else None) or (
                held.result.error if held.result else None
            )
            if held.ask and held.ask.state is AskState.EXPIRED:
                reason = "nobody decided in time"
            return f"Rejected{f': {reason}' if reason else ''}. Do not make it again."
        case CallState.DONE | CallState.FAILED if held.result:
            result = held.result
            if result.settled_by:
                ran = "ran" if result.ok else "did not run"
                return f"It {ran}, says {result.settled_by}; its output was lost."
            how = "It succeeded" if result.ok else "It failed"
            said = "\n".join(filter(None, [result.error, result.output]))
            return f"{how}; do not repeat it for that reason alone. {said}".rstrip()
        case CallState.EXECUTING | CallState.CLAIMED | CallState.UNCERTAIN:
            return "It was started and nobody saw it end. Do not repeat it; check what it did."
        case _:
            return "It was not executed."


def _line(call: Call) -> str:
    text = msgspec.json.encode(arguments_of(call.body)).decode()
    more = f" ({len(text) - _LONG} characters more)" if len(text) > _LONG else ""
    return f"{call.tool} {text[:_LONG]}{more}"
