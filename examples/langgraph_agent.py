"""A LangGraph agent whose tool a person approves: run it under adjourn."""

import os
import sqlite3
import subprocess

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, MessagesState, StateGraph
from openai import OpenAI

from adjourn.langgraph import run, tools_node


@tool
def run_command(command: str) -> str:
    """Run a command line."""
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False).stdout


TOOL = {
    "type": "function",
    "function": {
        "name": "run_command",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
    },
}


def ask_model(seen: MessagesState) -> dict[str, list[AIMessage]]:
    """Ask the model. Any chat model of LangChain does the same; this needs no other package."""
    roles = {"human": "user", "ai": "assistant", "tool": "tool"}
    messages = []
    for each in seen["messages"]:
        message = {"role": roles[each.type], "content": each.content}
        if each.type == "tool":
            message["tool_call_id"] = each.tool_call_id
        if each.type == "ai" and each.tool_calls:
            message["tool_calls"] = each.additional_kwargs["tool_calls"]
        messages.append(message)
    answer = OpenAI().chat.completions.create(
        model=os.environ.get("MODEL", "scripted"), messages=messages, tools=[TOOL]
    )
    said = answer.choices[0].message
    calls = [call.model_dump() for call in said.tool_calls or ()]
    return {"messages": [AIMessage(said.content or "", additional_kwargs={"tool_calls": calls})]}


made = StateGraph(MessagesState)
made.add_node("model", ask_model)
made.add_node("tools", tools_node([run_command]))
made.set_entry_point("model")
made.add_conditional_edges(
    "model", lambda seen: "tools" if seen["messages"][-1].tool_calls else END
)
made.add_edge("tools", "model")
saver = SqliteSaver(sqlite3.connect("graph.sqlite", check_same_thread=False))
done = run(made.compile(checkpointer=saver), {"messages": [("user", "deploy to staging")]})
print(done["messages"][-1].content)
