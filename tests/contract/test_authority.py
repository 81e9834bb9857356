"""Who may do what, in every state.

Each cell of principal x verb x state, against a table that was written by hand.
"""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import msgspec
import pytest

from adjourn.core.ask import Approver, Ask, Principal, Reply, Terms, Verb, Verdict, number_of_call
from adjourn.core.authority.scopes import ALL, NONE, SCOPES, Rights, Scope
from adjourn.core.errors import Conflict, Misuse, NotAllowed
from adjourn.core.resumption import Resumption
from adjourn.core.states import AskState, CallState, TaskState
from adjourn.core.task import RunState, Task
from adjourn.ports.store import Store
from adjourn.testing.values import (
    a_call,
    a_run,
    a_spec,
    a_task,
    an_approval,
    an_event,
    settlement_of,
)
from tests.authorities import Outside
from tests.contract.office import DONE, FAILED, INTERRUPTED, Office
from tests.stateful.world import rows_of

OWNER = Principal(name="uid:1000")


HAS: dict[str, frozenset[Scope]] = {
    "uid:1000": ALL,
    "uid:2001": frozenset({Scope.REQUEST}),
    "uid:2002": frozenset({Scope.ANSWER}),
    "uid:2003": frozenset({Scope.APPROVE}),
    "uid:2004": frozenset({Scope.ADMIN}),
    "uid:2005": frozenset(),
    "key:anna": frozenset({Scope.ANSWER, Scope.APPROVE}),
    "webhook:ci": frozenset({Scope.APPROVE}),
    "file:uid:1000": frozenset({Scope.ANSWER}),
}


class Config(Outside):
    """An authoriser with a table; whoever is not in it is unknown."""

    def caller(self) -> str:
        return "uid:1000"

    def rights(self, by: Principal) -> Rights:
        if by.name == "uid:666":
            raise RuntimeError("the authoriser is ill")
        return Rights(scopes=HAS[by.name]) if by.name in HAS else NONE


# By hand, and not from SCOPES: which of the verbs each of them may use.
REQUESTING = {"start", "ask", "resume", "restart", "pause", "cancel"}
ANSWERING = {"answer", "resume with an answer"}
APPROVING = {"approve", "reject", "settle", "resume with a decision", "edit", "snooze", "decide"}
RULING = {"prune", "rules", "notify", "accept", "setup", "delegate", "users"}
EVERYTHING = REQUESTING | ANSWERING | APPROVING | RULING
MAY: dict[str, set[str]] = {
    "uid:1000": EVERYTHING,
    "uid:2001": REQUESTING,
    "uid:2002": ANSWERING,
    "uid:2003": APPROVING,
    "uid:2004": RULING,
    "uid:2005": set(),
    "key:anna": ANSWERING | APPROVING,
    "webhook:ci": APPROVING,
    "file:uid:1000": ANSWERING,
    "uid:666": set(),  # of whom the authoriser cannot tell
    "uid:9": set(),
    "key:stranger": set(),
    "webhook:stranger": set(),
    "agent:stranger": set(),
    "adjourn": set(),
    "policy": set(),
    "": set(),
    "uid:1000 inside a run": {"start", "ask", "resume"},
    "key:anna inside a run": set(),
    "webhook:ci inside a run": set(),
}


def principal(name: str) -> Principal:
    plain, _, where = name.partition(" ")
    return Principal(name=plain, inside_run="another-task.1" if where else None)


# --- states, and what can be done in each ---------------------------------------------------------


def ended(office: Office, exit_: Any) -> Task:
    return office.run(office.start(), exit_)


STATES: dict[TaskState, Callable[[Office], Task]] = {
    TaskState.QUEUED: lambda office: office.start(),
    TaskState.RUNNING: lambda office: office.begin(office.start()).task,
    TaskState.WAITING: lambda office: office.waiting()[0],
    TaskState.PAUSED: lambda office: ended(office, INTERRUPTED),
    TaskState.SUCCEEDED: lambda office: ended(office, DONE),
    TaskState.FAILED: lambda office: ended(office, FAILED),
    TaskState.CANCELED: lambda office: office.controller.tasks.cancel(office.start().id, by=OWNER),
}

