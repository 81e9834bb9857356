"""What is part of a run decides nothing, wherever it hides.

In namespaces, behind dead ancestors, under another uid.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.shell import Document, Shell, parent_of, until
from tests.e2e.signer import Signers, waiting
from tests.needs import missing, needs
from tests.security.ordinary import OrdinaryShell, ordinary_shell, require_namespaces

pytestmark = pytest.mark.one_machine(
    "a local user decides by a uid only on the store of one machine"
)

HIDING_PLACES = {
    "another pid namespace, another uid": "unshare -p -f --map-user=1007",
    "another pid namespace with its own /proc": "unshare -r -p -f --mount-proc",
    "another user namespace": "unshare --map-current-user",
    "another mount namespace": "unshare -r -m",
    "all of them": "unshare --map-user=1007 -m -p -f -i -n -u --mount-proc",
    "without an environment": "env -i PATH=$PATH XDG_CONFIG_HOME=$XDG_CONFIG_HOME ADJOURN_STATE=$ADJOURN_STATE",
    "a session of its own, forked twice": "setsid -f -w setsid -w",
}


@pytest.fixture
def ordinary() -> Iterator[OrdinaryShell]:
    """Return a shell of an ordinary user."""
    with ordinary_shell() as shell:
        yield shell


def agent(shell: Shell, script: str) -> list[str]:
    """Run a script under adjourn and return the lines that it wrote into `codes`."""
    shell.adjourn("run", "--", shell.script(f"{script}\nexit 0", name="agent.sh"))
    codes = shell.lines("codes")
    (shell.place / "codes").unlink(missing_ok=True)
    return codes


@contextmanager
def running(shell: Shell) -> Iterator[str]:
    """Have a run of the store alive for a while."""
    task = shell.detached("sleep", "1000")
    try:
        yield task
    finally:
        shell.adjourn("cancel", task)
        shell.adjourn("wait", task, expect=None)


def ask_of(shell: Shell, task: str) -> Document:
    """Return the first ask of a task."""
    found: Document = shell.json("show", task)["asks"][0]
    return found


def uncertain(shell: Shell) -> str:
    """Return the call of a run that was lost."""
    script = shell.script(
        "while read -r line < /proc/$PPID/stat; do kill -9 $PPID; done", name="kill.sh"
    )
    manifest = shell.json("run", "--", script, expect=10)
    ask = manifest["asks"][0]
    return f"{manifest['task_id']}.{ask['tool_call_id']}"


def test_a_run_cannot_decide_from_any_hiding_place(ordinary: OrdinaryShell) -> None:
    require_namespaces(ordinary)
    task, ask = waiting(ordinary)
    hidden = [f"env -u ADJOURN_RUN_ID {hide} adjourn" for hide in HIDING_PLACES.values()]
    lines = [
        f"{hide} approve {ask} --store {ordinary.store} >> said 2>&1; echo $? >> codes"
        for hide in hidden
    ]
    codes = agent(ordinary, "\n".join(lines))
    said = (ordinary.place / "said").read_text()
    assert codes == ["5"] * len(lines), said
    # And not because the store is another's
    assert said.count("approve is refused") == len(lines), said
    assert ask_of(ordinary, task)["state"] == "pending"


def test_a_run_cannot_use_any_verb_that_decides_from_another_pid_namespace(
    ordinary: OrdinaryShell,
) -> None:
    require_namespaces(ordinary)
    call = uncertain(ordinary)
    task, ask = waiting(ordinary)
    verbs = [
        f"approve {ask} --value x",
        f"reject {ask}",
        f"resume {task} --approve-all",
        f"settle {call} it-ran",
        f"snooze {ask} --for 1h",
        f"cancel {task}",
        "rules add -- touch x",
    ]
    hide = f"env -u ADJOURN_RUN_ID ADJOURN_STORE={ordinary.store} unshare --map-user=1007 -p -f --mount-proc adjourn"
    lines = [f"{hide} {verb} >> said 2>&1; echo $? >> codes" for verb in verbs]
    assert agent(ordinary, "\n".join(lines)) == ["5"] * len(lines), (
        ordinary.place / "said"
    ).read_text()
    assert ask_of(ordinary, task)["state"] == "pending"
    assert "Traceback" not in (ordinary.place / "said").read_text()


def test_a_mapped_uid_is_nobody_else_even_while_nothing_runs(ordinary: OrdinaryShell) -> None:
    require_namespaces(ordinary)
    policy = Path(ordinary.environment["XDG_CONFIG_HOME"]) / "adjourn"
    ordinary.run("mkdir", "-p", str(policy))
    rule = '[[rule]]\nargs = ["touch", "**"]\naction = "prompt"\nnot_requester = true\n'
    ordinary.run("sh", "-c", f"cat > {policy}/policy.toml", stdin=rule.encode())
    manifest = ordinary.json("run", "--pause-on-approval", "--", "touch", "x", expect=10)
    ask = manifest["asks"][0]["id"]
    mapped = ["unshare", "-p", "-f", "--map-user=1007"]
    said = ordinary.run(*mapped, "adjourn", "approve", ask, expect=5).err
    assert "somebody else has to approve it" in said
    task, ask = waiting(ordinary)
    ordinary.run(*mapped, "adjourn", "approve", ask)
    assert ask_of(ordinary, task)["level"] == "L0"


def test_a_task_started_under_a_mapped_uid_is_not_another_persons(ordinary: OrdinaryShell) -> None:
    require_namespaces(ordinary)
    ordinary.agent("approved.sh")
    words = [
        "unshare",
        "-p",
        "-f",
        "--map-user=1007",
        "adjourn",
        "run",
        "--output",
        "json",
        "--",
        "./approved.sh",
    ]
    manifest = ordinary.run(*words, expect=10).doc
    ordinary.adjourn("approve", manifest["asks"][0]["id"])
    assert ask_of(ordinary, manifest["task_id"])["level"] == "L0"


def test_killing_ancestors_while_they_are_looked_at_opens_no_door(
    ordinary: OrdinaryShell, sweep: str
) -> None:
    """A chain of processes above the command dies from the top or from the bottom while it starts."""
    task, _ = waiting(ordinary)
    (ordinary.place / "chain.py").write_text(_CHAIN)
    words = f"adjourn resume {task} --approve-all --store {ordinary.store}".split()
    for _ in range({"ci": 1, "full": 38}[sweep]):  # each ends within the time of a command
        ordinary.adjourn("run", "--", "python3", "chain.py", "8", *words, expect=None)
    codes = ordinary.lines("codes")
    assert set(codes) == {"5"}, codes
    assert ask_of(ordinary, task)["state"] == "pending"
    assert ordinary.lines("effects") == []


def test_what_cannot_be_read_for_want_of_descriptors_opens_no_door(
    ordinary: OrdinaryShell,
) -> None:
    """A limit on open files lets every part of a decision fail, one after the other, without any race."""
    task, ask = waiting(ordinary)
    decide = ordinary.script(_WITH_FEW_DESCRIPTORS.format(ask=ask, store=ordinary.store))
    ordinary.adjourn("run", "--", decide, expect=None)
    codes = dict(line.split() for line in ordinary.lines("codes"))
    assert set(codes) == {str(limit) for limit in range(5, 24, 3)}
    assert "0" not in codes.values(), codes
    assert codes["23"] == "5"
    assert ask_of(ordinary, task)["state"] == "pending"


_WITH_FEW_DESCRIPTORS = """
unset ADJOURN_RUN_ID
for limit in $(seq 5 3 23); do
    (ulimit -n $limit; exec adjourn approve {ask} --store {store}) > /dev/null 2>> said
    echo $limit $? >> codes
