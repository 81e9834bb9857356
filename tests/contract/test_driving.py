"""The calls of an agent: judged as a batch, decided one by one, run once, and told in order."""

import pytest

from adjourn.core.agent.calls import CallResult, Held, Proposed, Report
from adjourn.core.ask import ApprovalAsk, Question, Reply, UncertainAsk, Verb, Verdict
from adjourn.core.call import Call, tool_body
from adjourn.core.errors import AlreadyDone, CannotResume, Conflict, NotFound, StoreProblem
from adjourn.core.outcome import Exit
from adjourn.core.resumption import Resumption
from adjourn.core.states import CallState, TaskState
from adjourn.core.task import TRIES, OnRejection, Run, Task
from adjourn.ports.store import Store
from adjourn.ports.world import Ended, NeverStarted, Vanished
from tests.contract.office import ASKS_10, DONE, INTERRUPTED, KILLED, ME, Office
from tests.stateful.world import shim_of
from tests.unit.policies import policy as policy_of

AUTO = '[[rule]]\ntool = "announce"\naction = "auto"'
NEVER_RM = '[[rule]]\ntool = "erase"\naction = "never"'


def begun(office: Office, *, runner: str = "agent", asks: bool = True) -> tuple[Task, Run]:
    """Return a task of an agent whose driver runs."""
    task = office.start(
        runner=runner,
        argv=("adjourn", "_agent"),
        prompt="deploy",
        pause_on_approval=asks,
        on_rejection=OnRejection.TELL,
    )
    return task, office.begin(task).run


def again(office: Office, task: Task) -> Run:
    """Start the driver of a task once more."""
    return office.begin(office.task(task.id)).run


def wanted(tool: str = "write_file", label: str | None = None, **arguments: object) -> Proposed:
    return Proposed(
        tool=tool,
        body=tool_body(tool, arguments or {"path": "a"}),
        label=label,
        words="I will do it.",
    )


def calls(held: list[Held]) -> list[Call]:
    return [each.call for each in held if each.call]


def states(office: Office, task: Task) -> list[CallState]:
    return [call.state for call in calls(office.controller.agents.batch(task.id))]


def pending(office: Office, task: Task) -> list[ApprovalAsk | UncertainAsk]:
    asks = office.scene(task).open_asks
    about_calls = [ask for ask in asks if isinstance(ask, ApprovalAsk | UncertainAsk)]
    assert len(about_calls) == len(asks)
    return about_calls


def test_nothing_of_a_batch_runs_while_one_call_of_it_is_asked_about(office: Office) -> None:
    """A-R13, A-R42: also what needs no approval waits, and runs on resume."""
    office.rules.policy = policy_of(AUTO)
    task, run = begun(office)
    office.controller.agents.propose_batch(run.id, [wanted("announce"), wanted(path="b")])
    assert states(office, task) == [CallState.APPROVED, CallState.PENDING]
    assert office.controller.agents.next_execution(task.id) is None
    assert office.controller.runs.finish(run, ASKS_10).state is TaskState.WAITING
    (ask,) = pending(office, task)
    assert office.reply(ask, Verb.APPROVE).state is TaskState.QUEUED
    again(office, task)
    first = office.controller.agents.next_execution(task.id)
    assert first is not None
    assert first.tool == "announce"


def test_calls_are_named_as_the_agent_names_them_unless_that_names_another(office: Office) -> None:
    """A-R26, A-R36: what is pending can be named as it was proposed, and no name ever names two calls."""
    task, run = begun(office)
    held = office.controller.agents.propose_batch(
        run.id, [wanted(label="tc_1"), wanted(label="tc_1"), wanted(label="an odd one")]
    )
    names = [call.tool_call_id for call in calls(held)]
    assert names[0] == "tc_1"
    assert len(set(names)) == len(names)
    assert all(" " not in name for name in names)
    office.controller.runs.finish(run, ASKS_10)
    office.controller.tasks.resume(task.id, Resumption(approve=("tc_1",)), by=ME)
    # A-R47
    assert states(office, task) == [CallState.APPROVED, CallState.REJECTED, CallState.REJECTED]


def test_without_the_flag_all_runs_but_what_never_may(office: Office) -> None:
    """A-R78, and the policy's never is still refused."""
    office.rules.policy = policy_of(NEVER_RM)
    task, run = begun(office, asks=False)
    held = office.controller.agents.propose_batch(run.id, [wanted(), wanted("erase")])
    assert states(office, task) == [CallState.APPROVED, CallState.REJECTED]
    assert held[1].result is not None
    assert held[1].result.error == "your policy does not allow this"