# What each verb on a task does where it is allowed: the states in which it is done; in all others
# it is a conflict.
ON_TASKS: dict[str, tuple[Callable[..., object], set[TaskState]]] = {
    "resume": (
        lambda office, task, by: office.controller.tasks.resume(task.id, by=by),
        {TaskState.QUEUED, TaskState.WAITING, TaskState.PAUSED},  # the first two change nothing
    ),
    "restart": (
        lambda office, task, by: office.controller.tasks.restart(task.id, by=by, workspace="/w"),
        set(TaskState) - {TaskState.RUNNING},
    ),
    "pause": (
        lambda office, task, by: office.controller.tasks.pause(task.id, by=by),
        {TaskState.QUEUED, TaskState.RUNNING},
    ),
    "cancel": (
        lambda office, task, by: office.controller.tasks.cancel(task.id, by=by),
        {TaskState.QUEUED, TaskState.RUNNING, TaskState.WAITING, TaskState.PAUSED},
    ),
    "prune": (
        lambda office, task, by: office.controller.tasks.forget(task.id, by=by),
        {TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELED},
    ),
    "resume with a decision": (
        lambda office, task, by: office.controller.tasks.resume(
            task.id, Resumption(approve_all=True), by=by
        ),
        {TaskState.WAITING},
    ),
    "resume with an answer": (
        lambda office, task, by: office.controller.tasks.resume(
            task.id, Resumption(text="eu"), by=by
        ),
        set(),  # nothing here asks a question; the asks have cells of their own
    ),
}


def question(office: Office) -> Ask:
    return office.open_ask(office.run(office.start(), DONE, asking=("region",)))


def settled(office: Office, state: AskState) -> Ask:
    """Return an ask in that state."""
    ask: Ask = office.waiting()[1]
    match state:
        case AskState.PENDING:
            return ask
        case AskState.APPROVED | AskState.REJECTED:
            office.reply(ask, Verb.APPROVE if state is AskState.APPROVED else Verb.REJECT, by=OWNER)
        case AskState.ANSWERED:
            ask = question(office)
            office.reply(ask, Verb.ANSWER, "eu", by=OWNER)
        case AskState.SETTLED:
            task = office.lost()
            ask = office.open_ask(task)
            office.controller.tasks.settle(task.id, 1, Verdict.IT_RAN, by=OWNER)
        case AskState.EXPIRED:
            ask = office.waiting(expires_after=1)[1]
            office.now += 10
            office.controller.runs.recover()
        case AskState.WITHDRAWN:
            office.controller.tasks.cancel(ask.task_id, by=OWNER)
    return current(office, ask)


def current(office: Office, ask: Ask) -> Ask:
    with office.controller.store.read() as view:
        return view.ask(ask.id)


def replied(verb: Verb) -> Callable[[Office, Ask, Principal], object]:
    return lambda office, ask, by: office.controller.decisions.decide(
        [Reply(ask_id=ask.id, verb=verb, text=None)], by=by
    )


ON_ASKS: dict[str, tuple[Callable[[Office, Ask, Principal], object], set[AskState]]] = {
    "approve": (replied(Verb.APPROVE), {AskState.PENDING}),
    "reject": (replied(Verb.REJECT), {AskState.PENDING}),
    "answer": (replied(Verb.ANSWER), set()),
    "settle": (
        lambda office, ask, by: office.controller.tasks.settle(
            ask.task_id, number_of_call(ask) or 1, Verdict.IT_RAN, by=by
        ),
        set(),
    ),
}
ASKED: dict[str, tuple[Callable[[Office], Ask], Callable[[Office, Ask, Principal], object]]] = {
    "answer": (
        question,
        lambda office, ask, by: office.controller.decisions.decide(
            [Reply(ask_id=ask.id, verb=Verb.ANSWER, text="eu")], by=by
        ),
    ),
    "resume with an answer": (
        question,
        lambda office, ask, by: office.controller.tasks.resume(
            ask.task_id, Resumption(text="eu"), by=by
        ),
    ),
    "settle": (lambda office: office.open_ask(office.lost()), ON_ASKS["settle"][0]),
}

OF_OTHER_SURFACES = (
    "ask",
    "edit",
    "snooze",
    "decide",
    "rules",
    "notify",
    "accept",
    "setup",
    "delegate",
    "users",
)


# --- the cells ------------------------------------------------------------------------------------


@pytest.fixture
def office(store: Store) -> Office:
    return Office(store, authoriser=Config())


def outcome(act: Callable[[], object]) -> str:
    try:
        act()
    except NotAllowed as error:
        return "denied" if error.way_out else "denied without a way out"
    except (Conflict, Misuse) as error:
        return "conflict" if error.way_out else "conflict without a way out"
    return "done"


def everything(office: Office) -> object:
    return msgspec.to_builtins(rows_of(office.controller.store, now=office.now))


