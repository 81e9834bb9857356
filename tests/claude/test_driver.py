"""The whole of adjourn around a fake Claude Code.

What runs everywhere, and the ways in which things go wrong.
"""

import os
import shutil
import signal
import time
from pathlib import Path

import msgspec
import pytest

from tests.claude.scene import GATED, Fake, bash
from tests.e2e.shell import until
from tests.model.script import Fault, ToolUse, Turn

DONE = Turn(text="All done.")


def made(*names: str, again: str = "") -> tuple[ToolUse, ...]:
    return tuple(bash(f"echo {name} >> made.txt", name=f"toolu_{name}{again}") for name in names)


ONE = Turn(text="I make it.", calls=made("A"))


def test_a_call_waits_and_runs_once_when_approved(fake: Fake) -> None:  # D-R17, D-R20, D-R46, D-R61
    fake.play([ONE, DONE])
    fake.run()
    assert fake.lines() == []
    assert "claude: do it" in fake.shell.adjourn("tasks").out
    assert "prompt for claude\n  do it\n" in fake.shown()
    assert "Bash: echo A >> made.txt" in fake.shell.adjourn("inbox").out
    fake.approve_all()
    fake.resume()
    assert fake.lines() == ["A"]
    assert fake.calls() == {"toolu_A": "done"}


# D-R22 to D-R24, D-R62
def test_a_resume_names_its_session_in_one_word_and_says_nothing_where_a_call_waits(
    fake: Fake,
) -> None:
    fake.play([ONE, DONE])
    fake.run()
    fake.approve_all()
    fake.resume()
    start, resume = fake.argv()
    session = fake.shell.runs(fake.task)[0]["provider_session_ref"]
    assert start[0] == resume[0] == str(fake.work)
    assert f"--session-id={session}" in start
    assert start[-2:] == ["--", "do it"]
    assert resume[-1] == f"--resume={session}"
    assert not {"--continue", "-c", "--fork-session", "--last"} & {*start, *resume}


@pytest.mark.parametrize("whole", [False, True])
# A-R13
def test_a_batch_is_held_whole_and_each_decision_counts_once(fake: Fake, *, whole: bool) -> None:
    others = Turn(text="Others.", calls=made("B", "C", again="2"))
    once_more = Turn(text="Once more.", calls=made("A", again="2"))
    fake.play(
        [Turn(text="Three.", calls=made("A", "B", "C")), others, once_more, DONE], whole=whole
    )
    fake.run()
    assert fake.lines() == []
    assert len(fake.asks()) == 3
    fake.resume("--approve", "toolu_A", "--approve", "toolu_C", expect=10)
    assert fake.lines() == ["A", "C"]
    assert [ask["tool_call_id"] for ask in fake.asks()] == ["toolu_A2"]
    fake.resume("--reject-all")
    assert fake.lines() == ["A", "C"]


def test_what_the_policy_lets_pass_runs_and_what_it_never_allows_does_not(fake: Fake) -> None:
    config = fake.work / ".config" / "adjourn"
    config.mkdir(parents=True)
    (config / "policy.toml").write_text(
        'never = "reject"\n[[rule]]\nargs = ["touch", "*"]\naction = "auto"\n[[rule]]\nargs = ["rm", "**"]\naction = "never"\n'
    )
    fake.play(
        [
            Turn(
                text="Both.",
                calls=(bash("touch here", name="toolu_A"), bash("rm -rf home", name="toolu_B")),
            ),
            DONE,
        ]
    )
    fake.run(expect=0)
    assert (fake.work / "here").exists()
    assert fake.calls() == {"toolu_A": "done", "toolu_B": "rejected"}


# Part 2, row 26
def test_without_the_flag_calls_run_and_only_the_forbidden_is_turned_down(fake: Fake) -> None:
    fake.play([ONE, DONE])
    fake.shell.adjourn("run", "--runner", "claude", "--no-pause-on-approval", "do it")
    assert fake.lines() == ["A"]


