"""One row whose bytes cannot be read must stop nothing but itself, and must be named (C-R13)."""

from pathlib import Path

import pytest

from tests.e2e.shell import Shell, until

ASKS_90 = '[ "$AUTO_APPROVAL" ] || exit 90; echo deployed >> effects'
# What is damaged of a task, by the name of the kind of row that cannot be read then
DAMAGE = {
    "task": "UPDATE task_spec SET body = {bytes} WHERE no = {no}",
    "running": "UPDATE task_spec SET body = {bytes} WHERE no = {no}",
    "call": "UPDATE call_body SET body = {bytes} WHERE no >> 20 = {no}",
    "ask": "UPDATE ask_body SET body = {bytes} WHERE no >> 20 = {no}",
    "queued": "UPDATE task_spec SET body = {bytes} WHERE no = {no}",
    "queued call": "UPDATE call_body SET body = {bytes} WHERE no >> 20 = {no}",
    "event": "UPDATE event SET body = {bytes} WHERE task = {no}",
    "document": "INSERT INTO document (task, name, body) VALUES ({no}, 'batch', {bytes})",
}
_DAMAGED_RUN = {
    "sqlite": "UPDATE run SET shim = '{{' WHERE no >> 20 = {no}",
    "postgres": "UPDATE run SET body = {bytes} WHERE no >> 20 = {no}",
}
GARBAGE = b"\xc1\xff{"


@pytest.fixture(params=["sqlite", "postgres"])
def office(request: pytest.FixtureRequest, shell: Shell) -> Shell:
    """Return a shell on one kind of store, whatever the whole run of tests is on."""
    if request.param == "postgres" and shell.database is None:
        shell.share(request.getfixturevalue("postgres").fresh_store())
    elif request.param == "sqlite" and shell.database:
        pytest.skip("all tests of this run are on PostgreSQL")
    return shell


def damage(shell: Shell, task: str, statement: str) -> None:
    ((no,),) = shell.sql(f"SELECT no FROM task WHERE id = '{task}'")  # noqa: S608 -- our own id
    bytes_ = f"x'{GARBAGE.hex()}'" if shell.database is None else f"'\\x{GARBAGE.hex()}'::bytea"
    shell.sql(statement.format(no=no, bytes=bytes_))


def test_a_row_that_cannot_be_read_stops_nothing_else(office: Shell) -> None:
    """Of every kind one is damaged; the worker, the inbox and all else go on and name them."""
    paused = {
        kind: office.paused("sh", "-c", ASKS_90)
        for kind in (*DAMAGE, "run", "good", "answered", "good queued")
    }
    tasks = {kind: doc["task_id"] for kind, doc in paused.items()}
    asks = {kind: doc["asks"][0]["id"] for kind, doc in paused.items()}
    office.adjourn("approve", *(asks[kind] for kind in asks if "queued" in kind))
    for kind, statement in DAMAGE.items():
        damage(office, tasks[kind], statement)
    damage(office, tasks["run"], _DAMAGED_RUN["postgres" if office.database else "sqlite"])
    office.sql(f"UPDATE task SET state = 'running' WHERE id = '{tasks['running']}'")  # noqa: S608 -- our own id

    # Lists leave out what they cannot show, and name it
    listed = office.adjourn("tasks", "--output", "json")
    seen = {task["task_id"] for task in listed.doc["tasks"]}
    bad_tasks = {tasks[kind] for kind in ("task", "running", "queued")}
    assert seen == set(tasks.values()) - bad_tasks
    assert {row["name"] for row in listed.doc["unreadable"]} >= bad_tasks
    inbox = office.adjourn("inbox", "--output", "json")
    assert {ask["id"] for ask in inbox.doc["asks"]} == {
        asks[kind] for kind in asks if kind != "ask" and "queued" not in kind
    }
    assert asks["ask"] in {row["name"] for row in inbox.doc["unreadable"]}
    for words in (("tasks",), ("inbox",)):
        assert "cannot be read: its stored bytes are damaged" in office.adjourn(*words).err

    # What is damaged is said in a sentence, and everything else can be shown and decided
    for kind in ("task", "running", "call", "ask", "run"):
        shown = office.adjourn("show", tasks[kind], expect=1)
        assert "cannot be read" in shown.err
    assert "cannot be read" in office.adjourn("approve", asks["ask"], expect=1).err
    office.adjourn("show", tasks["good"])
    office.adjourn("show", tasks["event"])
    office.adjourn("approve", asks["answered"])
    office.adjourn("reject", asks["good"])
    worked = office.adjourn("worker", "--once").err
    assert office.lines("effects") == ["deployed", "deployed"]
    assert f"unreadable task={tasks['queued']}" in worked
    assert tasks["queued call"] in worked, worked
    office.adjourn("wait", tasks["answered"])
    office.adjourn("prune", "--older-than", "0")

    # Those who look for what is wrong name every row
    named = office.adjourn("doctor", expect=1).out
    verified = office.adjourn("audit", "verify", expect=1)
    for kind in ("task", "running"):
        assert tasks[kind] in named
    assert "cannot be read" in named
    assert "Broken" in verified.out


