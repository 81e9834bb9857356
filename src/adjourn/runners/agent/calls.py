"""The calls of one answer.

Put before the policy together, and carried out together or not at all.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from adjourn.core import kept_documents
from adjourn.core.agent.calls import CallResult, Held, Proposed
from adjourn.core.agent.transcript import Assistant, ToolCall, ToolResult
from adjourn.core.ask import Ask, Question
from adjourn.core.call import arguments_of, tool_body
from adjourn.core.errors import Misuse
from adjourn.core.states import AskState, CallState
from adjourn.ports.drive import Drive
from adjourn.runners.agent.tools.tool import ToolFailed, capped
from adjourn.runners.agent.tools.toolbox import ASK, OWN, Toolbox

# Names the document that says why calls of the newest batch could not even be proposed
UNMADE = kept_documents.UNMADE.name
_NEEDS_A_PERSON = frozenset({CallState.PENDING, CallState.UNCERTAIN})
_TURNED_DOWN = frozenset({CallState.REJECTED, CallState.EXPIRED})
_INTERRUPTED = "it was interrupted before it ran; call it again if it is still needed"
_SIDE_BY_SIDE = 8

Outcome = tuple[bool, str]  # whether it worked, and what the model is told


class Batch:
    """What became of the calls of one answer, so far."""

    def __init__(self, drive: Drive, toolbox: Toolbox, answer: Assistant) -> None:
        self._drive = drive
        self._toolbox = toolbox
        self._answer = answer
        self._unmade: dict[str, str] = {}
        self._held = self._found() or self._propose()
        self._asked = {
            call.id: self._question(call) for call in answer.tool_calls if self._is_question(call)
        }

    @property
    def needs_a_person(self) -> bool:
        """Whether somebody has to settle something before any of it may run, or go on."""
        states = {held.call.state for held in self._held.values() if held.call}
        return not states.isdisjoint(_NEEDS_A_PERSON) or any(
            ask.is_open for ask in self._asked.values()
        )

    # --- before the policy ------------------------------------------------------------------------

    def _found(self) -> dict[str, Held]:
        """Return the calls that were proposed before this process began."""
        held = self._drive.batch()
        if held:
            self._unmade = _decoded(self._drive.document(UNMADE))
        return self._named(held)

    def _named(self, held: Sequence[Held]) -> dict[str, Held]:
        return dict(zip((call.id for call in self._made()), held, strict=True)) if held else {}

    def _made(self) -> list[ToolCall]:
        """Return the calls that are put before the policy."""
        return [
            call
            for call in self._answer.tool_calls
            if call.name not in OWN and call.id not in self._unmade
        ]

    def _propose(self) -> dict[str, Held]:
        """Propose the whole batch, in one moment.

        What cannot be made at all is not put before anybody.
        """
        proposed = [each for call in self._answer.tool_calls if (each := self._proposal(call))]
        if not proposed:
            return {}
        if self._unmade:
            self._drive.keep(UNMADE, msgspec.json.encode(self._unmade))
        return self._named(self._drive.propose(proposed))

    def _proposal(self, call: ToolCall) -> Proposed | None:
        try:
            tool, arguments = self._toolbox.prepared(call)
            body = tool_body(tool.name, arguments)
        except (ToolFailed, Misuse) as error:
            self._unmade[call.id] = str(error)
            return None
        if tool.name in OWN:
            return None
        schema = msgspec.json.encode(tool.schema) if tool.is_checked else None
        words = self._answer.text or None
        return Proposed(
            tool=tool.name,
            body=body,
            label=call.id,
            words=words,
            read_only=tool.read_only,
            editable=schema,
        )

    def _is_question(self, call: ToolCall) -> bool:
        return call.name == ASK.name and call.id not in self._unmade

    def _question(self, call: ToolCall) -> Ask:
        arguments = call.arguments if isinstance(call.arguments, dict) else {}
        choices = tuple(str(choice) for choice in arguments.get("choices", ()))
        return self._drive.ask(
            Question(prompt=str(arguments.get("question", "")), key=call.id, choices=choices)
        )

    # --- what came of it --------------------------------------------------------------------------

    def carry_out(self) -> None:
        """Have everything carried out that may be.

        What only looks here, side by side; all else beside us, one by one.
        """
        looks = {call.id: call for call in self._made() if self._held[call.id].call is None}
        with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
            looked = pool.map(self._look, looks.values())
            if len(looks) < len(self._held):
                self._held = self._named(self._drive.wait_for_calls())
            self._looked = dict(zip(looks, looked, strict=True))

    def _look(self, call: ToolCall) -> Outcome:
        try:
            tool, arguments = self._toolbox.prepared(call)
            return True, self._toolbox.carry_out(tool.name, arguments)
        except ToolFailed as error:
            return False, str(error)

    def results(self) -> list[ToolResult]:
        """Return what came of all calls, in their order, in the words that the model gets."""
        return [self._result(call) for call in self._answer.tool_calls]

    def _result(self, call: ToolCall) -> ToolResult:
        ok, words = self._outcome(call)
        limit = self._toolbox.place.limit
        return ToolResult(
            tool_call_id=call.id,
            name=call.name,
            text=capped(words, limit, of="the result"),
            failed=not ok,
        )

    def _outcome(self, call: ToolCall) -> Outcome:
        if call.id in self._unmade:
            return False, self._unmade[call.id]
        if call.id in self._asked:
            return _answered(self._asked[call.id])
        if call.name in OWN:
            return True, "done"
        return self._looked[call.id] if call.id in self._looked else _came_of(self._held[call.id])


def _decoded(body: bytes | None) -> dict[str, str]:
    return msgspec.json.decode(body, type=dict[str, str]) if body else {}


def _answered(ask: Ask) -> Outcome:
    is_answered = ask.state is AskState.ANSWERED
    return is_answered, (ask.reply or "") if is_answered else "nobody answered"


def _came_of(held: Held) -> Outcome:
    """Say what came of a call that was let through, or turned down."""
    if held.call is None or held.call.state in _TURNED_DOWN:
        return False, held.rejection
    if held.result is None:
        return False, _INTERRUPTED
    return held.result.ok, _replaced(held) + _words(held.result)


def _replaced(held: Held) -> str:
    """Tell the model when a person had another call made in the place of its own."""
    if held.original is None or held.call is None:
        return ""
    arguments: Mapping[str, object] = arguments_of(held.call.body)
    made = msgspec.json.encode(arguments).decode()
    return f"A reviewer replaced the arguments of this call. What was carried out is: {made}\n"


def _words(result: CallResult) -> str:
    ends = {
        "exit code": result.exit_code or None,
        "signal": result.signal,
        "error": result.error,
        "nobody saw it end; the word of": result.settled_by,
    }
    told = "; ".join(f"{name} {value}" for name, value in ends.items() if value is not None)
    output = result.output.rstrip("\n")
    return f"{output}\n[{told}]".lstrip("\n") if told else output or "[no output]"
