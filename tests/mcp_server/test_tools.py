"""What a parent agent does through the tools, with the real server over a pipe."""

import os
import signal
from pathlib import Path

import pytest

from tests.e2e.shell import Shell, until
from tests.mcp_server.host import MODERN, Host, events


def test_a_parent_starts_sees_the_pause_approves_and_gets_the_result(
    shell: Shell, host: Host
) -> None:
    """A-R63, A-R66, A-R67, A-R68: one task id, Paused, the pending call, Completed."""
    started = host.call("run_command_task", command=[shell.agent("approved.sh")])
    task_id = started["task_id"]
    assert (started["status"], started["state"]) == ("Pending", "queued")
    (paused,) = host.wait(task_id)
    assert (paused["status"], paused["state"]) == ("Paused", "waiting")
    details = host.call("get_task_details", task_id=task_id, include=["events"])
    (pending,) = details["pause_reason"]["pending_tool_calls"]
    (ask,) = details["asks"]
    assert pending["id"] == ask["tool_call_id"]
    assert ask["you_may_decide"]
    host.approve(paused)
    (done,) = host.wait(task_id)
    assert (done["task_id"], done["status"], done["state"]) == (task_id, "Completed", "succeeded")
    assert shell.lines("effects") == ["done with approved"]
    (approved,) = [event for event in events(shell, task_id) if event.kind == "ask_approved"]
    assert (approved.facts["level"], approved.by.partition("#")[0]) == ("L0", "agent:test")
    assert "stdout" in host.call("get_task_details", task_id=task_id, include=["stdout"])


def test_a_rejected_call_does_not_run(shell: Shell, host: Host) -> None:
    task = host.paused(shell)
    decision = {"tool_call_id": task["asks"][0]["tool_call_id"], "approved": False}
    host.call("resume_task", task_id=task["task_id"], tool_decisions=[decision])
    (ended,) = host.wait(task["task_id"])
    assert ended["status"] == "Failed"
    assert shell.lines("effects") == []


def test_resume_takes_decisions_or_a_prompt_never_both(shell: Shell, host: Host) -> None:
    """A-R64."""
    task = host.paused(shell)
    name = task["task_id"]
    decision = {"tool_call_id": task["asks"][0]["tool_call_id"], "approved": True}
    both = host.refused("resume_task", task_id=name, tool_decisions=[decision], prompt="yes")
    assert "tool_decisions or prompt, exactly one: both were given" in both
    assert "neither was given" in host.refused("resume_task", task_id=name)
    assert "decides nothing" in host.refused("resume_task", task_id=name, tool_decisions=[])
    assert shell.state(name) == "waiting"


def test_a_child_that_asks_is_answered_by_prompt_or_answer(shell: Shell, host: Host) -> None:
    script = 'name=$(adjourn ask "Which region?") || exit; echo "$name" >> regions'
    for tool in ("resume_task", "answer"):
        task = host.paused(shell, "sh", "-c", script)
        (ask,) = task["asks"]
        assert (ask["kind"], ask["prompt"]) == ("question", "Which region?")
        if tool == "answer":
            host.call("answer", ask_id=ask["ask_id"], text="eu")
        else:
            host.call("resume_task", task_id=task["task_id"], prompt="us")
        (done,) = host.wait(task["task_id"])
        assert done["status"] == "Completed"
    assert shell.lines("regions") == ["us", "eu"]


def test_the_same_call_of_a_host_is_one_task(shell: Shell, host: Host) -> None:
    claude = {"claudecode/toolUseId": "toolu_1"}
    codex = {"callId": "call_1", "x-codex-turn-metadata": {"session_id": "s1"}}
    ids: set[str] = set()
    for meta in (claude, codex):
        first = host.call("run_command_task", meta, command=["sh", "-c", "echo x >> ran"])
        again = host.call("run_command_task", meta, command=["sh", "-c", "echo x >> ran"])
        assert first["task_id"] == again["task_id"]
        ids.add(first["task_id"])
    keyed = [host.call("run_command_task", command=["true"], key="deploy") for _ in range(2)]
    ids.add(keyed[0]["task_id"])
    assert keyed[1]["task_id"] == keyed[0]["task_id"]
    assert len(ids) == 3
    host.wait(*ids, until="all")
    assert shell.lines("ran") == ["x", "x"]
    other = {"callId": "call_1", "x-codex-turn-metadata": {"session_id": "s2"}}
    assert host.call("run_command_task", other, command=["true"])["task_id"] not in ids


