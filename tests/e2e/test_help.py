"""Help that leads: `adjourn` alone, `--help` on one screen, and an example for each verb."""

import os
import shlex
import signal

from adjourn.cli.app import GROUPS, VERBS
from adjourn.cli.examples import EXAMPLES
from docs.generate import commands
from tests.e2e.shell import Done, Shell, until
from tests.e2e.terminal import Terminal

# What cannot be done in an ordinary directory, and is refused for a reason that is not the words
REFUSED = {
    "fork": 2,  # only agents have checkpoints
    "decide": 3,  # nobody signed anything
    "delegate revoke": 3,
    "rules revoke": 3,
    "store adopt": 4,
    "store accept": 4,
    "store roles": 2,  # only of a database
    "store migrate": 2,
    "setup": 2,  # without a terminal it needs a host
}
PLAN = '[[task]]\nid = "build"\ncommand = ["true"]\n'
ASKS = f"{EXAMPLES['ask']}\necho region $region"


def test_all_verbs_fit_one_screen_in_groups(shell: Shell) -> None:
    with Terminal(shell, "--help", columns=80, rows=24) as person:
        assert person.ends() == 0
        rows = person.lines
    assert rows[0].startswith("Usage: adjourn")
    assert [group for group in GROUPS if not any(row.startswith(group) for row in rows)] == []
    assert set(VERBS) <= set(" ".join(rows).split())
    # In a pipe each verb has a line
    listed = shell.adjourn("--help").out
    assert [name for name in VERBS if f"\n  {name} " not in listed] == []


def test_alone_it_shows_what_waits_and_runs_or_how_to_begin(shell: Shell) -> None:
    begin = shell.adjourn().out
    assert "adjourn demo" in begin
    assert "adjourn setup" in begin
    shell.adjourn("run", "--", "true")
    assert "Nothing waits and nothing runs here." in shell.adjourn().out
    shell.adjourn("run", "--pause-on-approval", "--", "ls", expect=10)
    task = shell.detached("sleep", "60")
    shown = shell.adjourn().out
    assert shell.inbox()[0]["id"][:8] in shown
    assert f"{task[:8]}  running" in shown
    assert "adjourn inbox -i" in shown
    shell.adjourn("cancel", task)


def test_every_verb_has_an_example_and_its_help_shows_it(shell: Shell) -> None:
    paths = {path for path, _ in commands()}
    assert set(EXAMPLES) <= paths
    assert "\nExample:\n  adjourn approve @1 --resume" in shell.adjourn("approve", "--help").out
    assert EXAMPLES["rules add"] in shell.adjourn("rules", "add", "--help").out


def test_every_example_runs(shell: Shell) -> None:
    shell.script("echo deployed to $1", name="deploy.sh")
    (shell.place / "plan.toml").write_text(PLAN)
    done: set[str] = set()

    def run(path: str, *, expect: int | None = None, row: str | None = None) -> Done:
        """Run an example as it is printed; its first row is what a terminal would have shown."""
        line = EXAMPLES[path].replace("@1", row or "@1")
        done.add(path)
        wanted = REFUSED.get(path, 0) if expect is None else expect
        return shell.line(line, expect=None if wanted < 0 else wanted)

    def first_ask() -> str:
        ask: str = shell.inbox()[0]["id"]
        return ask

    assert "how to begin" in shell.adjourn().out
    run("run", expect=10)
    for path in ("inbox", "tasks", "show", "policy explain", "policy check", "rules add"):
        run(path)
    run("snooze", row=(snoozed := first_ask()))
    shell.adjourn("snooze", snoozed, "--off")
    assert "deployed to production" in run("approve", row=snoozed).out
    run("run", expect=10)
    run("reject", row=first_ask())
    run("restart", expect=10)
    assert "deployed to production" in run("resume", row=shell.inbox()[0]["task_id"]).out
    for path in ("runs", "logs", "wait", "rules list", "fork", "audit verify", "audit export"):
        run(path)
    asks = shell.script(ASKS, name="ask.sh")
    shell.adjourn("run", "--", asks, expect=10)
    done.add("ask")
    assert "region eu" in run("answer", row=first_ask()).out
    clarifies = shell.script(EXAMPLES["clarify"].replace("30s", "0s"), name="clarify.sh")
    shell.adjourn("run", "--", clarifies, expect=10)
    done.add("clarify")
    run("cancel")
    run("execute")
    run("plan show")

    shell.detached("sleep", "60")
    run("pause")
    task = shell.detached("sleep", "60")
    os.kill(shell.supervisor(f"{task}.1"), signal.SIGKILL)
    os.kill(shell.shim(f"{task}.1"), signal.SIGKILL)
    until(lambda: bool(shell.inbox()), what="nobody knows whether it ran")
    run("settle", row=first_ask())

    for path in ("worker", "watch", "serve"):
        process = shell.start(*shlex.split(EXAMPLES[path])[1:])
        done.add(path)
        process.send_signal(signal.SIGTERM)
        process.communicate()
    run("mcp")
    rest = [path for path in EXAMPLES if path not in done]
    codes = {path: run(path, expect=-1).code for path in rest}
    assert codes == {path: REFUSED.get(path, 0) for path in rest}
    assert done == set(EXAMPLES)
