"""OpenAI Agents with RunState: pause and resume in another process.

usage: openai_agents_peer.py prepare|resume STATE URL
"""

import asyncio
import subprocess
import sys
from pathlib import Path

from agents import (
    Agent,
    AsyncOpenAI,
    OpenAIChatCompletionsModel,
    Runner,
    RunState,
    function_tool,
    set_tracing_disabled,
)

set_tracing_disabled(disabled=True)


@function_tool(needs_approval=True)
def run_command(command: str) -> str:
    """Run a command line."""
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False).stdout


async def main(what: str, state: str, url: str) -> None:
    """Go as far as the approval, or from there to the end."""
    model = OpenAIChatCompletionsModel("scripted", AsyncOpenAI(base_url=url, api_key="none"))
    agent = Agent(name="agent", model=model, tools=[run_command])
    if what == "prepare":
        done = await Runner.run(agent, "deploy to staging")
        assert done.interruptions
        Path(state).write_text(done.to_state().to_string())
        return
    kept = await RunState.from_string(agent, Path(state).read_text())
    for each in kept.get_interruptions():
        kept.approve(each)
    done = await Runner.run(agent, kept)
    assert done.final_output == "Done."


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
