#!/usr/bin/env python3
"""Notes down exactly what it was given: arguments, environment, directory and streams."""

import json
import os
import sys
from pathlib import Path

SEEN = {
    "argv": [os.fsencode(word).hex() for word in sys.argv[1:]],
    "env": dict(os.environ),
    "cwd": str(Path.cwd()),
    "stdin": str(Path("/proc/self/fd/0").readlink()),
    "tty": any(os.isatty(fd) for fd in range(3)),
    "fds": [fd for fd in range(3, 64) if Path(f"/proc/self/fd/{fd}").is_symlink()],
}

with Path("record").open("a", encoding="ascii") as file:
    file.write(json.dumps(SEEN) + "\n")
sys.exit(0 if os.environ.get("AUTO_APPROVAL") else 90)
