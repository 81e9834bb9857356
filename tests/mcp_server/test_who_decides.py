"""Who may decide through MCP: the matrix of roles and tools, and every refusal in the trail."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adjourn.mcp_server.tools import TOOLS
from adjourn.settings.agent_hosts import AgentHost, digest_of_secret
from tests.e2e.shell import Shell
from tests.mcp_server.host import Host, Json, events

SECRET = "5e" * 32
DECIDING = {name for name, tool in TOOLS.items() if not tool.inside}


def make_known(shell: Shell, name: str = "claude") -> dict[str, str]:
    """Write down a host as `adjourn setup` does; return the environment that it starts with."""
    import msgspec

    config = Path(shell.environment["XDG_CONFIG_HOME"]) / "adjourn"
    config.mkdir(parents=True, exist_ok=True)
    host = AgentHost(
        name=name, kind="claude", secret_sha256=digest_of_secret(SECRET), at="2026-11-18T00:00:00Z"
    )
    (config / "agents.json").write_bytes(msgspec.json.encode({"hosts": [host]}))
    return {"ADJOURN_MCP_SECRET": SECRET}


def attempt(host: Host, tool: str, task: Json, ask: Json) -> str:
    """Have a host try to decide, and return why it may not."""
    decision = {"tool_call_id": ask.get("tool_call_id", "none"), "approved": True}
    arguments: dict[str, Any] = {"task_id": task["task_id"]}
    if tool == "resume_task":
        arguments["tool_decisions"] = [decision | {"digest": ask["digest"]}]
    if tool == "answer":
        arguments = {"ask_id": ask["ask_id"], "text": "yes"}
    return host.refused(tool, **arguments)


def refusals(shell: Shell, task: Json) -> list[tuple[str, str]]:
    """Return who was refused what, by the trail."""
    told = events(shell, task["task_id"])
    return [
        (event.by.partition("#")[0], str(event.facts["verb"]))
        for event in told
        if event.kind == "refused"
    ]


@contextlib.contextmanager
def role(shell: Shell, name: str) -> Iterator[Host]:
    """Return a connection in a role towards a task that `agent:test` started."""
    with Host(shell, name=name) as host:
        host.initialize()
        yield host


def test_a_stranger_decides_nothing_and_each_refusal_is_told(shell: Shell, host: Host) -> None:
    """The same name is not the same host: without a secret every connection is a stranger."""
    assert {"resume_task", "answer", "cancel_task", "restart_task"} == DECIDING
    task = host.paused(shell)
    question = host.paused(shell, "sh", "-c", 'adjourn ask "Which?"')
    with role(shell, "test") as stranger:
        seen = stranger.call("get_task_details", task_id=task["task_id"])
        assert not seen["asks"][0]["you_may_decide"]
        for tool in sorted(DECIDING):
            about = question if tool == "answer" else task
            why = attempt(stranger, tool, about, about["asks"][0])
            assert "started neither it nor a task above it" in why
    told = refusals(shell, task)
    assert told == [("agent:test", name) for name in sorted(DECIDING - {"answer"})]
    assert refusals(shell, question) == [("agent:test", "answer")]
    assert shell.state(task["task_id"]) == "waiting"
    host.approve(task)
    assert host.wait(task["task_id"])[0]["status"] == "Completed"


def test_a_host_with_its_secret_decides_in_a_later_session(shell: Shell) -> None:
    known = make_known(shell)
    with Host(shell, name="claude", env=known) as first:
        first.initialize()
        task = first.paused(shell)
    with Host(shell, name="claude", env=known) as later:
        later.initialize()
        (same,) = later.wait(task["task_id"])
        assert same["asks"][0]["you_may_decide"]
        later.approve(same)
        assert later.wait(task["task_id"])[0]["status"] == "Completed"
    with Host(shell, name="claude", env={"ADJOURN_MCP_SECRET": "00" * 32}) as wrong:
        assert wrong.process.wait(20) == 5
        assert b"adjourn setup claude" in wrong.process.stderr.read()


def test_a_delegation_names_a_subtree_until_it_is_over_or_revoked(shell: Shell, host: Host) -> None:
    known = make_known(shell)
    one, two, three = (host.paused(shell) for _ in range(3))
    shell.adjourn("delegate", "add", "claude", one["task_id"])
    words = ("delegate", "add", "--output", "json", "agent:claude", two["task_id"])
    made = shell.adjourn(*words).doc
    assert shell.adjourn("delegate", "list").out.count("agent:claude") == 2
    with Host(shell, name="claude", env=known) as claude:
        claude.initialize()
        (seen,) = claude.wait(one["task_id"])
        claude.approve(seen)
        assert claude.wait(one["task_id"])[0]["status"] == "Completed"
        assert "started neither" in attempt(claude, "resume_task", three, three["asks"][0])
        shell.adjourn("delegate", "revoke", made["delegation"]["id"])
        assert "started neither" in attempt(claude, "resume_task", two, two["asks"][0])
    kinds = [event.kind for event in events(shell, two["task_id"])]
    assert {"delegated", "delegation_revoked", "refused"} <= set(kinds)


def test_a_rule_that_says_human_keeps_the_starter_from_deciding(shell: Shell, host: Host) -> None:
    config = Path(shell.environment["XDG_CONFIG_HOME"]) / "adjourn"
    config.mkdir(parents=True)
    rule = '[[rule]]\ntool = "command"\naction = "prompt"\napprover = "human"\n'
    (config / "policy.toml").write_text(rule)
    started = host.call("run_command_task", command=["true"], pause_on_approval=True)
    (task,) = host.wait(started["task_id"])
    (ask,) = task["asks"]
    assert (ask["you_may_decide"], "only a person" in ask["who_may_decide"]) == (False, True)
    assert "only a person may approve" in attempt(host, "resume_task", task, ask)
    assert refusals(shell, task) == [("agent:test", "resume_task")]
    shell.adjourn("approve", ask["ask_id"])


INSIDE = """
import os, subprocess, sys, json
sys.path.insert(0, {tests!r})
from pathlib import Path
from tests.mcp_server.host import Host
from tests.e2e.shell import Shell
class Here:
    place = Path.cwd()
    environment = dict(os.environ)
