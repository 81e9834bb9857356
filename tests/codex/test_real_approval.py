"""The real Codex stops at its calls, leaves, and goes on in the same thread when they are decided."""

import pytest

from tests.codex.scene import GATED, SCRIPTING_MODEL, Scene, outputs, patch, said, script, shell
from tests.e2e.shell import ADJOURN
from tests.model.script import ToolUse, Turn

EXECUTE = ("--option", "on-approve=execute")
MAKES = Turn(text="I make it.", calls=(shell("echo hi >> made.txt; echo made", name="call_A"),))
AGAIN = Turn(calls=(shell("echo hi >> made.txt; echo made", name="call_B"),))
TWICE = Turn(calls=(shell("echo hi >> made.txt; echo made", name="call_C"),))
DONE = Turn(text="All done.")


def test_a_call_waits_for_a_person_and_runs_once_for_one_approval(real: Scene) -> None:
    """D-R17, D-R20, D-R21, D-R45, D-R61, A-R47.

    A second repetition is asked about, and the model reads why it may not be.
    """
    with real.model([MAKES, AGAIN, TWICE, DONE]) as model:
        assert "in its own words:\n  agent │ I make it.\n" in real.run().out
        assert real.lines() == []
        assert [ask["tool_call_id"] for ask in real.asks()] == ["call_A"]
        real.approve_all()
        real.resume(expect=10)
        assert real.lines() == ["hi"]
        assert [ask["tool_call_id"] for ask in real.asks()] == ["call_C"]
        real.shell.adjourn("reject", real.asks()[0]["id"], "--reason", "not today")
        done = real.resume()
    assert real.lines() == ["hi"]
    assert done.out == "All done.\n"
    assert real.calls() == {"call_A": "done", "call_C": "rejected"}
    first, second, third = real.shell.runs(real.task)
    assert first["provider"] == second["provider"] == "codex"
    assert (
        first["provider_session_ref"]
        == second["provider_session_ref"]
        == third["provider_session_ref"]
    )
    assert second["resumed_from_run_id"] == first["run_id"]
    before, after, last, end = (said(request) for request in model.asked)
    assert after[: len(before)] == before
    assert len(last) == len(after) + 2
    assert end[: len(last)] == last
    assert "Repeat the identical call" in outputs(model.asked[1])["call_A"]
    assert "made" in outputs(model.asked[2])["call_B"]
    assert outputs(model.asked[3])["call_C"] == "TOOL_CALL_REJECTED\nnot today"

    # The conversation is read from the thread's own file
    told = real.shell.json("show", real.task, "--transcript")
    assert told["messages"][0]["text"] == "do it"
    calls = [call for each in told["messages"] for call in each.get("tool_calls", ())]
    assert [call["id"] for call in calls] == ["call_A", "call_B", "call_C"]
    assert told["messages"][-1]["text"] == "All done."
    assert told["usage"]["output"] > 0


def test_what_was_approved_is_executed_as_it_was_shown_and_its_output_handed_in(
    real: Scene,
) -> None:
    """A command, an edited one, one that stays in the sandbox, one that leaves it, and a patch.

    All without the model, which is the default.
    """
    # The sandbox keeps .git from being written
    inside, outside = real.work / ".git" / "inside", real.work / ".git" / "outside"
    inside.parent.mkdir()
    leaves = shell(f"touch {outside}", name="call_D", sandbox_permissions="require_escalated")
    stays, edited = (
        shell(f"touch {inside}", name="call_B"),
        shell("echo bad >> made.txt", name="call_C"),
    )
    adds = patch("*** Add File: new.txt\n+hello", name="call_E")
    with real.model(
        [Turn(calls=(*MAKES.calls, stays, edited, leaves)), Turn(calls=(adds,)), DONE]
    ) as model:
        real.gated = GATED
        real.run()
        shown, asks = real.shown(), {ask["tool_call_id"]: ask["id"] for ask in real.asks()}
        assert 'sandbox: "none"' in shown
        assert 'sandbox: "workspace-write"' in shown
        real.shell.adjourn(
            "approve", asks.pop("call_C"), "--set", "command=echo edited >> made.txt"
        )
        real.shell.adjourn("approve", *asks.values())
        assert real.lines() == []
        real.resume(expect=10)
        assert "hello" in real.shown()
        assert not (real.work / "new.txt").exists()
        real.approve_all()
        real.resume()
    told = outputs(model.asked[-1])
    assert len(model.asked) == 3
    assert sorted(real.lines()) == ["edited", "hi"]
    assert told["call_A"] == "Process exited with code 0\nOutput:\nmade\n"
    assert told["call_C"].startswith("Process exited with code 0")
    assert "Read-only file system" in told["call_B"]
    assert not inside.exists()
    assert outside.exists()
    assert (real.work / "new.txt").read_text() == "hello\n"
    assert "Success" in told["call_E"]


