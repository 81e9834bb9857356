"""What an ask and its call were before: what was replaced, what was edited, and what nobody looked at."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

import msgspec

from adjourn.core.ask import Ask
from adjourn.core.call import ORIGINAL, UNCOVERED, Call
from adjourn.core.errors import NotFound
from adjourn.core.states import AskState
from adjourn.ports import View


class History(TypedDict):
    """The parts of a scene that tell of earlier calls."""

    replaced: dict[str, Call]
    originals: dict[int, bytes]
    uncovered: dict[int, tuple[str, ...]]


def of_asks(view: View, asks: Sequence[Ask], calls: Mapping[int, Call]) -> History:
    """Return what the asks of a run and their calls were before. Most have no history, and cost nothing."""
    edited = {ask.call: _original(view, calls[ask.call]) for ask in asks if ask.call and ask.state is AskState.APPROVED}
    return History(
        replaced={ask.id: call for ask in asks if ask.replaces and (call := _replaced(view, ask.replaces))},
        originals={number: body for number, body in edited.items() if body is not None},
        uncovered={ask.call: _uncovered(view, calls[ask.call]) for ask in asks if ask.call and (ask.gate or ask.replaces)},
    )


def _replaced(view: View, ask_id: str) -> Call | None:
    try:
        ask = view.ask(ask_id)
        return view.call(ask.task_id, ask.call) if ask.call else None
    except NotFound:
        return None


def _original(view: View, call: Call) -> bytes | None:
    return view.document(call.task_id, f"{ORIGINAL}{call.tool_call_id}")


def _uncovered(view: View, call: Call) -> tuple[str, ...]:
    body = view.document(call.task_id, f"{UNCOVERED}{call.tool_call_id}")
    return msgspec.json.decode(body, type=tuple[str, ...]) if body else ()
