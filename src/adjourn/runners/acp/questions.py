"""The questions of an agent: each field of a form becomes an ask, and its answer goes back."""

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from adjourn.core.ask import Question, QuestionAsk
from adjourn.core.call import canonical
from adjourn.core.states import AskState
from adjourn.ports.drive import Drive
from adjourn.runners.acp.conversation import Elicitation
from adjourn.runners.acp.memory import MemoryKeeper
from adjourn.runners.acp.protocol import WantedCall, fields_of

_WORDS = {"boolean": ("true", "false")}


def ask_form(drive: Drive, keeper: MemoryKeeper, asked: Elicitation) -> dict[str, QuestionAsk]:
    """Ask for every field of a form, or find the answers; return the asks by their fields."""
    return {
        name: _ask(drive, keeper, prompt=_prompt(asked.message, name, field), choices=_of(field))
        for name, field in asked.fields.items()
    }


def form_answer(asked: Elicitation, asks: dict[str, QuestionAsk]) -> dict[str, Any]:
    """Return what the agent gets for a form that is answered."""
    content = {
        name: _value(ask.reply or "", asked.fields[name]) for name, ask in asks.items() if ask.reply
    }
    return {"action": "accept", "content": content} if content else {"action": "decline"}


def ask_which_yes(drive: Drive, keeper: MemoryKeeper, wanted: WantedCall) -> QuestionAsk:
    """Ask which of several plain yeses the agent is to get, in the agent's own words."""
    names = tuple(each.name for each in wanted.permission.yeses)
    prompt = f"The agent takes several answers for a yes to {wanted.tool}: which one?"
    mark = sha256(wanted.body).hexdigest()[:12]
    return _ask(drive, keeper, prompt=f"{prompt} ({mark})", choices=names)


def _ask(
    drive: Drive, keeper: MemoryKeeper, *, prompt: str, choices: tuple[str, ...]
) -> QuestionAsk:
    """Ask, under the key of the same question if it was asked before and its answer is not used."""
    mark = sha256(canonical([prompt, list(choices)])).hexdigest()
    memory = keeper.memory
    if mark not in memory.questions:
        number = memory.asked + 1
        keeper.remember(questions={**memory.questions, mark: f"q{number}"}, asked=number)
    key = keeper.memory.questions[mark]
    return drive.ask(Question(prompt=prompt, key=key, choices=choices))


def forget(keeper: MemoryKeeper, asks: Iterable[QuestionAsk]) -> None:
    """Forget questions whose answers the agent has: asked again, they are other questions."""
    keys = {ask.key for ask in asks}
    left = {mark: key for mark, key in keeper.memory.questions.items() if key not in keys}
    keeper.remember(questions=left)


def answered(drive: Drive, keeper: MemoryKeeper) -> list[QuestionAsk]:
    """Return the questions of earlier runs that were answered, and whose answers are not used."""
    keys = set(keeper.memory.questions.values())
    return [
        ask
        for ask in drive.asks()
        if isinstance(ask, QuestionAsk) and ask.key in keys and ask.state is AskState.ANSWERED
    ]


def _prompt(message: str, name: str, field: Any) -> str:
    more = fields_of(field).get("title") or fields_of(field).get("description")
    return f"{message}\n{more or name}" if message else str(more or name)


def _of(field: Any) -> tuple[str, ...]:
    told = fields_of(field)
    values: list[Any] = told.get("enum") or []
    if not values:
        one_of: list[Any] = told.get("oneOf") or []
        values = [fields_of(each).get("const") for each in one_of]
    return tuple(map(str, values)) or _WORDS.get(str(told.get("type")), ())


def _value(reply: str, field: Any) -> object:
    """Return an answer as the type that its field has."""
    try:
        match str(fields_of(field).get("type")):
            case "boolean":
                return reply.strip().lower() in {"true", "yes", "1"}
            case "integer":
                return int(reply)
            case "number":
                return float(reply)
            case "array":
                return [each.strip() for each in reply.split(",")]
            case _:
                return reply
    except ValueError:
        return reply
