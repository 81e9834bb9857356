"""python -m adjourn, and the `adjourn` command."""

import gc
import os
import sys

_INTERRUPTED = 130  # as a shell says it


def main() -> None:
    """Run the command line and leave with its exit code.

    Collecting garbage and taking the interpreter down are a fifth of the cost of a short command, and serve nobody.
    """
    gc.disable()
    try:
        from adjourn.cli.app import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        os._exit(_INTERRUPTED)  # before anything was begun, or after everything was written
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
