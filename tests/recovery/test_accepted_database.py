"""A shared database that lacks its newest past can be looked at, and goes on once somebody accepts it."""

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.shell import until
from tests.postgres import Server
from tests.recovery.test_lagging_replica import Snapshots, programs, promote  # noqa: F401 -- a fixture
from tests.shared.conftest import Machine, Roles, as_role, machine  # noqa: F401 -- these are fixtures
from tests.shared.test_older_copy import OLDER, copied, put_back

Make = Callable[[str], Machine]
SCRIPT = '[ "$AUTO_APPROVAL" ] || exit 90; echo ${ADJOURN_TASK_ID} >> effects'
# Asks a question, then for approval of itself; its one effect comes after both.
AGENT = """
where=$(adjourn ask "Where?") || exit $?
[ "$AUTO_APPROVAL" ] || exit 90
echo "$ADJOURN_RUN_ID" >> effects
"""
LOOKS = (
    ("tasks",),
    ("inbox",),
    ("show", "TASK"),
    ("runs", "TASK"),
    ("audit", "verify"),
    ("logs", "TASK"),
)


def state_of(here: Machine) -> Path:
    """Return where a machine keeps what it knows of the database."""
    (seen,) = (here.place / "state" / "adjourn").glob("*/seen.json")
    return seen.parent


def pasted(here: Machine, err: str, *words: str, expect: int = 0) -> str:
    """Run the command that an error names, as a person would who pastes it."""
    hint = err.partition("try: ")[2].strip()
    assert hint.startswith("adjourn "), err
    return here.line(f"{hint} {' '.join(words)}", expect=expect).out


def live(here: Machine, there: Machine) -> None:
    """Have a task ask, be approved, and run on one machine; the other one looks at the end."""
    done = here.adjourn(
        "run",
        "--pause-on-approval",
        "--output",
        "json",
        "--",
        "sh",
        "-c",
        AGENT,
        cwd=here.work,
        expect=10,
    )
    task = done.doc["task_id"]
    here.adjourn("approve", done.doc["asks"][0]["id"])
    here.adjourn("worker", "--once", cwd=here.work)
    (question,) = here.inbox()
    there.adjourn("answer", question["id"], "here")
    here.adjourn("worker", "--once", cwd=here.work)
    (approval,) = here.inbox()
    there.adjourn("approve", approval["id"])
    here.adjourn("worker", "--once", cwd=here.work)
    assert here.state(task) == "succeeded"
    there.adjourn("prune")  # it has seen all of it


@pytest.mark.timeout(900)
@pytest.mark.parametrize("accepter", ["who ran it", "another"])
def test_a_database_restored_at_any_commit_starts_nothing_twice(
    machine: Make,  # noqa: F811 -- the fixture
    postgres: Server,
    database: str,
    programs: tuple[str, str],  # noqa: F811 -- the fixture
    tmp_path: Path,
    sweep: str,
    accepter: str,
) -> None:
    """One machine accepts it; then both go on, and neither starts anything without a person."""
    here, there = machine("here"), machine("there")
    here.adjourn("run", "--", "true")  # makes the schema
    with Snapshots(database) as snapshots:
        live(here, there)
        dumps = snapshots.dump(programs[0], tmp_path)
    effects = (here.work / "effects").read_text()
    assert len(effects.split()) == 1
    assert len(dumps) > 8
    known = {each: (state_of(each) / "seen.json").read_bytes() for each in (here, there)}
    accepts, other = (here, there) if accepter == "who ran it" else (there, here)
    restored_at = dumps[:-1] if sweep == "full" else dumps[2:-1:4]
    for dump in restored_at:
        promote(postgres, database, dump, programs[1])
        for each in (here, there):
            (state_of(each) / "seen.json").write_bytes(known[each])
            for name in ("runs", "started"):  # what was seen of the trail has to do
                shutil.rmtree(state_of(each) / name, ignore_errors=True)
        for each in (other, accepts):
            assert "is an older copy" in each.adjourn("worker", "--once", expect=5).err
            each.adjourn("tasks")
            each.adjourn("inbox")
        pasted(accepts, accepts.adjourn("worker", "--once", expect=5).err, "--yes")
        for each in (accepts, other):
            each.adjourn("worker", "--once", cwd=each.work)
            assert (here.work / "effects").read_text() == effects, f"restored at {dump.name}"
        assert accepts.adjourn("audit", "verify").out.startswith("Whole")
    print(f"restored at {len(restored_at)} of {len(dumps)} commits: 0 double starts")


