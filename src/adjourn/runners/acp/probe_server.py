"""An MCP server with one tool, which leaves a file. A probe gives it to an agent's session.

It is started by its path, with nothing of adjourn's imported.
"""

import json
import sys
from typing import Any


def serve(target: str) -> None:
    """Answer what a client asks on stdin, a message a line, until that ends."""
    tool: dict[str, Any] = {
        "name": "leave_mark",
        "description": "Leaves a mark, for a test.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"destructiveHint": True, "openWorldHint": True},
    }
    for line in sys.stdin:
        message: dict[str, Any] = json.loads(line)
        result: dict[str, Any]
        answer: dict[str, Any]
        if "id" not in message:
            continue
        params: dict[str, Any] = message.get("params") or {}
        match message.get("method"):
            case "initialize":
                result = {
                    "protocolVersion": params.get("protocolVersion", "2025-06-18"),
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "adjourn-probe", "version": "1"},
                }
            case "tools/list":
                result = {"tools": [tool]}
            case "tools/call":
                with open(target, "w", encoding="utf-8") as file:
                    file.write("called\n")
                result = {"content": [{"type": "text", "text": "done"}]}
            case "ping":
                result = {}
            case other:
                error = {"code": -32601, "message": f"no method {other}"}
                answer = {"jsonrpc": "2.0", "id": message["id"], "error": error}
                sys.stdout.write(json.dumps(answer) + "\n")
                sys.stdout.flush()
                continue
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve(sys.argv[1])
