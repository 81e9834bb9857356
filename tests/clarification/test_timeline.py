"""The protocol's worked timeline, second by second, with a scripted clock.

And every wrong response.
"""

import json
import os
import stat
from pathlib import Path

import pytest

from adjourn.clarifications import exchange, log, protocol_files
from adjourn.core.ask import Reply, Verb
from adjourn.core.outcome import Exit
from adjourn.system.files import checkpoint_path
from adjourn.testing.values import settlement_of
from tests.clarification.scene import ADA, DRAFT, QUESTIONS, TEN, Scene

ANSWERS = {"Q1": "answer 1", "Q2": "answer 2", "Q3": "answer 3"}


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    scene = Scene(tmp_path)
    monkeypatch.setattr(
        log, "say", lambda line, **_: scene.said.append(f"{scene.clock_time()} {line}")
    )
    return scene


@pytest.fixture
def file_looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Count the looks at the response file that a lingering process takes."""
    seen: list[str] = []
    plain = exchange.take_response

    def counted(controller: object, root: str, task_id: str, **settings: object) -> bool:
        seen.append(task_id)
        return plain(controller, root, task_id, **settings)  # type: ignore[arg-type]  # handed on as it came

    monkeypatch.setattr(exchange, "take_response", counted)
    return seen


def leave(scene: Scene, *, linger: float = 60) -> None:
    """Ask three questions at 10:00:10 and leave without an answer."""
    inside = scene.begin()
    scene.seconds = 10
    with pytest.raises(SystemExit) as left:
        inside.clarify(QUESTIONS, DRAFT, linger=linger)
    assert left.value.code == 10
    assert scene.end(10).state == "waiting"


def test_the_worked_timeline(scene: Scene, file_looks: list[str]) -> None:
    """B-R1, B-R3, B-R6, B-R18, B-R19, B-R24 to B-R28, B-R30, B-R33 to B-R38, B-R48.

    Asked at 10:00:10, twelve looks, gone at 10:01:10; answered at 10:31:45 and running again within
    the worker's next look.
    """
    leave(scene)
    agent = scene.task.id
    assert len(file_looks) == 12
    assert scene.clock_time() == "10:01:10"
    assert scene.said == [
        "10:00:10 [CLARIFICATION] Polling briefly to keep cache warm...",
        "10:01:10 [CHECKPOINT] No response yet - saving state and exiting",
        "10:01:10 [CHECKPOINT_SAVED] waiting_clarification",
        "10:01:10 [EXIT] Agent terminating - will resume when response arrives",
        f"10:01:10 [TRACKED] Agent {agent} checkpointed, monitoring for response",
        "10:01:10 [AGENT_QUESTION] Background agent needs clarification:",
        "10:01:10   Q1: Question 1?",
        "10:01:10   Q2: Question 2?",
        "10:01:10   Q3: Question 3?",
    ]
    scene.said.clear()
    scene.seconds = 31 * 60 + 45
    scene.answer_by_command(**ANSWERS)
    assert scene.state() == "queued"
    inside = scene.begin()
    assert inside.clarify(QUESTIONS, DRAFT, linger=60) == ANSWERS
    assert scene.clock_time() == "10:31:45"
    assert scene.said == [
        "10:31:45 [RESPONSE_WRITTEN] Response ready for agent",
        f"10:31:45 [RESUMING] Agent {agent} with clarification responses",
        f"10:31:45 [RESUMED] Agent {agent} is now running again",
    ]
    assert len(file_looks) == 12
    assert scene.end(0).state == "succeeded"


def test_by_file_it_goes_on_as_well_and_once_however_often_the_file_is_touched(
    scene: Scene,
) -> None:
    """B-R23, B-R29, B-R30, B-R31."""
    leave(scene)
    path = scene.answer_by_file()
    assert scene.look() == []
    assert f"[RESPONSE_READY] Agent {scene.task.id} can be resumed" in scene.said[-1]
    assert scene.state() == "queued"
    for _ in range(5):
        os.utime(path)
        assert scene.look() == []
    inside = scene.begin()
    assert scene.look() == []
    assert inside.clarify(QUESTIONS, DRAFT, linger=0) == ANSWERS
    with scene.controller.store.read() as view:
        deciders = {settlement_of(ask).by for ask in view.asks(scene.task.id)}
        assert deciders == {f"file:uid:{os.getuid()}"}
        assert view.task(scene.task.id).runs == 2
    assert scene.end(0).state == "succeeded"
    assert not path.exists()


@pytest.mark.parametrize("by", ["command", "file"])
def test_an_answer_in_time_is_taken_in_the_same_process(
    scene: Scene, by: str, file_looks: list[str]
) -> None:
    """B-R4, B-R5: and what was answered does not start the task again when it has ended."""
    inside = scene.begin()
    scene.at[12.0] = (
        (lambda: scene.answer_by_command(**ANSWERS)) if by == "command" else scene.answer_by_file
    )
    assert inside.clarify(QUESTIONS, DRAFT, linger=60) == ANSWERS
    assert scene.seconds == (12 if by == "command" else 15)
    assert len(file_looks) <= 3
    assert any("[RESUMED] Response received during brief poll!" in line for line in scene.said)
    assert scene.end(0).state == "succeeded"


def test_the_short_form(scene: Scene) -> None:
    """B-R7: one question with a linger says it in short."""
    inside = scene.begin()
    with pytest.raises(SystemExit):
        inside.ask(QUESTIONS[0], linger=30)
    said = [
        "10:00:00 [WAITING] Brief poll for quick response...",
        "10:00:30 [CHECKPOINT] Saving state and exiting",
    ]
    assert scene.said == said


@pytest.mark.parametrize("linger", [0, 1, 30, 60, 300, 1800, 7200, 43_200])
def test_at_most_twelve_looks_at_the_file_for_any_wait(
    scene: Scene, file_looks: list[str], linger: float
) -> None:
    """B-R2, B-R8, B-R9, B-R10."""
    leave(scene, linger=linger)
    assert len(file_looks) <= 12
    assert scene.seconds == 10 + linger


def test_the_checkpoint_has_every_field(scene: Scene) -> None:
    """B-R11 to B-R14, B-R16, B-R17, B-R21, B-R47."""
    leave(scene)
    path = Path(checkpoint_path(scene.root, scene.task.id))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    content = path.read_text()
    found = json.loads(content)
    assert content == json.dumps(found, indent=2) + "\n"
    assert found.pop("clarificationRequestId").startswith("clarif_")
    assert found == {
        "agentId": scene.task.id,
        "timestamp": "2026-01-18T10:01:10.000Z",
        "phase": "waiting_clarification",
        "workState": {
            "completed": ["Read session logs"],
            "inProgress": ["Implementation"],
            "blocked": ["Pattern (needs Q1)"],
            "parallelWorkAvailable": ["Tests"],
        },
        "context": {
            "sessionContext": {"k": 1},
            "decisions": ["d"],
            "filesCreated": ["a.md"],
            "filesModified": ["b.md"],
        },
        "resumeInstructions": {
            "readClarificationFrom": protocol_files.response_path(scene.root, scene.task.id),
            "applyResponsesTo": "workState.blocked",
            "nextPhase": "implementation",
            "estimatedRemainingWork": "15-20 minutes",
        },
        "metadata": {
            "totalDuration": "1m 10s",
            "waitStartTime": "2026-01-18T10:00:10.000Z",
            "tokensBurned": 12543,
            "checkpointSize": f"{round(len(content) / 1024)}KB"
            if len(content) >= 1024
            else f"{len(content)}B",
        },
    }


def good(scene: Scene) -> str:
    return scene.answer_by_file().read_text()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text, _: text.replace("Q3", "Q9"), "no question is called Q9"),
        (
            lambda text, _: text.replace("  - question_id: Q3\n    answer: answer 3\n", ""),
            "no answer to Q3",
        ),
        (lambda text, _: text.replace("Q3", "Q2"), "more than one answer to Q2"),
        (lambda text, agent: text.replace(agent, "somebody"), "agent_id"),
        (lambda text, _: text.replace("true", "false"), "resume_signal is false"),
        (lambda text, _: text + "a: &a [b]\nc: *a\n", "anchor"),
        (lambda text, _: text + "a: !!python/name:os.system x\n", "tag"),
        (lambda text, _: text + "resume_signal: true\n", "twice"),
        (lambda text, _: text + "#" * (50 << 20), "bytes"),
    ],
    ids=[
        "unknown",
        "missing",
        "repeated",
        "agent",
        "signal",
        "bomb",
        "python",
        "duplicate",
        "50 MB",
    ],
)
def test_a_wrong_response_is_refused_whole(scene: Scene, change: object, words: str) -> None:
    leave(scene)
    whole = good(scene)
    path = scene.answer_by_file(change(whole, scene.task.id))  # type: ignore[operator]  # one of the lambdas above
    (refused,) = scene.look()
    assert words in refused
    assert scene.state() == "waiting"
    with scene.controller.store.read() as view:
        assert len(view.open_asks_of(scene.task.id)) == 3
    path.write_text(whole)
    assert scene.look() == []
    assert scene.state() == "queued"


def test_a_pipe_a_link_and_a_directory_are_refused_unread(scene: Scene, tmp_path: Path) -> None:
    leave(scene)
    whole = scene.answer_by_file()
    elsewhere = tmp_path / "elsewhere"
    whole.rename(elsewhere)
    whole.symlink_to(elsewhere)
    assert len(scene.look()) == 1
    whole.unlink()
    os.mkfifo(whole)
    assert "not a plain file" in scene.look()[0]
    whole.unlink()
    whole.mkdir()
    assert scene.look() == [], "the same is wrong with it"
    assert exchange.why_refused(scene.root, scene.task.id) == "it is not a plain file"
    assert scene.state() == "waiting"


def test_a_refused_response_is_told_once_and_explained_as_long_as_it_lies_there(
    scene: Scene,
) -> None:
    leave(scene)
    whole = good(scene)
    path = scene.answer_by_file(whole.replace("Q3", "Q4"))
    assert len(scene.look()) == 1
    path.touch()
    assert scene.look() == []
    assert exchange.why_refused(scene.root, scene.task.id) == "no question is called Q4"
    scene.answer_by_file(whole.replace("Q3", "Q2"))
    assert exchange.why_refused(scene.root, scene.task.id) is None, "what nobody has judged yet"
    assert len(scene.look()) == 1, "another content is another refusal"
    scene.answer_by_file(whole[:40])
    assert "not whole yet" in (exchange.why_refused(scene.root, scene.task.id) or "")
    scene.answer_by_file(whole)
    assert scene.look() == []
    assert scene.state() == "queued"
    assert exchange.why_refused(scene.root, scene.task.id) is None
    assert not os.path.exists(protocol_files.refused_path(scene.root, scene.task.id))


def test_a_response_that_comes_before_its_question_is_refused_and_taken_when_it_fits(
    scene: Scene,
) -> None:
    inside = scene.begin()
    os.mkdir(os.path.dirname(protocol_files.response_path(scene.root, scene.task.id)))
    scene.answer_by_file()
    assert len(scene.look()) == 1
    assert inside.clarify(QUESTIONS, DRAFT, linger=5) == {
        f"Q{number}": f"answer {number}" for number in (1, 2, 3)
    }


def test_a_process_that_lingers_leaves_it_to_others_to_tell_what_is_wrong_with_a_response(
    scene: Scene,
) -> None:
    inside = scene.begin()
    scene.at[1] = lambda: scene.answer_by_file(good(scene).replace("Q3", "Q4"))
    with pytest.raises(SystemExit):
        inside.clarify(QUESTIONS, DRAFT, linger=10)
    scene.end(10)
    assert len(scene.look()) == 1


def test_a_directory_in_the_place_of_a_file_ends_nobody(scene: Scene) -> None:
    leave(scene)
    scene.answer_by_command(**ANSWERS)
    scene.begin()
    path = protocol_files.response_path(scene.root, scene.task.id)
    os.unlink(path)
    os.mkdir(path)
    assert scene.end(0).state == "succeeded"


def test_a_response_that_was_taken_answers_no_later_request_though_its_supervisor_died(
    scene: Scene,
) -> None:
    """B-R30: by files alone, and with nobody to take the old response away before the run's end is recorded."""
    leave(scene)
    scene.answer_by_file()
    scene.look()
    scene.begin()
    checkpoint = Path(checkpoint_path(scene.root, scene.task.id))
    checkpoint.write_text(checkpoint.read_text().replace("implementation", "tests"))
    left = protocol_files.read_left(scene.root, scene.task.id)
    ended = scene.controller.runs.finish(scene.claimed.run, Exit(code=0, left=left))
    assert ended.state == "waiting"
    assert scene.look() == []
    assert scene.state() == "waiting", "the same questions, and another round"
    scene.answer_by_file(good(scene).replace("answer 1", "answer 4"))
    scene.look()
    assert scene.state() == "queued"