# --- questions ------------------------------------------------------------------------------------


def test_a_question_of_the_model_is_asked_and_its_answer_goes_in_as_codex_writes_it(
    real: Scene,
) -> None:
    """D-R15: and the same question twice is asked twice."""
    options = [
        {"label": "SQLite", "description": "small"},
        {"label": "Postgres", "description": "big"},
    ]
    asked = {
        "questions": [
            {"id": "db", "header": "Database", "question": "Which database?", "options": options}
        ]
    }
    turns = [
        Turn(calls=(ToolUse(name="request_user_input", arguments=asked, id=f"call_{n}"),))
        for n in "QR"
    ]
    with real.model([*turns, DONE]) as model:
        real.run()
        assert "Which database?" in real.asks()[0]["prompt"]
        assert "SQLite: small" in real.asks()[0]["prompt"]
        real.resume("--answer", "db=SQLite", expect=10)
        real.resume("Postgres")
    told = outputs(model.asked[-1])
    assert told["call_Q"] == '{"answers":{"db":{"answers":["SQLite"]}}}'
    assert told["call_R"] == '{"answers":{"db":{"answers":["Postgres"]}}}'


def test_a_question_for_whose_answer_the_model_does_not_wait_is_not_lost(real: Scene) -> None:
    asked = {"questions": [{"title": "Which database?", "options": ["SQLite", "Postgres"]}]}
    asks = Turn(calls=(ToolUse(name="request_user_input_async", arguments=asked, id="call_Q"),))
    with real.model([asks, Turn(text="I go on meanwhile."), DONE], model=SCRIPTING_MODEL) as model:
        real.run()
        assert outputs(model.asked[1])["call_Q"] == '{"accepted":true}'
        real.resume("SQLite")
    assert "Answer: SQLite" in str(said(model.asked[-1])[-1])


# --- several at once ------------------------------------------------------------------------------


def test_of_a_batch_nothing_runs_before_the_last_decision(real: Scene) -> None:
    """Approved, edited or rejected; a patch comes after the commands beside it."""
    change = "*** Add File: new.txt\n+hello"
    calls = tuple(shell(f"echo {n} >> made.txt", name=f"call_{n}") for n in range(3))
    again = (
        shell("echo 0 >> made.txt", name="again_0"),
        shell("echo edited >> made.txt", name="again_2"),
    )
    patches = [Turn(calls=(patch(change, name=name),)) for name in ("call_P", "again_P")]
    with real.model([Turn(calls=calls), Turn(calls=again), *patches, DONE]) as model:
        real.run()
        asks = {ask["tool_call_id"]: ask["id"] for ask in real.asks()}
        assert sorted(asks) == ["call_0", "call_1", "call_2"]
        real.shell.adjourn("approve", asks["call_0"])
        real.shell.adjourn("approve", asks["call_2"], "--set", "command=echo edited >> made.txt")
        real.shell.adjourn("reject", asks["call_1"])
        assert real.lines() == []
        real.resume(expect=10)
        assert sorted(real.lines()) == ["0", "edited"]
        assert not (real.work / "new.txt").exists()
        real.approve_all()
        real.resume()
    told = outputs(model.asked[1])
    assert (real.work / "new.txt").read_text() == "hello\n"
    assert told["call_1"] == "TOOL_CALL_REJECTED"
    assert "echo edited >> made.txt" in told["call_2"]
    assert "Success" in outputs(model.asked[-1])["again_P"]


def test_an_approval_is_kept_while_another_call_is_asked_about(real: Scene) -> None:
    first = shell("echo 1 >> made.txt", name="call_1")
    both = (shell("echo 1 >> made.txt", name="call_2"), shell("echo 2 >> made.txt", name="call_3"))
    again = (shell("echo 1 >> made.txt", name="call_4"), shell("echo 2 >> made.txt", name="call_5"))
    with real.model([Turn(calls=(first,)), Turn(calls=both), Turn(calls=again), DONE]):
        real.run()
        real.approve_all()
        real.resume(expect=10)
        assert real.lines() == []
        assert [ask["tool_call_id"] for ask in real.asks()] == ["call_3"]
        real.approve_all()
        real.resume()
    assert sorted(real.lines()) == ["1", "2"]


