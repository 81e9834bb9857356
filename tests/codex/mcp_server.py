"""An MCP server on stdin and stdout with one tool that writes and one that says it only reads.

Both leave a trace.
"""

import sys
from pathlib import Path
from typing import Any

import msgspec

SCHEMA = {"type": "object", "properties": {"x": {"type": "string"}}}
TOOLS = [
    {"name": "write", "description": "writes", "inputSchema": SCHEMA},
    {
        "name": "look",
        "description": "reads",
        "inputSchema": SCHEMA,
        "annotations": {"readOnlyHint": True},
    },
]


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            about = {"name": "traces", "version": "1"}
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": about,
            }
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            with Path(sys.argv[1]).open("a") as file:
                file.write(f"{params['name']} {params['arguments']['x']}\n")
            return {"content": [{"type": "text", "text": f"did {params['name']}"}]}
        case _:
            return {}


for line in sys.stdin:
    message = msgspec.json.decode(line)
    if "id" in message:
        reply = {
            "jsonrpc": "2.0",
            "id": message["id"],
            "result": answer(message["method"], message.get("params") or {}),
        }
        print(msgspec.json.encode(reply).decode(), flush=True)
