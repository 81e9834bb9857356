"""Pydantic AI with deferred tools: pause and resume in another process.

usage: pydantic_ai_peer.py prepare|resume STATE URL
"""

import subprocess
import sys
from pathlib import Path

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


def agent(url: str) -> "Agent[None, str | DeferredToolRequests]":
    """Make an agent whose one tool needs approval."""
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=url, api_key="none"))
    made = Agent(model, output_type=[str, DeferredToolRequests])

    @made.tool_plain(requires_approval=True)
    def run_command(command: str) -> str:
        return subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, check=False
        ).stdout

    return made


def main(what: str, state: str, url: str) -> None:
    """Go as far as the approval, or from there to the end."""
    if what == "prepare":
        done = agent(url).run_sync("deploy to staging")
        assert isinstance(done.output, DeferredToolRequests)
        Path(state).write_bytes(done.all_messages_json())
        return
    messages = ModelMessagesTypeAdapter.validate_json(Path(state).read_bytes())
    results = DeferredToolResults(approvals={"tc_1": True})
    done = agent(url).run_sync(message_history=messages, deferred_tool_results=results)
    assert done.output == "Done."


if __name__ == "__main__":
    main(*sys.argv[1:])