def restored(here: Machine, server: Server, database: str) -> tuple[str, str]:
    """Restore a database from before an approved command ran, and another was approved.

    Return both tasks.
    """
    ran, waits = here.waiting(SCRIPT), here.waiting(SCRIPT)
    asks = {ask["task_id"]: ask["id"] for ask in here.inbox()}
    here.adjourn("approve", asks[ran])
    copied(server, database, OLDER)
    here.adjourn("worker", "--once", cwd=here.work)
    here.adjourn("approve", asks[waits])
    here.adjourn("worker", "--once", cwd=here.work)
    assert sorted((here.work / "effects").read_text().split()) == sorted([ran, waits])
    put_back(server, database, OLDER)
    return ran, waits


def test_an_older_copy_can_be_looked_at_and_changes_nothing(
    machine: Make,  # noqa: F811 -- the fixture
    postgres: Server,
    database: str,
) -> None:
    here = machine("here")
    ran, waits = restored(here, postgres, database)
    for look in LOOKS:
        here.adjourn(*(ran if word == "TASK" else word for word in look))
    assert "adjourn store accept" in here.adjourn("doctor", expect=1).out
    (ask,) = here.inbox()
    for words in (
        ("worker", "--once"),
        ("run", "--", "touch", "effects"),
        ("run", "--detach", "--", "touch", "effects"),
        ("resume", ran),
        ("restart", ran),
        ("approve", ask["id"]),
        ("reject", ask["id"]),
        ("cancel", ran),
    ):
        refused = here.adjourn(*words, expect=5, cwd=here.work)
        assert "adjourn store accept --store" in refused.err, words
    assert (here.state(ran), here.state(waits)) == ("queued", "waiting")
    assert len((here.work / "effects").read_text().split()) == 2


def test_what_may_have_run_anywhere_is_asked_about_on_every_machine(
    machine: Make,  # noqa: F811 -- the fixture
    postgres: Server,
    database: str,
) -> None:
    here, there = machine("here"), machine("there")
    ran, waits = restored(here, postgres, database)
    (old,) = here.inbox()
    refused = here.adjourn("run", "--", "true", expect=5)
    here.adjourn("store", "accept", expect=2)
    told = pasted(here, refused.err, "--yes")
    assert "is an older copy" in told
    assert "This machine has seen" in told
    asks = {ask["task_id"]: ask for ask in there.inbox()}
    assert {task: ask["kind"] for task, ask in asks.items()} == {
        ran: "uncertain",
        waits: "approval",
    }
    assert "may have been approved and run" in there.adjourn("show", waits).out
    there.adjourn("approve", old["id"], expect=4)
    for each in (here, there):
        each.adjourn("worker", "--once", cwd=each.work)
    assert len((here.work / "effects").read_text().split()) == 2
    there.adjourn("settle", f"{ran}.tc_2", "it-ran")
    assert there.state(ran) == "succeeded"
    here.adjourn("store", "accept", "--yes", expect=4)
    there.adjourn("store", "accept", "--yes", expect=4)


def test_a_call_that_another_machine_started_is_not_started_here_although_the_copy_never_knew_it(
    machine: Make,  # noqa: F811 -- the fixture
    postgres: Server,
    database: str,
) -> None:
    """The machine that accepts writes down for all machines what it has started."""
    here, there = machine("here"), machine("there")
    task = here.waiting(SCRIPT)
    copied(postgres, database, OLDER)
    here.adjourn("approve", here.inbox()[0]["id"])
    here.adjourn("worker", "--once", cwd=here.work)
    put_back(postgres, database, OLDER)
    here.adjourn("store", "accept", "--yes")
    there.adjourn("approve", there.inbox()[0]["id"])
    there.adjourn("worker", "--once", cwd=there.work)
    assert (here.work / "effects").read_text().split() == [task]
    (ask,) = there.inbox()
    assert ask["kind"] == "uncertain"
    there.adjourn("settle", f"{task}.tc_2", "run-again")
    there.adjourn("worker", "--once", cwd=there.work)
    assert there.state(task) == "succeeded", "a person has said that it is to run once more"


