"""`adjourn execute`, through the real program.

Order, failures, waits, changes, and one at a time.
"""

import os
import signal

import pytest

from tests.e2e.shell import until
from tests.e2e.terminal import Terminal
from tests.plans.planner import Planner, noted

SLEEPS = "touch asleep; while [ ! -e go ]; do sleep 0.02; done"


def test_tasks_run_one_after_the_other_each_after_what_it_needs(shell: Planner) -> None:
    """D-R48, D-R51: in the order of the file where nothing else is said.

    And again nothing is left to do.
    """
    watch = "mkdir alone && sleep 0.1 && rmdir alone && echo {} >> effects"
    names = {"ship": ["test", "build"], "test": ["build"], "build": [], "docs": []}
    shell.plan(
        *({"id": name, "run": watch.format(name), "needs": needs} for name, needs in names.items())
    )
    found = shell.execute()
    assert found["outcome"] == "completed"
    assert shell.effects == ["build", "test", "ship", "docs"]
    again = shell.adjourn("execute")
    assert "Completed: every task of the plan has succeeded." in again.out
    assert len(shell.effects) == 4


def test_a_failed_task_blocks_only_what_needs_it_and_is_not_tried_again(shell: Planner) -> None:
    """D-R30, D-R54: exit code 1; only a restart, by a person, tries it again."""
    shell.plan(
        {"id": "a", "run": "echo a >> effects; test -e better"},
        noted("b", "a"),
        noted("c"),
        noted("d", "b"),
        noted("e", "c"),
    )
    found = shell.execute(expect=1)
    assert found["outcome"] == "failed"
    assert shell.effects == ["a", "c", "e"]
    assert shell.states() == {
        "a": "failed",
        "b": "blocked",
        "c": "succeeded",
        "d": "blocked",
        "e": "succeeded",
    }
    told = shell.adjourn("execute", expect=1).out
    assert f"Restart with: adjourn restart {shell.task('a')}" in told
    assert shell.effects == ["a", "c", "e"]
    (shell.place / "better").touch()
    shell.adjourn("restart", shell.task("a"))
    shell.execute()
    assert shell.effects == ["a", "c", "e", "a", "b", "d"]


def test_a_task_that_waits_holds_up_only_what_needs_it(shell: Planner) -> None:
    """D-R15, D-R61: exit code 10; the approval is given by the usual verb, and execute goes on."""
    shell.agent("approved.sh")
    shell.plan({"id": "a", "command": ["./approved.sh"]}, noted("b", "a"), noted("c"))
    found = shell.execute(expect=10)
    assert found["outcome"] == "paused"
    assert shell.effects == ["c"]
    assert shell.states() == {"a": "waiting", "b": "pending", "c": "succeeded"}
    shell.adjourn("approve", shell.inbox()[0]["id"])
    assert shell.states()["a"] == "queued"
    shell.execute()
    assert shell.states() == {"a": "succeeded", "b": "succeeded", "c": "succeeded"}
    assert shell.effects[-1] == "b"


def test_a_task_that_was_resumed_by_itself_is_not_run_again(shell: Planner) -> None:
    """D-R14: `resume TASK`, then `execute`."""
    shell.agent("approved.sh")
    shell.plan({"id": "a", "command": ["./approved.sh"]}, noted("b", "a"))
    shell.execute(expect=10)
    shell.adjourn("resume", shell.task("a"), "--approve-all")
    before = len(shell.effects)
    shell.execute()
    assert shell.effects[before:] == ["b"]


def test_a_gated_task_waits_before_it_starts(shell: Planner) -> None:
    shell.plan(noted("a", pause_on_approval=True), noted("b", "a"))
    shell.execute(expect=10)
    assert shell.effects == []
    shell.adjourn("approve", shell.inbox()[0]["id"])
    shell.execute()
    assert shell.effects == ["a", "b"]


def test_a_rejected_task_fails_and_blocks(shell: Planner) -> None:
    shell.plan(noted("a", pause_on_approval=True), noted("b", "a"))
    shell.execute(expect=10)
    shell.adjourn("reject", shell.inbox()[0]["id"])
    shell.execute(expect=1)
    assert shell.states() == {"a": "failed", "b": "blocked"}
    assert shell.effects == []


# --- which plan it is -----------------------------------------------------------------------------


def test_a_plan_is_the_same_from_wherever_it_is_executed(shell: Planner) -> None:
    """Its path is what it is known by.

    The store is that of its workspace, and its tasks run there.
    """
    shell.plan(noted("a"))
    (shell.place / "below").mkdir()
    (shell.place / "link.toml").symlink_to("plan.toml")
    shell.execute()
    done = shell.adjourn("execute", "../plan.toml", cwd=shell.place / "below")
    assert "Completed" in done.out
    shell.adjourn("execute", "link.toml")
    shell.adjourn("execute", str(shell.place / "plan.toml"), cwd="/")
    assert not os.path.lexists("/.adjourn")
    assert shell.effects == ["a"]


@pytest.mark.one_machine("a shared store is found from anywhere")
def test_hints_name_the_store_where_another_one_would_be_found(shell: Planner) -> None:
    (shell.place / "other" / ".git").mkdir(parents=True)
    shell.plan({"id": "a", "run": "exit 90"})
    done = shell.adjourn(
        "execute", str(shell.place / "plan.toml"), cwd=shell.place / "other", expect=10
    )
    assert f"--store {shell.store}" in done.out


def test_a_workspace_is_relative_to_the_plan(shell: Planner) -> None:
    """D-R41: and is the absolute repo_root of its runs."""
    (shell.place / "work").mkdir()
    (shell.place / "plans").mkdir()
    shell.plan({"id": "a", "run": "pwd > where"}, name="plans/p.toml", workspace="../work")
    shell.adjourn("execute", "plans/p.toml")
    assert (shell.place / "work" / "where").read_text().strip() == str(shell.place / "work")
    task = shell.adjourn("plan", "show", "plans/p.toml", "--output", "json").doc["tasks"][0][
        "task_id"
    ]
    runs = shell.adjourn("runs", task, "--output", "json", cwd=shell.place / "work").doc["runs"]
    assert runs[0]["repo_root"] == str(shell.place / "work")


def test_a_plan_begins_anew_when_somebody_says_so(shell: Planner) -> None:
    """D-R30, D-R32: the tasks of before stay."""
    shell.plan(noted("a"), noted("b", "a"))
    shell.execute()
    first = shell.task("a")
    shell.execute("--start-over")
    assert shell.effects == ["a", "b", "a", "b"]
    assert shell.task("a") != first
    assert shell.state(first) == "succeeded"


def test_a_plan_does_not_begin_anew_while_a_task_of_it_has_not_ended(shell: Planner) -> None:
    shell.plan({"id": "a", "run": "exit 90"})
    shell.execute(expect=10)
    told = shell.adjourn("execute", "--start-over", expect=4)
    assert f"adjourn cancel {shell.task('a')}" in told.err


# --- a plan that has changed ----------------------------------------------------------------------


def test_other_words_for_what_failed_begin_a_new_task(shell: Planner) -> None:
    """The old one stays as it is."""
    shell.plan({"id": "a", "run": "exit 3"}, noted("b", "a"))
    shell.execute(expect=1)
    old = shell.task("a")
    shell.plan(noted("a"), noted("b", "a"))
    done = shell.adjourn("execute")
    assert "a: restarting, because its definition changed after task" in done.err
    assert shell.effects == ["a", "b"]
    assert shell.state(old) == "failed"
    assert shell.task("a") != old


def test_what_is_done_stays_done_when_its_words_change_and_that_is_said(shell: Planner) -> None:
    shell.plan(noted("a"), noted("b", "a"))
    shell.execute()
    shell.plan({"id": "a", "run": "echo other >> effects"}, noted("b", "a"), noted("c", "b"))
    done = shell.adjourn("execute")
    assert "a is done, and its definition has changed since" in done.err
    assert shell.effects == ["a", "b", "c"]
    assert "its definition has changed since it started" in shell.adjourn("plan", "show").out


def test_what_is_under_way_goes_on_as_it_was_begun(shell: Planner) -> None:
    shell.agent("approved.sh")
    shell.plan({"id": "a", "command": ["./approved.sh"]})
    shell.execute(expect=10)
    shell.plan(noted("a"))
    told = shell.adjourn("execute", expect=10)
    assert f"adjourn cancel {shell.task('a')}" in told.err
    shell.adjourn("cancel", shell.task("a"))
    shell.execute()
    assert shell.effects == ["a"]


def test_new_tasks_and_needs_count_at_once_and_remarks_change_nothing(shell: Planner) -> None:
    shell.plan(noted("a"))
    shell.execute()
    shell.plan(noted("b"), noted("a", "b", review=True, grace=1), noted("c", "a"))
    (shell.place / "plan.toml").write_text("# a remark\n" + (shell.place / "plan.toml").read_text())
    done = shell.adjourn("execute")
    assert done.err == ""
    assert shell.effects == ["a", "b", "c"]


# --- one at a time --------------------------------------------------------------------------------


