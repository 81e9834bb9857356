"""An agent of OpenAI Agents whose tool a person approves: run it under adjourn."""

import asyncio
import os
import subprocess

from agents import (
    Agent,
    AsyncOpenAI,
    OpenAIChatCompletionsModel,
    function_tool,
    set_tracing_disabled,
)

from adjourn.openai_agents import once, run

set_tracing_disabled(disabled=True)


@once
@function_tool(needs_approval=True)
def run_command(command: str) -> str:
    """Run a command line."""
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False).stdout


model = OpenAIChatCompletionsModel(os.environ.get("MODEL", "scripted"), AsyncOpenAI())
agent = Agent(name="agent", model=model, tools=[run_command])
print(asyncio.run(run(agent, "deploy to staging")).final_output)