def test_an_edited_call_runs_as_the_person_wrote_it_and_the_model_is_told(fake: Fake) -> None:
    fake.play([ONE, DONE])
    fake.run()
    ask = fake.asks()[0]["id"]
    editor = fake.shell.script('sed -i "s/echo A/echo edited/" "$1"', name="editor.sh")
    fake.shell.adjourn(
        "approve", ask, "--edit", env={"EDITOR": str(fake.work / editor), "VISUAL": ""}
    )
    fake.resume()
    assert fake.lines() == ["edited"]


@pytest.mark.parametrize("says", ["edited", "B"], ids=["as it was told", "as it was at first"])
def test_a_held_call_that_a_person_changed_is_not_asked_for_again(fake: Fake, says: str) -> None:
    """The model is told to make it again as the person wrote it, and may still make it as it did at first."""
    again = Turn(text="Again.", calls=(bash(f"echo {says} >> made.txt", name="toolu_B2"),))
    fake.play([Turn(text="Two.", calls=made("A", "B")), again, DONE])
    fake.run()
    asks = {ask["tool_call_id"]: ask["id"] for ask in fake.asks()}
    fake.shell.adjourn("approve", asks["toolu_A"])
    fake.shell.adjourn("approve", asks["toolu_B"], "--set", "command=echo edited >> made.txt")
    fake.resume()
    assert fake.lines() == ["A", "edited"]
    assert fake.calls() == {"toolu_A": "done", "toolu_B": "done"}


def test_an_approval_of_a_call_outlasts_a_pause_at_which_another_that_is_the_same_waits_as_well(
    fake: Fake,
) -> None:
    """The model makes them again one by one, and stops at something new in between."""
    same = [made("A", again=f"{number}")[0] for number in range(5)]
    (new,) = made("B")
    turns = [
        Turn(text="Thrice.", calls=tuple(same[:3])),
        Turn(text="And B.", calls=(same[3], new)),
        Turn(calls=(same[4],)),
        DONE,
    ]
    fake.play(turns)
    fake.run()
    fake.approve_all()
    fake.resume(expect=10)
    assert [ask["tool_call_id"] for ask in fake.asks()] == ["toolu_B"]
    fake.approve_all()
    fake.resume()
    assert sorted(fake.lines()) == ["A", "A", "B"]
    assert not fake.asks()


def test_of_calls_that_are_the_same_each_is_made_that_was_approved(fake: Fake) -> None:
    thrice = [made("A", again=f"{number}")[0] for number in range(5)]
    fake.play(
        [
            Turn(text="Thrice.", calls=tuple(thrice[:3])),
            Turn(text="Again.", calls=tuple(thrice[3:])),
            DONE,
        ]
    )
    fake.run()
    fake.approve_all()
    fake.resume()
    assert fake.lines() == ["A", "A", "A"]
    assert fake.calls() == dict.fromkeys(("toolu_A0", "toolu_A1", "toolu_A2"), "done")


def test_a_call_inside_a_subagent_is_denied_and_nobody_is_asked(fake: Fake) -> None:  # trap 3
    fake.play(
        [
            Turn(
                text="Sub.",
                calls=(
                    ToolUse(
                        name="Bash", id="toolu_S", arguments={"command": "echo sub >> made.txt"}
                    ),
                ),
            ),
            DONE,
        ]
    )
    text = fake._script.read_text().replace('"id":"toolu_S"', '"id":"toolu_S","agent_id":"a1"')
    fake._script.write_text(text)
    fake.run(expect=0)
    assert fake.lines() == []
    assert fake.asks() == []


# --- what goes wrong ------------------------------------------------------------------------------


def test_a_session_without_its_marker_is_resumed_by_words_and_the_approval_still_counts_once(
    fake: Fake,
) -> None:
    fake.play([ONE, Turn(text="Again.", calls=made("A", again="2")), DONE])
    fake.run()
    fake.approve_all()
    fake.faults("no marker")
    assert "Error" not in fake.resume().err
    assert fake.lines() == ["A"]
    assert fake.argv()[-1][-1].startswith("A person has decided")


