"""The program itself, as a user of one directory calls it."""

import subprocess
from pathlib import Path

from tests.docs.shell import environment
from tests.needs import needs


def adjourn(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a user of that directory."""
    return subprocess.run(
        [needs("adjourn"), *words],
        cwd=place,
        env=environment(place),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        umask=0,  # whatever it is, it must not matter
        check=False,
    )


def wait_for_start(place: Path, task: str) -> str:
    """Wait until a detached task has its process, and return the task."""
    while not any((place / ".adjourn" / "runs").glob(f"{task}*/shim.json")):
        adjourn(place, "tasks")
    return task