def test_half_a_response_is_not_there_yet_at_any_length(scene: Scene) -> None:
    leave(scene)
    whole = good(scene)
    for length in range(len(whole) - len("e\n")):
        scene.answer_by_file(whole[:length] or " ")
        assert scene.look() == []
        assert scene.state() == "waiting"
    scene.answer_by_file(whole)
    scene.look()
    assert scene.state() == "queued"


def test_a_response_for_an_unknown_or_ended_agent_is_refused(scene: Scene) -> None:
    leave(scene)
    path = scene.answer_by_file()
    stray = path.with_name("nobody.response.yaml")
    path.rename(stray)
    assert "no task nobody" in scene.look()[0]
    stray.unlink()
    scene.answer_by_command(**ANSWERS)
    scene.begin().clarify(QUESTIONS, DRAFT, linger=0)
    scene.end(1)
    scene.answer_by_file("late")
    assert "has failed" in scene.look()[0]


def test_of_two_who_take_the_same_response_at_once_nobody_is_told_that_it_is_wrong(
    scene: Scene,
) -> None:
    """B-R30: the slower one had looked before the faster one wrote."""
    leave(scene)
    scene.answer_by_file()
    with scene.controller.store.read() as view:
        replies = [
            Reply(ask_id=ask.id, verb=Verb.ANSWER, text="x")
            for ask in view.open_asks_of(scene.task.id)
        ]
    digest = protocol_files.response_digest(scene.root, scene.task.id) or b""
    assert scene.look() == []
    assert scene.controller.asks.respond(scene.task.id, replies, digest=digest, by=ADA) == []
    assert scene.controller.asks.answers(scene.task.id) == ANSWERS