def test_a_second_restore_is_noticed_although_the_first_was_accepted(
    machine: Make,  # noqa: F811 -- the fixture
    postgres: Server,
    database: str,
) -> None:
    here, there = machine("here"), machine("there")
    restored(here, postgres, database)
    here.adjourn("store", "accept", "--yes")
    there.adjourn("run", "--", "true")  # both have worked in the new era
    here.adjourn("run", "--", "true")
    copied(postgres, database, OLDER)
    here.adjourn("run", "--", "true")
    there.adjourn("run", "--", "true")
    put_back(postgres, database, OLDER)
    here.adjourn("run", "--", "true", expect=5)
    there.adjourn("run", "--", "true", expect=5)
    there.adjourn("store", "accept", "--yes")
    here.adjourn("run", "--", "true")


def test_a_restore_to_before_an_acceptance_is_accepted_once_for_all_machines(
    machine: Make,  # noqa: F811 -- the fixture
    postgres: Server,
    database: str,
) -> None:
    here, there = machine("here"), machine("there")
    here.adjourn("run", "--", "true")
    copied(postgres, database, OLDER)
    postgres.do(f"CREATE DATABASE {OLDER}_2 TEMPLATE {OLDER}")
    here.adjourn("run", "--", "true")
    put_back(postgres, database, OLDER)
    here.adjourn("store", "accept", "--yes")
    for each in (here, there):
        each.adjourn("run", "--", "true")
    put_back(postgres, database, f"{OLDER}_2")
    for each in (here, there):
        each.adjourn("run", "--", "true", expect=5)
    there.adjourn("store", "accept", "--yes")
    here.adjourn("run", "--", "true")


def test_workers_that_live_go_on_by_themselves_once_it_is_accepted(
    machine: Make,  # noqa: F811 -- the fixture
    postgres: Server,
    database: str,
) -> None:
    here, there = machine("here"), machine("there")
    workers = [here.worker(), there.worker()]
    for worker in workers:
        worker.send_signal(signal.SIGSTOP)
    task = here.waiting(SCRIPT)
    (ask,) = here.inbox()
    copied(postgres, database, OLDER)
    for worker in workers:
        worker.send_signal(signal.SIGCONT)
    here.adjourn("approve", ask["id"])
    until(lambda: here.state(task) == "succeeded", what="it ran")
    put_back(postgres, database, OLDER)
    until(lambda: "is an older copy" in here.log() + there.log(), what="it is noticed")
    there.adjourn("store", "accept", "--yes", expect=None)
    here.adjourn("store", "accept", "--yes", expect=None)  # whichever of them has run it knows more
    later = there.queue("echo later >> effects")
    until(lambda: there.state(later) == "succeeded", what="they work again", seconds=40)
    assert (here.work / "effects").read_text().split() == [task, "later"]


def test_nobody_accepts_while_a_supervisor_holds_a_run_of_the_copy(
    machine: Make,  # noqa: F811 -- the fixture
    postgres: Server,
    database: str,
) -> None:
    here, there = machine("here"), machine("there")
    for each in (here, there):
        each.environment["ADJOURN_LEASE"] = "8"  # it outlasts the copying
    worker = here.worker()
    task = here.queue("echo >> effects; sleep 600")
    until((here.work / "effects").exists, what="it runs")
    worker.send_signal(signal.SIGSTOP)
    copied(postgres, database, OLDER)
    there.adjourn("run", "--", "true")
    put_back(postgres, database, OLDER)
    worker.send_signal(signal.SIGCONT)
    refused = there.adjourn("store", "accept", "--yes", expect=4)
    assert task in refused.err
    assert "worker --status --store" in refused.err
    worker.kill()  # its shim ends the run when the lease is over
    until(
        lambda: there.adjourn("store", "accept", "--yes", expect=None).code == 0,
        what="its lease is over",
        seconds=40,
    )
    (ask,) = there.inbox()
    assert (ask["kind"], ask["task_id"]) == ("uncertain", task)
    assert (here.work / "effects").read_text() == "\n"


