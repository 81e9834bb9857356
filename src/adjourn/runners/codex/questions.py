"""The questions of Codex's model.

Each becomes an ask, and its answer goes back in Codex's own words.
"""

from collections.abc import Sequence

from adjourn.core.ask import Question, QuestionAsk
from adjourn.ports.drive import Drive
from adjourn.runners.codex.memory import MemoryKeeper, Queried
from adjourn.runners.codex.protocol import Offer, Query, QueryOption, ThreadItem


def ask_all(
    drive: Drive, keeper: MemoryKeeper, queries: Sequence[Query], *, call: str
) -> list[QuestionAsk]:
    """Ask every question of one call, and return the asks."""
    return [_asked(drive, keeper, query, call=call) for query in queries]


def offered(item: ThreadItem) -> list[Query]:
    """Return what the model asks along with its words, without waiting for the answers."""
    return [_query(number, offer) for number, offer in enumerate(item.questions or (), start=1)]


def _query(number: int, offer: Offer) -> Query:
    options = tuple(
        QueryOption(label=each) if isinstance(each, str) else each for each in offer.options or ()
    )
    return Query(id=f"question_{number}", question=offer.title, options=options, other=True)


def _asked(drive: Drive, keeper: MemoryKeeper, query: Query, *, call: str) -> QuestionAsk:
    memory = keeper.memory
    key = _free_key(query.id, memory.keys)
    ask = drive.ask(Question(prompt=query.prompt, key=key, choices=query.choices))
    queried = Queried(call=call, id=query.id, ask=ask.id)
    keeper.remember(queried=(*memory.queried, queried), keys=(*memory.keys, key))
    return ask


def _free_key(wanted: str, taken: Sequence[str]) -> str:
    """Name a question as the model does, unless an earlier one had that name.

    Its answer would be taken for this one's.
    """
    key, number = wanted, 1
    while key in taken:
        number += 1
        key = f"{wanted}_{number}"
    return key