def expected(name: str, verb: str, *, is_done: bool) -> str:
    if verb not in MAY[name]:
        return "denied"
    return "done" if is_done else "conflict"


def check(
    office: Office, name: str, verb: str, act: Callable[[Principal], object], *, is_done: bool
) -> str:
    """Try a cell; a denial changes nothing at all."""
    before = everything(office)
    told = outcome(partial(act, principal(name)))
    if told != "done":
        assert everything(office) == before
    return "" if told == expected(name, verb, is_done=is_done) else f"{name} {verb}: {told}"


@pytest.mark.parametrize("verb", ON_TASKS)
@pytest.mark.parametrize("name", MAY)
def test_every_cell_of_a_task(office: Office, name: str, verb: str) -> None:
    """A-R82, A-R85: unknown is denied, in every state, before anything else is looked at."""
    act, fitting = ON_TASKS[verb]
    wrong = [
        f"{state}: {found}"
        for state, make in STATES.items()
        for task in [make(office)]
        if (
            found := check(office, name, verb, partial(act, office, task), is_done=state in fitting)
        )
    ]
    assert wrong == []


@pytest.mark.parametrize("verb", ON_ASKS)
@pytest.mark.parametrize("name", MAY)
def test_every_cell_of_an_ask(office: Office, name: str, verb: str) -> None:
    act, fitting = ON_ASKS[verb]
    wrong = [
        f"{state}: {found}"
        for state in AskState
        for ask in [settled(office, state)]
        if (found := check(office, name, verb, partial(act, office, ask), is_done=state in fitting))
    ]
    assert wrong == []


@pytest.mark.parametrize("verb", ASKED)
@pytest.mark.parametrize("name", MAY)
def test_every_cell_of_what_only_some_asks_take(office: Office, name: str, verb: str) -> None:
    make, act = ASKED[verb]
    assert check(office, name, verb, partial(act, office, make(office)), is_done=True) == ""


@pytest.mark.parametrize("name", MAY)
def test_only_who_may_request_starts_a_task(office: Office, name: str) -> None:
    assert (
        check(
            office,
            name,
            "start",
            lambda by: office.controller.tasks.start(a_spec(), by=by),
            is_done=True,
        )
        == ""
    )


@pytest.mark.parametrize("name", MAY)
def test_verbs_of_other_surfaces_ask_the_same_table(office: Office, name: str) -> None:
    for verb, words in product(OF_OTHER_SURFACES, ("{}", "{} --option")):
        assert (
            check(
                office,
                name,
                verb,
                partial(office.controller.decisions.authorise, verb=words.format(verb)),
                is_done=True,
            )
            == ""
        )


def test_every_verb_of_the_table_has_its_cells() -> None:
    tried = {*ON_TASKS, *ON_ASKS, *ASKED, "start", *OF_OTHER_SURFACES}
    assert set(SCOPES) <= tried
    assert {verb for verbs in MAY.values() for verb in verbs} == tried


@pytest.mark.parametrize("name", MAY)
def test_a_verb_that_nobody_knows_is_denied_to_all(office: Office, name: str) -> None:
    assert (
        outcome(lambda: office.controller.decisions.authorise(principal(name), "conquer"))
        == "denied"
    )


def test_an_authoriser_that_raises_has_said_no_and_the_sentence_says_why(office: Office) -> None:
    _, ask = office.waiting()
    with pytest.raises(NotAllowed, match="the authoriser is ill"):
        office.reply(ask, Verb.APPROVE, by=Principal(name="uid:666"))
    assert current(office, ask).is_open


# --- terms and levels -----------------------------------------------------------------------------


def asked(office: Office, terms: Terms, *, requester: str = "uid:1000") -> Ask:
    """Return a pending approval on those terms, of a task that somebody asked for."""
    ask = an_approval(call=2, terms=terms)
    task = a_task(state=TaskState.WAITING, runs=1, calls=2, asks=1, next_call=None)
    with office.controller.store.change() as tx:
        tx.add_task(task)
        tx.append(an_event(by=requester))
        tx.add_run(a_run(state=RunState.WAITING))
        tx.add_call(a_call(state=CallState.DONE))
        tx.add_call(a_call(number=2, state=CallState.PENDING, ask=1))
        tx.add_ask(ask)
    return ask


