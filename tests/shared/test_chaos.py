"""Machines, wires and the database itself fail at random.

Every effect once, or uncertain and visible; nothing is lost.
"""

import os
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from adjourn.controller.controller import Controller
from adjourn.core.ask import AskKind, Principal, Reply, Verb
from adjourn.core.errors import StoreProblem
from adjourn.core.states import TaskState
from adjourn.core.task import Spec
from adjourn.core.trail.events import first_broken
from adjourn.stores.postgres.store import PostgresStore
from adjourn.wiring import find_root
from adjourn.wiring.controller import open_controller
from tests.e2e.shell import AGENTS, Document, until
from tests.postgres import Server
from tests.shared.conftest import LEASE, Machine
from tests.shared.network import cables
from tests.shared.proxy import wire_at
from tests.shared.test_faults import own_server
from tests.shared.trouble import Remote, Trouble

MACHINES = 4
SEED = 20261116
SHARES = {
    "ci": {
        "worker_killed": 3,
        "worker_stopped": 2,
        "cable_pulled": 1,
        "backend_killed": 12,
        "server_killed": 2,
        "reply_lost": 6,
    },
    "full": {
        "worker_killed": 60,
        "worker_stopped": 40,
        "cable_pulled": 20,
        "backend_killed": 500,
        "server_killed": 20,
        "reply_lost": 200,
    },
}
STAMPS = (20, 80)  # of 50 ms each: how long an effect takes; the longer ones outlast a lease
COMMANDS = [(sys.executable, str(AGENTS / "stamps.py"), str(count)) for count in STAMPS]
BUSY = 12  # tasks under way at a time

# Written down by the database itself: until when each run was held, by its own clock.
WRITES_DOWN_LEASES = """
CREATE TABLE public.lease (run text, until timestamptz);
CREATE FUNCTION public.write_down() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.lease
    SELECT task.id || '.' || (run.no & 1048575), NEW.claim_expires_at FROM adjourn.task
    JOIN adjourn.run ON run.no BETWEEN task.no << 20 AND (task.no << 20) + 1048575 AND run.state = 'running'
    WHERE task.engine_run = NEW.run_id AND NEW.state = 'running';
    RETURN NULL;
END $$;
CREATE TRIGGER write_down AFTER INSERT OR UPDATE ON absurd.r_adjourn_default FOR EACH ROW EXECUTE FUNCTION public.write_down();
"""
UNTIL = "SELECT run, extract(epoch FROM max(until))::float8 FROM public.lease GROUP BY run"


class Person(threading.Thread):
    """Starts tasks and approves them, from a machine of its own; knows what it was told is done."""

    def __init__(self, machine: Machine, controller: Controller) -> None:
        super().__init__(name="person")
        self.machine = machine
        self._controller = controller
        self._me = Principal(name=f"uid:{os.getuid()}")
        self.must_stop = threading.Event()
        self.started: set[str] = set()
        self.approved: set[str] = set()
        self.refusals: Counter[str] = Counter()

    def run(self) -> None:
        self.start_by_command()
        while not self.must_stop.is_set():
            try:
                self._keep_busy()
            except StoreProblem as error:
                self.refusals[error.code if error.way_out else "no way out"] += 1
            if self.approved and len(self.approved) % 20 == 0:
                self.start_by_command()
                self.approve_by_command()
            time.sleep(0.1)

    def _keep_busy(self) -> None:
        with self._controller.store.read() as view:
            under_way = view.tasks(states=[TaskState.QUEUED, TaskState.RUNNING], limit=BUSY)
            asks = [ask.id for ask in view.open_asks(limit=1000) if ask.kind is AskKind.APPROVAL]
        if len(under_way) + len(asks) < BUSY:
            spec = Spec(
                runner="command",
                argv=COMMANDS[len(self.started) % 2],
                workspace=str(self.machine.work),
            )
            self.started.add(self._controller.tasks.start(spec, by=self._me).id)
        for ask in asks[:3]:
            self._controller.decisions.decide([Reply(ask_id=ask, verb=Verb.APPROVE)], by=self._me)
            self.approved.add(ask)

    def start_by_command(self) -> None:
        if said := self._say("run", "--detach", "--output", "json", "--", *COMMANDS[0]):
            self.started.add(said["task_id"])

    def approve_by_command(self) -> None:
        found = self._say("inbox", "--output", "json", "--limit", "1000")
        for ask in [
            ask["id"] for ask in (found or {"asks": []})["asks"] if ask["kind"] == "approval"
        ][:3]:
            if self._say("approve", "--output", "json", ask):
                self.approved.add(ask)

    def _say(self, *words: str) -> Document | None:
        """Return what was said, or None where it was refused, in a sentence and with a way out."""
        done = self.machine.adjourn(*words, expect=None, cwd=self.machine.work)
        assert "Traceback" not in done.err, done.err
        assert "a defect in adjourn" not in done.out + done.err, done.out + done.err
        if done.code == 0:
            return done.doc
        error = done.doc["error"]
        assert error["message"], done
        assert error["way_out"], done
        self.refusals[error["code"]] += 1
        return None


