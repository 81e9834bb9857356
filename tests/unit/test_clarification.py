"""Requests, checkpoints and responses: how they read, and what is refused."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adjourn.clarifications import text
from adjourn.core.ask import Question, QuestionAsk
from adjourn.core.clarification import (
    BRIEF_POLL_DURATION,
    MAX_POLLS,
    POLL_INTERVAL,
    Checkpoint,
    Clarification,
    Request,
    Response,
    encoded_checkpoint,
    looks,
    read_checkpoint,
    replies_to,
    resume_prompt,
)
from adjourn.core.errors import AlreadySettled, Misuse
from adjourn.core.states import AskState
from adjourn.system.yaml import NotYet
from adjourn.testing.values import an_ask, settled

GOOD = 'agent_id: a\nresponses:\n  - question_id: Q1\n    answer: "yes"\nresume_signal: true\n'


def test_the_wait_is_as_long_as_the_protocol_says() -> None:
    """B-R2: twelve looks, five seconds apart."""
    assert (BRIEF_POLL_DURATION, POLL_INTERVAL, MAX_POLLS) == (60, 5, 12)
    assert looks(60) == [5 * number for number in range(1, 13)]


@pytest.mark.timeout(20)
def test_parallel_work_reads_back_whatever_characters_it_has() -> None:
    """B-R42: and a long line with a character that must be spelled out takes no longer than any other."""
    work = ("File watching \u2014 " + 400 * "logic ", "Tests \x07", "plain")
    request = Request(questions=(Question(key="Q1", prompt="?"),), parallel_work=work)
    clarification = Clarification(id="clarif_1", request=request, asks=("x",), asked_at=0)
    written = text.request_text(clarification, agent_id="a", checkpoint_path="/c")
    assert text.read_request(written.encode()).parallel_work == work


@given(st.floats(0, 1e6))
def test_never_more_than_twelve_looks(linger: float) -> None:
    """B-R9, B-R10: for any length of wait, and the last at its end."""
    moments = looks(linger)
    assert len(moments) <= MAX_POLLS
    assert moments == sorted(moments)
    assert (moments[-1] == linger) if linger else (moments == [])


CLARIFICATION = Clarification(
    id="clarif_1",
    request=Request(
        questions=(
            Question(key="Q1", prompt="Which?"),
            Question(key="Q2", prompt='Say "when"\n', choices=("now", "yes")),
        ),
        blocked_at="Supervision pattern selection",
        reason="unclear",
        parallel_work=("File watching logic", "Test harness setup"),
    ),
    asks=("a1", "a2"),
    asked_at=1_768_731_323_000,
)


def test_a_request_has_the_protocols_shape() -> None:
    """B-R39 to B-R42: with its markers it is no YAML, without them it is."""
    written = text.request_text(
        CLARIFICATION, agent_id="task_bg", checkpoint_path="/x/task_bg.checkpoint.json"
    )
    lines = written.splitlines()
    assert (lines[0], lines[-1]) == ("[CLARIFICATION_NEEDED]", "[/CLARIFICATION_NEEDED]")
    with pytest.raises(yaml.YAMLError):
        yaml.safe_load(written)
    found = yaml.safe_load("\n".join(lines[1:-1]) + "\n")
    assert list(found) == [
        "agent_id",
        "timestamp",
        "blocked_at",
        "reason",
        "questions",
        "checkpoint_info",
        "work_continues",
        "parallel_work_available",
    ]
    assert found["questions"][0] == {"question_id": "Q1", "text": "Which?"}
    assert found["checkpoint_info"] == {
        "brief_poll_duration": "60s",
        "checkpoint_path": "/x/task_bg.checkpoint.json",
        "agent_will_exit_after_poll": True,
        "resume_required": True,
    }
    assert found["work_continues"] is True
    assert (
        found["parallel_work_available"]
        == "Can implement:\n- File watching logic\n- Test harness setup\n"
    )
    assert text.read_request(written.encode()).questions == CLARIFICATION.request.questions


def test_a_response_has_the_protocols_shape() -> None:
    """B-R43, B-R44."""
    written = text.response_text({"Q1": "yes"}, agent_id="task_bg", at=0, checkpoint_path="/x")
    lines = written.splitlines()
    assert (lines[0], lines[-1]) == ("[CLARIFICATION_RESPONSE]", "[/CLARIFICATION_RESPONSE]")
    found = yaml.safe_load("\n".join(lines[1:-1]))
    assert found["responses"] == [{"question_id": "Q1", "answer": "yes"}]
    assert (found["resume_signal"], found["resume_method"]) == (True, "checkpoint")
    assert found["resume_instructions"] == {
        "checkpoint_path": "/x",
        "use_task_resume": True,
        "resume_prompt_includes": "clarification_responses",
    }
    assert text.read_response(written.encode()).answers == (("Q1", "yes"),)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_comes_back_as_it_was_written(answer: str) -> None:
    written = text.response_text({"Q": answer}, agent_id="a", at=0, checkpoint_path="/x")
    assert text.read_response(written.encode()).answers == (("Q", answer),)


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        f"[CLARIFICATION_RESPONSE]\n{GOOD}[/CLARIFICATION_RESPONSE]\n",
        '{"agent_id": "a", "responses": [{"question_id": "Q1", "answer": "yes"}], "resume_signal": true}',
        '{"agentId": "a", "responses": [{"questionId": "Q1", "answer": "yes"}], "resumeSignal": true}',
    ],
    ids=["plain", "markers", "json", "camel"],
)
def test_a_response_is_read_with_or_without_markers_or_as_json(content: str) -> None:
    """B-R46."""
    assert text.read_response(content.encode()) == Response(
        agent_id="a", answers=(("Q1", "yes"),), resume_signal=True
    )


@pytest.mark.parametrize(
    "answer",
    ["yes", "no", "on", "2026-01-18", "1e3", "0x10", "1:30", "~", "null", "true", "07", ".inf"],
)
def test_texts_stay_texts(answer: str) -> None:
    content = GOOD.replace('"yes"', answer).encode()
    assert text.read_response(content).answers == (("Q1", answer),)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "\n",
        "agent_id: a\nresponses:\n  - question_id: Q1\n    answer: 'unfin",
        "agent_id: a\nresponses: []\n",
        f"[CLARIFICATION_RESPONSE]\n{GOOD}",
        f"[CLARIFICATION_RESPONSE]\n{GOOD}[/CLARIFICATION_RES",
        '{"agent_id": "a", "respon',
        "agent_id: \xff",
    ],
)
def test_what_is_written_by_halves_is_not_there_yet(content: str) -> None:
    """B-R4: a response counts when it is whole and says so."""
    with pytest.raises(NotYet):
        text.read_response(content.encode("latin-1"))


BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nresume_signal: true\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (GOOD.replace("true", "false"), "resume_signal is false"),
        (GOOD.replace("true", "yes"), "resume_signal is yes"),
        (BOMB, "anchor"),
        (GOOD + "x: !!python/object/apply:os.system [id]\n", "tag"),
        (GOOD + "agent_id: b\n", "agent_id is there twice"),
        ('{"agent_id": "a", "agent_id": "b", "resume_signal": true}', "agent_id is there twice"),
        (GOOD + "x: " + "[" * 50 + "]" * 50, "nested"),
        (GOOD.replace('"yes"', "[1, 2]"), "not a text"),
        (GOOD.replace('"yes"', ""), "missing"),
        (GOOD.replace("question_id: Q1", "question: Q1"), "missing"),
        ("- a\n", "not a mapping"),
        (GOOD + "---\n" + GOOD, "more than one document"),
        ("? [a]\n: b\n", "key is not a text"),
        ("resume_signal: true\nresponses: x\n", "not a list"),
    ],
)
def test_what_is_no_response_is_refused(content: str, words: str) -> None:
    with pytest.raises(Misuse, match=words):
        text.read_response(content.encode())


def asks(**states: AskState) -> list[QuestionAsk]:
    pending = [
        an_ask(f"ask-{key}", "t", number, key=key) for number, key in enumerate(states, start=1)
    ]
    return [
        ask if state is AskState.PENDING else settled(ask, state)
        for ask, state in zip(pending, states.values(), strict=True)
    ]


def response(*answers: tuple[str, str]) -> Response:
    return Response(agent_id="t", answers=answers, resume_signal=True)


def test_answers_are_matched_by_question_id() -> None:
    """B-R45."""
    replies = replies_to(
        response(("Q2", "b"), ("Q1", "a")), asks(Q1=AskState.PENDING, Q2=AskState.PENDING)
    )
    assert [(reply.ask_id, reply.text) for reply in replies] == [("ask-Q2", "b"), ("ask-Q1", "a")]


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([("Q1", "a")], "no answer to Q2"),
        ([("Q1", "a"), ("Q2", "b"), ("Q3", "c")], "no question is called Q3"),
        ([("Q1", "a"), ("Q1", "b"), ("Q2", "c")], "more than one answer to Q1"),
        ([], "no answer to Q1, Q2"),
    ],
)
def test_answers_that_do_not_fit_are_refused_whole(
    answers: list[tuple[str, str]], words: str
) -> None:
    with pytest.raises(Misuse, match=words):
        replies_to(response(*answers), asks(Q1=AskState.PENDING, Q2=AskState.PENDING))


def test_an_answer_to_what_is_answered_is_refused() -> None:
    with pytest.raises(AlreadySettled):
        replies_to(
            response(("Q1", "a"), ("Q2", "b")), asks(Q1=AskState.ANSWERED, Q2=AskState.PENDING)
        )


SAMPLE = {
    "agentId": "t",
    "phase": "waiting_clarification",
    "workState": {
        "completed": ["x"],
        "inProgress": [],
        "blocked": ["Q1"],
        "parallelWorkAvailable": ["y"],
    },
    "extractedContext": {"k": 1},
    "decisions": ["d1", "d2"],
    "filesCreated": ["a.md"],
}


def test_a_checkpoint_is_read_in_either_spelling_and_either_place() -> None:
    """B-R15, B-R47: the sample's top level, the format's section, and snake_case all mean the same."""
    sample = read_checkpoint(json.dumps(SAMPLE).encode())
    section = {"sessionContext": {"k": 1}, "decisions": ["d1", "d2"], "filesCreated": ["a.md"]}
    formatted = {name: SAMPLE[name] for name in ("agentId", "phase", "workState")} | {
        "context": section
    }
    snake = {
        "agent_id": "t",
        "phase": "waiting_clarification",
        "work_state": {
            "completed": ["x"],
            "in_progress": [],
            "blocked": ["Q1"],
            "parallel_work_available": ["y"],
        },
        "context": {
            "session_context": {"k": 1},
            "decisions": ["d1", "d2"],
            "files_created": ["a.md"],
        },
    }
    assert (
        sample
        == read_checkpoint(json.dumps(formatted).encode())
        == read_checkpoint(json.dumps(snake).encode())
    )
    assert sample.context.session_context == {"k": 1}


def test_a_checkpoint_says_its_own_size_and_reads_back() -> None:
    """B-R11, B-R17."""
    for filler in (1, 700, 1000, 50_000):
        content = encoded_checkpoint(Checkpoint(agent_id="t" * filler))
        size = read_checkpoint(content).metadata.checkpoint_size
        assert size == (
            f"{len(content)}B" if len(content) < 1024 else f"{round(len(content) / 1024)}KB"
        )
        assert content.startswith(b'{\n  "agentId"')


def test_the_prompt_has_its_sections_in_order() -> None:
    """B-R32."""
    prompt = resume_prompt(read_checkpoint(json.dumps(SAMPLE).encode()), "- Q1: one for one")
    parts = [
        "## RESUME FROM CLARIFICATION",
        "You were waiting for clarification and checkpointed your state.",
        "### Previous State",
        '"completed": [',
        "### Clarification Responses",
        "- Q1: one for one",
        "### Resume Instructions",
        "implementation",
        "### Next Steps",
        "1. Apply clarification responses to blocked work",
        "2. Continue implementation with answers",
        "3. Complete remaining work (estimated: unknown)",
        "### Context Preserved",
        "- Session context: Available in checkpoint",
        "- Decisions made: 2 recorded",
        "- Files created: a.md",
        "## Continue Work",
    ]
    places = [prompt.index(part) for part in parts]
    assert places == sorted(places)
