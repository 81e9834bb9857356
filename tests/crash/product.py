"""adjourn under injection.

Its commands as steps, and the promises that hold whatever was killed.
"""

import collections
import functools
import importlib
import pkgutil
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

import adjourn as adjourn_package
from adjourn.cli.app import run as run_command_line
from adjourn.core.trail.events import first_broken
from adjourn.wiring.controller import open_controller
from tests.crash.ledger import ENDED, AskRow, Ledger, TaskRow, read_ledger
from tests.crash.stage import Effect, Ran, Stage

for _module in pkgutil.walk_packages(adjourn_package.__path__, "adjourn."):
    if not _module.name.endswith("__main__"):
        importlib.import_module(_module.name)  # here once, not in every fork

STORE = ".adjourn"
SHIM = "adjourn-shim"
CGROUPS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
SETTLED_WITHIN = 5.0  # seconds
ROUNDS = 8
FINE = {0, 1, 10}  # completed, failed, paused: how a run may end
CONFLICT = 4
NOT_STARTED = {"pending", "approved", "rejected", "withdrawn", "expired"}

Sentences = list[str]


def adjourn(*words: str) -> Callable[[], int]:
    """Return an act that is this command line."""
    return functools.partial(_adjourn, words)


def _adjourn(words: tuple[str, ...]) -> int:
    sys.argv = [str(Path(sys.executable).with_name("adjourn")), *words]
    return run_command_line(list(words))


def ledger(stage: Stage) -> Ledger:
    """Return the store of the stage."""
    return read_ledger(stage.work / STORE / "adjourn.db")


def effect(stage: Stage, *options: str) -> list[str]:
    """Return a command whose starts are recorded."""
    return [stage.tools.effect, str(stage.effects_file), *options]


def newest_task(stage: Stage) -> str:
    """Return the id of the task that was made last."""
    return ledger(stage).tasks[-1].id


def one_ask(stage: Stage) -> str:
    """Return the id of the ask that waits for a person, or did."""
    seen = ledger(stage)
    return (seen.open_asks or seen.asks)[0].id


# ── What must hold whatever was killed ──


def examine(stage: Stage, ran: Ran, *, shims_die: bool = False) -> Sentences:
    """Play what a person would do next, until every task has ended.

    Return what was not as promised.
    """
    broken = _manners(ran, "the step") if ran.code >= 0 else []
    broken += settle_down(stage)
    broken += uncertainties(stage) if shims_die else certainty(stage)
    broken += torn_manifests(stage)
    broken += go_on(stage)
    broken += starts(stage)
    broken += leftovers(stage)
    broken += furniture(stage)
    return broken


def settle_down(stage: Stage) -> Sentences:
    """Look until every task is at rest: that takes one command, or a few within five seconds."""
    deadline = time.monotonic() + SETTLED_WITHIN
    while True:
        looked = stage.play(adjourn("tasks", "--output", "json"))
        broken = _manners(looked, "the next command")
        seen = ledger(stage)
        if broken or not restless(seen) or time.monotonic() > deadline:
            break
        time.sleep(0.01)
    broken += [f"the store is corrupt: {seen.damage}"] * bool(seen.damage)
    broken += [f"five seconds later a task is still {state}" for state in restless(seen)]
    broken += [
        f"a process survived: {name.partition(' ')[2]}"
        for name in stage.survivors(patience=SETTLED_WITHIN)
    ]
    return broken


def restless(seen: Ledger) -> Sentences:
    """Return how each task stands that is neither terminal, nor in the inbox, nor queued and unclaimed."""
    return [f"{task.state} {_calls(seen, task)}" for task in seen.tasks if not _rests(seen, task)]


def certainty(stage: Stage) -> Sentences:
    """The death of a supervisor makes no call uncertain."""
    return [
        "a call is uncertain, and only its supervisor died"
        for call in ledger(stage).calls
        if call.state == "uncertain"
    ]


def uncertainties(stage: Stage) -> Sentences:
    """A call is uncertain only if no result exists, and nobody alive can prove that the gate stayed shut."""
    seen = ledger(stage)
    uncertain = {call.id for call in seen.calls if call.state == "uncertain"}
    results = [
        run.id for run in seen.runs if run.call in uncertain and _result(stage, run.id).exists()
    ]
    broken = ["a call is uncertain, and its result exists" for _ in results]
    if uncertain and stage.aimed.role == SHIM and _stood_at_the_gate(stage):
        broken.append("a call is uncertain, and its supervisor saw that the gate stayed shut")
    return broken


def _stood_at_the_gate(stage: Stage) -> bool:
    """Say whether the shim died before it passed the gate.

    The one byte that starts its child comes right after.
    """
    return "p" not in stage.shot(stage.aimed).trace


def go_on(stage: Stage) -> Sentences:
    """Decide whatever is asked, resume whatever is queued, until nothing is left to do."""
    broken: Sentences = []
    for _ in range(ROUNDS):
        seen = ledger(stage)
        undone = [task for task in seen.tasks if task.state not in ENDED]
        if not undone or broken:
            return broken
        for ask in seen.open_asks:
            broken += _manners(
                stage.play(_reply(stage, ask)), f"the reply to an ask of kind {ask.kind}", fine={0}
            )
        for task in ledger(stage).tasks:
            if task.state in {"queued", "paused"}:
                broken += _manners(
                    stage.play(adjourn("resume", task.id)),
                    f"resuming a task that was {task.state}",
                    fine=FINE,
                )
    left = [task.state for task in ledger(stage).tasks if task.state not in ENDED]
    return broken + [
        f"after {ROUNDS} rounds of decisions a task is still {state}" for state in left
    ]