def test_what_only_reads_is_for_its_driver_unless_a_rule_asks(office: Office) -> None:
    reading = Proposed(tool="read_file", body=tool_body("read_file", {"path": "a"}), read_only=True)
    _, run = begun(office)
    assert office.controller.agents.propose_batch(run.id, [reading]) == [Held()]
    office.rules.policy = policy_of('[[rule]]\ntool = "read_file"\naction = "prompt"')
    _, other = begun(office)
    (held,) = office.controller.agents.propose_batch(other.id, [reading])
    assert held.call is not None
    assert held.call.state is CallState.PENDING


def executing(office: Office) -> tuple[Task, Run, Call]:
    """Return a call that runs beside its agent."""
    task, run = begun(office, asks=False)
    office.controller.agents.propose_batch(run.id, [wanted()])
    call = office.controller.agents.next_execution(task.id)
    assert call is not None
    claimed = office.controller.agents.claim_call(run, call)
    assert claimed is not None
    started = office.controller.agents.execute_call(run, claimed, shim=shim_of(run.id))
    assert started is not None
    return task, run, started


def test_a_call_beside_its_agent_ends_with_its_result(office: Office) -> None:
    task, run, call = executing(office)
    assert office.controller.agents.next_execution(task.id) is None
    office.controller.agents.conclude_call(run, call, Ended(Exit(code=1, output="no such file\n")))
    (held,) = office.controller.agents.batch(task.id)
    assert held.call is not None
    assert held.call.state is CallState.FAILED
    assert held.result == CallResult(ok=False, output="no such file\n", exit_code=1)


def test_a_call_whose_gate_stayed_shut_is_offered_again(office: Office) -> None:
    task, run, call = executing(office)
    office.controller.agents.conclude_call(run, call, NeverStarted())
    again_offered = office.controller.agents.next_execution(task.id)
    assert again_offered is not None
    assert again_offered.id == call.id


def test_a_call_whose_file_changes_again_and_again_is_not_offered_for_ever(office: Office) -> None:
    task, run, call = executing(office)
    for _ in range(TRIES - 1):
        office.controller.agents.conclude_call(
            run, call, NeverStarted("apply.sh was another one", is_refused=True)
        )
        offered = office.controller.agents.next_execution(task.id)
        assert offered is not None
        claimed = office.controller.agents.claim_call(run, offered)
        assert claimed is not None
        executed = office.controller.agents.execute_call(run, claimed, shim=shim_of(run.id))
        assert executed is not None
        call = executed
    office.controller.agents.conclude_call(
        run, call, NeverStarted("apply.sh was another one", is_refused=True)
    )
    assert office.controller.agents.next_execution(task.id) is None
    (held,) = office.controller.agents.batch(task.id)
    assert held.result == CallResult(
        ok=False, error=f"it could not be started in {TRIES} tries: apply.sh was another one"
    )


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_person_says_what_became_of_a_call_that_nobody_saw_end(
    office: Office, verdict: Verdict
) -> None:
    task, run, call = executing(office)
    office.controller.agents.conclude_call(run, call, Vanished())
    waiting = office.controller.runs.finish(run, ASKS_10)
    assert waiting.state is TaskState.WAITING
    settled = office.controller.tasks.settle(task.id, call.number, verdict, by=ME)
    assert settled.state is TaskState.QUEUED
    again(office, task)
    runs_again = office.controller.agents.next_execution(task.id)
    assert (runs_again is not None) == (verdict is Verdict.RUN_AGAIN)
    with pytest.raises(Conflict):
        office.controller.tasks.settle(task.id, call.number, verdict, by=ME)


def test_nothing_moves_on_while_a_call_is_uncertain(office: Office) -> None:
    task, run = begun(office, asks=False)
    office.controller.agents.propose_batch(run.id, [wanted(path="a"), wanted(path="b")])
    call = office.controller.agents.next_execution(task.id)
    assert call is not None
    claimed = office.controller.agents.claim_call(run, call)
    assert claimed is not None
    office.controller.agents.execute_call(run, claimed, shim=shim_of(run.id))
    office.controller.agents.conclude_call(run, claimed, Vanished())
    assert office.controller.agents.next_execution(task.id) is None


def test_a_call_that_changed_since_its_approval_is_asked_again(office: Office) -> None:
    office.disk.files = {"/srv/deploy.sh": "sha256:1"}
    task, run = begun(office)
    office.controller.agents.propose_batch(run.id, [wanted("run_command", command="./deploy.sh")])
    office.controller.runs.finish(run, ASKS_10)
    (ask,) = pending(office, task)
    office.reply(ask, Verb.APPROVE)
    run = again(office, task)
    office.disk.files = {"/srv/deploy.sh": "sha256:2"}
    call = office.controller.agents.next_execution(task.id)
    assert call is not None
    assert office.controller.agents.claim_call(run, call) is None
    (new,) = pending(office, task)
    assert isinstance(new, ApprovalAsk)
    assert new.replaces == ask.id
    assert states(office, task) == [CallState.PENDING]
    assert office.controller.runs.finish(run, ASKS_10).state is TaskState.WAITING


