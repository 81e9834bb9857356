"""A worker takes ready tasks and runs them; a decision starts its task at once."""

import os
import signal
import time

import msgspec
import pytest

from tests.e2e.shell import Shell, until
from tests.worker.conftest import StartWorker


def is_in(shell: Shell, task: str, state: str) -> bool:
    return shell.state(task) == state


def queued(shell: Shell, *command: str, options: tuple[str, ...] = ()) -> str:
    """Leave a task to a worker."""
    task: str = shell.json("run", "--detach", *options, "--", *command)["task_id"]
    return task


def test_a_decision_starts_its_task_without_anybody_resuming_it(
    shell: Shell, worker: StartWorker
) -> None:
    """C-R5, C-R8, C-R18, C-R20, C-R21.

    The worker is the one place that resumes, and it is told, not polled.
    """
    worker()
    task = queued(shell, shell.agent("approved.sh"))
    until(lambda: is_in(shell, task, "waiting"), what="it waits")
    said = shell.adjourn("approve", shell.inbox()[0]["id"], "--value", "go").out
    assert f"adjourn wait {task}" in said
    shell.adjourn("wait", task)
    assert shell.lines("effects") == ["done with go"]


def test_what_is_run_in_the_foreground_is_not_taken_by_a_worker(
    shell: Shell, worker: StartWorker
) -> None:
    """Whoever says run, resume or restart supervises it, sees its output and gets its exit code.

    Looped: it is a race.
    """
    worker()
    script = shell.script('[ "$AUTO_APPROVAL" ] || exit 90\necho done')
    for _ in range(10):
        assert shell.adjourn("run", "--", "echo", "ran").out == "ran\n"
        task = shell.json("run", "--", script, expect=10)["task_id"]
        assert shell.adjourn("resume", task, "--approve-all").out == "done\n"
        shell.adjourn("restart", task, expect=10)
        shell.adjourn("cancel", task)
    assert all(
        len(shell.runs(each["task_id"])) in {1, 3}
        for each in shell.json("tasks", "--limit", "1000")["tasks"]
    )


def test_a_script_under_a_worker_runs_tasks_of_its_own(shell: Shell, worker: StartWorker) -> None:
    """They are its own to run: the worker that runs the script does not take them from it."""
    worker()
    script = shell.script(
        'for n in 1 2 3; do adjourn run -- echo "child $n" >> heard || exit $?; done'
    )
    for _ in range(3):
        shell.adjourn("wait", queued(shell, script))
    assert shell.lines("heard") == ["child 1", "child 2", "child 3"] * 3


def test_a_foreground_run_that_is_answered_as_it_leaves_goes_on_whoever_is_faster(
    shell: Shell, worker: StartWorker
) -> None:
    worker()
    script = shell.script(
        "adjourn ask Which? || { until [ -e leave ]; do sleep 0.01; done; exit 10; }"
    )
    for _ in range(5):
        running = shell.start("run", "--", script)
        until(lambda: bool(shell.inbox()), what="it asks")
        shell.adjourn("answer", shell.inbox()[0]["id"], "this")
        (shell.place / "leave").touch()
        running.communicate(timeout=20)
        assert running.returncode == 0
        (shell.place / "leave").unlink()
    assert {each["state"] for each in shell.json("tasks")["tasks"]} == {"succeeded"}


def test_a_rejection_fails_the_task_with_an_event(shell: Shell, worker: StartWorker) -> None:
    """C-R10, C-R11: nothing is started again."""
    worker()
    task = queued(shell, shell.agent("approved.sh"))
    until(lambda: is_in(shell, task, "waiting"), what="it waits")
    shell.adjourn("reject", shell.inbox()[0]["id"], "--reason", "not today")
    assert is_in(shell, task, "failed")
    assert "task refused" in shell.adjourn("show", task).out
    assert len(shell.lines("starts")) == 1


def test_an_ask_that_expires_is_rejected(shell: Shell, worker: StartWorker) -> None:
    """C-R3, C-R10: no expiry unless asked for; expired is rejected, never approved."""
    worker()
    task = queued(shell, shell.agent("approved.sh"), options=("--expires-after", "1s"))
    until(lambda: is_in(shell, task, "failed"), what="it expired")
    assert "nobody settled it in time" in shell.adjourn("show", task).out
    assert shell.inbox() == []
    assert shell.lines("effects") == []


