"""The real Claude Code where something is not what it was.

A tool that is gone at the resume, and a store that machines share.
"""

import sys
from pathlib import Path

import msgspec

from tests.claude.scene import Scene, bash, history
from tests.model.script import ToolUse, Turn

SERVER = Path(__file__).parents[1] / "codex" / "mcp_server.py"
DONE = Turn(text="All done.")


def test_a_call_whose_tool_is_gone_at_the_resume_waits_until_it_is_back(real: Scene) -> None:
    """It is a tool of an MCP server: `tool_deferred_unavailable`.

    The session stays as it is, and nothing runs unapproved.
    """
    server = real.work / "server.py"
    config = {
        "mcpServers": {
            "traces": {
                "command": sys.executable,
                "args": [str(server), str(real.work / "made.txt")],
            }
        }
    }
    (real.work / "mcp.json").write_bytes(msgspec.json.encode(config))
    server.write_bytes(SERVER.read_bytes())
    writes = Turn(
        text="I write.",
        calls=(ToolUse(name="mcp__traces__write", arguments={"x": "1"}, id="toolu_A"),),
    )
    with real.model([writes, DONE]) as model:
        real.run(options=("--option", f"arguments=--mcp-config {real.work / 'mcp.json'}"))
        server.rename(real.work / "gone.py")
        real.approve_all()
        assert "mcp__traces__write isn't available" in real.resume(expect=10).err
        assert real.lines() == []
        (real.work / "gone.py").rename(server)
        while real.resume(expect=None).code == 10:
            assert real.lines() == []
            real.approve_all()
    assert real.lines() == ["write 1"]
    assert b"did write" in history(model.asked[-1])[-1]


def test_a_session_waits_and_goes_on_in_a_store_that_machines_share(
    real: Scene, database: str
) -> None:
    real.shell.share(database)
    with real.model(
        [Turn(text="I make it.", calls=(bash("echo hi >> made.txt", name="toolu_A"),)), DONE]
    ):
        real.run()
        assert real.lines() == []
        task = real.task
        real.shell.adjourn("approve", real.asks()[0]["id"])
        real.shell.adjourn("resume", task)
    assert real.lines() == ["hi"]
    first, second = real.shell.runs(task)
    assert (second["state"], second["resumed_from_run_id"]) == ("succeeded", first["run_id"])
    assert first["provider_session_ref"] == second["provider_session_ref"]
    assert second["usage"]["output_tokens"] == 10