OTHER_USER, SIGNER, HOOK = (
    Principal(name="uid:2003"),
    Principal(name="key:anna"),
    Principal(name="webhook:ci"),
)
TERMS: dict[str, tuple[Terms, set[str]]] = {
    "none": (Terms(), {"uid:1000", "uid:2003", "key:anna", "webhook:ci"}),
    "human": (Terms(approver=Approver.HUMAN), {"uid:1000", "uid:2003", "key:anna"}),
    "not the requester": (Terms(not_requester=True), {"uid:2003", "key:anna", "webhook:ci"}),
    "signed": (Terms(signed=True), {"key:anna"}),
    "human, not the requester": (
        Terms(approver=Approver.HUMAN, not_requester=True),
        {"uid:2003", "key:anna"},
    ),
    "all": (Terms(approver=Approver.HUMAN, not_requester=True, signed=True), {"key:anna"}),
}


@pytest.mark.parametrize("by", [OWNER, OTHER_USER, SIGNER, HOOK], ids=lambda by: by.name)
@pytest.mark.parametrize("terms", TERMS)
def test_an_approval_counts_only_on_the_terms_of_its_ask(
    office: Office, terms: str, by: Principal
) -> None:
    """A-R85."""
    wanted, may = TERMS[terms]
    ask = asked(office, wanted)
    before = everything(office)
    told = outcome(lambda: office.reply(ask, Verb.APPROVE, by=by))
    assert told == ("done" if by.name in may else "denied")
    assert (everything(office) == before) == (told == "denied")


@pytest.mark.parametrize("by", [OWNER, OTHER_USER, SIGNER, HOOK], ids=lambda by: by.name)
@pytest.mark.parametrize("terms", TERMS)
def test_whoever_may_decide_may_always_say_no(office: Office, terms: str, by: Principal) -> None:
    ask = asked(office, TERMS[terms][0])
    office.reply(ask, Verb.REJECT, by=by)
    assert current(office, ask).state is AskState.REJECTED


def test_the_same_person_under_another_name_is_still_the_requester(store: Store) -> None:
    class Aliases(Config):
        def rights(self, by: Principal) -> Rights:
            return Rights(scopes=ALL, also=("uid:1000",) if by.name == "key:anna" else ())

    office = Office(store, authoriser=Aliases())
    ask = asked(office, Terms(not_requester=True))
    with pytest.raises(NotAllowed, match="somebody else"):
        office.reply(ask, Verb.APPROVE, by=SIGNER)
    office.reply(ask, Verb.APPROVE, by=OTHER_USER)


@pytest.mark.parametrize("verb", [Verb.APPROVE, Verb.REJECT])
@pytest.mark.parametrize(
    ("by", "level"),
    [(OWNER, "L0"), (OTHER_USER, "L1"), (SIGNER, "L2"), (HOOK, "L0")],
    ids=lambda each: str(getattr(each, "name", each)),
)
def test_a_decision_says_its_level_in_the_ask_in_the_trail_and_in_its_receipt(
    office: Office, by: Principal, level: str, verb: Verb
) -> None:
    """A-R84: every decision is in the trail, with who and how sure."""
    ask = asked(office, Terms())
    office.reply(ask, verb, by=by)
    recorded = current(office, ask)
    (receipt,) = office.controller.decisions.receipts([recorded])
    with office.controller.store.read() as view:
        (told,) = [
            each for each in view.last_events(ask.task_id, limit=9) if each.event.facts.get("level")
        ]
    assert settlement_of(recorded).level == told.event.facts["level"] == receipt.level == level
    assert (receipt.by, receipt.place, receipt.seal) == (by.name, told.place, told.seal.hex())


def test_what_nobody_decided_has_no_level(office: Office) -> None:
    assert {
        ask.settlement.level if ask.settlement else None
        for state in (AskState.PENDING, AskState.EXPIRED, AskState.WITHDRAWN)
        for ask in [settled(office, state)]
    } == {None}


def test_receipts_of_many_asks_come_in_their_order_however_long_the_history(office: Office) -> None:
    run = office.begin(office.start()).run
    asks = [office.ask(run, f"key-{number}") for number in range(30)]
    office.controller.runs.finish(run, DONE)
    for ask in asks[:3]:
        office.reply(ask, Verb.ANSWER, "eu", by=OWNER)
    replies = [Reply(ask_id=ask.id, verb=Verb.ANSWER, text="us") for ask in asks[3:]]
    recorded = office.controller.decisions.decide(replies, by=OWNER)
    assert [receipt.ask for receipt in office.controller.decisions.receipts(recorded)] == [
        ask.id for ask in asks[3:]
    ]
    early = [current(office, ask) for ask in asks[:3]]
    assert [receipt.ask for receipt in office.controller.decisions.receipts(early)] == [
        ask.id for ask in asks[:3]
    ]
