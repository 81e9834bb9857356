"""What a person does with adjourn from beginning to end, and what must be left of it when the power fails."""

import os
import shutil
from collections.abc import Callable

import msgspec

from adjourn.core.errors import AdjournError
from adjourn.core.trail.events import first_broken
from adjourn.wiring.controller import open_controller
from tests.crash.ledger import Ledger
from tests.crash.powerloss import Known
from tests.crash.product import (
    NOT_STARTED,
    STORE,
    adjourn,
    go_on,
    ledger,
    restless,
    starts,
    torn_manifests,
    uncertainties,
)
from tests.crash.scenarios import (
    KILL_SUPERVISOR,
    QUESTION,
    Words,
    of_ask,
    of_task,
    run,
    run_script,
    settle,
    words,
)
from tests.crash.stage import LINE, Stage

Fact = Callable[[Ledger], bool]


class Act(msgspec.Struct, frozen=True):
    """A command of a story, its exit code, and what the store must know once the command has spoken or left."""

    name: str
    words: Words
    code: int
    fact: Fact


class Life:
    """A story told by commands; every acknowledgement in it outlives any power loss."""

    def __init__(self, *acts: Act) -> None:
        self._acts = acts

    def setup(self, stage: Stage) -> None:
        """Begin with nothing: the first command makes the store."""

    def tell(self, stage: Stage) -> None:
        """Play every command."""
        for act in self._acts:
            ran = stage.play(adjourn(*act.words(stage)))
            assert ran.code == act.code, f"expected {act.code}: {ran}"
        shutil.copyfile(stage.effects_file, _kept_effects(stage))

    def judge(self, stage: Stage, known: Known, *, thorough: bool) -> list[str]:
        """Recover the store; what was acknowledged is there, and what started will not start again."""
        try:
            _recover(stage)
        except (AdjournError, AssertionError) as error:
            return [f"the recovery failed: {error}".replace(str(stage.root), "…")]
        seen = ledger(stage)
        broken = [f"the store is corrupt: {seen.damage}"] * bool(seen.damage)
        broken += [f"the recovery left a task {state}" for state in restless(seen)]
        broken += [
            f"the acknowledgement of {act.name} is lost"
            for act in self._told(known)
            if not act.fact(seen)
        ]
        broken += _startable_again(seen, known)
        broken += uncertainties(stage)
        broken += torn_manifests(stage)
        if thorough and not broken:
            _put_back_effects(stage, count=len(known.effects))
            broken += go_on(stage)
            broken += starts(stage)
        return broken

    def _told(self, known: Known) -> list[Act]:
        return [
            act
            for number, act in enumerate(self._acts)
            if known.said.get(number) or number in known.exits
        ]


def _recover(stage: Stage) -> None:
    """Do what every command does first."""
    if (stage.work / STORE).exists():
        controller = open_controller(str(stage.work / STORE))
        controller.runs.recover()
        with controller.store.read() as view:
            assert first_broken(view.trail()) is None, "the audit trail is broken"
        controller.store.close()


def _startable_again(seen: Ledger, known: Known) -> list[str]:
    states = {call.id: call.state for call in seen.calls}
    startable = NOT_STARTED | {"claimed", "forgotten"}
    begun = [
        states.get(effect.call, "forgotten")
        for effect in known.effects
        if effect.what in {"ask", "start"}
    ]
    return [f"a call that started is {state}" for state in begun if state in startable]


def _kept_effects(stage: Stage) -> str:
    return f"{stage.root}/kept-effects"


def _put_back_effects(stage: Stage, *, count: int) -> None:
    shutil.copyfile(_kept_effects(stage), stage.effects_file)
    os.truncate(stage.effects_file, count * LINE)


def task_is(number: int, state: str) -> Fact:
    """The task that was made as that number is in that state."""
    return lambda seen: len(seen.tasks) > number and seen.tasks[number].state == state


def run_is(number: int, state: str) -> Fact:
    """The run of that number ended so."""
    return lambda seen: len(seen.runs) > number and seen.runs[number].state == state


def ask_is(number: int, *states: str) -> Fact:
    """The ask that was opened as that number is in one of those states."""
    return lambda seen: len(seen.asks) > number and seen.asks[number].state in states


def asked(number: int) -> Fact:
    """The ask of that number is there."""
    return lambda seen: len(seen.asks) > number


approved = Life(
    Act("run", run("--ask", "90"), 10, asked(0)),
    Act("approve", of_ask("approve"), 0, ask_is(0, "approved")),
    Act("resume", of_task("resume", "--output", "json"), 0, task_is(0, "succeeded")),
    Act("run", run(), 0, task_is(1, "succeeded")),
)
answered = Life(
    Act("run", run_script(QUESTION), 10, asked(0)),
    Act("answer", of_ask("answer", "eu"), 0, ask_is(0, "answered")),
    Act("resume", of_task("resume", "--output", "json"), 0, task_is(0, "succeeded")),
)
refused = Life(
    Act("run", run("--ask", "90"), 10, asked(0)),
    Act("reject", of_ask("reject", "--reason", "no"), 0, ask_is(0, "rejected")),
    Act("run", run("--ask", "90"), 10, asked(1)),
    Act("cancel", of_task("cancel"), 0, task_is(1, "canceled")),
    Act("run", run("--exit", "3"), 1, task_is(2, "failed")),
)
orphaned = Life(
    Act("run", run_script(KILL_SUPERVISOR + "; EFFECT"), -9, lambda _: True),
    Act("tasks", words("tasks"), 0, run_is(0, "succeeded")),
    Act("restart", of_task("restart", "--output", "json"), 0, task_is(0, "succeeded")),
)
lost = Life(
    Act("run", run_script("EFFECT; kill -KILL $PPID"), 10, asked(0)),
    Act("settle", settle("it-ran"), 0, ask_is(0, "settled")),
    Act("run", run("--ask", "90"), 10, asked(1)),
    Act("resume", of_task("resume", "--approve-all"), 0, task_is(1, "succeeded")),
)