host = Host(Here, name="inner")
host.initialize()
task, call, digest, ask = sys.argv[1:]
whys = [host.refused("resume_task", task_id=task, tool_decisions=[
    {{"tool_call_id": call, "approved": True, "digest": digest}}])]
whys += [host.refused("cancel_task", task_id=task), host.refused("restart_task", task_id=task)]
whys += [host.refused("answer", ask_id=ask, text="yes")]
clean = {{k: v for k, v in os.environ.items() if not k.startswith("ADJOURN")}}
codes = [subprocess.run(["adjourn", "approve", ask, "--store", os.environ["ADJOURN_STORE"]],
         env=env, capture_output=True).returncode for env in (os.environ, clean)]
started = host.call("run_command_task", command=["true"])
(child,) = host.wait(started["task_id"])
host.close()
Path("inside.json").write_text(json.dumps([whys, codes, child["status"]]))
"""


def test_what_is_part_of_a_run_starts_watches_and_asks_and_never_decides(
    shell: Shell, host: Host
) -> None:
    """By MCP, by the command line, with and without its variables: refused, and in the trail."""
    import json

    task = host.paused(shell)
    (ask,) = task["asks"]
    script = shell.place / "inside.py"
    script.write_text(INSIDE.format(tests=str(Path(__file__).parents[2])))
    words = [task["task_id"], ask["tool_call_id"], ask["digest"], ask["ask_id"]]
    # Its parent is the MCP server's own child: the environment of a run does not reach a supervisor
    started = host.call("run_command_task", command=[sys.executable, str(script), *words])
    (done,) = host.wait(started["task_id"])
    assert done["status"] == "Completed", done
    whys, codes, status = json.loads((shell.place / "inside.json").read_text())
    assert all("inside a run" in why for why in whys)
    assert codes == [5, 5]
    assert status == "Completed"
    assert [verb for _, verb in refusals(shell, task)] == [
        "resume_task",
        "cancel_task",
        "restart_task",
        "answer",
    ]
    assert [verb for _, verb in refusals(shell, started)] == ["approve", "approve"]
    assert shell.state(task["task_id"]) == "waiting"
    shell.adjourn("audit", "verify")


def test_of_two_parents_that_decide_at_once_one_wins(shell: Shell) -> None:
    known = make_known(shell)
    with (
        Host(shell, name="claude", env=known) as one,
        Host(shell, name="claude", env=known) as two,
    ):
        one.initialize()
        two.initialize()
        task = one.paused(shell)
        (ask,) = task["asks"]
        decision = {"tool_call_id": ask["tool_call_id"], "approved": True, "digest": ask["digest"]}
        begun = [
            (
                host,
                host.begin_call("resume_task", task_id=task["task_id"], tool_decisions=[decision]),
            )
            for host in (one, two)
        ]
        errors = [host.reply(name)["result"].get("isError", False) for host, name in begun]
        assert sorted(errors) == [False, True]
        assert one.wait(task["task_id"])[0]["status"] == "Completed"
    assert shell.lines("effects") == ["done with approved"]


@pytest.mark.parametrize("words", [("delegate", "add", "x", "y"), ("setup", "claude")])
def test_who_may_decide_is_not_changed_from_inside_a_run(
    shell: Shell, words: tuple[str, ...]
) -> None:
    shell.adjourn("run", "--", "sh", "-c", f"adjourn {' '.join(words)}; echo $? > code")
    assert shell.lines("code") == ["5"]
    assert not {"setup", "delegate"} & TOOLS.keys()
