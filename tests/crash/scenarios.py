"""The commands of adjourn that are killed, each where a person would give it."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec

from adjourn.core.call import Call
from adjourn.core.task import Task
from adjourn.process.shim import Shim
from adjourn.supervision.shims import ActiveRun
from adjourn.supervision.supervisor import Supervisor
from tests.crash.inject import Aim, Mode
from tests.crash.product import (
    CONFLICT,
    STORE,
    adjourn,
    decided,
    effect,
    examine,
    ledger,
    newest_task,
    one_ask,
)
from tests.crash.stage import Ran, Stage

Words = Callable[[Stage], list[str]]

KILL_SUPERVISOR = (
    "[ -e killed ] || [ -e ../killed ] || { read _ _ _ forks _ </proc/$PPID/stat; read _ _ _ supervisor _ </proc/$forks/stat; "
    ": >killed; : >../killed; kill -KILL $supervisor; }"
)
NESTED = "EFFECT; adjourn run -- EFFECT --ask 90 || exit $?"
QUESTION = 'EFFECT; region=$(adjourn ask "Which region?" --choice eu --choice us) || exit $?'


class Command(msgspec.Struct, frozen=True):
    """A command line of a story, and the exit code that it has when nothing goes wrong."""

    words: Words
    code: int = 0


class Tale:
    """Commands that lead up to one more, which is killed."""

    def __init__(
        self,
        step: Words,
        *,
        after: tuple[Command, ...] = (),
        decides: str = "",
        shims_die: bool = False,
    ) -> None:
        self._after = after
        self._step = step
        self._decides = decides
        self._shims_die = shims_die

    def setup(self, stage: Stage) -> None:
        """Play the commands that lead up to the step."""
        for command in self._after:
            ran = stage.play(adjourn(*command.words(stage)))
            assert ran.code == command.code, f"expected {command.code}: {ran}"
            assert not stage.survivors(patience=5)

    def step(self, stage: Stage) -> int:
        """Be the command that is killed."""
        return adjourn(*self._step(stage))()

    def aftermath(self, stage: Stage, ran: Ran) -> list[str]:
        """Examine the store, and the decision if the step was one."""
        broken = (
            decided(stage, ran, words=self._step(stage), state=self._decides)
            if self._decides
            else []
        )
        return broken + examine(stage, ran, shims_die=self._shims_die)


class Doubled(Tale):
    """Two commands in one process; the second finds the first still at work."""

    def __init__(self, first: Words, then: Words, *, after: tuple[Command, ...] = ()) -> None:
        super().__init__(then, after=after)
        self._first = first

    def step(self, stage: Stage) -> int:
        """Be both commands."""
        return adjourn(*self._first(stage))() or super().step(stage)


class KilledAgain(Tale):
    """The same, and the next command is killed too, at a call that depends on the first."""

    def aftermath(self, stage: Stage, ran: Ran) -> list[str]:
        """Kill the next command, then examine the store."""
        again = Aim(at=1 + stage.aimed.at * 7919 % 30, mode=Mode(1 + stage.aimed.at % 3))
        stage.play(adjourn("tasks"), aim=again)
        return super().aftermath(stage, ran)


class AllDie(Tale):
    """The same, and everyone else is killed too, a moment later: the container is gone."""

    def aftermath(self, stage: Stage, ran: Ran) -> list[str]:
        """Kill whoever is left, then examine the store."""
        stage.clear()
        return super().aftermath(stage, ran)


class Hasty(Tale):
    """A supervisor that opens the gate before the store knows that the call executes."""

    def step(self, stage: Stage) -> int:
        """Do it in the wrong order."""

        def open_gate(
            self: Supervisor,
            active: ActiveRun,
            shim: Shim,
            call: Call,
            *,
            may_start: Callable[[], bool],
        ) -> ActiveRun | Task:
            del call, may_start
            shim.open_gate()
            self._controller.runs.execute(active.run, shim=shim.identity)
            return active

        Supervisor._open_gate = open_gate  # type: ignore[method-assign]  # this process ends with the step
        return super().step(stage)


class HastyWithoutProof(Hasty):
    """The same, on a disk that keeps neither results nor marks.

    Then only the order of events protects a call.
    """

    def aftermath(self, stage: Stage, ran: Ran) -> list[str]:
        """Take away what would prove that the call was started."""
        stage.survivors(patience=5)
        for proof in (
            *stage.work.glob(f"{STORE}/runs/*/result.json"),
            *stage.work.glob(f"{STORE}/started/*"),
        ):
            proof.unlink()
        return super().aftermath(stage, ran)


PEOPLE = """
[[person]]
name = "anna"
principals = ["uid:{uid}"]
[[person]]
name = "ben"
principals = ["key:ben"]
"""


class Counted(Tale):
    """An approval of a call that two people must approve."""

    def __init__(self, *, is_last: bool) -> None:
        super().__init__(of_ask("approve"), decides="approved" if is_last else "")
        self._is_last = is_last

    def setup(self, stage: Stage) -> None:
        """Pause at the call; before the last approval, the other one is there."""
        folder, key = self._config(stage), stage.work / "key"
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text(PEOPLE.format(uid=os.getuid()))
        (folder / "policy.toml").write_text('[[rule]]\naction = "prompt"\napprovals = 2\n')
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        public = key.with_suffix(".pub").read_text()
        (folder / "allowed_signers").write_text(f"ben {public}")
        first = Command(of_ask("approve", "--sign", str(key)))
        self._after = (PAUSED, first) if self._is_last else (PAUSED,)
        super().setup(stage)

    def step(self, stage: Stage) -> int:
        """Approve."""
        self._config(stage)
        return super().step(stage)

    def aftermath(self, stage: Stage, ran: Ran) -> list[str]:
        """Approve again: what was recorded is there once, and what was not is recorded now."""
        self._config(stage)
        if self._is_last:
            return super().aftermath(stage, ran)
        given = [each["person"] for each in json.loads(ledger(stage).asks[0].given)]
        broken = ["it exited 0, and its approval is lost"] * (ran.code == 0 and given != ["anna"])
        again = stage.play(adjourn(*self._step(stage)))
        expected = CONFLICT if given else 0
        broken += [f"approved again, it left with {again.code}"] * (again.code != expected)
        given = [each["person"] for each in json.loads(ledger(stage).asks[0].given)]
        broken += [f"its approvals are {given}"] * (given != ["anna"])
        stage.play(adjourn("reject", one_ask(stage)))
        return broken + super().aftermath(stage, ran)

    def _config(self, stage: Stage) -> Path:
        os.environ["XDG_CONFIG_HOME"] = str(stage.work / "config")
        return stage.work / "config" / "adjourn"


class Boastful(Tale):
    """A command that acknowledges the decision before it is in the store."""

    def step(self, stage: Stage) -> int:
        """Say it too early."""
        print("approved", flush=True)
        return super().step(stage)


def run(*options: str) -> Words:
    """Run a command whose starts are recorded."""
    return lambda stage: ["run", "--", *effect(stage, *options)]


def run_detached(*options: str) -> Words:
    """Leave such a command to a supervisor of its own."""
    return lambda stage: ["run", "--detach", "--", *effect(stage, *options)]


def run_script(script: str) -> Words:
    """Run a shell script; `EFFECT` in it is the command whose starts are recorded."""
    return lambda stage: [
        "run",
        "--",
        "sh",
        "-c",
        script.replace("EFFECT", " ".join(effect(stage))),
    ]


def of_task(*words: str) -> Words:
    """Do something to the newest task."""
    return lambda stage: [words[0], newest_task(stage), *words[1:]]


def of_ask(*words: str) -> Words:
    """Reply to the open ask."""
    return lambda stage: [words[0], one_ask(stage), *words[1:]]


def settle(verdict: str) -> Words:
    """Settle the uncertain call."""
    return lambda stage: ["settle", ledger(stage).open_asks[0].call, verdict]


def words(*given: str) -> Words:
    """Say just this."""
    return lambda _: list(given)


PAUSED = Command(run("--ask", "90"), 10)
APPROVED = Command(of_ask("approve"))
DONE = Command(run())
ASKED = Command(run_script(QUESTION), 10)
ANSWERED = Command(of_ask("answer", "eu"))
LOST = Command(run_script("EFFECT; kill -KILL $PPID"), 10)
ORPHANED = Command(run_script(f"{KILL_SUPERVISOR}; EFFECT"), -9)
ORPHANED_ASKING = Command(run_script(f"{KILL_SUPERVISOR}; {QUESTION}"), -9)

# The first command of a store also makes it.
run_first = Tale(run())
run_next = Tale(run(), after=(DONE,))
run_failing = Tale(run("--exit", "3"), after=(DONE,))
run_missing = Tale(words("run", "--", "/no/such/command"), after=(DONE,))
run_pausing = Tale(run("--ask", "90"), after=(DONE,))
run_asking = Tale(run_script(QUESTION), after=(DONE,))
run_all_die = AllDie(run("--linger", "2"), after=(DONE,), shims_die=True)
run_and_leave = Tale(run_detached(), after=(DONE,))
run_nested = Tale(run_script(NESTED), after=(DONE,), shims_die=True)
approve = Tale(of_ask("approve"), after=(PAUSED,), decides="approved")
approve_json = Tale(
    of_ask("approve", "--value", "yes", "--output", "json"), after=(PAUSED,), decides="approved"
)
approve_first = Counted(is_last=False)
approve_last = Counted(is_last=True)
reject = Tale(of_ask("reject", "--reason", "no"), after=(PAUSED,), decides="rejected")
answer = Tale(of_ask("answer", "eu"), after=(ASKED,), decides="answered")
cancel = Tale(of_task("cancel"), after=(PAUSED,))
cancel_running = Doubled(run_detached("--linger", "150"), of_task("cancel"), after=(DONE,))
pause_running = Doubled(run_detached("--linger", "150"), of_task("pause"), after=(DONE,))
resume = Tale(of_task("resume"), after=(PAUSED, APPROVED))
resume_then_look = KilledAgain(of_task("resume"), after=(PAUSED, APPROVED))
resume_all_die = AllDie(of_task("resume"), after=(PAUSED, APPROVED), shims_die=True)
resume_approving = Tale(of_task("resume", "--approve-all"), after=(PAUSED,))
resume_answered = Tale(of_task("resume"), after=(ASKED, ANSWERED))
resume_and_leave = Tale(of_task("resume", "--detach"), after=(PAUSED, APPROVED))
restart = Tale(of_task("restart"), after=(DONE,))
settle_it_ran = Tale(settle("it-ran"), after=(LOST,), shims_die=True)
settle_it_did_not = Tale(settle("it-did-not"), after=(LOST,), shims_die=True)
recover = Tale(words("tasks"), after=(DONE, ORPHANED))
recover_asking = Tale(words("inbox"), after=(DONE, ORPHANED_ASKING))
backup = Tale(words("store", "backup", "backup.db"), after=(PAUSED,))
prune = Tale(words("prune"), after=(DONE,))

# These are for kills of the shim, of the fork server and of the command itself.
shim_runs = Tale(run("--linger", "3"), after=(DONE,), shims_die=True)
shim_pauses = Tale(run("--ask", "90"), after=(DONE,), shims_die=True)
shim_resumes = Tale(of_task("resume"), after=(PAUSED, APPROVED), shims_die=True)
tool_runs = Tale(
    run_script("echo one; EFFECT; echo two >&2; echo three"), after=(DONE,), shims_die=True
)

# These break promises, so that a sweep can prove that it would notice.
hasty = Hasty(of_task("resume"), after=(PAUSED, APPROVED))
hasty_without_proof = HastyWithoutProof(of_task("resume"), after=(PAUSED, APPROVED))
boastful = Boastful(of_ask("approve"), after=(PAUSED,), decides="approved")