def test_no_more_run_at_a_time_than_it_was_told(shell: Shell, worker: StartWorker) -> None:
    worker("--max-active", "2")
    script = shell.script("echo + >> level; sleep 0.3; echo - >> level")
    tasks = [queued(shell, script) for _ in range(6)]
    shell.adjourn("wait", *tasks)
    level, highest = 0, 0
    for sign in shell.lines("level"):
        level += 1 if sign == "+" else -1
        highest = max(highest, level)
    assert highest <= 2


def test_a_worker_takes_only_tasks_of_its_pool(shell: Shell, worker: StartWorker) -> None:
    worker("--pool", "gpu")
    other = shell.json("run", "--detach", "--pool", "gpu", "--", "true")["task_id"]
    shell.adjourn("wait", other)
    assert [row["pool"] for row in shell.json("worker", "--status")["workers"]] == ["gpu"]


def test_once_runs_what_is_ready_and_leaves(shell: Shell) -> None:
    task = shell.paused(shell.agent("approved.sh"))["task_id"]
    shell.adjourn("approve", shell.inbox()[0]["id"])
    shell.adjourn("worker", "--once")
    assert is_in(shell, task, "succeeded")
    shell.adjourn("worker", "--once")


def test_told_to_stop_it_pauses_what_runs_and_starts_nothing_else(
    shell: Shell, worker: StartWorker
) -> None:
    process = worker("--max-active", "1")
    first = queued(shell, shell.script("echo on >> started; sleep 60"))
    until(lambda: shell.lines("started") == ["on"], what="it runs")
    second = queued(shell, "true")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 0
    assert [shell.state(task) for task in (first, second)] == ["paused", "queued"]


def test_told_to_stop_it_lets_what_runs_finish_if_it_is_configured_so(
    shell: Shell, worker: StartWorker
) -> None:
    shell.adjourn("tasks")
    shell.json("run", "--", "true")
    (shell.store / "supervision.yaml").write_text("drain: finish\ngrace: 20\n")
    process = worker()
    task = queued(shell, shell.script("echo on >> started; sleep 1; echo end >> started"))
    until(lambda: shell.lines("started") == ["on"], what="it runs")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 0
    assert is_in(shell, task, "succeeded")


def test_a_run_of_a_dead_worker_is_adopted_and_not_started_again(
    shell: Shell, worker: StartWorker
) -> None:
    process = worker()
    task = queued(
        shell,
        shell.script(
            "echo on >> started; until [ -e enough ]; do sleep 0.05; done; echo end >> started"
        ),
    )
    until(lambda: shell.lines("started") == ["on"], what="it runs")
    process.kill()
    process.wait()
    worker()
    until(lambda: "run adopted" in shell.adjourn("show", task).out, what="it is adopted")
    (shell.place / "enough").touch()
    shell.adjourn("wait", task)
    assert is_in(shell, task, "succeeded")
    assert shell.lines("started") == ["on", "end"]


def test_a_run_whose_worker_and_shim_died_asks_a_person(shell: Shell, worker: StartWorker) -> None:
    process = worker()
    task = queued(shell, shell.script("echo on >> started; sleep 60"))
    until(lambda: shell.lines("started") == ["on"], what="it runs")
    process.kill()
    process.wait()
    os.kill(shell.shim(f"{task}.1"), signal.SIGKILL)
    worker()
    until(lambda: is_in(shell, task, "waiting"), what="it is uncertain")
    assert [ask["kind"] for ask in shell.inbox()] == ["uncertain"]
    assert shell.lines("started") == ["on"]


def test_a_worker_that_is_stopped_for_a_while_keeps_its_runs(
    shell: Shell, worker: StartWorker
) -> None:
    first, task = (
        worker(),
        queued(shell, shell.script("echo on >> started; sleep 1; echo end >> started")),
    )
    until(lambda: shell.lines("started") == ["on"], what="it runs")
    first.send_signal(signal.SIGSTOP)
    worker()
    time.sleep(2)
    assert is_in(shell, task, "running")
    first.send_signal(signal.SIGCONT)
    shell.adjourn("wait", task)
    assert shell.lines("started") == ["on", "end"]


