"""The calls of one answer.

Put before the policy together, and carried out together or not at all.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from adjourn.core import kept_documents
from adjourn.core.agent.calls import Held, Proposed, is_rejection
from adjourn.core.agent.transcript import Assistant, ToolCall, ToolResult
from adjourn.core.ask import Question
from adjourn.core.call import arguments_of, tool_body
from adjourn.core.clarification import Checkpoint
from adjourn.core.errors import Misuse
from adjourn.core.states import CallState
from adjourn.ports.drive import Drive
from adjourn.runners.agent.tools.tool import ToolFailed, capped
from adjourn.runners.agent.tools.toolbox import ASK, FINISH, OWN, Toolbox

# Names the document that says why calls of the newest batch could not even be proposed
UNMADE = kept_documents.UNMADE.name
_NEEDS_A_PERSON = frozenset({CallState.PENDING, CallState.UNCERTAIN})
_TURNED_DOWN = frozenset({CallState.REJECTED, CallState.EXPIRED})
_INTERRUPTED = "it was interrupted before it ran; call it again if it is still needed"
_SIDE_BY_SIDE = 8

Outcome = tuple[bool, str]  # whether it worked, and what the model is told


class Batch:
    """How the calls of one answer ended, so far."""

    def __init__(self, drive: Drive, toolbox: Toolbox, answer: Assistant) -> None:
        self._drive = drive
        self._toolbox = toolbox
        self._answer = answer
        self._unmade: dict[str, str] = {}
        # What was proposed before this process began, or else all of it now, in one moment
        if found := drive.batch():
            kept = drive.document(UNMADE)
            self._unmade = msgspec.json.decode(kept, type=dict[str, str]) if kept else {}
            self._held = self._named(found)
        else:
            self._held = self._propose()
        asking = [
            call
            for call in answer.tool_calls
            if call.name == ASK.name and call.id not in self._unmade
        ]
        asks = drive.clarify([_question(call) for call in asking]) if asking else []
        self._asked = dict(zip((call.id for call in asking), asks, strict=True))

    @property
    def needs_a_person(self) -> bool:
        """Whether somebody has to settle something before any of it may run, or go on."""
        states = {held.call.state for held in self._held.values() if held.call}
        return not states.isdisjoint(_NEEDS_A_PERSON) or any(
            ask.is_open for ask in self._asked.values()
        )

    @property
    def needs_only_answers(self) -> bool:
        """Whether it could go on as soon as its questions are answered."""
        states = {held.call.state for held in self._held.values() if held.call}
        return states.isdisjoint(_NEEDS_A_PERSON) and any(
            ask.is_open for ask in self._asked.values()
        )

    def linger(self, checkpoint: Checkpoint) -> None:
        """Wait briefly for the answers; if they do not come, leave the checkpoint behind."""
        asks = self._drive.linger(list(self._asked.values()), checkpoint)
        self._asked = dict(zip(self._asked, asks, strict=True))

    # --- before the policy ------------------------------------------------------------------------

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
        """Propose the whole batch. What cannot be made at all is not put before anybody."""
        proposed: list[Proposed] = []
        for call in self._answer.tool_calls:
            try:
                tool, arguments = self._toolbox.prepared(call)
                body = tool_body(tool.name, arguments)
            except (ToolFailed, Misuse) as error:
                self._unmade[call.id] = str(error)
                continue
            if tool.name not in OWN:
                proposed.append(
                    Proposed(
                        tool=tool.name,
                        body=body,
                        label=call.id,
                        words=self._answer.text or None,
                        read_only=tool.read_only,
                        editable=msgspec.json.encode(tool.schema) if tool.is_checked else None,
                    )
                )
        if not proposed:
            return {}
        if self._unmade:
            self._drive.keep(UNMADE, msgspec.json.encode(self._unmade))
        return self._named(self._drive.propose(proposed))

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
        """Return what came of all calls, in their order, as the model is told."""
        outcomes = {call.id: self._outcome(call) for call in self._answer.tool_calls}
        # Work is done only if all of it worked: a finish beside a call that did not is refused
        unfinished = [
            f"{call.id} ({call.name}) {'was rejected' if is_rejection(words) else 'failed'}"
            for call in self._answer.tool_calls
            for ok, words in [outcomes[call.id]]
            if not ok
        ]
        limit, results = self._toolbox.place.limit, list[ToolResult]()
        for call in self._answer.tool_calls:
            ok, words = outcomes[call.id]
            if ok and unfinished and call.name == FINISH.name:
                ok, words = False, f"the work is not finished: {', '.join(unfinished)}; "
                words += "call finish again when nothing is left to do"
            text = capped(words, limit, of="the result")
            results.append(
                ToolResult(tool_call_id=call.id, name=call.name, text=text, failed=not ok)
            )
        return results

    def _outcome(self, call: ToolCall) -> Outcome:
        if call.id in self._unmade:
            return False, self._unmade[call.id]
        if call.id in self._asked:
            answer = self._asked[call.id].answer
            return (False, "nobody answered") if answer is None else (True, answer)
        if call.name in OWN:
            return True, "done"
        return self._looked[call.id] if call.id in self._looked else _came_of(self._held[call.id])


def _question(call: ToolCall) -> Question:
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    choices = tuple(str(choice) for choice in arguments.get("choices", ()))
    return Question(prompt=str(arguments.get("question", "")), key=call.id, choices=choices)


def _came_of(held: Held) -> Outcome:
    """Return what came of a call that was let through, or turned down."""
    if held.call is None or held.call.state in _TURNED_DOWN:
        return False, held.rejection
    result = held.result
    if result is None:
        return False, _INTERRUPTED

    replaced = ""
    if held.original is not None:
        made = msgspec.json.encode(arguments_of(held.call.body)).decode()
        replaced = "A reviewer replaced the arguments of this call. "
        replaced += f"What was carried out is: {made}\n"
    ends = {
        "exit code": result.exit_code or None,
        "signal": result.signal,
        "error": result.error,
        "nobody saw it end; the word of": result.settled_by,
    }
    told = "; ".join(f"{name} {value}" for name, value in ends.items() if value is not None)
    output = result.output.rstrip("\n")
    words = f"{output}\n[{told}]".lstrip("\n") if told else output or "[no output]"
    return result.ok, replaced + words
