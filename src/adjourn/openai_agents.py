"""OpenAI Agents under adjourn: calls that need approval become asks of the run, each made once.

@once
@function_tool(needs_approval=True)
def deploy(target: str) -> str: ...

print(asyncio.run(run(agent, "deploy to staging")).final_output)
"""

from dataclasses import replace
from typing import Any

import msgspec
from agents import Agent, FunctionTool, Runner, RunResult, RunState
from agents.tool_context import ToolContext

from adjourn.library import NamedCall, decide_calls, keep_state, kept_state, make_once


def once(tool: FunctionTool) -> FunctionTool:
    """Have a tool make each approved call once in all runs of the task; it returns JSON values."""

    async def invoke(context: "ToolContext[Any]", arguments: str) -> Any:
        with make_once(context.tool_call_id) as call:
            if not call.is_made:
                call.result = await tool.on_invoke_tool(context, arguments)
        return call.result

    return replace(tool, on_invoke_tool=invoke)


async def run(agent: "Agent[Any]", prompt: str, **more: Any) -> RunResult:
    """Run an agent to its end, from where an earlier run of the task left it.

    `more` goes to `Runner.run`. While a person has to decide, leave with exit code 10.
    """
    kept = kept_state()
    state = await RunState.from_string(agent, kept.decode()) if kept else None
    while True:
        if state is None:
            result = await Runner.run(agent, prompt, **more)
        else:
            asked = {_call_of(each).id: each for each in state.get_interruptions()}
            reasons = decide_calls([_call_of(each) for each in asked.values()])
            for name, reason in reasons.items():
                if reason is None:
                    state.approve(asked[name])
                else:
                    state.reject(asked[name], rejection_message=reason)
            result = await Runner.run(agent, state, **more)
        if not result.interruptions:
            return result
        state = result.to_state()
        keep_state(state.to_string().encode())


def _call_of(asked: Any) -> NamedCall:
    """Return what an interruption is about."""
    raw = asked.raw_item
    arguments = msgspec.json.decode(raw.arguments or "{}", type=dict[str, Any])
    return NamedCall(id=raw.call_id, tool=asked.name or raw.name, arguments=arguments)
