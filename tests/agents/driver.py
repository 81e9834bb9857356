#!/usr/bin/env python3
"""Drives an agent of one answer.

It has one call run beside it, stays until that has ended, and leaves.
"""

import sys

from adjourn.core.agent.calls import Proposed
from adjourn.core.call import tool_body
from adjourn.wiring.drivers import driving

with driving() as drive:
    if not drive.batch():
        drive.propose([Proposed(tool="bash", body=tool_body("bash", {"command": sys.argv[1]}))])
    held = drive.wait_for_calls()
    sys.exit(10 if any(each.result is None for each in held) else 0)
