"""What the real Claude Code asks a person is answered through adjourn.

What its subagents want is never lost in silence.
"""

import pytest

from tests.claude.scene import Scene, bash, history
from tests.model.script import Fault, ToolUse, Turn

DONE = Turn(text="All done.")
OPTIONS = [
    {"label": "Postgres", "description": "a server"},
    {"label": "SQLite", "description": "a file"},
]
ASKS = ToolUse(
    id="toolu_Q",
    name="AskUserQuestion",
    arguments={
        "questions": [
            {
                "question": "Which database?",
                "header": "Database",
                "multiSelect": False,
                "options": OPTIONS,
            }
        ]
    },
)


def test_a_question_is_answered_by_the_number_of_an_option(real: Scene) -> None:  # D-R15
    with real.model([Turn(text="One thing.", calls=(ASKS,)), DONE]) as model:
        real.run()
        ask = real.asks()[0]
        assert (ask["kind"], ask["prompt"].splitlines()[0]) == ("question", "Which database?")
        real.resume("2")
    assert b"SQLite" in history(model.asked[-1])[-1]
    assert len(real.shell.runs(real.task)) == 2


def test_a_question_beside_a_call_waits_with_it_and_keeps_its_answer(real: Scene) -> None:
    both = (bash("echo A >> made.txt", name="toolu_A"), ASKS)
    repeated = ToolUse(id="toolu_Q2", name="AskUserQuestion", arguments=ASKS.arguments)
    with real.model(
        [Turn(text="Two things.", calls=both), Turn(text="Again.", calls=(repeated,)), DONE]
    ) as model:
        real.run()
        assert sorted(ask["kind"] for ask in real.asks()) == ["approval", "question"]
        approval, question = sorted(real.asks(), key=lambda ask: str(ask["kind"]))
        real.shell.adjourn("approve", approval["id"])
        real.shell.adjourn("answer", question["id"], "neither, use a map")
        real.resume()
    assert real.lines() == ["A"]
    assert b"neither, use a map" in history(model.asked[-1])[-1]


@pytest.mark.parametrize(
    "faults", [(), (Fault(status=404),)], ids=["that streams", "that does not stream"]
)
def test_what_was_answered_beside_a_call_is_told_though_nobody_asks_again(
    real: Scene, faults: tuple[Fault, ...]
) -> None:
    """In a message that does not stream the session cannot stop at a question, and goes on with words of ours."""
    calls = (
        (ASKS, bash("echo A >> made.txt", name="toolu_A"))
        if faults
        else (bash("echo A >> made.txt", name="toolu_A"), ASKS)
    )
    with real.model([Turn(text="Two things.", calls=calls, faults=faults), DONE]) as model:
        real.run()
        approval, question = sorted(real.asks(), key=lambda ask: str(ask["kind"]))
        real.shell.adjourn("approve", approval["id"])
        real.shell.adjourn("answer", question["id"], "neither, use a map")
        real.resume()
    assert b"The answer is: neither, use a map" in b"".join(history(model.asked[-1]))


def test_a_held_call_that_was_approved_is_told_of_whatever_the_session_stopped_at(
    real: Scene,
) -> None:
    """At a question that was answered, and at a call that was rejected.

    Else the model would not make it again.
    """
    calls = [bash("echo A >> made.txt", name=f"toolu_A{number}") for number in range(3)]
    other = bash("echo B >> made.txt", name="toolu_B")
    turns = [
        Turn(text="Two things.", calls=(ASKS, calls[0])),
        Turn(calls=(other, calls[1])),
        Turn(calls=(calls[2],)),
        DONE,
    ]
    with real.model(turns) as model:
        real.run()
        approval, question = sorted(real.asks(), key=lambda ask: str(ask["kind"]))
        real.shell.adjourn("approve", approval["id"])
        real.shell.adjourn("answer", question["id"], "1")
        real.resume(expect=10)
        real.shell.adjourn("reject", real.asks()[0]["id"])
        real.resume()
    told = [
        str(request.body["messages"]).count("approved: make it again") for request in model.asked
    ]
    assert told == [0, 1, 2, 2]
    assert real.lines() == ["A"]


