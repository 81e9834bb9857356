"""An agent of Pydantic AI whose tool a person approves: run it under adjourn."""

import os
import subprocess

from pydantic_ai import Agent, RunContext
from pydantic_ai.models.openai import OpenAIChatModel

from adjourn.pydantic_ai import once, run_sync

agent = Agent(OpenAIChatModel(os.environ.get("MODEL", "scripted")))


@agent.tool(requires_approval=True)
@once
def run_command(ctx: RunContext[None], command: str) -> str:
    """Run a command line."""
    del ctx
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False).stdout


print(run_sync(agent, "deploy to staging").output)
