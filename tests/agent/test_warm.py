"""Under a worker, agents are forked from a parent that has their slow modules imported."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.agent.desk import Desk, command, desk, finish, say, use
from tests.e2e.shell import until
from tests.model.script import ToolUse


@contextlib.contextmanager
def worker(person: Desk) -> Iterator["subprocess.Popen[bytes]"]:
    """Have a worker at work for as long as the block lasts."""
    process = person.start("worker", env=person.environment | {"SECRET_TOKEN": "hunter2"})
    try:
        # Before that, --detach leaves a task to a copy of itself
        until(partial(is_up, person), what="the worker is up")
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def is_up(person: Desk) -> bool:
    return any(
        b'"pool"' in lock.read_bytes() for lock in (person.store / "supervisors").glob("*.lock")
    )


def warm_parents(pid: int) -> list[int]:
    """Return the fork servers below the worker's own, which is its child."""
    return [
        warm for forks in children(pid) for warm in children(forks) if comm(warm) == "adjourn-forks"
    ]


def children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    return []


def comm(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def done(person: Desk, task: str) -> str:
    person.adjourn("wait", task, "--timeout", "60", expect=None)
    return person.state(task)


def asks(person: Desk, task: str, question: str) -> bool:
    return bool(person.json("show", task).get("agent_message") == question)


def test_agents_under_a_worker_work_as_anywhere_cold_and_warm(tmp_path: Path) -> None:
    """The same task three times.

    The first is started cold while the parent warms up, the others are forked.
    """
    write = ToolUse(
        name="write_file", arguments={"path": "note.txt", "content": "hello"}, id="write"
    )
    shown = command(
        "tr '\\0' '\\n' < /proc/self/environ | grep -c SECRET_TOKEN; echo $ADJOURN_CALL_ID",
        "environ",
    )
    with (
        desk(tmp_path, use(write, shown), say("Which region?"), finish()) as person,
        worker(person) as process,
    ):
        for _ in range(3):
            (tmp_path / "note.txt").unlink(missing_ok=True)
            task = person.json("run", "--pause-on-approval", "--detach", "deploy it")["task_id"]
            assert done(person, task) == "waiting"
            for ask in person.json("show", task)["asks"]:
                person.adjourn("approve", ask["id"])
            until(partial(asks, person, task, "Which region?"), what="it asks")
            (question,) = person.json("show", task)["asks"]
            person.adjourn("answer", question["id"], "eu")
            assert done(person, task) == "succeeded"
            results = person.results()
            assert results["write"] == "note.txt: 5 bytes written"
            assert results["environ"].splitlines()[1] == f"{task}.environ"
            last = person.json("show", task)
            assert last["final_message"] == "Deployment complete."
        until(lambda: len(warm_parents(process.pid)) == 1, what="the warm parent is there")


def test_an_agent_whose_warm_parent_is_killed_goes_on(tmp_path: Path) -> None:
    """Without the parent everything works as well, only slower."""
    with desk(tmp_path, say("One?"), say("Two?"), finish()) as person, worker(person) as process:
        task = person.json("run", "--pause-on-approval", "--detach", "deploy it")["task_id"]
        assert done(person, task) == "waiting"
        until(lambda: len(warm_parents(process.pid)) == 1, what="the warm parent is there")
        os.kill(warm_parents(process.pid)[0], signal.SIGKILL)
        for expected in ("waiting", "succeeded"):
            (question,) = [
                ask for ask in person.json("show", task)["asks"] if ask["state"] == "pending"
            ]
            person.adjourn("answer", question["id"], "go on")
            assert done(person, task) == expected


def test_an_agent_works_on_a_shared_store_by_hand_and_under_a_worker_cold_and_warm(
    tmp_path: Path, database: str
) -> None:
    with desk(
        tmp_path, use(command("echo ran >> log.txt", "tc_1")), finish(), database=database
    ) as person:
        person.as_told(person.agent_run(expect=10), expect=0)
        with worker(person) as process:
            for _ in range(2):
                task = person.json("run", "--pause-on-approval", "--detach", "deploy it")["task_id"]
                assert done(person, task) == "waiting"
                person.adjourn("approve", person.json("show", task)["asks"][0]["id"])
                assert done(person, task) == "succeeded"
                until(lambda: len(warm_parents(process.pid)) == 1, what="the warm parent is there")
        assert person.lines("log.txt") == ["ran"] * 3
