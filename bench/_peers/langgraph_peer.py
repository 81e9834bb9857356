"""LangGraph with SqliteSaver: pause and resume in another process.

usage: langgraph_peer.py prepare|resume STATE URL
"""

import sqlite3
import subprocess
import sys

from langchain_core.messages import ToolMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, MessagesState, StateGraph
from langgraph.types import Command, interrupt

TOOL = {
    "type": "function",
    "function": {
        "name": "run_command",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
    },
}
CONFIG = {"configurable": {"thread_id": "1"}}


def graph(state: str, url: str):
    """Make a graph of a model and a tool that asks first."""
    model = ChatOpenAI(model="scripted", base_url=url, api_key="none").bind_tools([TOOL])

    def ask_model(seen: MessagesState):
        return {"messages": [model.invoke(seen["messages"])]}

    def run_tools(seen: MessagesState):
        (call,) = seen["messages"][-1].tool_calls
        assert interrupt(call["args"]) == "approved"
        done = subprocess.run(
            ["sh", "-c", call["args"]["command"]], capture_output=True, text=True, check=False
        )
        return {"messages": [ToolMessage(done.stdout, tool_call_id=call["id"])]}

    made = StateGraph(MessagesState)
    made.add_node("model", ask_model)
    made.add_node("tools", run_tools)
    made.set_entry_point("model")
    made.add_conditional_edges(
        "model", lambda seen: "tools" if seen["messages"][-1].tool_calls else END
    )
    made.add_edge("tools", "model")
    return made.compile(checkpointer=SqliteSaver(sqlite3.connect(state, check_same_thread=False)))


def main(what: str, state: str, url: str) -> None:
    """Go as far as the approval, or from there to the end."""
    if what == "prepare":
        graph(state, url).invoke({"messages": [("user", "deploy to staging")]}, CONFIG)
        return
    done = graph(state, url).invoke(Command(resume="approved"), CONFIG)
    assert done["messages"][-1].content == "Done."


if __name__ == "__main__":
    main(*sys.argv[1:])
