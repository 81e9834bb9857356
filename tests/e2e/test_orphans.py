"""What becomes of a run whose supervisor, or whose shim, was killed."""

import json
import os
import re
import signal
import time

import pytest

from tests.e2e.shell import Document, Shell, until

WORKS_UNTIL_TOLD = "touch ready; until [ -e go ]; do sleep 0.05; done; echo finished"


def orphan(shell: Shell, *command: str, options: tuple[str, ...] = ()) -> str:
    """Run a command, kill its supervisor, and return the task's id."""
    task = shell.detached(*command, options=options)
    until((shell.place / "ready").exists, what="the command works")
    os.kill(shell.supervisor(f"{task}.1"), signal.SIGKILL)
    return task


def lost(shell: Shell) -> Document:
    """Run a command, kill its shim, and return how its task stands."""
    task = shell.detached(
        "sh", "-c", "echo start >> starts; touch ready; [ -e again ] || sleep 300"
    )
    until((shell.place / "ready").exists, what="the command works")
    os.kill(shell.shim(f"{task}.1"), signal.SIGKILL)
    found: Document = shell.json("wait", task, "--timeout", "20", expect=10)["tasks"][0]
    return found


def test_the_work_goes_on_and_wait_sees_it_end(shell: Shell) -> None:
    """The supervisor's death never makes a call uncertain.

    The shim finishes, and the next command reads its result.
    """
    task = orphan(shell, "sh", "-c", WORKS_UNTIL_TOLD)
    assert shell.state(task) == "running"
    (shell.place / "go").touch()
    (done,) = shell.json("wait", task, "--timeout", "20")["tasks"]
    assert (done["outcome"], done["final_message"]) == ("completed", "finished")


def test_a_pause_of_an_orphan_is_found_by_the_next_command(shell: Shell) -> None:
    """A-R34: any command settles it, and its manifest is in the files as well."""
    task = orphan(shell, "sh", "-c", "touch ready; sleep 0.3; exit 10")
    until((shell.store / "runs" / f"{task}.1" / "result.json").exists, what="it left")
    (ask,) = shell.inbox()
    assert ask["task_id"] == task
    manifest = json.loads((shell.store / "session" / task / "pause.json").read_text())
    assert manifest == json.loads((shell.store / "session" / "pause.json").read_text())
    assert shell.json("show", task).items() >= manifest.items()


def test_logs_follow_an_orphan_to_its_end(shell: Shell) -> None:
    task = orphan(shell, "sh", "-c", "echo first; touch ready; sleep 1; echo last")
    assert shell.adjourn("logs", "-f", task).out == "first\nlast\n"
    assert shell.state(task) == "succeeded"


@pytest.mark.parametrize(("verb", "state"), [("cancel", "canceled"), ("pause", "paused")])
def test_an_orphan_can_be_stopped(shell: Shell, verb: str, state: str) -> None:
    """D-R10: with exactly one interrupt, as if it had a supervisor."""
    task = orphan(shell, shell.agent("interrupts.py"))
    shell.adjourn(verb, task)
    assert shell.state(task) == state
    assert shell.lines("interrupts") == ["SIGINT"]
    assert shell.processes() == {}


def test_a_stubborn_orphan_is_killed_after_its_grace(shell: Shell) -> None:
    """D-R12."""
    task = orphan(shell, shell.agent("interrupts.py"), "stubborn", options=("--grace", "0.4"))
    shell.adjourn("cancel", task)
    assert shell.state(task) == "canceled"
    assert shell.processes() == {}


def test_orphans_do_not_slow_other_commands_down(shell: Shell) -> None:
    """A look at each of them for 0.3 s would be seen on the slowest machine."""
    tasks = [orphan(shell, "sh", "-c", "touch ready; sleep 300") for _ in range(5)]
    time.sleep(2.2)  # a young one may be about to say that it never started
    with_orphans = min(_seconds(shell, "tasks") for _ in range(3))
    for task in tasks:
        shell.adjourn("cancel", task)
    assert with_orphans < min(_seconds(shell, "tasks") for _ in range(3)) + 1


def _seconds(shell: Shell, verb: str) -> float:
    began = time.monotonic()
    shell.adjourn(verb)
    return time.monotonic() - began


def test_a_foreground_run_that_is_killed_leaves_its_work_to_the_next_command(shell: Shell) -> None:
    process = shell.start("run", "--", "sh", "-c", WORKS_UNTIL_TOLD)
    until((shell.place / "ready").exists, what="it works")
    process.kill()
    process.communicate()
    (task,) = shell.json("tasks")["tasks"]
    assert task["state"] == "running"
    (shell.place / "go").touch()
    shell.adjourn("wait", task["task_id"], "--timeout", "20")