# Trap 3
def test_a_subagents_call_is_never_deferred_but_denied_with_a_sentence(real: Scene) -> None:
    turns = [
        Turn(text="I have it looked at.", calls=(_delegates("toolu_T", turn=2),)),
        DONE,
        Turn(text="I look.", calls=(bash("echo sub >> made.txt", name="toolu_S"),)),
        Turn(text="I could not."),
    ]
    with real.model(turns) as model:
        real.run()
        real.approve_all()
        real.resume()
    assert real.lines() == []
    assert real.asks() == []
    denied = [
        request
        for request in model.asked
        if b"nobody can be asked from inside a subagent" in b"".join(history(request))
    ]
    assert denied


def _delegates(name: str, *, turn: int) -> ToolUse:
    what = {
        "description": "look",
        "prompt": f"begin at turn {turn} and look around",
        "subagent_type": "general-purpose",
    }
    return ToolUse(id=name, name="Task", arguments=what)


def test_subagents_and_theirs_do_what_the_policy_lets_pass(real: Scene) -> None:
    real.let_pass('args = ["touch", "*"]', 'tool = "Task"', 'tool = "Agent"')
    turns = [
        Turn(text="I have it done.", calls=(_delegates("toolu_T", turn=2),)),
        DONE,
        Turn(
            text="I do it.",
            calls=(bash("touch here", name="toolu_S"), _delegates("toolu_U", turn=4)),
        ),
        Turn(text="Done below."),
        Turn(text="I, too.", calls=(bash("touch deeper", name="toolu_V"),)),
        Turn(text="Done at the bottom."),
    ]
    with real.model(turns):
        real.run(expect=0)
    assert (real.work / "here").exists()
    assert (real.work / "deeper").exists()
    assert real.calls() == dict.fromkeys(("toolu_T", "toolu_S", "toolu_U", "toolu_V"), "done")


def test_what_its_tools_ask_makes_the_task_wait_and_its_session_is_told_the_answers(
    real: Scene,
) -> None:
    """B-R31, B-R32, B-R34: as the resume prompt, in the same session; nothing is asked twice."""
    real.let_pass('args = ["adjourn", "**"]')
    asks = (
        bash('adjourn ask "Which region?" --choice eu --choice us', name="toolu_A"),
        bash('adjourn clarify "Who reviews @it?" --linger 0s', name="toolu_B"),
    )
    turns = [Turn(text="I ask.", calls=asks), Turn(text="I wait."), DONE]
    with real.model(turns) as model:
        real.run()
        shown = real.shell.json("show", real.task)
        assert (shown["state"], shown["pause_reason"]["type"]) == ("waiting", "input_required")
        region, reviewer = shown["pause_reason"]["questions"]
        real.shell.adjourn("answer", shown["asks"][0]["id"], "eu")
        assert reviewer["question_id"] == "Q1"
        assert real.resume("Ada").out == "All done.\n"
    first, second = real.shell.runs(real.task)
    assert first["provider_session_ref"] == second["provider_session_ref"]
    before, after = history(model.asked[-2]), history(model.asked[-1])
    assert after[: len(before)] == before
    told = after[-1].decode()
    assert "## RESUME FROM CLARIFICATION" in told
    assert f"- {region['text']}: eu" in told
    assert "- Q1 (Who reviews \\\\u0040it?): Ada" in told
    assert "## Continue Work" in told


def test_what_its_tools_asked_is_told_behind_a_call_at_which_its_session_had_stopped(
    real: Scene,
) -> None:
    """B-R34, A-R45: the call first, which goes on without a prompt, and then the answers."""
    real.let_pass('args = ["adjourn", "**"]')
    turns = [
        Turn(text="I ask.", calls=(bash('adjourn ask "Which region?"', name="toolu_A"),)),
        Turn(text="I make it.", calls=(bash("echo B >> made.txt", name="toolu_B"),)),
        Turn(text="Made."),
        DONE,
    ]
    with real.model(turns) as model:
        real.run()
        question, call = sorted(real.asks(), key=lambda ask: ask["kind"], reverse=True)
        real.shell.adjourn("answer", question["id"], "eu")
        real.shell.adjourn("approve", call["id"])
        assert real.resume().out.endswith("All done.\n")
    assert real.lines() == ["B"]
    assert b"- Which region?: eu" in history(model.asked[-1])[-1]