def test_a_question_of_the_parents_own_is_answered_by_people_only(shell: Shell, host: Host) -> None:
    asked = host.call("ask_human", question="Ship it?", choices=["yes", "no"], key="ship")
    assert (asked["runner"], asked["status"]) == ("session", "Paused")
    assert host.call("ask_human", question="Ship it?", key="ship")["task_id"] == asked["task_id"]
    (ask,) = asked["asks"]
    assert not ask["you_may_decide"]
    assert "a question to people" in host.refused("answer", ask_id=ask["ask_id"], text="yes")
    refused = host.refused("resume_task", task_id=asked["task_id"], prompt="yes")
    assert "a question to people" in refused
    assert [event.kind for event in events(shell, asked["task_id"])].count("refused") == 2
    waiting = host.begin_call("wait_for_tasks", task_ids=asked["task_id"])
    host.reply(waiting)  # the pause, once
    waiting = host.begin_call("wait_for_tasks", task_ids=asked["task_id"])
    shell.adjourn("answer", ask["ask_id"], "yes")
    (done,) = host.reply(waiting)["result"]["structuredContent"]["tasks"]
    assert (done["status"], done["final_message"]) == ("Completed", "yes")
    shell.adjourn("restart", asked["task_id"], expect=4)


def test_a_pause_is_told_once_and_a_persons_decision_ends_the_next_wait(
    shell: Shell, host: Host
) -> None:
    """With no worker alive, the server gives what a person approved a supervisor."""
    task = host.paused(shell)
    late = host.call("wait_for_tasks", task_ids=task["task_id"], timeout=0.2)
    assert late["timed_out"]
    assert "call wait_for_tasks again" in late["next"]
    waiting = host.begin_call("wait_for_tasks", task_ids=[task["task_id"]], timeout=40)
    shell.adjourn("approve", task["asks"][0]["ask_id"])
    (done,) = host.reply(waiting)["result"]["structuredContent"]["tasks"]
    assert done["status"] == "Completed"


def test_lists_show_tasks_and_asks(shell: Shell, host: Host) -> None:
    task = host.paused(shell)
    (listed,) = host.call("list_tasks", states=["waiting"])["tasks"]
    assert listed["task_id"] == task["task_id"]
    asks = host.call("list_asks")
    assert asks["count"] == 1
    assert asks["asks"][0]["digest"] == task["asks"][0]["digest"]
    assert host.call("cancel_task", task_id=task["task_id"])["status"] == "Cancelled"
    assert host.call("list_asks")["asks"] == []
    host.call("restart_task", task_id=task["task_id"])
    (again,) = host.wait(task["task_id"])
    assert again["status"] == "Paused"


def test_bad_input_gets_a_sentence_and_the_server_goes_on(shell: Shell, host: Host) -> None:
    task = host.paused(shell)
    other = host.paused(shell, shell.agent("approved.sh"), "10")
    name = task["task_id"]
    foreign = {"tool_call_id": other["asks"][0]["ask_id"], "approved": True}
    expected = {
        "no task": ("get_task_details", {"task_id": "nothing-here"}),
        "is pending": ("resume_task", {"task_id": name, "tool_decisions": [foreign]}),
        "do not fit": ("wait_for_tasks", {"task_ids": ["abcd"] * 10_000}),
        "unknown field": ("list_tasks", {"colour": "red"}),
        "Expected `array`": ("run_command_task", {"command": "make deploy"}),
        "is not a directory": ("run_command_task", {"command": ["true"], "cwd": "elsewhere"}),
        "is no agent": ("subagent_task", {"prompt": "x", "runner": "command"}),
        "no runner": ("subagent_task", {"prompt": "x", "runner": "nobody"}),
        "not a length of time": ("ask_human", {"question": "x", "expires_after": "soon"}),
        "there is nothing to resume": (
            "resume_task",
            {"task_id": done(host), "prompt": "on"},
        ),
    }
    for words, (tool, arguments) in expected.items():
        assert words in host.refused(tool, **arguments), words
    errors: list[tuple[bytes, int]] = [
        (b"{broken", -32700),
        (b"[]", -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b"[" * 100_000, -32700),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}', -32602),
        (b'{"jsonrpc":"2.0","id":7,"method":"no/such"}', -32601),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"nope"}}', -32602),
        (b'"' + b"x" * 20_000_000 + b'"', -32600),
    ]
    for message, code in errors:
        host.send(message)
        assert host.read()["error"]["code"] == code, message[:60]
    assert host.ask("ping") == {}


