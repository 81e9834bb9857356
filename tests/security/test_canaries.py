"""A secret in any field of any value stays in the store: no surface prints it, and no file has it."""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from adjourn.core.agent.calls import Report
from adjourn.core.ask import ApprovalAsk, AskReason, QuestionAsk, Settlement, UncertainAsk
from adjourn.core.call import Call, Command, command_body, digest_of
from adjourn.core.kept_documents import NOT_MADE, REPORT, WHY
from adjourn.core.states import AskState, CallState, TaskState
from adjourn.core.task import PauseReason, Run, RunState, Spec, Task
from adjourn.core.trail.events import Event
from adjourn.ports.store import Change
from tests.e2e.shell import Shell
from tests.secrets import OWN_PATTERN, Canary, canaries
from tests.secrets import is_store as is_in_store

CANARIES = canaries(100)
NOW = 1_700_000_000_000
# What adjourn makes itself: names, digests and the like. No text of a person or a program is in them
OWN = frozenset(
    [
        "id",
        "task_id",
        "session_id",
        "supervisor",
        "digest",
        "nonce",
        "claimed_by",
        "slot",
        "runner",
        "pool",
        "policy",
        "parent_run",
        "tool",
        "replaces",
        "checkpoint_id",
        "by",
        "level",
        "approved_by",
        "kind",
        "setup",
        "boot_id",
        "cost",
        "resume_with",
    ]
)


class Planter:
    """Puts the next canary into each text that it meets."""

    def __init__(self) -> None:
        self._next = itertools.cycle(CANARIES)
        self.planted = 0

    def take(self) -> Canary:
        self.planted += 1
        return next(self._next)

    def text(self) -> str:
        return "it says " + " ".join(self.take().words)

    def words(self) -> tuple[str, ...]:
        return ("tool", *self.take().words, *self.take().words)

    def plant(self, value: Any) -> Any:
        """Return a value with a canary in each of its texts, those of the values inside included."""
        changes: dict[str, Any] = {}
        for name, hint in get_type_hints(type(value)).items():
            if name in OWN or name.startswith("__"):
                continue
            if hint == tuple[str, ...]:
                changes[name] = self.words()
            elif hint in {str, str | None}:
                changes[name] = f"/srv/{self.text()}" if name == "workspace" else self.text()
            elif isinstance(inner := getattr(value, name, None), msgspec.Struct):
                changes[name] = self.plant(inner)
        return msgspec.structs.replace(value, **changes)


def tasks_of(planter: Planter) -> Iterator[tuple[Task, list[Any]]]:
    """Return a task of each kind, with what belongs to it."""
    for number, (state, is_driven) in enumerate(
        itertools.product(
            (TaskState.WAITING, TaskState.PAUSED, TaskState.FAILED, TaskState.SUCCEEDED),
            (False, True),
        )
    ):
        name = f"{number}{'a' * 25}"
        spec = planter.plant(
            Spec(runner="agent" if is_driven else "command", argv=(), workspace="")
        )
        spec = msgspec.structs.replace(
            spec, prompt=spec.prompt if is_driven else None, plan=None, item=None
        )
        run_state = RunState(state)
        paused = state in {TaskState.WAITING, TaskState.PAUSED}
        run = Run(
            task_id=name,
            number=1,
            state=run_state,
            call=1,
            supervisor="gone",
            created_at=NOW,
            updated_at=NOW,
            session_id="s",
            exit_code=10,
            paused_at=NOW if paused else None,
            pause_reason=PauseReason.UNAVAILABLE if paused else None,
        )
        asks: list[Any] = []
        common: dict[str, Any] = {"task_id": name, "run": 1, "prompt": "", "created_at": NOW}
        done = Settlement(state=AskState.WITHDRAWN, at=NOW, by="adjourn")
        for at, kind in enumerate((ApprovalAsk, QuestionAsk, UncertainAsk), start=1):
            about: dict[str, Any] = {} if kind is QuestionAsk else {"call": at}
            ask = planter.plant(
                kind(id=f"{number}{at}{'b' * 24}", number=at, **common, **about, settlement=done)
            )
            is_open = state is TaskState.WAITING
            asks.append(msgspec.structs.replace(ask, settlement=None) if is_open else ask)
        calls = [call_of(planter, name, at) for at in (1, 2, 3)]
        task = planter.plant(
            Task(
                id=name,
                spec=spec,
                state=state,
                session_id="s",
                created_at=NOW,
                updated_at=NOW,
                runs=1,
                calls=3,
                asks=3,
            )
        )
        task = msgspec.structs.replace(task, spec=spec)
        yield task, [planter.plant(run), *calls, *asks]