done
"""


def test_an_ancestor_that_is_hidden_from_the_look_opens_no_door(ordinary: OrdinaryShell) -> None:
    """The moment in which an ancestor dies, held still: /proc shows nothing of one of them.

    It is refused for that, and not only for its namespaces: red if a failure counts as "outside".
    """
    require_namespaces(ordinary)
    task, ask = waiting(ordinary)
    hide = ordinary.script(_HIDE.format(ask=ask, store=ordinary.store), name="hide.sh")
    run = ordinary.script(_HIDE_EACH, name="each.sh")
    ordinary.adjourn("run", "--", run, hide, expect=None)
    found = ordinary.lines("codes")
    assert len(found) > 2, "the command, the shim and what is above it"
    assert set(found) == {"5"}, found
    said = (ordinary.place / "said").read_text()
    assert said.count("cannot be read in /proc") >= len(found) - 1, said
    assert ask_of(ordinary, task)["state"] == "pending"


_HIDE = """
mount --bind /dev/null /proc/$1/stat || exit 77
exec adjourn approve {ask} --store {store}
"""
# Each process from the parent of this one up to the first
_HIDE_EACH = """
unset ADJOURN_RUN_ID
pid=$$
while [ $pid -gt 1 ]; do
    unshare -r -m $1 $pid > /dev/null 2>> said
    echo $? >> codes
    pid=$(sed 's/.*) //' /proc/$pid/stat | cut -d' ' -f2)