def test_a_call_is_handed_out_once(office: Office) -> None:
    task, run = begun(office, runner="claude", asks=False)
    (held,) = office.controller.agents.propose_batch(run.id, [wanted()])
    assert held.call is not None
    handed = office.controller.agents.hand_out(run.id, held.call)
    assert handed is not None
    with pytest.raises(AlreadyDone):
        office.controller.agents.hand_out(run.id, held.call)
    office.controller.agents.close_handed_out(run.id, handed, CallResult(ok=True, output="done"))
    assert office.controller.runs.finish(run, DONE).state is TaskState.SUCCEEDED
    assert states(office, task) == [CallState.DONE]


@pytest.mark.parametrize("exit_", [DONE, Exit(code=1), ASKS_10, Exit(code=74), KILLED, None])
def test_a_session_that_ends_without_a_word_on_a_call_leaves_it_uncertain(
    office: Office, exit_: Exit | None
) -> None:
    """Whoever died: the driver, or the shim with it (None).

    What the session could do is no reason to guess.
    """
    task, run = begun(office, runner="claude", asks=False)
    office.controller.agents.note_session(run.id, "5f0c", resumable=True)
    (held,) = office.controller.agents.propose_batch(run.id, [wanted()])
    assert held.call is not None
    office.controller.agents.hand_out(run.id, held.call)
    ended = office.controller.runs.finish(run, exit_) if exit_ else office.controller.runs.lose(run)
    assert ended.state is TaskState.WAITING
    assert states(office, task) == [CallState.UNCERTAIN]
    (ask,) = pending(office, task)
    assert ask.tool_call_id == held.call.tool_call_id


@pytest.mark.parametrize("exit_", [KILLED, None])
def test_a_session_whose_driver_died_between_two_calls_is_paused_and_can_be_resumed(
    office: Office, exit_: Exit | None
) -> None:
    """D-R17: nothing of it goes on by itself."""
    task, run = begun(office, runner="codex", asks=False)
    office.controller.agents.note_session(run.id, "5f0c", resumable=True)
    (held,) = office.controller.agents.propose_batch(run.id, [wanted()])
    assert held.call is not None
    handed = office.controller.agents.hand_out(run.id, held.call)
    assert handed is not None
    office.controller.agents.close_handed_out(run.id, handed, CallResult(ok=True, output="done"))
    ended = office.controller.runs.finish(run, exit_) if exit_ else office.controller.runs.lose(run)
    assert (ended.state, states(office, task)) == (TaskState.PAUSED, [CallState.DONE])
    (kept,) = office.runs(task)
    assert kept.message in {
        "the process that drives it was ended by signal 9",
        "it vanished without a trace",
    }
    assert office.controller.tasks.resume(task.id, by=ME).state is TaskState.QUEUED
    office.begin(office.task(task.id))
    office.controller.tasks.cancel(task.id, by=ME)
    last = office.runs(task)[-1]
    assert (
        office.controller.runs.finish(last, KILLED).state is TaskState.CANCELED
    )  # whoever was faster


def test_an_interrupted_call_has_failed_and_its_approval_is_spent(office: Office) -> None:
    task, run = begun(office, runner="claude", asks=False)
    (held,) = office.controller.agents.propose_batch(run.id, [wanted()])
    assert held.call is not None
    office.controller.agents.hand_out(run.id, held.call)
    assert office.controller.runs.finish(run, INTERRUPTED).state is TaskState.PAUSED
    assert states(office, task) == [CallState.FAILED]


def test_a_session_that_was_not_saved_cannot_be_resumed(office: Office) -> None:
    """D-R18, D-R19, D-R25, D-R47, D-R53.

    The error names task, run, provider, session and restart.
    """
    task, run = begun(office, runner="codex")
    office.controller.runs.finish(run, INTERRUPTED)
    with pytest.raises(CannotResume) as refused:
        office.controller.tasks.resume(task.id, by=ME)
    assert all(word in str(refused.value.sentence) for word in (task.id, run.id, "codex"))
    assert refused.value.way_out == f"adjourn restart {task.id}"


def test_a_session_that_was_saved_can_be_resumed(office: Office) -> None:
    """D-R17, D-R36, D-R37."""
    task, run = begun(office, runner="codex")
    office.controller.agents.note_session(run.id, "5f0c", resumable=True)
    office.controller.runs.finish(run, INTERRUPTED)
    (kept,) = office.runs(task)
    assert (kept.session_ref, kept.resumable) == ("5f0c", True)
    assert office.controller.tasks.resume(task.id, by=ME).state is TaskState.QUEUED


