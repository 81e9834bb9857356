"""LangGraph under adjourn: tool calls and interrupts become asks of the run, each call made once.

    graph.add_node("tools", tools_node([deploy]))
    run(graph.compile(checkpointer=...), {"messages": [("user", "deploy")]})

Checkpoints are the graph's own: give it a checkpointer that is still there in the next process.
"""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command

from adjourn.library import NamedCall, ask, decide_calls, make_once, session_name


def tools_node(
    tools: Sequence[BaseTool], *, without_asking: Sequence[str] = ()
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a node that makes the calls of the last message, once each, when they are approved.

    A rejected call is answered with the reason. Tools that are named in `without_asking` just run.
    """
    known = {tool.name: tool for tool in tools}

    def node(state: dict[str, Any]) -> dict[str, Any]:
        wanted = state["messages"][-1].tool_calls
        asked = [
            NamedCall(id=call["id"], tool=call["name"], arguments=call["args"])
            for call in wanted
            if call["name"] not in without_asking
        ]
        reasons = decide_calls(asked)
        messages: list[ToolMessage] = []
        for call in wanted:
            name, tool = call["id"], known[call["name"]]
            if name not in reasons:
                text = str(tool.invoke(call["args"]))
            elif (reason := reasons[name]) is not None:
                text = f"Not run: {reason}"
            else:
                with make_once(name) as made:
                    if not made.is_made:
                        made.result = str(tool.invoke(call["args"]))
                text = str(made.result)
            messages.append(ToolMessage(text, tool_call_id=name))
        return {"messages": messages}

    return node


def run(graph: Any, given: Any, *, thread: str | None = None) -> Any:
    """Run a compiled graph to its end, from where an earlier run of the task left it.

    An `interrupt(question)` is a question to a person, and its answer is what the interrupt
    returns. While a person has to decide, leave with exit code 10. The graph's thread is named for
    the task's session, unless you name one.
    """
    config = {"configurable": {"thread_id": thread or session_name()}}
    seen = graph.get_state(config)
    # What a node left behind goes on; a thread that is new begins
    state = graph.invoke(None if seen.next else given, config) if not _asked(seen) else None
    while asked := _asked(graph.get_state(config)):
        answers = {each.id: ask(str(each.value), key=each.id) for each in asked}
        state = graph.invoke(Command(resume=answers), config)
    return state


def _asked(seen: Any) -> list[Any]:
    return [each for task in seen.tasks for each in task.interrupts]
