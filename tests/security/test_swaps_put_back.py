"""A file that cannot be pinned is swapped for the time of its run and put back.

The trail still says so.
"""

import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from adjourn.core.ask import Principal, Reply, Verb
from adjourn.core.task import Spec
from adjourn.wiring.supervisor import open_supervisor
from tests.e2e.shell import ADJOURN, Shell
from tests.needs import missing, needs
from tests.security.ordinary import OrdinaryShell, ordinary_shell
from tests.security.sweep import KINDS, Target, said, swapper

ME = Principal(name=f"uid:{os.getuid()}")
AWAY = {"folder": "real", "link": "bin", "file": "bin/deploy.py"}
LAST_EVENT = 30  # of one start, counted at the file

# It writes which one it is, then a sign, and ends when the attacker has removed the sign:
# everything is put back by then.
PYTHON = """#!/usr/bin/env python3
import os, sys, time
open(sys.argv[1], "a").write("{word}\\n")
open(sys.argv[1] + ".sign", "w").close()
for _ in range(30 if "{word}" == "good" else 3000):
    if not os.path.exists(sys.argv[1] + ".sign"): break
    time.sleep(0.001)
"""


class PythonTarget(Target):
    """A script of Python, which is named in the ask and not pinned."""

    @property
    def argv(self) -> tuple[str, ...]:
        return ("python3", "bin/apply", str(self.noted))

    def lay_out(self, kind: str) -> None:
        super().lay_out(kind)
        self.file.write_text(PYTHON.format(word="good"))
        self.other.write_text(PYTHON.format(word="evil"))
        self.sign.unlink(missing_ok=True)

    @property
    def sign(self) -> Path:
        return Path(f"{self.noted}.sign")


@pytest.mark.parametrize("kind", KINDS)
def test_a_swap_that_is_put_back_before_the_run_ends_is_not_silent(
    tmp_path: Path, kind: str
) -> None:
    target = PythonTarget(tmp_path, "script")
    controller, supervisor = open_supervisor(str(tmp_path / ".adjourn"))
    silent: list[int] = []
    achieved = 0
    try:
        with swapper() as attacker:
            for number in range(LAST_EVENT, 0, -1):
                target.lay_out(kind)
                spec = Spec(
                    runner="command",
                    argv=target.argv,
                    workspace=str(tmp_path),
                    pause_on_approval=True,
                )
                task = controller.tasks.start(spec, by=ME)
                (ask,) = controller.scene(task.id).open_asks
                controller.decisions.decide([Reply(ask_id=ask.id, verb=Verb.APPROVE)], by=ME)
                order = f"{kind}\t{number}\t{target.file}\t{target.other}\t{target.sign}"
                assert said(attacker, order) == "armed"
                supervisor.run(controller.decisions.find_task(task.id))
                said(attacker, "stop")
                with controller.store.read() as view:
                    told = [
                        event for event in view.events(task.id) if event.kind == "files_changed"
                    ]
                if target.ran() == "evil":
                    achieved += 1
                    silent += [] if told else [number]
                if achieved == 3:
                    break
    finally:
        supervisor.close()
        controller.store.close()
    assert achieved, "the attacker never came in time: this shows nothing"
    assert not silent


def _script(shell: Shell, text: str, name: str = "deploy.py") -> Path:
    script = shell.place / name
    script.write_text(f"#!/usr/bin/env python3\nimport os\n{text}\n")
    script.chmod(0o755)
    return script


def _gated(shell: Shell, *argv: str) -> str:
    paused = shell.json("run", "--pause-on-approval", "--", *argv, expect=10)
    shell.adjourn("approve", paused["asks"][0]["id"])
    return str(paused["task_id"])


def test_a_file_that_nobody_touches_is_not_reported(shell: Shell) -> None:
    """What happens beside it, or in its directory, is not about it."""
    _script(
        shell,
        "open('beside', 'w').close(); os.mkdir('made'); os.rename('beside', 'made/beside'); os.chmod('.', 0o700)",
    )
    task = _gated(shell, "./deploy.py")
    shell.adjourn("resume", task)
    assert "files changed" not in shell.adjourn("show", task).out


@pytest.mark.parametrize("who", ["ordinary", "mine"])
@pytest.mark.parametrize("what", ["folder", "link", "file"])
def test_what_is_away_for_a_moment_is_named_with_what_is_not_known(
    tmp_path: Path, who: str, what: str
) -> None:
    with ordinary_shell() if who == "ordinary" else nullcontext(Shell(tmp_path)) as shell:
        folder = shell.place / "real"
        folder.mkdir()
        _script(
            shell,
            f"os.rename('{AWAY[what]}', 'away'); os.rename('away', '{AWAY[what]}')",
            "real/deploy.py",
        )
        (shell.place / "bin").symlink_to("real")
        if isinstance(shell, OrdinaryShell):
            shell.give_files()
        task = _gated(shell, "bin/deploy.py")
        shell.adjourn("resume", task)
        (line,) = [
            line for line in shell.adjourn("show", task).out.splitlines() if "files changed" in line
        ]
        assert str(shell.place / "bin" / "deploy.py") in line
        assert "unknown" not in line
        assert ("which content was read is not known" in line) == (what != "file")


@pytest.mark.parametrize("name", ["de\\ploy.py", "de\udcffploy.py", "de\\udcffploy.py"])
def test_a_strange_name_hides_no_swap(shell: Shell, name: str) -> None:
    own = os.fsencode(name)
    _script(shell, f"os.rename({own!r}, b'away'); os.rename(b'away', {own!r})", name)
    task = _gated(shell, "./" + name)
    shell.adjourn("resume", task)
    assert "files changed" in shell.adjourn("show", task).out


def test_without_a_watch_the_trail_says_that_a_swap_would_not_be_seen(shell: Shell) -> None:
    """Each user may have so many watches only, and an attacker can use them up."""
    script = _script(shell, "print('deployed')")
    limit = "/proc/sys/user/max_inotify_instances"
    if shell.run(needs("unshare"), "-r", "sh", "-c", f"echo 0 > {limit}", expect=None).code:
        missing("the right to make user namespaces")
    task = _gated(shell, "./deploy.py")
    words = f'echo 0 > {limit} && exec "$@"'
    shell.run("unshare", "-r", "sh", "-c", words, "sh", str(ADJOURN), "resume", task)
    (line,) = [
        line for line in shell.adjourn("show", task).out.splitlines() if "files changed" in line
    ]
    assert "unknown" in line
    assert str(script) in line
    assert "another process may have changed it" in line


def test_a_writer_that_was_there_before_the_start_is_not_silent(shell: Shell) -> None:
    """It may write through a mapping, which changes bytes and causes no event."""
    script = _script(shell, "print('deployed')")
    # A program that is being written does not start at all
    task = _gated(shell, "python3", "deploy.py")
    with script.open("r+b"):
        shell.adjourn("resume", task)
    shown = " ".join(shell.adjourn("show", task).out.split())
    assert f"unknown {script}; another process may have changed it" in shown
