"""Lists of tasks and asks: in order, in pages, and complete."""

from pathlib import Path

import pytest

from tests.e2e.shell import Shell
from tests.stores import on_lasting_store


@pytest.fixture(scope="module")
def crowd(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Return a shell whose store has five waiting tasks and one that is done."""
    shell = on_lasting_store(request, Shell(tmp_path_factory.mktemp("crowd")))
    for number in range(5):
        shell.adjourn("run", "--", "sh", "-c", "exit 90", f"word {number}", expect=10)
    shell.adjourn("run", "--", "true")
    return shell


def test_the_inbox_is_oldest_first_and_can_be_paged(crowd: Shell) -> None:
    everything = crowd.json("inbox")
    assert everything["count"] == 5
    names = [ask["id"] for ask in everything["asks"]]
    assert names == [
        ask["id"] for ask in sorted(everything["asks"], key=lambda ask: ask["created_at"])
    ]
    first = crowd.json("inbox", "--limit", "2")
    assert [ask["id"] for ask in first["asks"]] == names[:2]
    rest = crowd.json("inbox", "--limit", "9", "--after", names[1])
    assert [ask["id"] for ask in rest["asks"]] == names[2:]
    text = crowd.adjourn("inbox", "--limit", "2").out
    (advice,) = [line for line in text.splitlines() if "adjourn inbox" in line]
    more = crowd.line(f"{advice.partition(': ')[2]} --output json").doc["asks"]
    assert [ask["id"] for ask in more] == names[2:]


def test_tasks_are_newest_first_by_state_and_can_be_paged(crowd: Shell) -> None:
    """A-R62."""
    tasks = crowd.json("tasks")["tasks"]
    assert [task["state"] for task in tasks] == ["succeeded"] + ["waiting"] * 5
    assert [task["argv"][-1] for task in tasks[1:]] == [
        f"word {number}" for number in (4, 3, 2, 1, 0)
    ]
    names = [task["task_id"] for task in tasks]
    assert [
        task["task_id"] for task in crowd.json("tasks", "--state", "waiting")["tasks"]
    ] == names[1:]
    page = crowd.json("tasks", "--limit", "2", "--before", names[1])["tasks"]
    assert [task["task_id"] for task in page] == names[2:4]
    text = crowd.adjourn("tasks", "--limit", "2").out
    (advice,) = [line for line in text.splitlines() if line.startswith("older:")]
    older = crowd.line(f"{advice.removeprefix('older: ')} --output json").doc["tasks"]
    assert [task["task_id"] for task in older] == names[2:]
    assert (
        "older: adjourn tasks --state waiting --before"
        in crowd.adjourn("tasks", "--state", "waiting", "--limit", "2").out
    )


def test_tables_are_aligned(crowd: Shell) -> None:
    for verb in ("inbox", "tasks"):
        head, *rows = crowd.adjourn(verb).out.splitlines()
        last = head.split()[-1]
        assert all(row[head.index(last) - 2 : head.index(last)] == "  " for row in rows), verb
        assert all(row[head.index(last)] != " " for row in rows), verb


def test_a_workers_own_queries_find_what_waits_and_how_it_was_decided(shell: Shell) -> None:
    """C-R2, C-R3, C-R7: tool_runs and approvals, as tables that can only be read."""
    kept = "sh -c '[ \"$AUTO_APPROVAL\" ] || exit 90; exit 3'"
    shell.line(f"adjourn run -- {kept}", expect=10)
    other = shell.line(f"adjourn run --output json -- {kept} two", expect=10).doc["task_id"]
    shell.adjourn("run", "--", "adjourn", "ask", "Which region?", expect=10)
    waiting = "SELECT id FROM tool_runs WHERE status = 'waiting_approval' ORDER BY created_at"
    (task,), (second,) = shell.sql(waiting)
    assert second == other
    decided = "SELECT status, value FROM approvals WHERE tool_run_id = '%s' AND status != 'pending'"
    assert shell.sql(decided % task) == []
    first, rejected = (ask["id"] for ask in shell.json("inbox", "--kind", "approval")["asks"])
    shell.adjourn("approve", first, "--value", "blue, 😀 and more than thirty-one bytes of it")
    shell.adjourn("reject", rejected, "--reason", "not today")
    assert shell.sql(decided % task) == [
        ("approved", "blue, 😀 and more than thirty-one bytes of it")
    ]
    assert shell.sql(decided % other) == [("rejected", None)]
    shell.adjourn("resume", task, expect=1)
    ended = "SELECT id FROM tool_runs WHERE status = 'failed' AND updated_at > created_at"
    assert sorted(shell.sql(ended)) == sorted([(task,), (other,)])
    for words in ("DELETE FROM tool_runs", "UPDATE approvals SET status = 'approved'"):
        with pytest.raises(Exception, match="view"):
            shell.sql(words)


def test_a_store_that_is_named_and_not_there_is_not_found(shell: Shell, tmp_path: Path) -> None:
    missing = str(tmp_path / "misspelt")
    for verb in (["inbox"], ["tasks"], ["notify"], ["prune", "--dry-run"]):
        told = shell.adjourn(*verb, "--store", missing, expect=3)
        assert f"there is no store at {missing}" in told.err
    assert shell.json("tasks", "--store", missing, expect=3)["error"]["code"] == "not_found"


def test_numbers_mean_what_they_say(shell: Shell) -> None:
    asks = shell.script("adjourn ask Sure? --key k || exit; exit 3")
    task = shell.paused(asks)["task_id"]
    failed = shell.json("resume", task, "yes", expect=1)
    assert failed["exit_code"] == 3
    one = shell.json("wait", task, expect=1)
    assert set(one) == {"schema_version", "tasks"}
    assert one["tasks"][0]["exit_code"] == 3
    assert " resumed " in shell.adjourn("runs", task).out.split("\n")[1]  # and cannot be again
    other = shell.paused(asks)["task_id"]
    shell.adjourn("cancel", other)
    assert " canceled " in shell.adjourn("runs", other).out
    dry = shell.adjourn("prune", "--older-than", "0", "--dry-run").out
    assert task[:8] in dry
    assert "Would forget 2 tasks." in dry