def starts(stage: Stage, *, before: Iterable[Effect] = ()) -> Sentences:
    """No call started twice; what is done did start, and what never left approval did not."""
    seen = ledger(stage)
    begun = collections.Counter(
        one.call for one in (*before, *stage.effects()) if one.what in {"start", "ask"}
    )
    broken = [f"a call started {times} times" for times in begun.values() if times > 1]
    for call in seen.calls:
        if call.state == "done" and not begun[call.id]:
            broken.append("a call is done that never started")
        if call.state in NOT_STARTED and begun[call.id]:
            broken.append(f"a call is {call.state} that did start")
    known = {call.id for call in seen.calls}
    broken += ["a call started that the store does not know" for call in begun if call not in known]
    return broken


def torn_manifests(stage: Stage) -> Sentences:
    """A manifest is written whole or not at all."""
    found = (stage.work / STORE / "session").rglob("pause.json")
    return ["a manifest is torn" for path in found if not _is_json(path)]


def _is_json(path: Path) -> bool:
    try:
        msgspec.json.decode(path.read_bytes())
    except msgspec.DecodeError:
        return False
    return True


def furniture(stage: Stage) -> Sentences:
    """The audit trail closes, and what hides the store from git is there."""
    root = stage.work / STORE
    if not root.exists():
        return []
    controller = open_controller(str(root))
    with controller.store.read() as view:
        broken = ["the audit trail is broken"] * (first_broken(view.trail()) is not None)
    controller.store.close()
    return broken + ["the store has no .gitignore"] * (not (root / ".gitignore").exists())


def leftovers(stage: Stage) -> Sentences:
    """No process outlives the last command, and no control group its run, not even an empty one."""
    survivors = [
        f"in the end a process is left: {name.partition(' ')[2]}"
        for name in stage.survivors(patience=SETTLED_WITHIN)
    ]
    records = [
        msgspec.json.decode(path.read_bytes())
        for path in (stage.work / STORE / "runs").glob("*/shim.json")
    ]
    known = [Path(record["cgroup"]) for record in records if record.get("cgroup")]
    killed = [
        path
        for mount in CGROUPS
        for path in mount.glob(f"adjourn-{stage.shot(stage.aimed).killed}-*")
    ]
    return survivors + [
        "an empty control group is left behind" for path in {*known, *killed} if path.exists()
    ]


def decided(stage: Stage, ran: Ran, *, words: list[str], state: str) -> Sentences:
    """A decision that was acknowledged is in the store.

    Said again, it is recorded, or refused because it was.
    """
    ask = ledger(stage).asks[0]
    broken = [f"it said {state}, and the ask is {ask.state}"] * (
        (ran.code == 0 or bool(ran.said)) and ask.state != state
    )
    again = stage.play(adjourn(*words))
    broken += _manners(
        again, "the same decision said again", fine={0 if ask.state == "pending" else CONFLICT}
    )
    after = ledger(stage).asks[0].state
    return broken + [f"said again, the decision made the ask {after}"] * (after != state)


def _manners(ran: Ran, who: str, *, fine: Iterable[int] = (0, 1, 3, 4, 10)) -> Sentences:
    if ran.hung:
        return [f"{who} hung"]
    if "Traceback" in ran.complained:
        return [f"{who} showed a traceback: {ran.complained.strip().splitlines()[-1]}"]
    if ran.code not in fine:
        return [f"{who} left with {ran.code}: {(ran.complained or ran.said).strip()[:300]}"]
    return []


def _rests(seen: Ledger, task: TaskRow) -> bool:
    """Say whether a task is terminal, in the inbox, or queued and unclaimed."""
    match task.state:
        case "waiting":  # for a person, or for a task of its own that does
            return bool(seen.open_asks_of(task)) or any(
                other.state in {"waiting", "queued"} for other in seen.tasks if other != task
            )
        case "queued":
            return not any(call.state in {"claimed", "executing"} for call in seen.of(task))
        case "paused":
            return True
        case _:
            return task.state in ENDED


def _calls(seen: Ledger, task: TaskRow) -> str:
    return f"(calls {', '.join(call.state for call in seen.of(task))}; open asks {len(seen.open_asks_of(task))})"


def _reply(stage: Stage, ask: AskRow) -> Callable[[], int]:
    match ask.kind:
        case "approval":
            return adjourn("approve", ask.id)
        case "question":
            return adjourn("answer", ask.id, "eu")
        case _:  # a person who went and looked
            started = any(one.call == ask.call for one in stage.effects())
            return adjourn("settle", ask.call, "it-ran" if started else "run-again")


def _result(stage: Stage, run: str) -> Path:
    return stage.work / STORE / "runs" / run / "result.json"


def _play_fine(stage: Stage, act: Callable[[], int], *, code: int) -> Ran:
    ran = stage.play(act)
    assert ran.code == code, f"expected {code}, got {ran}"
    return ran
