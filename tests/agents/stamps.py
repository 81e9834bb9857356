#!/usr/bin/env python3
"""Has an effect that takes a while, and stamps the time every 50 ms.

So it can be told until when it lived.
"""

import os
import sys
import time
from pathlib import Path

if "AUTO_APPROVAL" not in os.environ:
    sys.exit(90)
run, call = os.environ["ADJOURN_RUN_ID"], os.environ["ADJOURN_CALL_ID"]
with Path("effects").open("a") as effects:
    effects.write(f"+ {call} {run}\n")
with Path("stamps", run).open("a", buffering=1) as stamps:
    for _ in range(int(sys.argv[1])):
        stamps.write(f"{time.time():.3f}\n")
        time.sleep(0.05)
with Path("effects").open("a") as effects:
    effects.write(f"- {call} {run}\n")