def test_a_second_execute_is_told_who_is_at_work(shell: Planner) -> None:
    """D-R51, D-R52: exit code 4; also another plan of the same workspace."""
    shell.plan({"id": "a", "run": SLEEPS})
    shell.plan(noted("x"), name="other.toml")
    first = shell.start("execute")
    until((shell.place / "asleep").exists, what="it works")
    for name in ("plan.toml", "other.toml"):
        told = shell.adjourn("execute", name, expect=4)
        assert f"process {first.pid} executes {shell.place / 'plan.toml'}" in told.err
    assert shell.json("execute", expect=4)["error"]["code"] == "workspace_busy"
    (shell.place / "go").touch()
    first.communicate(timeout=30)
    assert first.returncode == 0
    assert shell.effects == []
    shell.adjourn("execute", "other.toml")
    assert shell.effects == ["x"]


def test_of_many_who_execute_at_once_each_task_runs_once(shell: Planner) -> None:
    """D-R52: five times over, four at once."""
    for number in range(5):
        tasks = [noted(f"r{number}-{name}") for name in "abc"]
        shell.plan(*tasks, name=f"p{number}.toml")
        many = [shell.start("execute", f"p{number}.toml") for _ in range(4)]
        said = [process.communicate(timeout=60) for process in many]
        codes = {process.returncode for process in many}
        assert codes <= {0, 4}, said
        assert 0 in codes
        assert shell.effects[3 * number :] == [f"r{number}-{name}" for name in "abc"], said


def test_a_task_of_a_plan_is_not_resumed_beside_another_that_runs(shell: Planner) -> None:
    """D-R5, D-R52: the decision is recorded; the task waits its turn, and execute takes it up."""
    shell.agent("approved.sh")
    shell.plan({"id": "a", "command": ["./approved.sh"]}, {"id": "b", "run": SLEEPS})
    execute = shell.start("execute")
    until((shell.place / "asleep").exists, what="b works")
    task = shell.task("a")
    told = shell.adjourn("resume", task, "--approve-all", expect=4)
    assert shell.task("b") in told.err
    assert shell.state(task) == "queued"
    (shell.place / "go").touch()
    execute.communicate(timeout=30)
    assert execute.returncode == 0
    assert shell.states() == {"a": "succeeded", "b": "succeeded"}


def test_execute_sees_through_what_another_command_runs(shell: Planner) -> None:
    """It starts nothing beside it, and goes on when it is done."""
    script = 'if [ -z "$AUTO_APPROVAL" ]; then exit 90; fi; echo a >> effects; ' + SLEEPS
    shell.plan({"id": "a", "run": script}, noted("b", "a"))
    shell.execute(expect=10)
    resume = shell.start("resume", shell.task("a"), "--approve-all")
    until((shell.place / "asleep").exists, what="a works")
    execute = shell.start("execute")
    (line,) = (execute.stdout.readline() for _ in "1") if execute.stdout else (b"",)
    assert line.startswith(b"[a] task ")
    assert shell.effects == ["a"]
    (shell.place / "go").touch()
    for process in (resume, execute):
        assert process.communicate(timeout=30) is not None
        assert process.returncode == 0
    assert shell.effects == ["a", "b"]


def test_a_worker_takes_part_and_runs_no_two_at_once(shell: Planner) -> None:
    """D-R52: what was approved is started by the worker, beside execute, but never beside another task of the plan."""
    watch = 'if [ -z "$AUTO_APPROVAL" ]; then exit 90; fi; mkdir alone && sleep 0.2 && rmdir alone && echo {} >> effects'
    shell.plan(*({"id": name, "run": watch.format(name)} for name in "abcd"))
    shell.execute(expect=10)
    worker = shell.start("worker")
    try:
        for ask in shell.inbox():
            shell.adjourn("approve", ask["id"])
        until(
            lambda: set(shell.states().values()) == {"succeeded"}, what="all are done", seconds=60
        )
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.communicate(timeout=30)
    assert sorted(shell.effects) == ["a", "b", "c", "d"]
    shell.execute()


# --- what cannot be -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            '[[task]]\nid = "a"\ncommand = ["true"]\nneeds = ["b"]\n',
            "plan.toml:4:10: no task is called `b`",
        ),
        (
            '[[task]]\nid = "a"\ncommand = ["true"]\nneeds = ["a"]\n',
            "plan.toml:4:10: the needs form a circle",
        ),
        ("[[task]\n", "plan.toml:1"),
        ("", "plan.toml:1:1: there is no task"),
        ('\n[[task]]\nid = "a"\nfoo = 1\n', "plan.toml:4:1: unknown key `foo`"),
        (
            'workspace = "nowhere"\n[[task]]\nid = "a"\ncommand = ["true"]\n',
            "nowhere is not a directory",
        ),
    ],
)
def test_a_plan_that_is_wrong_is_refused_with_the_line_and_nothing_starts(
    shell: Planner, text: str, told: str
) -> None:
    (shell.place / "plan.toml").write_text(text)
    for words in (("execute",), ("plan", "show")):
        assert told in shell.adjourn(*words, expect=2).err
        assert (
            shell.adjourn(*words, "--output", "json", expect=2).doc["error"]["code"] == "bad_plan"
        )
    assert shell.database or not shell.store.exists()
    assert shell.json("tasks")["tasks"] == []


