"""Whoever changes several tasks at once, in whatever way and order, waits for nobody in a circle."""

import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from adjourn.controller.transaction import is_blocked
from adjourn.core.ask import Principal, Reply, Verb
from adjourn.core.errors import AdjournError, Conflict, StoreProblem
from adjourn.core.resumption import Resumption
from adjourn.core.states import TaskState
from adjourn.core.task import Spec
from adjourn.core.trail.events import first_broken
from adjourn.stores.postgres.store import PostgresStore
from tests.contract.office import ASKS_10, ASKS_90, ME, Office
from tests.shared.desk import desk

PEOPLE = 6
ROUNDS = {"ci": 3, "full": 40}


def a_family(office: Office) -> tuple[str, str]:
    """Return a parent that waits for its child, and the child, which waits for a person."""
    parent = office.begin(office.start())
    spec = Spec(runner="command", argv=("./child",), workspace="/w", parent_run=parent.run.id)
    child = office.controller.tasks.start(
        spec, by=Principal(name=ME.name, inside_run=parent.run.id), key="run:./child"
    )
    office.controller.tasks.leave_open(parent.run.id, child)
    office.controller.runs.finish(parent.run, ASKS_10)
    office.controller.runs.finish(office.begin(child).run, ASKS_90)
    return parent.task.id, child.id


def meddle(url: str, seed: int, families: list[tuple[str, str]]) -> Counter[str]:
    """Do as many things to the families as one can, in an order of one's own.

    Return how often each was refused.
    """
    chance = random.Random(seed)
    refused: Counter[str] = Counter()
    store = PostgresStore(url)
    controller = desk(store).controller
    with store.read() as view:
        asks = [ask.id for _, child in families for ask in view.asks(child)]
    verbs = [Verb.APPROVE, Verb.REJECT]
    acts: list[Callable[[], object]] = [
        lambda: controller.tasks.resume(
            chance.choice(families)[1], Resumption(approve_all=True), by=ME
        ),
        lambda: controller.tasks.resume(
            chance.choice(families)[1], Resumption(reject_all=True), by=ME
        ),
        lambda: controller.decisions.decide(
            [Reply(ask_id=ask, verb=chance.choice(verbs)) for ask in chance.sample(asks, 3)], by=ME
        ),
        lambda: controller.decisions.snooze(chance.sample(asks, 3), until=None, by=ME),
        lambda: controller.tasks.cancel(chance.choice(families)[chance.randrange(2)], by=ME),
        lambda: controller.tasks.restart(
            chance.choice(families)[chance.randrange(2)], by=ME, workspace="/w"
        ),
        controller.runs.recover,
        lambda: store.next_queued(
            "default", supervisor=f"anna-{seed}", fits=lambda _: chance.random() < 0.5
        ),
    ]
    for _ in range(30):
        try:
            chance.choice(acts)()
        except StoreProblem as error:
            refused[error.sentence] += 1
        except Conflict:
            refused["conflict"] += 1
        except AdjournError as error:
            refused[error.code] += 1
    store.close()
    return refused


@pytest.mark.serial
def test_resumes_decisions_cancels_and_workers_on_the_same_families_never_wait_in_a_circle(
    database: str, sweep: str
) -> None:
    """Looped, by processes: one try proves nothing."""
    said: Counter[str] = Counter()
    for number in range(ROUNDS[sweep]):
        store = PostgresStore(database)
        families = [a_family(desk(store)) for _ in range(5)]
        store.close()
        with ProcessPoolExecutor(PEOPLE, mp_context=get_context("fork")) as crowd:
            seeds = range(number * PEOPLE, (number + 1) * PEOPLE)
            for refused in crowd.map(meddle, [database] * PEOPLE, seeds, [families] * PEOPLE):
                said += refused
    store = PostgresStore(database)
    with store.read() as view:
        assert first_broken(view.trail()) is None
        assert not [
            task
            for task in view.tasks(limit=1000)
            if task.state is TaskState.WAITING and not is_blocked(view, task)
        ]
    store.close()
    print(f"\n{dict(said)}")
    assert {
        sentence: count
        for sentence, count in said.items()
        if "at the same moment" in sentence or "cannot" in sentence
    } == {}