def test_a_start_that_does_not_happen_is_tried_three_times(
    shell: Shell, worker: StartWorker
) -> None:
    """C-R12: then the task has failed; nothing was started."""
    shell.json("run", "--", "true")
    runs = shell.store / "runs"
    runs.rename(shell.store / "aside")
    runs.write_text("in the way")
    worker()
    task = queued(shell, "true")
    until(lambda: is_in(shell, task, "failed"), what="it was given up")
    assert "could not be started in 3 tries" in shell.adjourn("show", task).out
    assert len(shell.runs(task)) == 3


@pytest.mark.one_machine("on a shared store it is left to machines that have the workspace")
def test_a_task_whose_workspace_is_gone_fails_at_once_and_names_restart(
    shell: Shell, worker: StartWorker
) -> None:
    place = shell.place / "project"
    place.mkdir()
    task = shell.json("run", "--store", str(shell.store), "--", "sh", "-c", "exit 90", expect=10)[
        "task_id"
    ]
    moved = shell.run(
        "sh",
        "-c",
        f"cd project && adjourn run --store {shell.store} --output json -- sh -c 'exit 90'",
        expect=10,
    ).doc
    shell.adjourn("approve", *(ask["id"] for ask in shell.inbox()))
    place.rename(shell.place / "elsewhere")
    worker()
    until(lambda: is_in(shell, moved["task_id"], "failed"), what="it was given up")
    assert f"adjourn restart {moved['task_id']}" in shell.adjourn("show", moved["task_id"]).out
    until(
        lambda: is_in(shell, task, "failed"),
        what="the other one ran: it does not read AUTO_APPROVAL",
    )


def test_pause_and_cancel_reach_a_run_of_a_worker(shell: Shell, worker: StartWorker) -> None:
    worker()
    tasks = [queued(shell, "sleep", "60") for _ in range(2)]
    until(lambda: all(is_in(shell, task, "running") for task in tasks), what="both run")
    shell.adjourn("pause", tasks[0])
    shell.adjourn("cancel", tasks[1])
    assert [shell.state(task) for task in tasks] == ["paused", "canceled"]


def test_a_wish_to_pause_outlives_a_process_that_leaves_by_itself(
    shell: Shell, worker: StartWorker
) -> None:
    """D-R6, D-R7: its answer is there, so a worker could go on; but somebody said pause.

    Looped: it is a race.
    """
    process, task = worker(), ""
    script = shell.script(
        "adjourn ask Which? && { echo again >> starts; exit; }; until [ -e leave ]; do sleep 0.01; done; exit 10"
    )
    for _ in range(5):
        task = queued(shell, script)
        until(lambda: bool(shell.inbox()), what="it asks")
        shell.adjourn("answer", shell.inbox()[0]["id"], "this")
        process.send_signal(signal.SIGSTOP)
        (shell.place / "leave").touch()
        until(
            (shell.store / "runs" / f"{task}.1" / "result.json").exists, what="its process has left"
        )
        pausing = shell.start("pause", task)
        until(
            lambda: "pause requested" in shell.adjourn("show", task).out,  # noqa: B023 -- it is called before the next round
            what="the wish is there",
        )
        process.send_signal(signal.SIGCONT)
        pausing.communicate(timeout=20)
        assert (pausing.returncode, shell.state(task)) == (0, "paused")
        (shell.place / "leave").unlink()
    assert shell.lines("starts") == []
    shell.adjourn("resume", task)
    assert shell.lines("starts") == ["again"], "it goes on when a person says so"


def test_a_pause_under_a_worker_leaves_its_manifest(shell: Shell, worker: StartWorker) -> None:
    """A-R33, A-R34: whoever supervises."""
    worker()
    task = queued(shell, shell.agent("approved.sh"))
    until(lambda: is_in(shell, task, "waiting"), what="it waits")
    manifest = shell.store / "session" / task / "pause.json"
    until(manifest.exists, what="the manifest is there")
    assert msgspec.json.decode(manifest.read_bytes())["task_id"] == task


