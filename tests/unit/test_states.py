"""The three tables, pair by pair.

Each line below says where a move leads; what is not said is refused.
"""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from itertools import product
from typing import Any, NamedTuple

import pytest

from adjourn.core.errors import Conflict, MoveRefused
from adjourn.core.states import (
    ASK_TRANSITIONS,
    CALL_TRANSITIONS,
    ENDED,
    TRANSITIONS,
    AskMove,
    AskState,
    CallMove,
    CallState,
    Move,
    TaskState,
    after,
    allows,
    ask_after,
    call_after,
)

TASKS = """
queued     start > running    pause > paused    cancel > canceled    fail > failed    restart > queued
running    return > queued    complete > succeeded    fail > failed    wait > waiting    settle > queued    lose > waiting
running    pause > paused    cancel > canceled
waiting    settle > queued    refuse > failed    accept > succeeded    pause > paused    restart > queued    cancel > canceled
paused     resume > queued    restart > queued    cancel > canceled
succeeded  follow_up > queued    restart > queued
failed     restart > queued
canceled   restart > queued
"""
CALLS = """
pending    approve > approved    reject > rejected    expire > expired    withdraw > withdrawn
approved   claim > claimed    withdraw > withdrawn
claimed    execute > executing    release > approved    fail > failed
executing  release > approved    finish > done    fail > failed    lose > uncertain
uncertain  it_ran > done    it_did_not > failed    run_again > approved
"""
ASKS = """
pending    approve > approved    reject > rejected    answer > answered    settle > settled    expire > expired
pending    withdraw > withdrawn
approved   withdraw > withdrawn
"""


class Life(NamedTuple):
    """One of the three lives.

    Its words, its table, and what a reader of this test is told of it.
    """

    states: type[StrEnum]
    moves: type[StrEnum]
    table: Mapping[Any, StrEnum]
    look_up: Callable[[Any, Any], StrEnum]
    told: str


LIVES = {
    "task": Life(TaskState, Move, TRANSITIONS, after, TASKS),
    "call": Life(CallState, CallMove, CALL_TRANSITIONS, call_after, CALLS),
    "ask": Life(AskState, AskMove, ASK_TRANSITIONS, ask_after, ASKS),
}
EVERY_PAIR = [
    (name, state, move)
    for name, life in LIVES.items()
    for state, move in product(life.states, life.moves)
]


def told(text: str) -> dict[tuple[str, str], str]:
    lines = [line.split(maxsplit=1) for line in text.strip().splitlines()]
    return {
        (state, move): target
        for state, moves in lines
        for move, target in re.findall(r"(\w+) > (\w+)", moves)
    }


@pytest.mark.parametrize(("name", "state", "move"), EVERY_PAIR, ids=str)
def test_a_move_leads_where_the_table_says_or_is_refused(
    name: str, state: StrEnum, move: StrEnum
) -> None:
    """A-R3, A-R52, A-R60, C-R10, D-R44: every (state, move) pair of tasks, calls and asks."""
    life = LIVES[name]
    target = told(life.told).get((state, move))
    if target:
        assert life.look_up(state, move) is life.states(target)
        return
    with pytest.raises(MoveRefused) as refusal:
        life.look_up(state, move)
    assert state in refusal.value.sentence
    assert move.replace("_", " ") in refusal.value.sentence


@pytest.mark.parametrize("name", LIVES)
def test_the_tables_have_nothing_that_is_not_told_here(name: str) -> None:
    life = LIVES[name]
    assert {
        (str(state), str(move)): str(target) for (state, move), target in life.table.items()
    } == told(life.told)


@pytest.mark.parametrize(("state", "move"), list(product(TaskState, Move)), ids=str)
def test_asking_whether_a_move_is_allowed_agrees_with_making_it(
    state: TaskState, move: Move
) -> None:
    assert allows(state, move) == ((state, move) in TRANSITIONS)


@pytest.mark.parametrize("name", LIVES)
def test_every_state_can_be_reached_and_every_move_is_of_use(name: str) -> None:
    life = LIVES[name]
    first = {"task": TaskState.QUEUED, "call": CallState.PENDING, "ask": AskState.PENDING}[name]
    assert {first, *life.table.values()} == set(life.states)
    assert {move for _, move in life.table} == set(life.moves)


def test_only_a_restart_or_what_a_person_says_next_leaves_an_ended_task() -> None:
    """D-R30: nothing else brings an ended task back."""
    assert {TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELED} == ENDED
    assert {move for state, move in TRANSITIONS if state in ENDED} == {
        Move.RESTART,
        Move.FOLLOW_UP,
    }


def test_every_task_that_has_not_ended_can_be_canceled() -> None:
    assert {state for state, move in TRANSITIONS if move is Move.CANCEL} == set(TaskState) - ENDED


def test_nothing_but_a_result_proof_or_loss_moves_a_call_out_of_executing() -> None:
    """No timer, no lease, no retry.

    An executing call ends, provably never started, or becomes a person's question.
    """
    ways = {move for state, move in CALL_TRANSITIONS if state is CallState.EXECUTING}
    assert ways == {CallMove.FINISH, CallMove.FAIL, CallMove.RELEASE, CallMove.LOSE}


def test_only_an_approved_call_can_be_claimed_and_only_a_claimed_one_executed() -> None:
    assert {state for state, move in CALL_TRANSITIONS if move is CallMove.CLAIM} == {
        CallState.APPROVED
    }
    assert {state for state, move in CALL_TRANSITIONS if move is CallMove.EXECUTE} == {
        CallState.CLAIMED
    }


def test_a_settled_ask_is_settled_for_good() -> None:
    """C-R14: the first decision wins.

    No other follows, and only an approval whose call has changed is taken back.
    """
    settled = {(state, move) for state, move in ASK_TRANSITIONS if state is not AskState.PENDING}
    assert settled == {(AskState.APPROVED, AskMove.WITHDRAW)}


def test_a_refused_move_is_a_conflict_for_machines() -> None:
    with pytest.raises(Conflict) as refusal:
        after(TaskState.SUCCEEDED, Move.RESUME)
    assert (refusal.value.code, refusal.value.exit_code) == ("move_refused", 4)