done
"""


def test_a_run_adopts_no_store_and_makes_no_rule_from_any_hiding_place(
    ordinary: OrdinaryShell,
) -> None:
    """Neither needs a store that knows of the run: all stores of the user are asked."""
    require_namespaces(ordinary)
    waiting(ordinary)
    shutil.copytree(ordinary.store, ordinary.place / "copy" / ".adjourn")
    ordinary.give_files()
    adopt = ordinary.script(_ADOPT.format(store=ordinary.place / "copy" / ".adjourn"))
    ordinary.adjourn("run", "--", adopt, expect=None)
    assert set(ordinary.lines("codes")) == {"5"}, (ordinary.place / "said").read_text()
    assert ordinary.adjourn("rules", "list", "--output", "json").doc["rules"] == []
    ordinary.adjourn("store", "adopt", "--yes", "--store", str(ordinary.place / "copy/.adjourn"))


_ADOPT = """
unset ADJOURN_RUN_ID
for wrapper in 'unshare -r -p -f --mount-proc' 'unshare -r -m' 'unshare -r -p -f' 'setsid -w' 'env'; do
    $wrapper adjourn store adopt --yes --store {store} >> said 2>&1
    echo $? >> codes
    $wrapper adjourn rules add --store $PWD/another -- /bin/true >> said 2>&1
    echo $? >> codes
done
"""


def test_killing_ancestors_never_hides_the_shim_above_them() -> None:
    """The same without the program around it, and often.

    Whoever is below a shim finds it, or cannot read all above it.
    """
    done = subprocess.run(
        [sys.executable, "-c", _SHIM], capture_output=True, text=True, check=False, timeout=100
    )
    found = done.stdout.split()
    assert done.returncode == 0, done.stderr
    assert len(found) == 200
    assert "outside" not in found


_SHIM = """
import os, random, signal, time
from adjourn.process import linux
from adjourn.process.ancestry import AncestryUnreadable, find_enclosing_run
os.environ.pop("ADJOURN_RUN_ID", None)
linux.rename_process("adjourn-shim")
linux.become_subreaper()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead leave nothing in /proc
random.seed(7)
DEPTH, shim = 12, os.getpid()
for attempt in range(200):
    (reading, writing), (answers, answer) = os.pipe(), os.pipe()
    if os.fork() == 0:
        for _ in range(DEPTH):
            os.write(writing, b"%d " % os.getpid())
            if os.fork():
                signal.pause()
        os.write(writing, b"\\n")
        while True:
            try:
                said = b"inside" if find_enclosing_run() else b"outside"
            except AncestryUnreadable:
                said = b"unreadable"
            if said != b"inside" or os.getppid() == shim:
                os.write(answer, said)
                os._exit(0)
    os.close(writing)
    os.close(answer)
    pids = [int(pid) for pid in open(reading).readline().split()]
    for pid in pids if attempt % 2 else reversed(pids):
        os.kill(pid, signal.SIGKILL)
        time.sleep(random.choice((0, 0, 0.0002)))
    print(os.read(answers, 100).decode())
    os.close(answers)
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                break
        except ChildProcessError:
            break
"""


_CHAIN = """
import os, random, signal, subprocess, sys, time
os.environ.pop("ADJOURN_RUN_ID")
random.seed(7)
DEPTH = 12
for attempt in range(int(sys.argv[1])):
    reading, writing = os.pipe()
    if os.fork() == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead leave nothing in /proc
        for _ in range(DEPTH):
            os.write(writing, b"%d\\n" % os.getpid())
            if os.fork():
                signal.pause()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        code = subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        with open("codes", "a") as file:
            file.write(f"{code}\\n")
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as lines:
        pids = [int(next(lines)) for _ in range(DEPTH)]
        time.sleep(random.uniform(0.1, 0.4))
        for pid in pids if attempt % 2 else reversed(pids):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            time.sleep(random.choice((0, 0.0005, 0.005)))
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with open("codes", "a+") as file:
            file.seek(0)
            if len(file.readlines()) > attempt:
                break
        time.sleep(0.005)
