"""The sandbox of the real Codex is a pid namespace of its own: nothing is decided from there."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.codex.scene import Scene, outputs, shell
from tests.e2e.shell import ADJOURN, Shell
from tests.model.script import Turn
from tests.programs import program

pytestmark = pytest.mark.one_machine(
    "a local user decides by a uid only on the store of one machine"
)


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Scene]:
    """Return a scene with the real Codex; afterwards no process of it may be left."""
    scene = Scene(tmp_path, program("codex"))
    yield scene
    assert scene.shell.end() == {}


def waiting(person: Shell) -> str:
    """Return an ask that waits for a person."""
    ask: str = person.json("run", "--pause-on-approval", "--", "touch", "forbidden", expect=10)[
        "asks"
    ][0]["id"]
    return ask


def test_a_command_of_codex_cannot_decide_from_its_sandbox(real: Scene) -> None:
    ask = waiting(real.shell)
    # The sandbox may write into the workspace, where the store is.
    attack = f"env -u ADJOURN_RUN_ID {ADJOURN} approve {ask} --store {real.shell.store}; echo code $?; readlink /proc/self/ns/pid"
    real.shell.script(attack, name="attack.sh")
    real.allow('[[rule]]\ntool = "shell"\nargs = ["./attack.sh"]\naction = "auto"\n')
    with real.model(
        [Turn(calls=(shell("./attack.sh", name="call_A"),)), Turn(text="All done.")]
    ) as model:
        real.run(expect=None)
    said = outputs(model.asked[-1])["call_A"]
    assert "code 5" in said, said
    assert os.readlink("/proc/self/ns/pid") not in said
    assert ask in [each["id"] for each in real.asks()]
    real.shell.adjourn("reject", ask)