NONSENSE = {
    "max_actve: 3": "max_actve",
    "max_active: many": "max_active",
    "max_active: 0": "max_active",
    "poll_interval: -1": "poll_interval",
    "drain: sometimes": "drain",
    "poll_interval: 0": "poll_interval",
    "poll_interval: .nan": "poll_interval",
    "linger: soon": "linger",
    "linger: 2d": "linger",
    "linger: [60]": "linger",
    "grace:": "grace",
    "retries: 0": "retries",
    "maximum: 3\nlingers: 60": "unknown: maximum, lingers",
    "grace: 3\ngrace: 4": "grace is there twice",
    "grace: !!python/object/apply:os.system [true]": "tag",
    "grace: &a [*a]": "anchor",
    "[" * 5000: "",
    "- a list": "mapping",
    "a: b: c": "",
    "\x00": "",
    "grace: 1 # " + 70_000 * "x": "bytes",
}


@pytest.mark.parametrize("text", NONSENSE, ids=lambda text: repr(text[:40]))
def test_nonsense_in_supervision_yaml_is_an_error_that_names_it(shell: Shell, text: str) -> None:
    """C-R6: the poll interval is configurable there; what is not known is refused."""
    shell.json("run", "--", "true")
    (shell.store / "supervision.yaml").write_text(text)
    said = shell.adjourn("worker", "--once", expect=2).err
    assert "supervision.yaml" in said
    assert NONSENSE[text] in said


def test_a_supervision_yaml_that_is_no_plain_file_is_refused_at_once(shell: Shell) -> None:
    shell.json("run", "--", "true")
    os.mkfifo(shell.store / "supervision.yaml")
    assert "not a plain file" in shell.adjourn("worker", "--once", expect=2).err


def test_logs_are_json_on_request(shell: Shell) -> None:
    shell.json("run", "--", "true")
    lines = shell.adjourn("worker", "--once", "--log-format", "json").err.splitlines()
    assert [msgspec.json.decode(line)["event"] for line in lines] == [
        "worker_started",
        "worker_stopped",
    ]


@pytest.mark.one_machine("it takes the directory of the store away")
def test_a_worker_whose_store_is_taken_away_says_so_and_leaves(
    shell: Shell, worker: StartWorker
) -> None:
    """It would go on with a database that nobody else sees, and start nothing of what is decided from then on."""
    shell.json("run", "--", "true")
    (shell.store / "supervision.yaml").write_text("poll_interval: 0.2\n")
    process = worker()
    until(lambda: bool(os.listdir(shell.store / "wake")), what="it listens")
    shell.store.rename(shell.place / "aside")
    assert process.wait(timeout=20) == 1
    assert "was removed or replaced" in (shell.place / "worker-0.log").read_text()


def test_inside_a_run_no_worker_is_started(shell: Shell) -> None:
    """It would end with the run, and leave what it runs uncertain."""
    failed = shell.adjourn("run", "--", "sh", "-c", "adjourn worker --once; test $? = 5")
    assert "a worker inside a run would end with that run" in failed.err


def test_why_a_task_failed_is_in_the_log(shell: Shell) -> None:
    shell.paused("sh", "-c", "[ $AUTO_APPROVAL ] && exit 3; exit 90")
    shell.adjourn("approve", shell.inbox()[0]["id"])
    assert "state=failed why=exit code 3" in shell.adjourn("worker", "--once").err


def test_nobody_is_there_is_said(shell: Shell) -> None:
    assert "No worker is alive" in shell.adjourn("worker", "--status").out


def test_a_pause_beside_a_worker_says_that_it_goes_on_by_itself(
    shell: Shell, worker: StartWorker
) -> None:
    worker()
    asks = shell.script("adjourn ask --key region 'Which region?'")
    paused = shell.adjourn("run", "--", asks, expect=10).out.rstrip().split("\n")
    assert paused[-1] == "Then:         a worker goes on with it, by itself"
    assert paused[-2].startswith("Answer with:  adjourn answer ")
    assert "--resume" not in paused[-2]
    assert "a worker goes on with it" in shell.adjourn("show", shell.inbox()[0]["task_id"]).out
