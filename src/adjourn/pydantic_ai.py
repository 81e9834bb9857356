"""Pydantic AI under adjourn: calls that require approval become asks of the run, each made once.

@agent.tool(requires_approval=True)
@once
def deploy(ctx: RunContext[None], target: str) -> str: ...

print(run_sync(agent, "deploy to staging").output)
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext, ToolDenied
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.run import AgentRunResult

from adjourn.core.errors import Misuse
from adjourn.library import NamedCall, decide_calls, keep_state, kept_state, make_once

_P = ParamSpec("_P")
_D = TypeVar("_D")
_R = TypeVar("_R")


class _State(msgspec.Struct):
    """A conversation that waits for decisions."""

    messages: msgspec.Raw
    calls: tuple[NamedCall, ...]


def once(
    function: Callable[Concatenate[RunContext[_D], _P], _R],
) -> Callable[Concatenate[RunContext[_D], _P], _R]:
    """Have a tool make each approved call once in all runs of the task; it returns JSON values."""

    @wraps(function)
    def made(ctx: RunContext[_D], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with make_once(str(ctx.tool_call_id)) as call:
            if not call.is_made:
                call.result = function(ctx, *args, **kwargs)
        result: _R = call.result
        return result

    return made


def run_sync(agent: "Agent[Any, Any]", prompt: str, **more: Any) -> "AgentRunResult[Any]":
    """Run an agent to its end, from where an earlier run of the task left it.

    `more` goes to `agent.run_sync`. While a person has to decide, leave with exit code 10.
    """
    output = [agent.output_type, DeferredToolRequests]
    kept = kept_state()
    state = msgspec.json.decode(kept, type=_State) if kept else None
    result: AgentRunResult[Any]
    while True:
        if state is None:
            result = agent.run_sync(prompt, output_type=output, **more)
        else:
            reasons = decide_calls(state.calls)
            approvals: dict[str, Any] = {
                name: True if reason is None else ToolDenied(reason)
                for name, reason in reasons.items()
            }
            result = agent.run_sync(
                message_history=ModelMessagesTypeAdapter.validate_json(bytes(state.messages)),
                deferred_tool_results=DeferredToolResults(approvals=approvals),
                output_type=output,
                **more,
            )
        asked = result.output
        if not isinstance(asked, DeferredToolRequests):
            return result
        if asked.calls:
            raise Misuse(
                f"the tool {asked.calls[0].tool_name} is made outside: nobody here makes it",
                way_out="register it with requires_approval=True",
            )
        calls = tuple(
            NamedCall(id=call.tool_call_id, tool=call.tool_name, arguments=call.args_as_dict())
            for call in asked.approvals
        )
        state = _State(messages=msgspec.Raw(result.all_messages_json()), calls=calls)
        keep_state(msgspec.json.encode(state))
