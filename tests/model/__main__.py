"""Plays a script file until it is interrupted.

`python -m tests.model SCRIPT [--record FILE] [--port N]`.
"""

import argparse
import contextlib
from pathlib import Path

from tests.model import script
from tests.model.server import Model


def main() -> None:
    """Print the server's address on the first line, then serve."""
    parser = argparse.ArgumentParser(description="a model server that plays a script")
    parser.add_argument("script", type=Path)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    model = Model(script.read(options.script), record=options.record, port=options.port)
    print(model.url, flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        model.serve()


if __name__ == "__main__":
    main()