# D-R18, D-R25, D-R53, D-R54
def test_a_session_that_is_gone_is_an_error_that_names_all_there_is_to_know(fake: Fake) -> None:
    fake.play([ONE, DONE])
    fake.run()
    fake.approve_all()
    fake.faults("no session")
    fake.resume(expect=1)
    run = fake.shell.runs(fake.task)[-1]
    said = fake.shell.json("show", fake.task)["error"]["message"]
    for part in (
        fake.task,
        run["run_id"],
        "claude",
        run["provider_session_ref"],
        "No conversation found",
        f"adjourn restart {fake.task}",
    ):
        assert part in said
    assert fake.lines() == []
    assert len(fake.argv()) == 3  # by its id, by the copy, and nothing else


def _commits(fake: Fake, commit: str) -> None:
    """Have the workspace be at a commit."""
    heads = fake.work / ".git" / "refs" / "heads"
    heads.mkdir(parents=True, exist_ok=True)
    (fake.work / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (heads / "main").write_text(commit * 40 + "\n")


# D-R53
def test_a_program_that_is_missing_or_too_old_is_refused_before_anything_changes(
    fake: Fake,
) -> None:
    """And `show` says so, in words and in JSON, together with how far the workspace has moved meanwhile."""
    _commits(fake, "a")
    fake.play([ONE, DONE])
    fake.run()
    fake.approve_all()
    task, program = fake.task, fake.shell.environment["ADJOURN_CLAUDE"]
    os.rename(program, f"{program}.gone")
    missing = fake.resume(expect=6)
    os.rename(f"{program}.gone", program)
    fake.shell.environment["FAKE_VERSION"] = "2.1.80"
    old = fake.resume(expect=6)
    assert "cannot be started" in missing.err
    assert "2.1.89 or newer" in old.err
    for refused in (missing, old):
        assert f"adjourn restart {task}" in refused.err
    os.rename(program, f"{program}.gone")
    assert "it cannot be resumed" in fake.shell.adjourn("show", task).out
    found = fake.shell.json("show", task)["resumability"]
    assert (found["can_be_resumed"], found["way_out"]) == (False, f"adjourn restart {task}")
    assert [look["thing"] for look in found["looks"] if not look["fine"]] == ["program"]
    os.rename(f"{program}.gone", program)
    fake.shell.environment["FAKE_VERSION"] = "2.2.0"
    _commits(fake, "b")
    shown = fake.shell.adjourn("show", task).out
    assert "it can be resumed" in shown
    assert "it was 2.1.325 when the task left" in shown
    assert (
        f"commit     {'b' * 12} (refs/heads/main); it was {'a' * 12} (refs/heads/main) when the task left"
        in shown
    )
    fake.resume()
    assert fake.lines() == ["A"]


@pytest.mark.one_machine("its store lies in the workspace, and is kept while that goes")
# D-R19, D-R27
def test_a_task_whose_workspace_is_gone_cannot_be_resumed(fake: Fake, tmp_path: Path) -> None:
    fake.play([ONE, DONE])
    fake.run()
    fake.approve_all()
    task = fake.task
    shutil.move(fake.shell.store, tmp_path / "kept")  # a copy would have to be adopted
    shutil.move(fake.work, tmp_path / "gone")
    refused = fake.shell.adjourn(
        "resume", "--store", str(tmp_path / "kept"), task, cwd=tmp_path, expect=6
    )
    assert f"adjourn restart {task}" in refused.err
    fake.work.mkdir()


@pytest.mark.parametrize(
    "ref",
    ["--continue", "01a2b3c4-5d8a-7a57-9c37-3f4f0a3e7b10"],
    ids=["an option", "another provider's"],
)
# D-R19, D-R20, D-R24, D-R53
def test_a_ref_that_is_not_the_sessions_own_is_never_passed_on(fake: Fake, ref: str) -> None:
    fake.play([ONE, DONE])
    fake.run()
    fake.approve_all()
    store = fake.shell.open_store()
    with store.change() as rows:
        run = rows.run(fake.task, 1)
        rows.save_run(run, msgspec.structs.replace(run, session_ref=ref, version=run.version + 1))
    store.close()
    refused = fake.resume(expect=6)
    for part in (fake.task, "claude", f"session {ref}", f"adjourn restart {fake.task}"):
        assert part in refused.err
    assert len(fake.argv()) == 1
    assert fake.lines() == []


def test_a_new_task_with_no_program_or_too_old_a_one_fails_with_a_sentence(fake: Fake) -> None:
    done = fake.run(expect=1, options=("--option", "program=/nonexistent/claude"))
    assert (
        "/nonexistent/claude cannot be started: it is not there; npm install" in done.out + done.err
    )
    assert "--option program=PATH" in done.out
    fake.shell.environment["FAKE_VERSION"] = "2.1.88"
    assert "2.1.88 (Claude Code); it must be Claude Code 2.1.89 or newer" in fake.run(expect=1).out
    assert fake.argv() == []
    fake.shell.environment["FAKE_VERSION"] = "2.1.89"
    fake.play([DONE])
    fake.run(expect=0)


@pytest.mark.parametrize("words", ["--continue", "--dangerously-skip-permissions"])
# D-R23
def test_arguments_that_would_take_the_gate_away_are_refused(fake: Fake, words: str) -> None:
    refused = fake.run(expect=2, options=("--option", f"arguments={words}"))
    assert "adjourn holds its gate" in refused.err
    assert fake.argv() == []


def test_extra_arguments_and_the_model_are_said_again_on_every_resume(fake: Fake) -> None:
    fake.play([ONE, DONE])
    fake.run(options=("--option", "arguments=--add-dir '/a b'", "--option", "model=opus"))
    fake.approve_all()
    fake.resume()
    for words in fake.argv():
        assert words[1:5] == ["--add-dir", "/a b", "--model", "opus"]


def test_an_outage_of_the_api_pauses_and_a_refusal_before_the_first_answer_fails(
    fake: Fake,
) -> None:
    """A-R22, part 2 row 30: with or without the flag, though Claude Code says success."""
    ungated = ("run", "--runner", "claude", "--no-pause-on-approval", "do it")
    fake.play([Turn(text="x", faults=(Fault(status=401),))])
    assert "api_error (HTTP 401)" in fake.shell.adjourn(*ungated, expect=1).out
    fake.play([Turn(text="x", faults=(Fault(status=500),))])
    done = fake.shell.adjourn(*ungated, expect=10)
    assert "api_error (HTTP 500): overloaded" in done.out
    assert fake.shell.json("show", fake.task)["pause_reason"]["type"] == "unavailable"
    paused = fake.run(expect=10).out
    for said in (paused, fake.shell.adjourn("show", fake.task).out):
        assert said.startswith(
            "It cannot go on for now: Claude Code ended with api_error (HTTP 500): overloaded\nPaused. Resume with"
        )
    assert fake.shell.runs(fake.task)[0]["resumable"] is True


def test_verbose_tells_of_steps_and_calls_as_they_happen(fake: Fake) -> None:
    """A-R32."""
    fake.play([Turn(calls=(bash("echo hi >> made.txt", name="toolu_A"),)), DONE])
    told = fake.run(options=("--verbose",)).err
    assert "adjourn: step 1" in told
    assert "adjourn: call toolu_A waits for a person: Bash: " in told
    fake.approve_all()
    assert "adjourn: call toolu_A is done" in fake.resume("--verbose").err


@pytest.mark.parametrize("victim", ["program", "driver"])
# D-R17
def test_whoever_is_killed_between_two_calls_the_session_goes_on(fake: Fake, victim: str) -> None:
    """Whether somebody is at hand or not: nothing starts again by itself."""
    fake.play([Turn(text="I make it.", calls=made("A"), delay=60.0), DONE])
    process = fake.shell.start("run", "--runner", "claude", "--no-pause-on-approval", "do it")
    until(lambda: bool(fake.session_files()) and fake.is_saved(), what="the session is on disk")
    fake.kill(victim)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 10
    by = {
        "program": "Claude Code ended with signal 9",
        "driver": "the process that drives it was ended by signal 9",
    }
    assert f"It cannot go on for now: {by[victim]}".encode() in out
    (run,) = fake.shell.runs(fake.task)
    assert (run["state"], run["resumable"]) == ("paused", True)
    assert fake.shell.processes() == {}
    fake.play([ONE, DONE])
    fake.resume()
    assert fake.lines() == ["A"]
    assert f"--resume={run['provider_session_ref']}" in fake.argv()[-1]


def test_a_call_that_a_killed_session_had_not_written_down_is_told_to_it(fake: Fake) -> None:
    """Else the model would make it again, and where nobody is asked it would run twice."""
    fake.faults("writes late")
    fake.play([ONE, Turn(text="Slow.", delay=60.0)])
    process = fake.shell.start("run", "--runner", "claude", "--no-pause-on-approval", "do it")
    until(
        lambda: fake.newest is not None and fake.calls() == {"toolu_A": "done"},
        what="the call was made",
    )
    fake.kill("driver")
    process.communicate(timeout=30)
    assert process.returncode == 10
    fake.faults("")
    fake.play([DONE])
    fake.resume()
    told = fake.argv()[-1][-1]
    assert told.startswith("You were paused")
    assert "You have made these calls already" in told
    assert "(toolu_A): it succeeded" in told


# Trap 6
def test_a_call_whose_session_died_is_uncertain_and_denied_when_asked_again(fake: Fake) -> None:
    fake.play(
        [Turn(text="Slow.", calls=(bash("echo began >> made.txt; sleep 9", name="toolu_A"),)), DONE]
    )
    fake.run()
    fake.approve_all()
    fake.faults("dies at a tool")
    fake.resume(expect=10)
    assert fake.shell.processes() == {}
    assert fake.calls() == {"toolu_A": "uncertain"}
    fake.faults("")
    fake.shell.adjourn("settle", fake.asks()[0]["id"], "it-did-not")
    fake.resume()
    assert fake.lines() == ["began"]


def test_of_several_results_the_last_counts_and_a_deferral_before_all(fake: Fake) -> None:
    fake.faults("tells of several turns")
    fake.play([ONE, DONE])
    fake.run()
    fake.approve_all()
    assert fake.resume().out.endswith(f"{DONE.text}\n")
    assert fake.lines() == ["A"]


def test_a_result_that_nobody_tells_leaves_the_call_uncertain(fake: Fake) -> None:
    fake.play([ONE, DONE])
    fake.run()
    fake.approve_all()
    fake.faults("tells no result")
    fake.resume(expect=10)
    assert fake.calls() == {"toolu_A": "uncertain"}


def test_a_program_that_lingers_at_a_deferral_is_told_to_leave(fake: Fake) -> None:  # trap 4
    fake.faults("stays")
    fake.play([ONE, DONE])
    began = time.monotonic()
    fake.run()
    assert time.monotonic() - began < 30
    assert fake.shell.processes() == {}


@pytest.mark.parametrize("fault", ["", "ignores the signal"])
# D-R10 to D-R13, D-R58, D-R59
def test_an_interrupt_pauses_whatever_the_program_does_about_it(fake: Fake, fault: str) -> None:
    fake.faults(fault)
    fake.play([Turn(text="Slow.", delay=60.0)])
    process = fake.shell.start(*GATED, "--grace", "2", "do it")
    until(lambda: bool(fake.session_files()), what="the session is on disk")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 10
    assert f"Paused. Resume with: adjourn resume {fake.task}".encode() in out
    assert f"Restart with: adjourn restart {fake.task}".encode() in out
    assert fake.shell.processes() == {}
    run = fake.shell.runs(fake.task)[0]
    assert (run["state"], run["pause_reason"], run["resumable"]) == (
        "paused",
        "user_interrupt",
        True,
    )
    fake.faults("")
    fake.play([Turn(text="Done.")])
    fake.resume()
    assert fake.argv()[-1][-1].startswith("You were paused")


# D-R8, D-R18, D-R47, D-R64
def test_an_interrupt_before_there_is_a_session_can_only_be_restarted(fake: Fake) -> None:
    program = fake.shell.script(
        '[ "$1" = --version ] && echo "2.1.325 (Claude Code)" || sleep 60', name="slow"
    )
    process = fake.shell.start(*GATED, "--option", f"program={fake.work / program}", "do it")
    until(lambda: bool(fake.shell.json("tasks")["tasks"]), what="there is a task")
    until(lambda: "provider_session_ref" in fake.shell.runs(fake.task)[0], what="it has a session")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 10
    run = fake.shell.runs(fake.task)[0]
    assert (run["state"], run["resumable"]) == ("paused", False)
    refused = fake.resume(expect=6)
    for part in (
        fake.task,
        run["run_id"],
        "claude",
        run["provider_session_ref"],
        f"adjourn restart {fake.task}",
    ):
        assert part in refused.err


def test_a_call_whose_files_changed_since_it_was_approved_is_asked_about_again(fake: Fake) -> None:
    fake.shell.script("echo approved >> made.txt", name="tool.sh")
    fake.play([Turn(text="I run it.", calls=(bash("./tool.sh", name="toolu_A"),)), DONE])
    fake.run()
    fake.approve_all()
    fake.shell.script("echo other >> made.txt", name="tool.sh")
    fake.resume(expect=10)
    assert fake.lines() == []
    assert len(fake.asks()) == 1
    fake.approve_all()
    fake.resume()
    assert fake.lines() == ["other"]


def test_a_call_that_another_tool_would_make_than_was_approved_is_asked_about(fake: Fake) -> None:
    """Whoever writes into the session's file can put another one into its place.

    Other arguments are not taken anyway.
    """
    fake.play([ONE, DONE])
    fake.run()
    fake.approve_all()
    (file,) = fake.session_files()
    file.write_text(
        file.read_text().replace('"name":"Bash"', '"name":"Else"').replace("echo A", "echo B")
    )
    fake.resume(expect=10)
    assert fake.lines() == []
    assert "Else" in fake.shown()
    assert len(fake.asks()) == 1


def test_a_pause_while_asks_are_open_asks_again_on_resume(fake: Fake) -> None:
    fake.play([ONE, DONE])
    fake.run()
    fake.shell.adjourn("pause", fake.task, expect=None)
    done = fake.resume(expect=10)
    assert len(fake.asks()) == 1
    assert "Traceback" not in done.err
    fake.approve_all()
    fake.resume()
    assert fake.lines() == ["A"]


# Trap 8
def test_a_program_that_runs_a_call_without_asking_is_ended_and_the_task_fails(fake: Fake) -> None:
    fake.faults("asks nobody")
    fake.play([ONE, Turn(text="Slow.", delay=30.0), DONE])
    done = fake.run(expect=1)
    assert "Claude Code ran toolu_A without asking: its hooks are switched off" in done.out
    assert fake.shell.processes() == {}


# Trap 8
def test_a_program_whose_hooks_are_off_is_ended_before_it_can_make_a_call(fake: Fake) -> None:
    fake.faults("asks nobody from the start")
    fake.play([Turn(text=ONE.text, calls=ONE.calls, delay=2.0), DONE])
    done = fake.run(expect=1)
    assert "Claude Code does not ask before it makes a call: its hooks are switched off" in done.out
    assert fake.lines() == []


# Traps 7 and 8
def test_a_call_that_was_rejected_does_not_run_though_hooks_were_switched_off_meanwhile(
    fake: Fake,
) -> None:
    """A session that goes on at a call says how it runs only after that call."""
    fake.play([ONE, DONE])
    fake.run()
    fake.shell.adjourn("reject", fake.asks()[0]["id"])
    fake.faults("asks nobody from the start")
    done = fake.resume(expect=1)
    assert "Claude Code does not ask before it makes a call: its hooks are switched off" in done.out
    assert fake.lines() == []


@pytest.mark.parametrize("fault", ["never stops", "keeps no message"])
def test_a_message_that_never_ends_lets_nothing_through(fake: Fake, fault: str) -> None:
    fake.faults(fault)
    fake.play([ONE, DONE], whole=fault == "keeps no message")
    process = fake.shell.start(*GATED, "do it")
    until(
        lambda: any(" _hook" in words for words in fake.shell.processes().values()),
        what="the hook asks",
    )
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 10
    assert fake.lines() == []
    assert fake.asks() == []


# D-R36, D-R37
def test_a_resume_that_is_stopped_before_it_has_said_anything_can_be_resumed_again(
    fake: Fake,
) -> None:
    fake.play([ONE, DONE])
    fake.run()
    fake.approve_all()
    process = fake.shell.start("resume", fake.task)
    until(
        (fake.shell.store / "runs" / f"{fake.task}.2" / "shim.json").exists, what="the run is there"
    )
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 10
    run = fake.shell.runs(fake.task)[-1]
    assert run["resumable"] is True
    assert run["provider_session_ref"] == fake.shell.runs(fake.task)[0]["provider_session_ref"]
    while fake.resume(expect=None).code == 10:
        fake.approve_all()
    assert fake.lines() == ["A"]


def test_a_worker_goes_on_by_itself_when_a_call_is_approved(fake: Fake) -> None:
    fake.play([ONE, DONE])
    fake.run()
    worker = fake.shell.start("worker")
    fake.approve_all()
    until(
        lambda: fake.shell.state(fake.task) == "succeeded",
        what="the worker has it done",
        seconds=60,
    )
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=60)
    assert fake.lines() == ["A"]