def test_a_plan_that_is_not_there_or_not_text_is_refused(shell: Planner) -> None:
    for verb in (("execute",), ("plan", "show")):
        told = shell.adjourn(*verb, "nothing.toml", expect=3).err
        assert "there is no plan nothing.toml" in told
        assert "adjourn execute --help" in told
    shell.plan(noted("a"))
    assert "but there is plan.toml" in shell.adjourn("execute", "nothing.toml", expect=3).err
    (shell.place / "b.toml").write_bytes(b"# fine\n\xff\n")
    assert "b.toml:2: it is not UTF-8" in shell.adjourn("execute", "b.toml", expect=2).err
    (shell.place / "large.toml").write_bytes(b"#" * (1 << 20) + b"\n")
    assert "more than 1,048,576 bytes" in shell.adjourn("execute", "large.toml", expect=2).err
    os.mkfifo(shell.place / "pipe.toml")
    for name in (".", "pipe.toml", "/dev/null"):
        assert "is not a plain file" in shell.adjourn("execute", name, expect=2).err


def test_a_plan_inside_a_run_is_waited_for(shell: Planner) -> None:
    """A script that executes a plan waits for what the plan waits for, and goes on when that is done."""
    shell.agent("approved.sh")
    (shell.place / "inner").mkdir()
    shell.plan(
        {"id": "a", "command": ["../approved.sh"]},
        noted("b", "a"),
        name="inner.toml",
        workspace="inner",
    )
    outer = shell.paused("adjourn", "execute", "inner.toml")
    assert len(outer["waiting_on"]) == 1
    shell.adjourn("resume", outer["waiting_on"][0], "--approve-all")
    shell.adjourn("resume", outer["task_id"])
    assert (shell.place / "inner" / "effects").read_text().splitlines()[-1] == "b"


def test_json_is_one_document_and_the_output_of_tasks_is_not_in_it(shell: Planner) -> None:
    shell.plan({"id": "a", "run": "echo noise; echo noise >&2"})
    done = shell.adjourn("execute", "--output", "json")
    assert (done.doc["schema_version"], done.doc["outcome"], done.err) == (1, "completed", "")


def test_show_draws_the_graph_in_characters_that_the_terminal_has(shell: Planner) -> None:
    shell.plan(
        noted("top"),
        noted("left", "top"),
        noted("right", "top"),
        noted("bottom", "right", "left"),
        noted("end", "bottom"),
    )
    drawn = """\
ID               STATE    TASK  NOTE
top              ready
├─ left          pending
└─ right         pending
   └─ bottom     pending        also needs left
      └─ end     pending
"""
    show = ("plan", "show", "plan.toml")
    told = shell.adjourn(*show, env={"PYTHONIOENCODING": "utf-8"}).out
    assert told.split() == drawn.split()
    assert [line.index("pending") for line in told.splitlines()[2:]] == [told.index("STATE")] * 4
    plain = shell.adjourn(*show, env={"PYTHONIOENCODING": "ascii"}).out
    assert plain.isascii()
    assert plain.replace("|-", "├─").replace("`-", "└─") == told


def test_a_plan_of_a_thousand_tasks_in_a_row_is_drawn(shell: Planner) -> None:
    shell.plan(
        *(noted(f"t{number}", *([f"t{number - 1}"] if number else [])) for number in range(1000))
    )
    lines = shell.adjourn("plan", "show", env={"PYTHONIOENCODING": "ascii"}).out.splitlines()
    assert len(lines) == 1001
    assert lines[-1].startswith("... 999 deep: t999")
    assert max(map(len, lines)) < 120


def test_a_drawing_fits_a_terminal_of_eighty_columns(shell: Planner) -> None:
    names = [f"a-task-with-quite-a-long-name-{number}" for number in range(8)]
    shell.plan(
        *(noted(name, *names[max(0, number - 2) : number]) for number, name in enumerate(names))
    )
    person = Terminal(shell, "plan", "show", columns=80)
    person.ends()
    assert [name in line for line, name in zip(person.lines, ["STATE", *names], strict=True)] == [
        True
    ] * 9