def done(host: Host) -> str:
    """Return a task that has succeeded."""
    (task,) = host.wait(host.call("run_command_task", command=["true"])["task_id"])
    name: str = task["task_id"]
    return name


def test_what_was_not_shown_whole_cannot_be_approved(shell: Shell, host: Host) -> None:
    task = host.paused(shell)
    decision = {"tool_call_id": task["asks"][0]["tool_call_id"], "approved": True}
    wrong = decision | {"digest": "0" * 64}
    refused = host.refused("resume_task", task_id=task["task_id"], tool_decisions=[wrong])
    assert "not the one that was shown" in refused
    long = host.paused(shell, shell.agent("approved.sh"), "90", "x" * 30_000)
    assert long["is_cut"]
    assert long["asks"][0]["digest"] is None
    decision = {"tool_call_id": long["asks"][0]["tool_call_id"], "approved": True}
    refused = host.refused("resume_task", task_id=long["task_id"], tool_decisions=[decision])
    assert "what was not seen cannot be approved" in refused
    assert shell.lines("effects") == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_children_go_on_when_the_host_ends_the_session(shell: Shell, number: int) -> None:
    with Host(shell) as host:
        host.initialize()
        script = "while [ ! -e go ]; do sleep 0.05; done; echo done >> effects"
        task = host.call("run_command_task", command=["sh", "-c", script])
        until(lambda: shell.state(task["task_id"]) == "running", what="the child runs")
        os.killpg(os.getpgid(host.process.pid), 0)
        host.process.send_signal(number)
        code = host.process.wait(20)
        assert code == (0 if number != signal.SIGKILL else -number)
        Path(shell.place, "go").touch()
        shell.adjourn("wait", task["task_id"])
    assert shell.lines("effects") == ["done"]


def test_a_wait_that_nobody_wants_any_more_is_dropped(host: Host) -> None:
    task = host.call("run_command_task", command=["sleep", "1"])
    waiting = host.begin_call("wait_for_tasks", task_ids=task["task_id"])
    host.send(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": waiting}}
    )
    assert host.ask("ping") == {}
    (done,) = host.wait(task["task_id"])
    assert done["status"] == "Completed"


def test_both_eras_answer_on_one_pipe_in_any_order(shell: Shell) -> None:
    with Host(shell) as host:
        discovered = host.ask("server/discover", {"_meta": MODERN})
        assert "2026-07-28" in discovered["supportedVersions"]
        assert discovered["resultType"] == "complete"
        assert discovered["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "adjourn"
        for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"):
            assert host.initialize(version)["protocolVersion"] == version
        assert host.initialize("1999-01-01")["protocolVersion"] == "2025-11-25"
        assert "resultType" not in host.ask("tools/list")
        modern = host.ask("tools/list", {"_meta": MODERN})
        assert (modern["resultType"], modern["cacheScope"]) == ("complete", "private")
        future = MODERN | {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}
        error = host.reply(host.begin("tools/list", {"_meta": future}))["error"]
        assert error["code"] == -32022
        assert "2026-07-28" in error["data"]["supported"]


def test_resources_and_their_changes_reach_both_eras(shell: Shell, host: Host) -> None:
    task = host.paused(shell)
    uri = f"adjourn://tasks/{task['task_id']}"
    (inbox,) = host.ask("resources/read", {"uri": "adjourn://inbox"})["contents"]
    assert task["asks"][0]["ask_id"] in inbox["text"]
    run = f"adjourn://runs/{task['task_id']}.1/stderr"
    assert host.ask("resources/read", {"uri": run})["contents"][0]["mimeType"] == "text/plain"
    assert len(host.ask("resources/templates/list")["resourceTemplates"]) == 4
    missing = host.reply(host.begin("resources/read", {"uri": "adjourn://tasks/none"}))
    assert missing["error"]["code"] == -32002
    host.ask("resources/subscribe", {"uri": "adjourn://inbox"})
    wanted = {"resourceSubscriptions": [uri]}
    stream = host.begin("subscriptions/listen", {"_meta": MODERN, "notifications": wanted})
    acknowledged = host.read()
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    shell.adjourn("reject", task["asks"][0]["ask_id"])
    seen = [host.read()["params"] for _ in range(2)]
    key = "io.modelcontextprotocol/subscriptionId"
    assert {"uri": "adjourn://inbox"} in seen
    assert {"uri": uri, "_meta": {key: stream}} in seen
