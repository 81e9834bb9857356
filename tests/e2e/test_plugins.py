"""A runner and a notifier of another package, through the real program, as if they were ours."""

import os
import signal
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import msgspec
import pytest

import adjourn
from tests.e2e.shell import until

PLUGIN = """
import os, signal, time
import msgspec
from adjourn.core.agent.calls import SessionCheck, Report
from adjourn.core.ask import Question
from adjourn.core.errors import Misuse
from adjourn.core.outcome import Completed, Failed, Interrupted, Waits
from adjourn.core.policy.judgement import Effect
from adjourn.ports.notifier import NotifierKind, PreparedNotifier
from adjourn.ports.runner import RunnerKind


class Options(msgspec.Struct):
    greeting: str = "Hello"


def read_options(given, environment, table):
    if given.keys() - {"greeting"}:
        raise Misuse("the fake has no such option", way_out="--option greeting=WORD")
    return Options(**given)


class FakeDriver:
    def __init__(self, drive, host):
        self.drive = drive
        self.options = msgspec.json.decode(drive.task.spec.setup, type=Options)
        self.is_stopped = False

    def start(self):
        self.drive.session("fake-session", resumable=True)
        if self.drive.task.spec.prompt == "wait":
            open("waiting", "w").close()
            while not self.is_stopped:
                time.sleep(0.05)
            return 130
        if self.drive.task.spec.prompt == "bad luck":
            return 42
        self.drive.ask(Question(prompt="Who are you?", key="who"))
        return 10

    def resume(self, ref):
        who = self.drive.asks()[-1].reply if self.drive.asks() else "again"
        self.drive.report(Report(message=f"{self.options.greeting}, {who} in {ref}"))
        return 0

    def interrupt(self):
        self.is_stopped = True

    def kill(self):
        pass


def check_session(spec, left):
    yield SessionCheck(thing="session", fine=True, says=f"{left.ref} is there")


def diagnose(environment, *, workspace):
    return "the fake can do all"


class FakeExits:
    effect = Effect.UNKNOWN
    needs_session = True
    makes_calls = True

    def meaning(self, exit, standing):
        if exit.interrupted or exit.code == 130:
            return Interrupted()
        if exit.code == 10:
            return Waits()
        if exit.code == 42:
            return Failed("42 means bad luck")
        return Completed(standing.told) if exit.code == 0 else Failed("it failed")


RUNNER = RunnerKind(
    name="fake",
    driver="fake_plugin:FakeDriver",
    exits="fake_plugin:FakeExits",
    options="fake_plugin:read_options",
    session_check="fake_plugin:check_session",
    doctor="fake_plugin:diagnose",
)


class FileNotifier:
    def __init__(self, path):
        self.path = path

    def send(self, notice_id, body, *, at):
        with open(self.path, "ab") as file:
            file.write(body + b"\\n")

    def hang_up(self):
        pass


def prepare(values, settings):
    path = values["append_to"]
    return PreparedNotifier(notifier=FileNotifier(path), name="file", shown=path)


NOTIFIER = NotifierKind(
    name="append_to", keys={"append_to": "The file."}, factory="fake_plugin:prepare"
)
"""
METADATA = "Metadata-Version: 2.1\nName: fake-plugin\nVersion: 1\n"
ENTRY_POINTS = """
[adjourn.runners]
fake = fake_plugin:RUNNER
[adjourn.notifiers]
append_to = fake_plugin:NOTIFIER
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment in which adjourn and the plugin are installed."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, symlinks=True, with_pip=False)
    packages = Path(
        sysconfig.get_path("purelib", "venv", vars={"base": str(place), "platbase": str(place)})
    )
    source = Path(adjourn.__file__).parent.parent
    (packages / "adjourn.pth").write_text(f"{source}\n{sysconfig.get_path('purelib')}\n")
    (packages / "fake_plugin.py").write_text(PLUGIN)
    (packages / "fake_plugin-1.dist-info").mkdir()
    (packages / "fake_plugin-1.dist-info" / "METADATA").write_text(METADATA)
    (packages / "fake_plugin-1.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS)
    script = place / "bin" / "adjourn"
    start = "import sys\nfrom adjourn.__main__ import main\nsys.exit(main())\n"
    script.write_text(f"#!{place}/bin/python\n{start}")
    script.chmod(0o755)
    return place


class Person:
    """Somebody in a directory of their own."""

    def __init__(self, environment: Path, place: Path) -> None:
        self.place = place
        self._adjourn = str(environment / "bin" / "adjourn")
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(place / "home"),
            "XDG_STATE_HOME": str(place / "state"),
            "XDG_CONFIG_HOME": str(place / "config"),
        }
        (place / "home").mkdir()

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """Start a command."""
        return subprocess.Popen(
            [self._adjourn, *words],
            cwd=self.place,
            env=self._environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def adjourn(self, *words: str, expect: int = 0) -> str:
        """Run a command, and return what it printed."""
        with self.start(*words) as process:
            out, err = process.communicate(timeout=60)
        assert process.returncode == expect, f"{words}: {process.returncode}\n{out}\n{err}"
        return out + err


@pytest.fixture
def person(environment: Path, tmp_path: Path) -> Person:
    """Return somebody who has the plugin."""
    return Person(environment, tmp_path)


def _task(person: Person) -> dict[str, str]:
    listed = msgspec.json.decode(person.adjourn("tasks", "--output", "json"))
    task: dict[str, str] = listed["tasks"][0]
    return task


def _shown(person: Person, task: dict[str, str]) -> dict[str, str]:
    shown: dict[str, str] = msgspec.json.decode(
        person.adjourn("show", task["task_id"], "--output", "json")
    )
    return shown


def test_a_runner_of_another_package_starts_asks_and_resumes(person: Person) -> None:
    """D-R58: start, resume with a reference and replies, what an exit meant, can it be resumed."""
    person.adjourn("run", "--runner", "fake", "--option", "greeting=Hi", "greet me", expect=10)
    task = _task(person)
    assert task["runner"] == "fake"
    shown = person.adjourn("show", task["task_id"])
    assert "fake-session is there" in shown
    person.adjourn("answer", person.adjourn("inbox").splitlines()[1].split()[0], "Anna")
    person.adjourn("resume", task["task_id"])
    assert _shown(person, task)["final_message"] == "Hi, Anna in fake-session"


def test_its_options_are_checked_before_anything_is_recorded(person: Person) -> None:
    said = person.adjourn("run", "--runner", "fake", "--option", "x=1", "greet me", expect=2)
    assert "the fake has no such option" in said
    assert not (person.place / ".adjourn").exists()


def test_it_is_interrupted_and_can_be_resumed(person: Person) -> None:
    """D-R58: interrupt."""
    with person.start("-a", "wait", "--runner", "fake") as process:
        until((person.place / "waiting").exists, what="the fake to wait")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    task = _task(person)
    assert task["state"] == "paused"
    person.adjourn("resume", task["task_id"])
    assert _shown(person, task)["final_message"] == "Hello, again in fake-session"


def test_it_says_what_an_exit_meant(person: Person) -> None:
    """D-R58."""
    said = person.adjourn("run", "--runner", "fake", "bad luck", expect=1)
    assert "42 means bad luck" in said


def test_plans_doctor_and_help_know_it(person: Person) -> None:
    (person.place / "plan.toml").write_text('[[task]]\nid = "a"\nrunner = "fake"\nprompt = "hi"\n')
    assert "Who are you?" in person.adjourn("execute", expect=10)
    assert "the fake can do all" in person.adjourn("doctor")
    assert "or one that a package brings" in " ".join(person.adjourn("run", "--help").split())
    assert "'fake'" in person.adjourn("run", "--runner", "nobody", "hi there", expect=2)


def test_a_notifier_of_another_package_is_told(person: Person) -> None:
    config = person.place / "config" / "adjourn" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[[notify]]\nappend_to = "{person.place}/told"\non = ["pause"]\n')
    person.adjourn("run", "--", sys.executable, "-c", "raise SystemExit(90)", expect=10)
    person.adjourn("notify", "--flush")
    (told,) = (person.place / "told").read_text().splitlines()
    assert msgspec.json.decode(told)["event"] == "pause"