def test_a_driver_that_vanished_is_started_again_if_it_changes_nothing_itself(
    office: Office,
) -> None:
    task, run = begun(office)
    assert office.controller.runs.lose(run).state is TaskState.QUEUED
    _, other = begun(office, runner="claude")
    failed = office.controller.runs.lose(other)
    assert failed.state is TaskState.FAILED, "nobody can say whether an agent ran"
    assert "before its session was saved" in (failed.message or "")
    assert office.task(task.id).state is TaskState.QUEUED


def test_an_agent_that_died_before_its_session_was_saved_is_never_uncertain_about_its_own_command(
    office: Office,
) -> None:
    """Only its calls can be: each is asked about by itself."""
    for runner in ("claude", "codex"):
        task, run = begun(office, runner=runner, asks=False)
        failed = office.controller.runs.lose(run)
        assert failed.state is TaskState.FAILED
        assert "before its session was saved" in (failed.message or "")
        assert pending(office, task) == []
        task, run = begun(office, runner=runner, asks=False)
        (held,) = office.controller.agents.propose_batch(run.id, [wanted()])
        assert held.call is not None
        office.controller.agents.hand_out(run.id, held.call)
        assert office.controller.runs.lose(run).state is TaskState.WAITING
        assert [ask.tool_call_id for ask in pending(office, task)] == [held.call.tool_call_id]
        task, run = begun(office, runner=runner, asks=False)
        office.controller.tasks.cancel(task.id, by=ME)
        assert office.controller.runs.lose(run).state is TaskState.CANCELED


def test_what_a_vanished_agent_asked_stays_asked(office: Office) -> None:
    for finish in (
        office.controller.runs.lose,
        lambda run: office.controller.runs.finish(run, KILLED),
    ):
        task, run = begun(office)
        office.controller.agents.propose_batch(run.id, [wanted()])
        assert finish(run).state is TaskState.WAITING
        assert len(pending(office, task)) == 1


def test_a_transcript_only_grows(office: Office, store: Store) -> None:
    task, run = begun(office)
    office.controller.agents.append_messages(run.id, [b"one", b"two"], after=0)
    office.controller.agents.append_messages(run.id, [b"three"], after=2)
    assert office.controller.agents.messages(task.id) == [b"one", b"two", b"three"]
    assert office.controller.agents.messages(task.id, after=2) == [b"three"]
    with store.read() as view:
        assert view.count_messages(task.id) == 3
    with pytest.raises(StoreProblem):
        office.controller.agents.append_messages(run.id, [b"another third"], after=2)
    assert office.controller.agents.messages(task.id) == [b"one", b"two", b"three"]


def test_a_pruned_task_leaves_no_message(office: Office, store: Store) -> None:
    task, run = begun(office)
    office.controller.agents.append_messages(run.id, [b"one"], after=0)
    office.controller.runs.finish(run, DONE)
    office.controller.tasks.forget(task.id, by=ME)
    with store.read() as view, pytest.raises(NotFound):
        view.messages(task.id)


def test_accepting_an_agents_words_completes_its_task(office: Office) -> None:
    """A-R79 and part 2, row 1: a person can end a text-only pause."""
    task, run = begun(office)
    office.controller.asks.ask(run.id, Question(prompt="All is deployed.", key="input"))
    office.controller.agents.report(run.id, Report(message="All is deployed.", steps=3))
    office.controller.runs.finish(run, ASKS_10)
    accepted = office.controller.tasks.accept(task.id, by=ME)
    assert accepted.state is TaskState.SUCCEEDED
    assert accepted.message == "All is deployed."
    assert pending(office, task) == []
    with pytest.raises(Conflict):
        office.controller.tasks.accept(task.id, by=ME)


def test_an_approval_cannot_be_accepted_away(office: Office) -> None:
    task, run = begun(office)
    office.controller.agents.propose_batch(run.id, [wanted()])
    office.controller.runs.finish(run, ASKS_10)
    with pytest.raises(Conflict):
        office.controller.tasks.accept(task.id, by=ME)
    assert len(pending(office, task)) == 1


def test_an_edit_reaches_the_call_and_its_agent_can_tell(office: Office) -> None:
    task, run = begun(office)
    editable = b'{"type": "object"}'
    proposed = Proposed(
        tool="write_file", body=tool_body("write_file", {"path": "a"}), editable=editable
    )
    office.controller.agents.propose_batch(run.id, [proposed])
    office.controller.runs.finish(run, ASKS_10)
    (ask,) = pending(office, task)
    office.controller.decisions.decide(
        [Reply(ask_id=ask.id, verb=Verb.APPROVE, edited=b'{"path": "b"}')], by=ME
    )
    (held,) = office.controller.agents.batch(task.id)
    assert held.original == proposed.body
    assert held.call is not None
    assert held.call.body == tool_body("write_file", {"path": "b"})