def call_of(planter: Planter, task_id: str, number: int) -> Call:
    said = planter.text()
    body = command_body(
        Command(argv=planter.words(), cwd=f"/srv/{planter.text()}", env={"SAID": said})
    )
    return Call(
        task_id=task_id,
        number=number,
        tool="command",
        body=body,
        digest=digest_of(body),
        nonce=f"{task_id}{number}",
        state=CallState.WITHDRAWN if number > 1 else CallState.DONE,
        ask=number,
    )


def plant_all(change: Change, planter: Planter) -> list[str]:
    names: list[str] = []
    for task, belongings in tasks_of(planter):
        change.add_task(task)
        names.append(task.id)
        for each in belongings:
            match each:
                case Run():
                    change.add_run(each)
                case Call():
                    change.add_call(each)
                case _:
                    change.add_ask(each)
                    why = AskReason(reasons=(planter.text(),), last_lines=planter.text())
                    WHY.of(each.id).keep(change, task.id, why)
                    change.append(
                        Event(
                            task_id=task.id,
                            kind="run_waiting",
                            by="uid:0",
                            at=int(time.time() * 1000),
                            facts={"ask": each.id, "run": 1},
                        )
                    )
        if task.spec.is_driven:
            REPORT.of(1).keep(change, task.id, planter.plant(Report()))
            NOT_MADE.keep(change, task.id, [2])
    return names


def leaks(outputs: dict[str, bytes]) -> list[str]:
    return [
        f"{canary.name} in {where}: {text[max(0, at - 80) : at + 40]!r}"
        for where, text in outputs.items()
        for canary in CANARIES
        if (at := text.find(canary.core.encode())) >= 0
    ]


def configure(shell: Shell) -> None:
    path = Path(shell.environment["XDG_CONFIG_HOME"]) / "adjourn" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    told = shell.script(f"cat >> '{shell.place}/told'", name="notify.sh")
    path.write_text(f'redact = ["{OWN_PATTERN}"]\n[[notify]]\ncommand = ["{shell.place}/{told}"]\n')


def test_no_canary_leaves_the_store(shell: Shell) -> None:
    """A-R86: 100 canaries in every field of every value, every verb in text and JSON: 0."""
    configure(shell)
    words = [word for canary in CANARIES for word in canary.words]
    first = shell.paused("sh", "-c", "exit 90", "sh", *words)
    planter = Planter()
    store = shell.open_store()
    with store.change() as change:
        names = plant_all(change, planter)
    store.close()
    assert planter.planted > len(CANARIES)

    outputs: dict[str, bytes] = {}

    def look(*verb: str) -> None:
        for form in ((), ("--output", "json")):
            own = [*verb[: verb.index("--")], *form] if "--" in verb else [*verb, *form]
            done = shell.adjourn(
                *own, *verb[verb.index("--") :] if "--" in verb else (), expect=None
            )
            assert "a defect in adjourn" not in done.err + done.out, (verb, done.out, done.err)
            outputs[" ".join([*verb[:3], *form])] = done.raw + done.raw_err

    for verb in (
        ["inbox"],
        ["inbox", "--limit", "100"],
        ["tasks"],
        ["doctor"],
        ["worker", "--once", "--verbose"],
    ):
        look(*verb)
    look("wait", "--timeout", "1", first["task_id"], *names)
    for name in names[-3:-1]:
        look("runs", name)
        outputs[f"show {name}"] = shell.adjourn("show", name, "--output", "json").raw
    look("notify", "--flush")
    failing = msgspec.json.encode(["sh", "-c", "exit 3", *words]).decode()
    (shell.place / "plan.txt").write_text(f'[[task]]\nid = "build"\ncommand = {failing}\n')
    look("execute", "plan.txt")
    look("plan", "show", "plan.txt")
    (shell.place / "plan.txt").unlink()
    look("resume", names[2], CANARIES[1].words[0])
    look("approve", " ".join(CANARIES[2].words))
    look("run", "--", "/nowhere/" + words[0], *words)
    look("policy", "explain", "--", "tool", *words)
    look("rules", "add", "--", "/bin/echo", *words)
    look("rules", "list")
    assert (shell.place / "told").stat().st_size > 0
    outputs |= {
        str(path): path.read_bytes()
        for root in (shell.place, Path(shell.environment["XDG_STATE_HOME"]))
        for path in root.rglob("*")
        if path.is_file() and not is_in_store(path, shell.store) and path.suffix != ".toml"
    }
    found = leaks(outputs)
    assert found == [], f"{len(found)}: " + "\n".join(found[:20])