def test_of_two_responses_the_first_wins_and_the_second_is_told(scene: Scene) -> None:
    leave(scene)
    scene.answer_by_file()
    scene.look()
    scene.answer_by_file(good(scene).replace("answer 1", "another"))
    (refused,) = scene.look()
    assert "was answered by file:uid:" in refused
    assert scene.controller.asks.answers(scene.task.id) == ANSWERS


def test_a_second_request_is_not_answered_by_the_first_response(scene: Scene) -> None:
    leave(scene)
    first = good(scene)
    scene.look()
    inside = scene.begin()
    assert inside.clarify(QUESTIONS, DRAFT, linger=0) == ANSWERS
    with pytest.raises(SystemExit):
        inside.clarify(QUESTIONS, DRAFT, linger=0)
    scene.look()
    assert scene.end(10).state == "waiting"
    scene.look()
    assert scene.state() == "waiting"
    scene.answer_by_file(first)
    scene.look()
    assert scene.state() == "queued"


def test_a_foreign_agent_that_knows_the_files_only(scene: Scene) -> None:
    """B-R15, B-R20, B-R34, B-R36.

    Exit code 0 and a checkpoint without an answer is waiting; with one it is done.
    """
    scene.begin()
    agent = scene.task.id
    for place in (
        protocol_files.needed_path(scene.root, agent),
        checkpoint_path(scene.root, agent),
    ):
        os.makedirs(os.path.dirname(place), exist_ok=True)
    needed = f"agent_id: {agent}\nquestions:\n" + "".join(
        f"- question_id: Q{n}\n  text: Why {n}?\n" for n in (1, 2, 3)
    )
    Path(protocol_files.needed_path(scene.root, agent)).write_text(needed)
    checkpoint = {
        "agentId": agent,
        "phase": "waiting_clarification",
        "extractedContext": {},
        "decisions": [1, 2],
    }
    Path(checkpoint_path(scene.root, agent)).write_text(json.dumps(checkpoint))
    assert scene.end(0).state == "waiting"
    scene.answer_by_file()
    scene.look()
    scene.begin()
    assert "Decisions made: 2 recorded" in Path(scene.root, "prompt.md").read_text()
    assert json.loads(Path(scene.root, "answers.json").read_text()) == ANSWERS
    assert scene.end(0).state == "succeeded"