def test_calls_that_are_the_same_have_an_approval_each(real: Scene) -> None:
    """Two of them run twice, and the third is asked about."""
    turns = [
        Turn(calls=tuple(shell("echo hi >> made.txt", name=name) for name in names))
        for names in ("AB", "CD", "E")
    ]
    with real.model([*turns, DONE]):
        real.run()
        real.approve_all()
        real.resume(expect=10)
        assert real.lines() == ["hi", "hi"]
        assert [ask["tool_call_id"] for ask in real.asks()] == ["E"]


def test_an_approval_that_the_model_has_not_used_yet_outlives_another_pause(real: Scene) -> None:
    """It was told that it may repeat both, and asks for a third before the second."""
    one, two, three = (f"echo {n} >> made.txt" for n in (1, 2, 3))
    both = Turn(calls=(shell(one, name="A"), shell(two, name="B")))
    with real.model(
        [both, *(Turn(calls=(shell(line),)) for line in (one, three, three, two)), DONE]
    ):
        real.run()
        real.approve_all()
        real.resume(expect=10)
        assert real.lines() == ["1"]
        real.approve_all()
        real.resume()
    assert real.lines() == ["1", "3", "2"]


APPLIES = (
    "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch\nEOF\n"
)


@pytest.mark.parametrize(
    "options", [(), EXECUTE, ("--option", "way=exec")], ids=["repeat", "execute", "exec"]
)
def test_a_patch_that_is_written_as_a_command_is_applied_once_it_is_approved(
    real: Scene, options: tuple[str, ...]
) -> None:
    """Codex asks about a command, and then about a change of files."""
    with real.model(
        [
            Turn(calls=(shell(APPLIES, name="call_A"),)),
            Turn(calls=(shell(APPLIES, name="call_B"),)),
            DONE,
        ]
    ):
        real.run(options=options)
        assert "hello" in real.shown()
        assert not (real.work / "new.txt").exists()
        real.approve_all()
        real.resume()
    assert (real.work / "new.txt").read_text() == "hello\n"
    assert real.calls() == {"call_A": "done"}


# --- commands that run on while the model goes on -------------------------------------------------


def _left_running(line: str) -> Turn:
    return Turn(calls=(shell(line, name="call_Z", yield_time_ms=300),))


RUNS_ON = '[[rule]]\ntool = "shell"\nargs = ["./slow.sh", "**"]\naction = "auto"\n'


@pytest.mark.parametrize("way", ["app-server", "exec"])
def test_a_command_that_still_runs_may_end_before_codex_leaves_for_a_person(
    real: Scene, way: str
) -> None:
    real.allow(RUNS_ON)
    real.shell.script("sleep 3; echo slow >> made.txt", name="slow.sh")
    with real.model([_left_running("./slow.sh"), MAKES, AGAIN, DONE]):
        real.run(options=("--option", f"way={way}"))
        assert real.lines() == ["slow"]
        assert [ask["kind"] for ask in real.asks()] == ["approval"]
        assert real.calls() == {"call_Z": "done", "call_A": "pending"}


@pytest.mark.parametrize("way", ["app-server", "exec"])
def test_one_that_does_not_end_is_ended_and_the_model_hears_of_it(real: Scene, way: str) -> None:
    real.allow(RUNS_ON)
    real.shell.script("sleep 60; echo slow >> made.txt", name="slow.sh")
    with real.model([_left_running("./slow.sh"), MAKES, AGAIN, DONE]) as model:
        real.run(options=("--option", f"way={way}", "--option", "wait=1"))
        assert [ask["kind"] for ask in real.asks()] == ["approval"]
        assert real.calls() == {"call_Z": "failed", "call_A": "pending"}
        real.approve_all()
        real.resume()
    assert real.lines() == ["hi"]
    assert "`./slow.sh`: Ended: the run left for a person" in str(said(model.asked[2])[-1])


@pytest.mark.parametrize("way", ["app-server", "exec"])
def test_one_that_runs_when_codex_is_done_ends_with_it_and_the_task_is_done(
    real: Scene, way: str
) -> None:
    with real.model([_left_running("sleep 60"), DONE]):
        done = real.shell.adjourn(
            "run", "--runner", "codex", "--no-pause-on-approval", "--option", f"way={way}", "do it"
        )
    assert done.out == "All done.\n"
    assert real.calls() == {"call_Z": "failed"}
    assert (
        "`sleep 60`: Ended with the run: this command was still running when Codex was done"
        in done.err
    )


# --- scripts that make calls of their own ---------------------------------------------------------

