"""What a repository brings runs nothing by being looked at, and nothing before a person says so."""

import contextlib
import importlib.metadata
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.claude.scene import Fake
from tests.e2e.shell import ADJOURN, Shell, until
from tests.e2e.signer import Signers
from tests.model.script import ToolUse, Turn
from tests.security.every_verb import WORDS, leaves, try_verbs

PROGRAMS = (
    *(
        "claude",
        "codex",
        "git",
        "ssh-keygen",
        "ssh",
        "sleep",
        "sh",
        "bash",
        "env",
        "python",
        "python3",
        "node",
        "npm",
    ),
    *(
        "adjourn",
        "id",
        "uname",
        "ps",
        "cat",
        "ls",
        "less",
        "true",
        "systemctl",
        "docker",
        "psql",
        "vi",
        "getent",
    ),
)
WATCH = """
import os, sys
STARTS = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.fork", "os.forkpty", "pty.spawn")
def watch(event, arguments):
    if event in STARTS:
        with open(os.environ["WATCHED"], "a") as file:
            file.write(f"{event} {arguments[:1]}\\n")
sys.addaudithook(watch)
"""

CALL = Turn(calls=(ToolUse(name="Bash", arguments={"command": "echo hi"}, id="toolu_a"),))
END = Turn(text="All done.")


class Repository:
    """A workspace in which everything that could be run by mistake leaves a trace outside of it."""

    def __init__(self, shell: Shell, traces: Path) -> None:
        self.shell = shell
        self.traces = traces
        traces.mkdir()

    def plant_modules(self, folder: Path) -> None:
        """Put a module of every name that any part of the program could import into a directory."""
        folder.mkdir(exist_ok=True)
        installed = {name.split(".")[0] for name in importlib.metadata.packages_distributions()}
        names = {*sys.stdlib_module_names, *installed, "adjourn", "sitecustomize", "usercustomize"}
        for name in filter(str.isidentifier, names):
            trace = f"open({str(self.traces / name)!r}, 'a').close()\nraise ImportError('of the repository')\n"
            (folder / f"{name}.py").write_text(trace)

    def plant_programs(self, folder: Path) -> None:
        """Put a program of every name that any part could start into a directory."""
        folder.mkdir(exist_ok=True)
        for name in PROGRAMS:
            (folder / name).write_text(
                f"#!/bin/sh\n/bin/echo {name} >> {self.traces}/programs\n/bin/echo 2.1.999\n"
            )
            (folder / name).chmod(0o700)

    def plant_settings(self) -> None:
        """Put settings of other programs, and of ours, where they could be read by mistake."""
        trace = f"/bin/echo setting >> {self.traces}/settings"
        files = {
            ".env": f"ADJOURN_CLAUDE={self.shell.place}/claude\nEDITOR='{trace}'\n",
            ".adjourn/config.toml": f'[[notify]]\nname = "x"\ncommand = ["/bin/sh", "-c", "{trace}"]\nevents = ["*"]\n',
            ".claude/settings.json": msgspec.json.encode(
                {"hooks": {"SessionStart": [{"hooks": [{"command": trace}]}]}}
            ).decode(),
            ".codex/config.toml": f'notify = ["/bin/sh", "-c", "{trace}"]\n',
            ".git/HEAD": "ref: refs/heads/main\n",
            ".git/config": f'[core]\n fsmonitor = "{trace}"\n hooksPath = hooks\n pager = "{trace}"\n',
            "pyvenv.cfg": "home = .\n",
            ".pdbrc": "import os\n",
        }
        for name, text in files.items():
            path = self.shell.place / name
            path.parent.mkdir(mode=0o700, exist_ok=True)
            path.write_text(text)

    @property
    def ran(self) -> list[str]:
        """What of the repository was run."""
        programs = self.shell.lines(str(self.traces / "programs"))
        return sorted(
            [path.name for path in self.traces.iterdir() if path.name != "programs"] + programs
        )


