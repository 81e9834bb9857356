"""What the words of `resume` mean.

Decisions or an answer, never both, and silence is a rejection.
"""

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjourn.core.ask import Ask, Reply, Verb, number_of_call
from adjourn.core.errors import AdjournError, AlreadySettled, Conflict, Misuse
from adjourn.core.resumption import PLAIN, Resumption, replies_of
from adjourn.core.states import AskState
from adjourn.testing.values import an_approval, an_ask, an_uncertain_ask, settled

THREE = [an_approval(f"ask-{call}", call=call, number=call) for call in (1, 2, 3)]
REGION = an_ask("ask-region", key="region")
SIZE = an_ask("ask-size", key="size", number=2)
UNCERTAIN = an_uncertain_ask("ask-lost", call=4, number=4)


def said(resumption: Resumption, asks: Sequence[Ask] = THREE) -> str:
    """Return the replies in short: + for an approval, - for a rejection."""
    replies = {reply.ask_id: reply for reply in replies_of(resumption, asks)}
    signs = {Verb.APPROVE: "+", Verb.REJECT: "-"}
    return " ".join(
        f"{signs[replies[ask.id].verb]}{number_of_call(ask)}" for ask in asks if ask.id in replies
    )


@pytest.mark.parametrize(
    ("resumption", "decisions"),
    [
        (Resumption(approve=("tc_1",)), "+1 -2 -3"),
        (Resumption(approve=("tc_2", "tc_3")), "-1 +2 +3"),
        (Resumption(approve=("tc_1", "tc_2"), reject=("tc_3",)), "+1 +2 -3"),
        (Resumption(reject=("tc_1",)), "-1 -2 -3"),
        (Resumption(approve_all=True), "+1 +2 +3"),
        (Resumption(reject_all=True), "-1 -2 -3"),
        (Resumption(approve_all=True, reject=("tc_2",)), "+1 -2 +3"),
        (Resumption(reject_all=True, approve=("tc_2",)), "-1 +2 -3"),
        (Resumption(approve=("ask-1",)), "+1 -2 -3"),
        (Resumption(approve=("tc_1", "tc_1")), "+1 -2 -3"),
    ],
)
def test_decisions_cover_every_pending_call(resumption: Resumption, decisions: str) -> None:
    """A-R36 to A-R39, A-R41, A-R47: what is not named is rejected."""
    assert said(resumption) == decisions


@given(st.sets(st.integers(1, 3)), st.booleans(), st.booleans())
def test_no_call_is_approved_that_was_neither_named_nor_covered(
    named: set[int],
    every: bool,  # noqa: FBT001 -- a case of the test
    none: bool,  # noqa: FBT001 -- a case of the test
) -> None:
    """A-R47"""
    resumption = Resumption(
        approve=tuple(f"tc_{call}" for call in named),
        approve_all=every and not none,
        reject_all=none,
    )
    if not resumption.decides:
        assert replies_of(resumption, THREE) == []
        return
    replies = replies_of(resumption, THREE)
    assert [reply.ask_id for reply in replies] == [ask.id for ask in THREE]
    approved = {int(reply.ask_id[-1]) for reply in replies if reply.verb is Verb.APPROVE}
    assert approved == ({1, 2, 3} if resumption.approve_all else named)


def test_a_value_goes_with_approvals_and_a_reason_with_rejections() -> None:
    """C-R4: an approval carries a chosen value."""
    replies = replies_of(
        Resumption(approve=("tc_1",), value="canary", reason="too late"), THREE[:2]
    )
    assert replies == [
        Reply(ask_id="ask-1", verb=Verb.APPROVE, text="canary"),
        Reply(ask_id="ask-2", verb=Verb.REJECT, text="too late"),
    ]


DECISIONS = [
    Resumption(approve=("tc_1",)),
    Resumption(reject=("tc_1",)),
    Resumption(approve_all=True),
    Resumption(reject_all=True),
]
ANSWERS = [{"text": "eu"}, {"text": ""}, {"answers": ("region=eu",)}]


@pytest.mark.parametrize(("decision", "answer"), list(product(DECISIONS, ANSWERS)), ids=range(12))
def test_decisions_and_an_answer_together_are_refused(
    decision: Resumption, answer: dict[str, str]
) -> None:
    """A-R20: tool decisions or a text, never both."""
    both = Resumption(
        approve=decision.approve,
        reject=decision.reject,
        approve_all=decision.approve_all,
        reject_all=decision.reject_all,
        **answer,  # type: ignore[arg-type] # one of the three above
    )
    with pytest.raises(Misuse, match="not both"):
        replies_of(both, [*THREE, REGION])


@pytest.mark.parametrize(
    ("resumption", "error"),
    [
        (Resumption(approve_all=True, reject_all=True), Misuse),
        (Resumption(approve=("tc_1",), reject=("tc_1",)), Misuse),
        (Resumption(approve=("tc_1",), reject=("ask-1",)), Misuse),
        (Resumption(approve=("tc_9",)), Misuse),
        (Resumption(reject=("tc_9",)), Misuse),
        (Resumption(approve=("",)), Misuse),
        (Resumption(approve=("tc_",)), Misuse),
        (Resumption(approve=("\x1b]52;c;AAAA\x07",)), Misuse),
        (Resumption(approve=("ask-region",)), Misuse),
    ],
)
def test_decisions_that_do_not_fit_are_refused(
    resumption: Resumption, error: type[AdjournError]
) -> None:
    with pytest.raises(error) as refusal:
        replies_of(resumption, [*THREE, REGION])
    assert "\x1b" not in refusal.value.sentence
    assert refusal.value.way_out


def test_a_call_that_was_decided_is_not_decided_again() -> None:
    """C-R14: whoever comes second is told who was first, when, and what."""
    decided = settled(THREE[0], AskState.REJECTED, reply="no window")
    with pytest.raises(
        AlreadySettled, match=r"rejected by uid:1000 at 2023-11-14T22:13:20.000Z \(no window\)"
    ):
        replies_of(Resumption(approve=("tc_1",)), [decided, *THREE[1:]])


def test_decided_calls_are_left_out_of_what_covers_all() -> None:
    decided = settled(THREE[0], AskState.APPROVED)
    assert said(Resumption(approve_all=True), [decided, *THREE[1:]]) == "+2 +3"


@pytest.mark.parametrize("resumption", [Resumption(approve_all=True), Resumption(reject_all=True)])
@pytest.mark.parametrize(
    "asks", [[], [REGION], [UNCERTAIN], [settled(THREE[0], AskState.APPROVED)]], ids=range(4)
)
def test_covering_all_of_nothing_is_a_conflict(resumption: Resumption, asks: list[Ask]) -> None:
    with pytest.raises(Conflict, match="no call is pending"):
        replies_of(resumption, asks)


def test_a_call_that_may_have_run_is_never_covered() -> None:
    """Only `settle` answers an uncertain call: no --approve-all, no name, no text."""
    assert said(Resumption(approve_all=True), [*THREE, UNCERTAIN]) == "+1 +2 +3"
    for resumption in (
        Resumption(approve=("tc_4",)),
        Resumption(text="it ran"),
        Resumption(answers=("ask-lost=it ran",)),
    ):
        with pytest.raises((Conflict, Misuse)):
            replies_of(resumption, [UNCERTAIN])


@pytest.mark.parametrize("text", ["eu", "", " ", "--approve", "a=b", "\x1b[31m"])
def test_a_text_answers_the_one_open_question(text: str) -> None:
    """A-R40: `resume ID "text"`."""
    assert replies_of(Resumption(text=text), [REGION]) == [
        Reply(ask_id="ask-region", verb=Verb.ANSWER, text=text)
    ]


def test_a_text_passes_over_questions_that_are_answered() -> None:
    answered = settled(REGION, AskState.ANSWERED, reply="eu")
    assert replies_of(Resumption(text="big"), [answered, SIZE]) == [
        Reply(ask_id="ask-size", verb=Verb.ANSWER, text="big")
    ]


def test_a_text_with_two_open_questions_is_refused_with_the_list() -> None:
    with pytest.raises(Misuse, match="exactly one open question; open: region, size"):
        replies_of(Resumption(text="eu"), [REGION, SIZE])


def test_a_text_where_only_calls_are_pending_is_refused() -> None:
    """A-R20: a text decides nothing."""
    with pytest.raises(Misuse, match="open: none") as refused:
        replies_of(Resumption(text="yes"), THREE)
    assert refused.value.way_out == "leave the text out"


def test_a_text_to_a_question_that_has_its_answer_says_whose() -> None:
    with pytest.raises(AlreadySettled, match=r"answered by uid:1000 .* \(eu\)"):
        replies_of(Resumption(text="us"), [settled(REGION, AskState.ANSWERED, reply="eu")])


def test_answers_find_their_questions_by_key() -> None:
    """However they are ordered, and whatever else they contain."""
    replies = replies_of(Resumption(answers=("size=big=ger", "region=")), [REGION, SIZE])
    assert [(reply.ask_id, reply.text) for reply in replies] == [
        ("ask-size", "big=ger"),
        ("ask-region", ""),
    ]


def test_a_question_without_a_key_is_called_by_its_id() -> None:
    replies = replies_of(Resumption(answers=("ask-free=eu",)), [an_ask("ask-free")])
    assert [(reply.ask_id, reply.text) for reply in replies] == [("ask-free", "eu")]


@pytest.mark.parametrize("words", ["", "=", "region", "colour=red", "regio=eu"])
def test_an_answer_that_fits_no_question_is_refused(words: str) -> None:
    with pytest.raises(Misuse, match="fits no open question; open: region"):
        replies_of(Resumption(answers=(words,)), [REGION])


def test_a_plain_resume_says_nothing() -> None:
    """A-R5: `resume ID` alone decides nothing."""
    assert replies_of(PLAIN, [*THREE, REGION, UNCERTAIN]) == []
    assert not PLAIN.decides
    assert not PLAIN.answers_something