SCRIPT = """
const one = await tools.exec_command({cmd: "./record.sh one"});
text("first done");
const two = await tools.exec_command({cmd: "./record.sh two"});
text("second done");
"""


@pytest.mark.parametrize("options", [(), EXECUTE], ids=["repeat", "execute"])
def test_a_script_stops_at_the_call_and_the_approver_sees_what_it_has_run(
    real: Scene, options: tuple[str, ...]
) -> None:
    real.shell.script('echo "$1" >> made.txt; echo "recorded $1"', name="record.sh")
    # Codex does not tell where a script's own calls run, nor whether they leave the sandbox: the
    # rule must be meant for both.
    anywhere = 'dirs = ["/**"]\noutside_sandbox = true\n'
    real.allow(
        f'[[rule]]\ntool = "shell"\nargs = ["./record.sh", "one"]\naction = "auto"\n{anywhere}'
    )
    again = Turn(
        calls=(
            script(
                'text((await tools.exec_command({cmd: "./record.sh two"})).output);', name="call_T"
            ),
        )
    )
    turns = [Turn(calls=(script(SCRIPT, name="call_S"),)), *([] if options else [again]), DONE]
    with real.model(turns, model=SCRIPTING_MODEL) as model:
        real.run(options=options)
        assert real.lines() == ["one"]
        assert len(real.asks()) == 1
        assert "has already run `./record.sh one` (exit code 0)" in real.shown()
        real.approve_all()
        real.resume()
    assert real.lines() == ["one", "two"]
    told = outputs(model.asked[1])["call_S"]
    assert "Script stopped before its end" in told
    assert "Ran before: `./record.sh one` (exit code 0)\nrecorded one" in told
    assert "recorded two" in outputs(model.asked[-1])["call_S" if options else "call_T"]


def test_several_calls_of_one_script_are_asked_about_together(real: Scene) -> None:
    both = 'await Promise.all([1, 2].map(n => tools.exec_command({cmd: `echo ${n} >> made.txt`}))); text("end");'
    again = [
        script(f'await tools.exec_command({{cmd: "echo {n} >> made.txt"}});', name=f"call_{n}")
        for n in (1, 2)
    ]
    turns = [
        Turn(calls=(script(both, name="call_S"),)),
        Turn(calls=(again[0],)),
        Turn(calls=(again[1],)),
        DONE,
    ]
    with real.model(turns, model=SCRIPTING_MODEL):
        real.run()
        assert len(real.asks()) == 2
        assert real.lines() == []
        real.approve_all()
        real.resume()
    assert sorted(real.lines()) == ["1", "2"]
    assert sorted(real.calls().values()) == ["done"] * 2


def test_a_text_for_a_session_that_was_done_goes_on_in_it(real: Scene) -> None:
    """A-R40, part 2 row 34."""
    with real.model([DONE, Turn(text="Twice done.")]) as model:
        real.run(expect=0)
        assert real.resume("Do it twice.").out == "Twice done.\n"
        assert "Do it twice." in str(said(model.asked[-1])[-1])
    first, second = real.shell.runs(real.task)
    assert first["provider_session_ref"] == second["provider_session_ref"]
    assert second["resumed_from_run_id"] == first["run_id"]


def test_what_its_tools_ask_makes_the_task_wait_and_its_thread_is_told_the_answers(
    real: Scene,
) -> None:
    """B-R31, B-R32, B-R34: as the resume prompt, in the same thread."""
    # Codex starts login shells, whose profile sets PATH
    (real.home / ".profile").write_text(f"PATH={ADJOURN.parent}:$PATH\n")
    real.allow('[[rule]]\nargs = ["adjourn", "**"]\naction = "auto"\noutside_sandbox = true\n')
    ask = shell('adjourn ask "Which region?"', name="call_A")
    clarify = shell('adjourn clarify "Who reviews it?" --linger 0s', name="call_B")
    turns = [Turn(calls=(ask,)), Turn(calls=(clarify,)), Turn(text="I wait."), DONE]
    with real.model(turns) as model:
        real.run()
        shown = real.shell.json("show", real.task)
        assert (shown["state"], shown["pause_reason"]["type"]) == ("waiting", "input_required")
        real.shell.adjourn("answer", shown["asks"][0]["id"], "eu")
        assert real.resume("Ada").out == "All done.\n"
    first, second = real.shell.runs(real.task)
    assert first["provider_session_ref"] == second["provider_session_ref"]
    told = str(said(model.asked[-1])[-1])
    assert "## RESUME FROM CLARIFICATION" in told
    assert "- Which region?: eu" in told
    assert "- Q1 (Who reviews it?): Ada" in told