def test_a_run_that_was_lost_asks_a_person(shell: Shell) -> None:
    """Never success, never again by itself.

    An uncertain call, in the inbox, with nothing of the run left alive.
    """
    manifest = lost(shell)
    (ask,) = manifest["asks"]
    assert (ask["kind"], manifest["state"]) == ("uncertain", "waiting")
    assert shell.processes() == {}
    assert [entry["id"] for entry in shell.inbox()] == [ask["id"]]
    text = shell.adjourn("show", manifest["task_id"]).out
    for verdict in ("it-ran", "it-did-not", "run-again"):  # each is a command to paste
        assert re.search(f": +adjourn settle {manifest['task_id']}.tc_1 {verdict}\n", text)
    assert "it-ran|" not in text  # pasted, that was a pipeline


def test_only_settle_answers_an_uncertain_call(shell: Shell) -> None:
    """Not --approve-all, not a text, not approve, and no restart goes round it."""
    manifest = lost(shell)
    task, ask = manifest["task_id"], manifest["asks"][0]["id"]
    for words in (
        ("resume", task, "--approve-all"),
        ("resume", task, "--reject-all"),
        ("resume", task, "it ran"),
        ("resume", task, "--answer", f"{ask}=it-ran"),
        ("approve", ask),
        ("reject", ask),
        ("answer", ask, "it-ran"),
        ("restart", task),
    ):
        told = shell.adjourn(*words, expect=None)
        assert told.must(told.code).code in {2, 4}, words
    shell.adjourn("resume", task, expect=10)
    assert shell.lines("starts") == ["start"]
    assert shell.inbox()[0]["state"] == "pending"
    shell.adjourn("settle", f"{task}.tc_1", "it-ran")


def test_it_ran_completes_the_task(shell: Shell) -> None:
    task = lost(shell)["task_id"]
    shell.adjourn("settle", f"{task}.tc_1", "it-ran")
    assert shell.state(task) == "succeeded"
    assert shell.lines("starts") == ["start"]
    told = shell.adjourn("settle", f"{task}.tc_1", "run-again", expect=4)
    assert "it-ran" in told.err


def test_it_did_not_leaves_the_task_paused(shell: Shell) -> None:
    """Going on is a person's choice, and then it is a call of its own."""
    task = lost(shell)["task_id"]
    shell.adjourn("settle", f"{task}.tc_1", "it-did-not")
    assert shell.state(task) == "paused"
    assert shell.lines("starts") == ["start"]
    (shell.place / "again").touch()
    shell.adjourn("resume", task)
    assert shell.lines("starts") == ["start", "start"]


def test_run_again_runs_it_again_under_the_same_call_id(shell: Shell) -> None:
    task = lost(shell)["task_id"]
    shell.adjourn("settle", f"{task}.tc_1", "run-again")
    assert shell.state(task) == "queued"
    assert shell.lines("starts") == ["start"]
    (shell.place / "again").touch()
    shell.adjourn("resume", task)
    assert shell.lines("starts") == ["start", "start"]
    assert shell.state(task) == "succeeded"
    assert shell.adjourn("show", "--full", task).out.count("tc_1") == 1


def test_an_uncertain_call_can_be_named_by_its_ask(shell: Shell) -> None:
    """The inbox shows the ask; nobody should have to look up the call."""
    manifest = lost(shell)
    shell.adjourn("settle", manifest["asks"][0]["id"], "it-ran")
    assert shell.state(manifest["task_id"]) == "succeeded"


@pytest.mark.parametrize(
    "call",
    [
        "nobody.tc_1",
        "../../x",
        "",
        "--help",
        "-",
        "{task}.tc_",
        "{task}.tc_99",
        "{task}.tc_²",
    ],
)
def test_settle_refuses_what_is_no_uncertain_call(shell: Shell, call: str) -> None:
    task = shell.paused(shell.agent("approved.sh"))["task_id"]
    told = shell.adjourn("settle", "it-ran", expect=2)
    told = shell.adjourn("settle", "--", call.format(task=task), "it-ran", expect=3)
    assert "try:" in told.err
    # A task stands for its only open ask, which is about something else
    for other in (task, f"{task}.tc_1"):
        shell.adjourn("settle", other, "it-ran", expect=4)