@pytest.mark.parametrize("needed", [None, "questions: []\n", "{", "questions:\n- text: x\n"])
def test_a_foreign_request_that_cannot_be_read_fails_and_is_never_success(
    scene: Scene, needed: str | None
) -> None:
    scene.begin()
    agent = scene.task.id
    for place in (
        protocol_files.needed_path(scene.root, agent),
        checkpoint_path(scene.root, agent),
    ):
        os.makedirs(os.path.dirname(place), exist_ok=True)
    Path(checkpoint_path(scene.root, agent)).write_text(
        '{"agentId": "a", "phase": "waiting_clarification"}'
    )
    if needed:
        Path(protocol_files.needed_path(scene.root, agent)).write_text(needed)
    ended = scene.end(0)
    assert (ended.state, "cannot be read" in (ended.message or "")) == ("failed", True)


def test_a_restart_begins_without_what_was_left(scene: Scene) -> None:
    leave(scene)
    scene.controller.tasks.restart(scene.task.id, by=ADA, workspace=scene.root)
    scene.begin()
    assert not os.path.exists(checkpoint_path(scene.root, scene.task.id))
    assert scene.end(0).state == "succeeded"


def test_nothing_of_a_waiting_agent_runs(scene: Scene) -> None:
    """B-R22, B-R25: no process, no timer; a year later the answer is as good."""
    leave(scene)
    scene.seconds = 365 * 86_400
    assert scene.look() == []
    with scene.controller.store.read() as view:
        assert view.running() == []
    scene.answer_by_command(**ANSWERS)
    assert scene.state() == "queued"
    assert scene.now() > TEN