@pytest.fixture
def repository(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Return a hostile workspace whose PATH and PYTHONPATH lead into it."""
    made = Repository(shell, tmp_path_factory.mktemp("outside") / "traces")
    made.plant_settings()
    for folder in (shell.place, shell.place / "bin"):
        made.plant_programs(folder)
    for folder in (shell.place, shell.place / "src"):
        made.plant_modules(folder)
    path = shell.environment["PATH"]
    shell.environment["PATH"] = os.pathsep.join(["", ".", "bin", str(shell.place / "bin"), path])
    return made


@contextlib.contextmanager
def working(shell: Shell) -> Iterator[None]:
    """Have a worker at hand for a while."""
    with shell.start("worker") as worker:
        try:
            until(
                lambda: bool(shell.json("worker", "--status")["workers"]),
                what="the worker is there",
            )
            yield
        finally:
            worker.send_signal(signal.SIGTERM)
            worker.communicate(timeout=30)


def test_no_verb_of_the_registry_is_left_out() -> None:
    assert set(leaves()) == set(WORDS)


def test_no_verb_imports_or_runs_anything_of_the_workspace(repository: Repository) -> None:
    """Every verb of the registry, with a worker beside them and without."""
    shell = repository.shell
    told = repository.traces.with_name("told")
    signers = Signers(shell)
    signers.allow("anna")
    signers.configure(
        f'[[notify]]\nname = "file"\ncommand = ["/bin/sh", "-c", "/bin/cat >> {told}"]\n'
    )
    script = shell.script('[ "$AUTO_APPROVAL" ] || exit 90\nexit 0', name="work.sh")
    asks = shell.script("exec adjourn ask which?", name="ask.sh")
    (shell.place / "plan.toml").write_text('[[task]]\nid = "a"\ncommand = ["/bin/true"]\n')
    signed, first, second = (shell.json("run", "--", script, expect=10) for _ in range(3))
    asking = shell.json("run", "--", asks, expect=10)
    with working(shell):
        shell.adjourn("approve", signed["asks"][0]["id"], "--sign", signers.key("anna"))
        shell.adjourn("wait", signed["task_id"])
        until(told.exists, what="somebody is told")
    names = {
        "task": first["task_id"],
        "ask": first["asks"][0]["id"],
        "other": second["task_id"],
        "reject": second["asks"][0]["id"],
        "asking": asking["task_id"],
        "question": asking["asks"][0]["id"],
    }
    try_verbs(shell, names)
    assert repository.ran == []


def test_a_relative_pythonpath_leads_to_no_module_of_the_workspace(repository: Repository) -> None:
    """What Python itself imports before our first line is the user's own affair.

    Of the rest nothing is.
    """
    shell = repository.shell
    # Python starts with some of these
    for name in ("adjourn", "sitecustomize", "usercustomize", *sys.stdlib_module_names):
        (shell.place / "src" / f"{name}.py").unlink(missing_ok=True)
    for variable in ("src", "./src"):
        shell.adjourn("tasks", env={"PYTHONPATH": variable})
        shell.adjourn("run", "--", "/bin/true", env={"PYTHONPATH": variable})
    assert repository.ran == []


READING = (
    ("tasks",),
    ("inbox",),
    ("show", "{task}"),
    ("show", "{task}", "--full"),
    ("show", "{task}", "--output", "json"),
    ("show", "{task}", "--transcript"),
    ("runs", "{task}"),
    ("logs", "{task}"),
    ("wait", "{task}"),
    ("audit", "verify"),
    ("audit", "export"),
    ("rules",),
    ("policy", "explain", "--", "git", "status"),
    ("policy", "check"),
    ("config",),
    ("notify",),
    ("worker", "--status"),
    ("completion", "bash"),
    ("--help",),
    ("--version",),
)
"""Every way to look at a store, or around it."""


def foreign_store(tmp_path: Path, program: str) -> tuple[Shell, str]:
    """Return a shell in front of a store in which a task of Claude Code waits that names such a program."""
    scene = Fake(tmp_path)
    scene.play([CALL, END])
    scene.run()
    task, store = scene.task, scene.shell.open_store()
    with contextlib.closing(store), store.change() as tx:
        kept = tx.task(task)
        setup = msgspec.json.encode(
            {**msgspec.json.decode(kept.spec.setup or "{}"), "program": program}
        ).decode()
        tx.save_task(
            kept,
            msgspec.structs.replace(kept, spec=msgspec.structs.replace(kept.spec, setup=setup)),
        )
    return scene.shell, task


@pytest.mark.one_machine("a repository brings the files of one machine's store")
def test_looking_at_a_store_starts_no_process_at_all(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "sitecustomize.py").write_text(WATCH)
    shell, task = foreign_store(tmp_path, "./claude")
    repository = Repository(shell, outside / "traces")
    repository.plant_programs(shell.place)
    watched = outside / "watched"
    watching = {
        "PYTHONPATH": str(outside),
        "WATCHED": str(watched),
        "PATH": f"{ADJOURN.parent}:.:{shell.place}",
    }
    for words in READING:
        shell.adjourn(*(word.format(task=task) for word in words), env=watching, expect=None)
    assert repository.ran == []
    assert not watched.exists(), watched.read_text()
    assert "relative path" in shell.adjourn("show", task).out
    assert "relative path" in shell.adjourn("resume", task, expect=6).err
    assert repository.ran == []
    shell.adjourn("cancel", task)


@pytest.mark.one_machine("it is about programs, and not about stores")
@pytest.mark.parametrize("runner", ["claude", "codex"])
def test_the_workspaces_own_agent_is_not_run(repository: Repository, runner: str) -> None:
    shell = repository.shell
    shell.environment["PATH"] = f"{ADJOURN.parent}:.:bin:{shell.place}/bin:/usr/bin:/bin"
    manifest = shell.json("run", "--runner", runner, "--pause-on-approval", "do it", expect=1)
    assert "not there" in manifest["message"] if "message" in manifest else True
    shell.adjourn("doctor", expect=None)
    assert repository.ran == []
