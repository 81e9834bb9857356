"""Decisions that were carried.

On every store they count once, for what was signed, however often they come.
"""

import hashlib

import pytest

from adjourn.core.ask import Ask, Principal, Reply, Verb
from adjourn.core.authority.scopes import ALL, NONE, Rights
from adjourn.core.authority.signed import Signed, decision_of, document_of
from adjourn.core.errors import AdjournError, Conflict, NotAllowed
from adjourn.core.states import AskState, TaskState
from adjourn.core.task import Task
from adjourn.ports.store import Store
from adjourn.testing.values import settlement_of
from tests.authorities import Outside
from tests.contract.office import ASKS_90, DONE, Office
from tests.stateful.world import rows_of

COURIER = Principal(name="uid:9")
HOOK = Principal(name="webhook:ci")
REPLAYS = 1_000


class Keys:
    """Signatures without ssh-keygen.

    A name, and a digest that only the holder of that name's secret can make.
    """

    def __init__(self) -> None:
        self.secrets = {"anna": b"a", "bert": b"b"}

    def sign(self, document: str, *, by: str) -> Signed:
        return Signed(
            document=document, signature=f"{by}:{self._proof(document.encode(), self.secrets[by])}"
        )

    def signer(self, document: bytes, signature: str) -> str:
        name, _, proof = signature.partition(":")
        if name not in self.secrets or proof != self._proof(document, self.secrets[name]):
            raise NotAllowed("nobody signed that")
        return name

    def _proof(self, document: bytes, secret: bytes) -> str:
        return hashlib.sha256(secret + document).hexdigest()


class Listed(Outside):
    """Everybody but the courier may do everything: a courier needs no right of its own."""

    def caller(self) -> str:
        return COURIER.name

    def rights(self, by: Principal) -> Rights:
        return NONE if by == COURIER else Rights(scopes=ALL)


@pytest.fixture
def keys() -> Keys:
    return Keys()


@pytest.fixture
def office(store: Store, keys: Keys) -> Office:
    return Office(store, authoriser=Listed(), signatures=keys)


def signed(
    office: Office,
    keys: Keys,
    ask: Ask,
    verb: Verb = Verb.APPROVE,
    text: str | None = None,
    *,
    by: str = "anna",
) -> Signed:
    decision = office.controller.signing.decision_on(Reply(ask_id=ask.id, verb=verb, text=text))
    return keys.sign(document_of(decision), by=by)


def starts(office: Office, task: Task) -> int:
    return sum(event.kind == "call_executing" for event in office.events(task))


def test_a_thousand_replays_of_a_signed_decision_start_nothing_a_second_time(
    office: Office, keys: Keys
) -> None:
    """A-R60, A-R85."""
    task, ask = office.waiting()
    before = starts(office, task)
    decision = signed(office, keys, ask)
    (first,) = office.controller.signing.decide_signed([decision], carried_by=COURIER)
    receipt = office.controller.decisions.receipts([first])
    office.run(office.task(task.id), DONE)
    rows = rows_of(office.controller.store, now=office.now)
    for _ in range(REPLAYS):
        assert office.controller.signing.decide_signed([decision], carried_by=COURIER) == [first]
    assert office.controller.decisions.receipts([first]) == receipt
    assert rows_of(office.controller.store, now=office.now) == rows
    assert starts(office, task) == before + 1


def test_a_thousand_replays_of_a_request_start_nothing_a_second_time(office: Office) -> None:
    task, ask = office.waiting()
    before = starts(office, task)
    replies = [Reply(ask_id=ask.id, verb=Verb.APPROVE)]
    first = office.controller.signing.decide_once("webhook:1", b"body", replies, by=HOOK)
    office.run(office.task(task.id), DONE)
    for _ in range(REPLAYS):
        assert (
            office.controller.signing.decide_once("webhook:1", b"body", replies, by=HOOK) == first
        )
    with pytest.raises(Conflict, match="used for another"):
        office.controller.signing.decide_once("webhook:1", b"other", replies, by=HOOK)
    assert starts(office, task) == before + 1


def test_a_replay_after_a_restart_decides_nothing_that_is_asked_anew(
    office: Office, keys: Keys
) -> None:
    task, ask = office.waiting()
    decision = signed(office, keys, ask)
    office.controller.signing.decide_signed([decision], carried_by=COURIER)
    office.controller.tasks.cancel(task.id, by=HOOK)
    again = office.run(office.controller.tasks.restart(task.id, by=HOOK, workspace="/w"), ASKS_90)
    office.controller.signing.decide_signed([decision], carried_by=COURIER)
    assert office.task(again.id).state is TaskState.WAITING


def test_a_name_that_failed_can_be_used_again(office: Office) -> None:
    _, ask = office.waiting()
    wrong = [Reply(ask_id=ask.id, verb=Verb.APPROVE, digest="00" * 32)]
    with pytest.raises(Conflict):
        office.controller.signing.decide_once("webhook:1", b"body", wrong, by=HOOK)
    (recorded,) = office.controller.signing.decide_once(
        "webhook:1", b"other", [Reply(ask_id=ask.id, verb=Verb.APPROVE)], by=HOOK
    )
    assert recorded.state is AskState.APPROVED


@pytest.mark.parametrize("value", [None, "", "approved", "canary", "naïve ☃"])
def test_what_was_signed_is_what_starts(office: Office, keys: Keys, value: str | None) -> None:
    task, ask = office.waiting()
    decision = signed(office, keys, ask, text=value)
    office.controller.signing.decide_signed([decision], carried_by=COURIER)
    assert office.begin(office.task(task.id)).call.digest == decision_of(decision).runs


def test_several_who_sign_are_recorded_each_by_name(office: Office, keys: Keys) -> None:
    asks = [office.waiting()[1] for _ in range(2)]
    both = [
        signed(office, keys, ask, by=name) for ask, name in zip(asks, ("anna", "bert"), strict=True)
    ]
    recorded = office.controller.signing.decide_signed(both, carried_by=COURIER)
    assert [(each.by, each.level) for each in map(settlement_of, recorded)] == [
        ("key:anna", "L2"),
        ("key:bert", "L2"),
    ]


def test_one_that_does_not_hold_spoils_all(office: Office, keys: Keys) -> None:
    asks = [office.waiting()[1] for _ in range(2)]
    good, bad = (signed(office, keys, ask) for ask in asks)
    forged = Signed(document=bad.document, signature=good.signature)
    before = rows_of(office.controller.store, now=office.now)
    with pytest.raises(NotAllowed):
        office.controller.signing.decide_signed([good, forged], carried_by=COURIER)
    office.reply(asks[1], Verb.REJECT, by=HOOK)
    after = rows_of(office.controller.store, now=office.now)
    with pytest.raises(Conflict):
        office.controller.signing.decide_signed([good, bad], carried_by=COURIER)
    assert rows_of(office.controller.store, now=office.now) == after
    assert [ask.state for ask in before.inbox] == [AskState.PENDING] * 2


def test_a_signer_who_is_gone_opens_no_gate_and_is_named_in_the_new_ask(
    office: Office, keys: Keys
) -> None:
    task, ask = office.waiting()
    office.controller.signing.decide_signed([signed(office, keys, ask)], carried_by=COURIER)
    del keys.secrets["anna"]
    stopped = office.controller.runs.claim(task.id, supervisor="anna-0")
    assert isinstance(stopped, Task)
    assert stopped.state is TaskState.WAITING
    asked = office.open_approval(task)
    assert (asked.replaces, asked.prompt) == (ask.id, "nobody signed that")
    with pytest.raises(AdjournError):
        office.controller.runs.claim(task.id, supervisor="anna-0")


def test_a_decision_lives_as_long_as_it_says(office: Office, keys: Keys) -> None:
    _, ask = office.waiting()
    decision = signed(office, keys, ask)
    office.now = decision_of(decision).expires_at
    with pytest.raises(NotAllowed, match="expired"):
        office.controller.signing.decide_signed([decision], carried_by=COURIER)
    office.now -= 1
    office.controller.signing.decide_signed([decision], carried_by=COURIER)
