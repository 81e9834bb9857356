"""`import adjourn`: what a process inside a run can say, and what becomes of what it says."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest

import adjourn
from adjourn.core.ask import AskKind, Proposal, Reply, Verb, Verdict
from adjourn.core.call import digest_of, tool_body
from adjourn.core.errors import Misuse
from adjourn.core.states import CallState
from adjourn.wiring.inside import InsideRun, proposal_of
from tests.clarification.scene import ADA, Scene

DROP = {"table": "users", "rows": 3}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def approved(inside: InsideRun, arguments: dict[str, object] | None = None, **settings: str) -> str:
    with inside.approval(
        proposal_of("Drop it?", tool="drop", arguments=arguments or DROP, key=settings.get("key"))
    ) as value:
        return value


def reply(scene: Scene, verb: Verb, text: str | None = None) -> None:
    with scene.controller.store.read() as view:
        (ask,) = view.open_asks_of(scene.task.id)
        assert ask.kind is AskKind.APPROVAL
    scene.controller.decisions.decide([Reply(ask_id=ask.id, verb=verb, text=text)], by=ADA)


def calls(scene: Scene) -> list[CallState]:
    with scene.controller.store.read() as view:
        return [call.state for call in view.calls(scene.task.id) if call.tool == "drop"]


def ask_first(scene: Scene, verb: Verb = Verb.APPROVE, text: str | None = None) -> InsideRun:
    """Have the call asked for and decided, and start the next run."""
    with pytest.raises(SystemExit) as left:
        approved(scene.begin())
    assert left.value.code == 10
    assert scene.end(10).state == "waiting"
    reply(scene, verb, text)
    assert scene.state() == "queued"
    return scene.begin()


def hand_out(scene: Scene) -> None:
    """Give the process its approved call, as if it never said what became of it."""
    body = tool_body("drop", DROP)
    proposal = Proposal(prompt="Drop it?", tool="drop", body=body, key=digest_of(body))
    scene.controller.asks.propose(scene.claimed.run.id, proposal)


def test_an_approved_call_is_handed_out_once_with_the_chosen_value(scene: Scene) -> None:
    inside = ask_first(scene, text="only staging")
    assert approved(inside) == "only staging"
    assert calls(scene) == [CallState.DONE]
    with pytest.raises(SystemExit):
        approved(inside)  # the second call of the same bytes is another ask
    assert calls(scene) == [CallState.DONE, CallState.PENDING]


def test_a_call_that_was_made_is_not_handed_out_in_a_later_run(scene: Scene) -> None:
    inside = ask_first(scene)
    approved(inside)
    with pytest.raises(SystemExit):
        inside.ask(adjourn.Question(prompt="And now?", key="now"), linger=0)
    scene.end(10)
    scene.answer_by_command(now="go on")
    with pytest.raises(adjourn.AlreadyDone):
        approved(scene.begin())


def test_a_rejection_reaches_the_process_with_its_reason(scene: Scene) -> None:
    inside = ask_first(scene, Verb.REJECT, "not today")
    with pytest.raises(adjourn.Rejected, match="rejected by uid:1000: not today"):
        approved(inside)
    assert calls(scene) == [CallState.REJECTED]


def test_other_arguments_are_another_ask(scene: Scene) -> None:
    inside = ask_first(scene)
    with pytest.raises(SystemExit):
        approved(inside, {"table": "users", "rows": 4})
    assert calls(scene) == [CallState.APPROVED, CallState.PENDING]


def test_under_a_key_other_arguments_take_the_old_approval_away(scene: Scene) -> None:
    with pytest.raises(SystemExit):
        approved(scene.begin(), key="k")
    scene.end(10)
    reply(scene, Verb.APPROVE)
    with pytest.raises(SystemExit):
        approved(scene.begin(), {"table": "orders"}, key="k")
    assert calls(scene) == [CallState.WITHDRAWN, CallState.PENDING]


def test_an_approved_call_of_a_tool_is_never_taken_for_the_process_to_start(scene: Scene) -> None:
    ask_first(scene)
    assert scene.claimed.call.tool == "command"


def test_a_call_that_failed_is_asked_again(scene: Scene) -> None:
    inside = ask_first(scene)
    with (
        pytest.raises(ZeroDivisionError),
        inside.approval(proposal_of("Drop it?", tool="drop", arguments=DROP)),
    ):
        raise ZeroDivisionError
    assert calls(scene) == [CallState.FAILED]
    with pytest.raises(SystemExit):
        inside.ask(adjourn.Question(prompt="Again?", key="again"), linger=0)
    scene.end(10)
    scene.answer_by_command(again="yes")
    with pytest.raises(SystemExit):
        approved(scene.begin())
    assert calls(scene) == [CallState.FAILED, CallState.PENDING]


@pytest.mark.parametrize(("code", "state"), [(0, CallState.DONE), (1, CallState.UNCERTAIN)])
def test_a_call_that_nobody_closed_ends_with_its_run(
    scene: Scene, code: int, state: CallState
) -> None:
    ask_first(scene)
    hand_out(scene)
    assert calls(scene) == [CallState.EXECUTING]
    scene.end(code)
    assert calls(scene) == [state]


@pytest.mark.parametrize(
    ("verdict", "state"),
    [
        (Verdict.IT_RAN, CallState.DONE),
        (Verdict.IT_DID_NOT, CallState.FAILED),
        (Verdict.RUN_AGAIN, CallState.FAILED),
    ],
)
def test_a_call_of_a_lost_run_is_uncertain_until_a_person_says(
    scene: Scene, verdict: Verdict, state: CallState
) -> None:
    ask_first(scene)
    hand_out(scene)
    scene.controller.runs.lose(scene.claimed.run)
    assert calls(scene) == [CallState.UNCERTAIN]
    with scene.controller.store.read() as view:
        (ask,) = view.open_asks_of(scene.task.id)
    assert "It had begun tc_2, drop." in ask.prompt
    scene.controller.tasks.settle(scene.task.id, 2, verdict, by=ADA)
    assert calls(scene) == [state]


@pytest.mark.parametrize(
    "arguments", [{"x": math.nan}, {"x": object()}, {"x": math.inf}, {"x": {1, object()}}]
)
def test_arguments_that_are_not_json_are_refused(
    scene: Scene, arguments: dict[str, object]
) -> None:
    with pytest.raises(Misuse):
        approved(scene.begin(), arguments)


def test_what_is_saved_is_there_in_the_next_run_and_gone_after_a_restart(scene: Scene) -> None:
    inside = scene.begin()
    assert inside.load("nothing") == "nothing"
    inside.save({"step": 3, "done": ["a", None, 1.5]})
    with pytest.raises(SystemExit):
        inside.ask(adjourn.Question(prompt="?", key="q"), linger=0)
    scene.end(10)
    scene.answer_by_command(q="a")
    assert scene.begin().load(None) == {"step": 3, "done": ["a", None, 1.5]}
    scene.end(0)
    scene.controller.tasks.restart(scene.task.id, by=ADA, workspace=scene.root)
    assert scene.begin().load(None) is None


@pytest.mark.parametrize(
    "call",
    [
        lambda: adjourn.ask("Which?"),
        lambda: adjourn.clarify(["Which?"]),
        lambda: adjourn.approval("Drop?", tool="drop", arguments={}).__enter__(),
        lambda: adjourn.checkpoint.save(1),
        adjourn.checkpoint.load,
    ],
    ids=["ask", "clarify", "approval", "save", "load"],
)
def test_outside_a_run_nobody_is_there(
    call: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ADJOURN_RUN_ID", raising=False)
    with pytest.raises(adjourn.NotInsideARun, match="cannot ask a person") as raised:
        call()
    assert raised.value.way_out == "adjourn run -- YOUR-COMMAND"


@pytest.mark.parametrize(
    ("questions", "linger"), [([], 60), (["a", "a"], -1), (["a"], math.nan), (["a"], 1e9)]
)
def test_a_request_that_makes_no_sense_is_refused(
    scene: Scene, questions: list[str], linger: float
) -> None:
    from tests.clarification.scene import DRAFT

    with pytest.raises(Misuse):
        scene.begin().clarify(
            [adjourn.Question(prompt=text, key=text) for text in questions], DRAFT, linger=linger
        )


def test_parallel_work_goes_on_while_it_waits(scene: Scene) -> None:
    """B-R42: what needs no answer is done before it leaves."""
    from tests.clarification.scene import DRAFT, QUESTIONS

    done: list[str] = []
    inside = scene.begin()
    with pytest.raises(SystemExit):
        inside.clarify(
            QUESTIONS,
            DRAFT,
            linger=0,
            meanwhile=[lambda: done.append("tests"), lambda: done.append("docs")],
        )
    assert done == ["tests", "docs"]
