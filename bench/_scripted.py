"""A scripted model over HTTP, in a process of its own."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from _measure import python

ROOT = Path(__file__).resolve().parent.parent


@contextmanager
def model(place: str, script: str) -> Iterator[tuple[str, int]]:
    """Have the model play for as long as the block lasts.

    Yield its base URL, and the pid of its process.
    """
    file = Path(place, "script.json")
    file.write_text(script)
    with subprocess.Popen(
        [python(), "-m", "tests.model", str(file)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield f"{server.stdout.readline().strip()}/v1", server.pid
        finally:
            server.terminate()