def test_who_may_accept(
    machine: Make,  # noqa: F811 -- the fixture
    postgres: Server,
    database: str,
    as_role: Roles,  # noqa: F811 -- the fixture
) -> None:
    """A worker's login may; who only decides or asks may not, nor anything inside a run."""
    here = machine("here")
    urls = {role: as_role(role) for role in ("agent", "approver", "worker")}
    here.environment["ADJOURN_STORE"] = urls["worker"]
    task = here.waiting(SCRIPT)
    approver = {"ADJOURN_STORE": urls["approver"]}
    here.adjourn("approve", here.inbox()[0]["id"], env=approver)
    copied(postgres, database, OLDER)
    here.adjourn("worker", "--once", cwd=here.work)
    for role in ("approver", "agent"):
        here.adjourn("tasks", env={"ADJOURN_STORE": urls[role]})
    put_back(postgres, database, OLDER)
    for role in ("approver", "agent"):
        told = here.adjourn("store", "accept", "--yes", env={"ADJOURN_STORE": urls[role]}, expect=5)
        assert "admin" in told.err, role
    inside = {"ADJOURN_RUN_ID": f"{task}.1"}
    assert "inside a run" in here.adjourn("store", "accept", "--yes", env=inside, expect=5).err
    here.adjourn("run", "--", "true", expect=5)
    accepted = json.loads(here.adjourn("store", "accept", "--yes", "--output", "json").out)
    assert accepted["uncertain"] == [task]
    here.adjourn("worker", "--once", cwd=here.work)
    assert (here.work / "effects").read_text().split() == [task]


@pytest.mark.parametrize("accepter", ["who ran it", "another"])
def test_what_a_third_machine_started_is_started_by_no_other_after_a_restore(
    machine: Make,  # noqa: F811 -- the fixture
    postgres: Server,
    database: str,
    accepter: str,
) -> None:
    """Only the third machine has a mark of the start.

    The one that accepts need not: what is approved in the copy may have run anywhere.
    """
    first, second, third = (machine(name) for name in ("first", "second", "third"))
    task = first.waiting(SCRIPT)
    second.adjourn("approve", second.inbox()[0]["id"])
    copied(postgres, database, OLDER)
    third.adjourn("worker", "--once", cwd=third.work)
    first.adjourn("prune")  # it has seen that there is more
    put_back(postgres, database, OLDER)
    accepts, other = (third, first) if accepter == "who ran it" else (first, third)
    for each in (accepts, other):
        assert "is an older copy" in each.adjourn("worker", "--once", expect=5).err
    accepts.adjourn("store", "accept", "--yes")
    for each in (first, second, third, second):
        each.adjourn("worker", "--once", cwd=each.work)
    (ask,) = second.inbox()
    assert (ask["kind"], ask["task_id"]) == ("uncertain", task)
    assert (first.work / "effects").read_text().split() == [task]


def test_what_was_approved_after_the_copy_is_asked_for_again_and_the_third_machine_refuses_it(
    machine: Make,  # noqa: F811 -- the fixture
    postgres: Server,
    database: str,
) -> None:
    """The copy knows no approval, and the machine that accepts has no mark.

    The new ask says that it may have run. A person who approves it again nevertheless starts
    nothing on the machine that has run it.
    """
    first, third = machine("first"), machine("third")
    task = first.waiting(SCRIPT)
    copied(postgres, database, OLDER)
    first.adjourn("approve", first.inbox()[0]["id"])
    third.adjourn("worker", "--once", cwd=third.work)
    first.adjourn("prune")
    put_back(postgres, database, OLDER)
    first.adjourn("store", "accept", "--yes")
    assert "may have been approved and run" in first.adjourn("show", task).out
    first.adjourn("approve", first.inbox()[0]["id"])
    third.adjourn("worker", "--once", cwd=third.work)
    assert (first.work / "effects").read_text().split() == [task]
    assert first.state(task) == "succeeded", "its files on the third machine say how it ended"