def test_a_bad_row_keeps_no_notifier_from_what_else_happened(office: Shell, tmp_path: Path) -> None:
    """The event of a damaged task is passed over; the outbox of a notifier begins again."""
    told = tmp_path / "told"
    config = Path(office.environment["XDG_CONFIG_HOME"]) / "adjourn"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(
        f'[[notify]]\nname = "desk"\ncommand = ["sh", "-c", "cat >> {told}; echo >> {told}"]\n'
    )
    first, bad, last = (office.paused("sh", "-c", ASKS_90)["task_id"] for _ in range(3))
    damage(office, bad, DAMAGE["event"])
    damage(office, bad, DAMAGE["task"])
    office.adjourn("notify", "--flush", expect=None)
    found = told.read_text()
    assert first in found
    assert last in found
    assert bad not in found


@pytest.mark.one_machine("no login of a shared database may rewrite a task")
@pytest.mark.parametrize("kind", ["task", "call", "ask", "queued", "running", "run"])
def test_a_person_can_get_rid_of_a_damaged_task(shell: Shell, kind: str) -> None:
    """`cancel` ends it, with its event in the trail, and `prune` forgets it."""
    paused = shell.paused("sh", "-c", ASKS_90)
    bad, good = paused["task_id"], shell.paused("sh", "-c", ASKS_90)["task_id"]
    if kind == "queued":
        shell.adjourn("approve", paused["asks"][0]["id"])
    damage(shell, bad, _DAMAGED_RUN["sqlite"] if kind == "run" else DAMAGE[kind])
    if kind in {"running", "run"}:
        shell.sql(f"UPDATE task SET state = 'running' WHERE id = '{bad}'")  # noqa: S608 -- our own id
    shell.adjourn("cancel", bad[:12])
    assert shell.state(bad) == "canceled"
    assert shell.json("tasks")["tasks"][1]["task_id"] == bad
    exported = shell.adjourn("audit", "export").out
    assert "task_canceled" in exported
    assert "cannot be read" in exported
    for words in (("inbox",), ("tasks",), ("worker", "--once"), ("doctor",), ("audit", "verify")):
        assert "cannot be read" not in shell.adjourn(*words).err
    assert [ask["task_id"] for ask in shell.inbox()] == [good]
    shell.adjourn("prune", "--older-than", "0")
    assert [task["task_id"] for task in shell.json("tasks")["tasks"]] == [good]
    assert "Whole" in shell.adjourn("audit", "verify").out
    assert shell.lines("effects") == []


@pytest.mark.one_machine("it looks at the processes of this machine")
def test_a_damaged_task_with_a_living_process_is_not_forgotten(shell: Shell) -> None:
    task = shell.detached("sh", "-c", "while [ ! -e go ]; do sleep 0.05; done")
    damage(shell, task, DAMAGE["task"])
    assert "is alive" in shell.adjourn("cancel", task, expect=4).err
    (shell.place / "go").touch()
    until((shell.store / "runs" / f"{task}.1" / "result.json").exists, what="it has ended")
    until(lambda: shell.adjourn("cancel", task, expect=None).code == 0, what="it can be canceled")
    assert shell.state(task) == "canceled"
