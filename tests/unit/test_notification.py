"""What is told, of which events, and how it looks to a person."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from adjourn.core.scene import Scene
from adjourn.core.states import AskState, TaskState
from adjourn.core.trail.events import Happened
from adjourn.testing.values import (
    a_call,
    a_run,
    a_spec,
    a_task,
    an_approval,
    an_ask,
    an_event,
    settled,
)
from adjourn.views.block import Commands
from adjourn.views.notice import OCCASIONS, Occasion, notice_of, occasion_of
from docs import generate
from tests.hostile import HOSTILE_WORDS, JOINER

SEAL = bytes(range(32))
COMMANDS = Commands("adjourn", None)
NOW = 1_000


def a_scene(**task: Any) -> Scene:
    waiting = replace(a_task(state=TaskState.WAITING, runs=1), **task)
    return Scene(
        task=waiting, run=a_run(checkpoint_id="cp"), asks=(an_approval(),), calls={1: a_call()}
    )


def told(kind: str, scene: Scene, **facts: str | int | None) -> str:
    happened = Happened(place=1, event=an_event(kind=kind, facts=facts), seal=SEAL)
    return notice_of(happened, scene, ask=None, commands=COMMANDS, now=NOW).text


def test_only_events_that_there_are_can_be_told() -> None:
    assert OCCASIONS.keys() <= generate.kinds().keys()
    assert set(OCCASIONS.values()) == set(Occasion)


def test_the_word_of_a_person_that_it_ran_completes_a_task() -> None:
    assert (
        occasion_of(an_event(kind="call_settled", facts={"verdict": "it-ran"}))
        is Occasion.COMPLETION
    )
    assert occasion_of(an_event(kind="call_settled", facts={"verdict": "it-did-not"})) is None
    assert occasion_of(an_event(kind="run_claimed")) is None


def test_the_document_is_the_manifest_with_what_happened() -> None:
    happened = Happened(place=1, event=an_event(kind="run_waiting", facts={"run": 1}), seal=SEAL)
    document = msgspec.to_builtins(
        notice_of(happened, a_scene(), ask=None, commands=COMMANDS, now=NOW)
    )
    assert document["id"] == "evt_000102030405060708090a0b0c0d0e0f"
    assert document["event"] == "pause"
    assert document["outcome"] == "paused"
    assert document["pause_reason"]["type"] == "tool_approval_required"
    assert document["resume_hint"] == "adjourn -c cp --approve tc_1"


def test_an_end_names_the_approved_calls_that_were_never_made() -> None:
    state, unmade = TaskState.SUCCEEDED, frozenset({1})
    scene = replace(a_scene(state=state), all_calls=(a_call(),), not_made=unmade)
    text = told("run_completed", scene, run=1)
    assert text.startswith("Completed; 1 approved call was never made:")
    assert "\n  tc_1 command: " in text


def test_a_pause_shows_what_would_run_and_how_to_go_on() -> None:
    text = told("run_waiting", a_scene(), run=1)
    assert "$ ./deploy.sh" in text
    assert text.endswith("Go on with: adjourn -c cp --approve tc_1")


def test_of_an_agent_it_is_told_what_the_agent_was_told() -> None:
    """Not the command of ours that drives it."""
    spec = replace(a_spec(), runner="claude", argv=("adjourn", "_claude"), prompt="Fix the\ntest")
    assert (
        told("run_waiting", a_scene(spec=spec), run=1).splitlines()[1]
        == r"  claude: Fix the\u{a}test"
    )


def test_a_pause_that_is_over_by_the_time_it_is_told_says_so_and_asks_for_nothing() -> None:
    text = told("run_waiting", a_scene(state=TaskState.SUCCEEDED), run=1)
    assert "It went on since then: it is succeeded." in text
    assert "Go on with" not in text


def test_a_decision_says_whose_it_is_and_what_it_says() -> None:
    ask = settled(an_ask(), AskState.ANSWERED, reply="eu")
    happened = Happened(
        place=1, event=an_event(kind="ask_answered", facts={"ask": ask.id}), seal=SEAL
    )
    notice = notice_of(happened, a_scene(), ask=ask, commands=COMMANDS, now=NOW)
    assert notice.text.startswith("Answered by uid:1000: eu  (task task-a)")
    assert notice.ask_id == ask.id


@pytest.mark.parametrize("kind", ["run_waiting", "run_completed", "run_failed"])
def test_no_word_from_outside_reaches_a_person_unrendered(kind: str) -> None:
    for word in HOSTILE_WORDS:
        is_told_rendered(kind, word)


def is_told_rendered(kind: str, word: str) -> None:
    spec = a_spec(argv=("./deploy.sh", word))
    states = {
        "run_waiting": TaskState.WAITING,
        "run_completed": TaskState.SUCCEEDED,
        "run_failed": TaskState.FAILED,
    }
    scene = a_scene(spec=spec, message=word, state=states[kind])
    question = an_ask(prompt=word, choices=(word, "b"))
    scene = msgspec.structs.replace(scene, asks=(*scene.asks, question))
    text = told(kind, scene, run=1)
    shown = JOINER.sub("", text)
    assert [char for char in shown if not char.isprintable() and char != "\n"] == []
