"""What adjourn says to the model."""

from collections.abc import Sequence
from typing import Any

import msgspec

from adjourn.core.agent.calls import CallResult, Held
from adjourn.core.ask import QuestionAsk
from adjourn.core.call import Call
from adjourn.core.states import CallState
from adjourn.runners.claude.fingerprint import input_of

_LONG = 1_000
HELD = (
    "Not run: a person has to decide about a call of this turn first. You will be told "
    "when that is done; if you still need this "
    "call then, make it again with exactly the same input."
)
SUBAGENT = (
    "Not run: this call needs a person's decision, and nobody can be asked from inside a "
    "subagent. Report to the main agent what "
    "you would have run, so that it makes the call itself."
)
_INTERRUPTED = (
    "Not run again: it was interrupted when you were paused, and may have taken effect "
    "in part. Check what it did; if it is "
    "still needed, make the call again, and a person is asked."
)
PAUSED = (
    "You were paused and now go on. If a tool call was interrupted, its outcome is "
    "unknown: check what it did before "
    "you repeat it. Then continue with the task."
)
MADE = (
    "You have made these calls already, though you may not see them above. Do not repeat "
    "them for that reason:"
)
UNANSWERED = (
    "Not answered: nobody has answered these questions. Ask them again if you still need to know."
)
DECIDED = "A person has decided about the calls that were held. Continue with the task."


def naming_no_file(text: str) -> str:
    """Return a text for a prompt in which nothing is taken for `@path`.

    Claude Code reads such a file, wherever it is, and asks nobody. JSON keeps its meaning.
    """
    return text.replace("@", "\\u0040")


def broken(why: str) -> str:
    """Say that a call was not judged."""
    return f"Not run: adjourn could not judge this call: {why}"


def begun(call: Call) -> str:
    """Say that a call was handed out before, and that nobody saw it end."""
    return (
        f"Not run: this very call ({call.tool_call_id}) was started before and nobody saw "
        "it end, so it may have taken effect. "
        "Do not repeat it; check what it did, or ask the person."
    )


def carried_out(held: Held) -> str:
    """Say how a call ended that was made before."""
    result = held.result or CallResult(ok=False)
    if result.settled_by:
        said = "ran" if result.ok else "did not run"
        return (
            f"Not run again: it was started before, and {result.settled_by} says that it "
            f"{said}. Its output is not known."
        )
    if result.ok:
        return f"Not run again: it was made before, and succeeded.\n{result.output}".rstrip()
    return f"{_INTERRUPTED}\n{result.output}".rstrip()


def made_before(name: str, held: Held) -> str:
    """Say how a call ended that its own session does not show."""
    if held.call is None:
        return f"- nothing is known of one ({name})"
    result, call = held.result, f"{held.call.tool} {_shortened(input_of(held.call.body))} ({name})"
    if result is None:
        return (
            f"- {call}: {_INTERRUPTED if held.call.state is CallState.FAILED else begun(held.call)}"
        )
    if result.settled_by:
        return f"- {call}: {carried_out(held)}"
    return f"- {call}: it {'succeeded' if result.ok else 'failed'}\n{result.output}".rstrip()


def edited(held: Held) -> str | None:
    """Say that a person changed a call before approving it."""
    if held.original is None or held.call is None:
        return None
    made = _shortened(input_of(held.call.body))
    return (
        f"A person changed the input of this {held.call.tool} call before approving it: it "
        f"ran with {made}."
    )


def news(held: Sequence[Held], answers: Sequence[QuestionAsk]) -> str:
    """Say how calls ended that were held together, and what was answered."""
    answered = [
        f"- answered, you need not ask again: {ask.prompt}\nThe answer is: {ask.reply}"
        for ask in answers
    ]
    return "\n".join(
        ["Of the other calls that were held:", *(_news(each) for each in held), *answered]
    )


def _news(held: Held) -> str:
    if held.call is None:
        return "- nothing is known of one"
    call = f"{held.call.tool} {_shortened(input_of(held.call.body))}"
    match held.call.state:
        case CallState.APPROVED:
            return f"- approved: make it again, exactly so, and it will run: {call}"
        case CallState.REJECTED | CallState.EXPIRED:
            return f"- rejected, do not make it again: {call}"
        case _:
            return f"- {held.call.state}: {call}"


def _shortened(arguments: dict[str, Any]) -> str:
    """Return arguments so that the model knows which call is meant.

    It has said them itself, however long they are.
    """
    text = msgspec.json.encode(arguments).decode()
    return text if len(text) <= _LONG else f"{text[:_LONG]} ({len(text) - _LONG} characters more)"