"""


def test_a_run_that_kills_its_shim_and_all_above_it_decides_nothing_before_it_is_settled(
    shell: Shell,
) -> None:
    task, ask = waiting(shell)
    lost = shell.detached("sleep", "1000")
    supervisor = shell.supervisor(f"{lost}.1")
    server = parent_of(shell.shim(f"{lost}.1"))
    os.kill(supervisor, signal.SIGSTOP)  # whoever would notice is not asked
    for pid in (server, shell.shim(f"{lost}.1")):
        os.kill(pid, signal.SIGKILL)
    said = shell.adjourn("approve", ask, expect=5).err
    assert lost in said
    assert ask_of(shell, task)["state"] == "pending"
    os.kill(supervisor, signal.SIGKILL)
    shell.adjourn("show", lost)
    shell.adjourn("approve", ask)
    for pid, words in shell.processes().items():
        if "sleep 1000" in words:
            os.kill(pid, signal.SIGKILL)


# --- who may still decide -------------------------------------------------------------------------


def test_a_person_decides_from_where_the_store_was_used_and_from_nowhere_else_while_something_runs(
    ordinary: OrdinaryShell,
) -> None:
    require_namespaces(ordinary)
    elsewhere = ["unshare", "-r", "-p", "-f", "--mount-proc"]
    first, second = waiting(ordinary), waiting(ordinary)
    with running(ordinary) as task:
        refused = ordinary.run(*elsewhere, "adjourn", "approve", second[1], expect=5).err
        assert "namespace" in refused
        assert f"adjourn wait {task}" in refused
        assert "--sign" in refused
        assert "LOOK  place" in ordinary.run(*elsewhere, "adjourn", "doctor", expect=1).out
        ordinary.adjourn("approve", first[1])
    # Nothing runs: a container that was started anew may
    ordinary.run(*elsewhere, "adjourn", "approve", second[1])


def test_a_key_decides_from_a_container_while_something_runs(shell: Shell) -> None:
    require_namespaces(shell)
    signers = Signers(shell)
    signers.allow("anna")
    task, ask = waiting(shell)
    with running(shell):
        shell.run(
            "unshare",
            "-r",
            "-p",
            "-f",
            "--mount-proc",
            "adjourn",
            "approve",
            ask,
            "--sign",
            signers.key("anna"),
        )
    assert ask_of(shell, task)["level"] == "L2"


def test_a_person_who_enters_the_container_of_the_worker_can_decide(shell: Shell) -> None:
    """As `docker exec` does.

    The parent of such a process is outside, and what is inside cannot get there.
    """
    if os.getuid():
        missing("the right to enter namespaces")
    words = [
        needs("unshare"),
        "-m",
        "-p",
        "-f",
        "--kill-child",
        "--mount-proc",
        "sh",
        "-c",
        "adjourn worker & sleep 1000",
    ]
    with subprocess.Popen(
        words, cwd=shell.place, env=shell.environment | {"ADJOURN_STORE": str(shell.store)}
    ) as container:
        try:
            until(
                lambda: bool(list((shell.store / "supervisors").glob("*.lock"))),
                what="the worker is there",
            )
            init = int(
                Path(f"/proc/{container.pid}/task/{container.pid}/children").read_text().split()[0]
            )
            enter = [needs("nsenter"), "-t", str(init), "-m", "-p", "--wd=" + str(shell.place)]
            _, ask = waiting(shell)
            busy = shell.json("run", "--pause-on-approval", "--", "sleep", "1000", expect=10)
            shell.run(*enter, "adjourn", "approve", busy["asks"][0]["id"])
            until(lambda: shell.state(busy["task_id"]) == "running", what="something runs")
            said = shell.run(*enter, "adjourn", "approve", ask).out
            assert " L0 by uid:0" in said
            shell.run(*enter, "adjourn", "cancel", busy["task_id"])
        finally:
            container.kill()