def test_a_run_whose_supervisor_is_killed_goes_on_and_its_asks_are_kept(fake: Fake) -> None:
    fake.play([Turn(text="I make it.", calls=made("A"), delay=2.0), DONE])
    process = fake.shell.start(*GATED, "do it")
    until(lambda: bool(fake.session_files()), what="it works")
    process.kill()
    process.communicate()
    until(lambda: not fake.shell.processes(), what="the driver has left", seconds=60)
    assert [ask["tool_call_id"] for ask in fake.asks()] == ["toolu_A"]
    fake.approve_all()
    fake.resume()
    assert fake.lines() == ["A"]


def test_files_of_the_protocol_that_a_tool_writes_make_the_task_wait(fake: Fake) -> None:
    """B-R31, B-R32, B-R34: exit code 0 with a checkpoint that waits; the prompt has its state."""
    fake.shell.agent("foreign.sh")
    fake.play([Turn(text="I ask.", calls=(bash("./foreign.sh", name="toolu_A"),)), DONE, DONE])
    fake.run(options=("--no-pause-on-approval",))
    shown = fake.shell.json("show", fake.task)
    assert shown["pause_reason"]["questions"][0]["text"] == "Which pattern?"
    fake.resume("one for one")
    prompt = fake.argv()[-1][-1]
    assert "## RESUME FROM CLARIFICATION\n" in prompt
    assert '"Session log analysis"' in prompt
    assert "- Q1 (Which pattern?): one for one" in prompt
    assert "Files created: file-watcher.spec.md, actor.ts" in prompt


def test_files_of_the_protocol_that_cannot_be_read_pause_the_task(fake: Fake) -> None:
    """B-R31: the session is not lost; a person can tell the agent what is wrong."""
    broken = 'mkdir -p "$ADJOURN_STORE/checkpoints"; echo "{" > "$ADJOURN_STORE/checkpoints/$ADJOURN_TASK_ID.checkpoint.json"'
    fake.play([Turn(text="I ask.", calls=(bash(broken, name="toolu_A"),)), DONE, DONE])
    fake.run(options=("--no-pause-on-approval",))
    shown = fake.shell.json("show", fake.task)
    assert (shown["state"], shown["pause_reason"]["type"]) == ("paused", "unavailable")
    assert "resumable" not in shown
    assert "a clarification that cannot be read" in fake.shell.adjourn("show", fake.task).out
