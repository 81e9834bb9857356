#!/usr/bin/env python3
"""An agent of others that follows the RFC: exit 10 with a manifest, and -c CHECKPOINT with flags."""

import json
import os
import sys

words = sys.argv[1:]
with open("starts", "a") as file:
    file.write(json.dumps(words) + "\n")


def pause(checkpoint: str, *calls: str) -> None:
    """Print a manifest and leave."""
    pending = [{"id": name, "name": "run", "arguments": {"command": name}} for name in calls]
    kind = "tool_approval_required" if calls else "input_required"
    reason = {"type": kind, "pending_tool_calls": pending}
    manifest = {"outcome": "paused", "checkpoint_id": checkpoint, "pause_reason": reason}
    print(json.dumps(manifest | {"agent_message": f"at {checkpoint}"}))
    sys.exit(10)


if "-c" not in words:
    pause(os.environ.get("FIRST", "xyz"), "tc_1", "tc_2")
if words[words.index("-c") + 1] == "xyz":
    pause("xyz2")
print("done")
