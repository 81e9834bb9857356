#!/usr/bin/env python3
"""Notes down every interrupt that reaches it.

Leaves at the first one unless it is told to be stubborn.
"""

import signal
import sys
import time
from pathlib import Path
from types import FrameType

STUBBORN = sys.argv[1:] == ["stubborn"]


def note(number: int, _frame: FrameType | None) -> None:
    """Write down a signal."""
    with Path("interrupts").open("a", encoding="ascii") as file:
        file.write(f"{signal.Signals(number).name}\n")
    if not STUBBORN:
        sys.exit(130)


for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, note)
print("ready", flush=True)
Path("ready").touch()
while True:
    time.sleep(60)