@pytest.mark.serial
@pytest.mark.timeout(3600)
def test_whatever_fails_every_effect_is_there_once_or_uncertain_and_no_child_outlives_its_lease(
    tmp_path: Path, sweep: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = own_server("chaos")
    work = tmp_path / "work"
    (work / "stamps").mkdir(parents=True)
    with server.empty_database() as url, ExitStack() as stack:
        _make_ready(server, url)
        joined = stack.enter_context(cables(MACHINES))
        wires = [stack.enter_context(wire_at(url, cable.host)) for cable in joined]
        mine, my_url = stack.enter_context(wire_at(url, "127.0.0.1"))
        machines = [
            Remote(tmp_path / f"machine-{number}", address, work=work, cable=cable, wire=wire)
            for number, (cable, (wire, address)) in enumerate(zip(joined, wires, strict=True))
        ]
        desk = _desk(tmp_path, my_url, work)
        for name in ("XDG_STATE_HOME", "ADJOURN_LISTEN", "ADJOURN_LEASE"):
            monkeypatch.setenv(name, desk.environment[name])
        controller = open_controller(find_root(my_url))
        stack.callback(controller.store.close)
        person = Person(desk, controller)
        trouble = Trouble(machines, [mine, *(wire for wire, _ in wires)], server, seed=SEED)
        try:
            _live_through(
                trouble, machines, person, _possible(SHARES[sweep], is_real=joined[0].is_real)
            )
            _check(server, url, person, work)
        finally:
            trouble.calm()
            for each in machines:
                each.stop()
        _report(trouble, person, machines, url, work, is_real=joined[0].is_real)
        for log in (log for each in machines for log in _logs(each)):
            assert "Traceback" not in log, log
            assert "a defect" not in log, log
            assert "psycopg" not in log, log


def _possible(counts: dict[str, int], *, is_real: bool) -> dict[str, int]:
    return {kind: count for kind, count in counts.items() if is_real or kind != "cable_pulled"}


def _make_ready(server: Server, url: str) -> None:
    PostgresStore(url).close()
    name = url.partition("?")[0].rpartition("/")[2]
    server.do("SELECT adjourn.made_queue('default')", name)
    server.do(WRITES_DOWN_LEASES, name)


def _desk(tmp_path: Path, url: str, work: Path) -> Machine:
    machine = Machine(tmp_path / "desk", url, work=work)
    machine.environment["ADJOURN_LISTEN"] = url
    return machine


def _live_through(
    trouble: Trouble, machines: list[Remote], person: Person, counts: dict[str, int]
) -> None:
    for machine in machines:
        machine.begin_worker()
    person.start()
    try:
        trouble.make(counts, pause=0.25)
    finally:
        person.must_stop.set()
        person.join()
        trouble.calm()
    until(lambda: _is_at_rest(person), what="all came to rest", seconds=60 * LEASE)


def _is_at_rest(person: Person) -> bool:
    person.approve_by_command()
    found = person.machine.json("tasks", "--limit", "5000")["tasks"]
    time.sleep(0.5)
    return all(task["state"] not in {"queued", "running"} for task in found) and not any(
        ask["kind"] == "approval" for ask in person.machine.json("inbox", "--limit", "5000")["asks"]
    )


def _check(server: Server, url: str, person: Person, work: Path) -> None:
    store = PostgresStore(url)
    with store.read() as view:
        tasks = {task.id: task for task in view.tasks(limit=10_000)}
        asks = {ask.id: ask for task in tasks for ask in view.asks(task)}
        inbox = {ask.task_id: ask.kind.value for ask in view.open_asks(limit=10_000)}
        assert first_broken(view.trail()) is None
    store.close()
    assert "no way out" not in person.refusals
    assert person.started <= tasks.keys(), "what was acknowledged is there"
    assert {ask for ask in person.approved if asks[ask].state.value != "approved"} == set()
    began, ended = (_effects(work, sign) for sign in "+-")
    assert [call for call, times in began.items() if times > 1] == [], "no effect twice"
    for task in tasks.values():
        calls = [call for call in began if call.startswith(f"{task.id}.")]
        if task.state.value == "succeeded":
            assert [ended[call] for call in calls] == [1], (task, calls)
        else:
            assert (task.state.value, inbox.get(task.id)) == ("waiting", "uncertain"), task
    _check_stamps(server, url, work)


def _effects(work: Path, sign: str) -> Counter[str]:
    lines = (work / "effects").read_text().splitlines()
    return Counter(line.split()[1] for line in lines if line.startswith(sign))


def _check_stamps(server: Server, url: str, work: Path) -> None:
    name = url.partition("?")[0].rpartition("/")[2]
    leases: dict[str, float] = dict(server.do(UNTIL, name))
    late = {
        run: last - leases[run] for run, last in _last_stamps(work).items() if last > leases[run]
    }
    assert late == {}, "a child outlived its lease"


def _last_stamps(work: Path) -> dict[str, float]:
    found = {path.name: path.read_text().split() for path in (work / "stamps").iterdir()}
    return {run: float(stamps[-1]) for run, stamps in found.items() if stamps}


def _report(
    trouble: Trouble, person: Person, machines: list[Remote], url: str, work: Path, *, is_real: bool
) -> None:
    store = PostgresStore(url)
    with store.read() as view:
        states = Counter(task.state.value for task in view.tasks(limit=10_000))
    store.close()
    adopted, taken = (
        sum(log.count(word) for each in machines for log in _logs(each))
        for word in ("adopted", "taken away")
    )
    print(
        f"\n{dict(trouble.made)}; {'a network each' if is_real else 'one network: no privilege for more'}"
    )
    print(
        f"{dict(states)}; {sum(_effects(work, '+').values())} effects; {adopted} runs adopted, {taken} taken away"
    )
    print(
        f"{len(person.started)} starts and {len(person.approved)} decisions acknowledged; refused: {dict(person.refusals)}"
    )


def _logs(machine: Remote) -> list[str]:
    return [machine.log(number) for number in range(len(machine.workers))]
