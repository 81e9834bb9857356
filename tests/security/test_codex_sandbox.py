"""The sandbox of the real Codex is a pid namespace of its own: nothing is decided from there."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.codex.scene import Scene, outputs, shell
from tests.e2e.shell import ADJOURN, Shell
from tests.model.script import Turn
from tests.needs import missing, needs
from tests.programs import program

pytestmark = pytest.mark.one_machine(
    "a local user decides by a uid only on the store of one machine"
)

WITHOUT_GROUPS = "TEST_WITHOUT_CONTROL_GROUPS"
READ_ONLY = 'mount --bind /sys/fs/cgroup /sys/fs/cgroup && mount -o remount,bind,ro /sys/fs/cgroup && exec "$@"'


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
    approve = f"env -u ADJOURN_RUN_ID {ADJOURN} approve {ask} --store {real.shell.store} 2>&1"
    attack = f"{approve}; echo code $?; readlink /proc/self/ns/pid; cat /proc/self/cgroup"
    real.shell.script(attack, name="attack.sh")
    real.allow('[[rule]]\ntool = "shell"\nargs = ["./attack.sh"]\naction = "auto"\n')
    with real.model(
        [Turn(calls=(shell("./attack.sh", name="call_A"),)), Turn(text="All done.")]
    ) as model:
        real.run(expect=None)
    said = outputs(model.asked[-1])["call_A"]
    assert "code 5" in said, said
    assert os.readlink("/proc/self/ns/pid") not in said
    if WITHOUT_GROUPS in os.environ:
        assert "adjourn-" not in said.partition("0::")[2], said
        assert "its pid namespace is not one from which this store was used" in said, said
    assert ask in [each["id"] for each in real.asks()]
    real.shell.adjourn("reject", ask)


def test_its_namespaces_alone_refuse_it_where_no_control_group_can_be_made() -> None:
    """Most containers have their control groups mounted read-only.

    The same attack is tried there.
    """
    if os.getuid():
        missing("the right to mount")
    program("codex")
    this = f"{__file__}::{test_a_command_of_codex_cannot_decide_from_its_sandbox.__name__}"
    words = [
        "sh",
        "-c",
        READ_ONLY,
        "sh",
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        this,
    ]
    done = subprocess.run(
        [needs("unshare"), "-m", *words],
        env={**os.environ, WITHOUT_GROUPS: "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr
