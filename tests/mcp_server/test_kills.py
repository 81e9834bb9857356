"""kill -9 of the server, and with it of the host, at random moments: no child lost, none twice."""

import os
import random
import time

from tests.e2e.shell import Shell
from tests.mcp_server.host import Host
from tests.mcp_server.test_who_decides import make_known

MOMENTS = int(os.environ.get("ADJOURN_TEST_MCP_KILLS", "8"))
LONGEST = 0.6  # seconds: two children are started and have ended by then, on a quiet machine


def test_a_killed_server_loses_no_child_and_starts_none_twice(shell: Shell) -> None:
    known = make_known(shell)
    chance = random.Random(16)
    keys: list[str] = []
    for moment in range(MOMENTS):
        names = [f"{moment}-{number}" for number in range(2)]
        keys += names
        victim = Host(shell, name="claude", env=known)
        for name in names:
            words = ["sh", "-c", f"echo {name} >> effects"]
            victim.begin_call("run_command_task", command=words, key=name)
        time.sleep(chance.random() * LONGEST)
        victim.process.kill()
        victim.close()
    with Host(shell, name="claude", env=known) as host:
        host.initialize()
        tasks = [
            host.call("run_command_task", command=["sh", "-c", f"echo {key} >> effects"], key=key)
            for key in keys
        ]
        for task in tasks:
            (ended,) = host.wait(task["task_id"], timeout=50)
            assert ended["status"] == "Completed", ended
    assert sorted(shell.lines("effects")) == sorted(keys)
    assert len(shell.json("tasks", "--limit", "1000")["tasks"]) == len(keys)
    shell.adjourn("audit", "verify")
