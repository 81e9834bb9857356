"""python -m adjourn, and the `adjourn` command."""

import gc
import os
import sys

_INTERRUPTED = 130  # as a shell says it


def main() -> None:
    """Run the command line and leave with its exit code.

    Collecting garbage and taking the interpreter down are a fifth of the cost of a short command,
    and serve nobody.
    """
    gc.disable()
    _import_nothing_from_here()
    try:
        # Most commands start without it (bench start)
        from adjourn.cli.app import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        os._exit(_INTERRUPTED)  # before anything was begun, or after everything was written
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _import_nothing_from_here() -> None:
    """Take the current directory, and every relative path, out of sys.path.

    A repository may have a module of any name. Its code would run because somebody reads a task
    there.
    """
    variable = os.environ.get("PYTHONPATH")
    try:
        here = (
            {os.getcwd()}
            if sys.path and sys.path[0] in {"", os.getcwd()} and not sys.flags.safe_path
            else set[str]()
        )
        if variable is not None:
            here |= {
                os.path.abspath(entry)
                for entry in variable.split(os.pathsep)
                if not os.path.isabs(entry)
            }
    except FileNotFoundError:  # the directory is gone, and nothing can be imported from it
        return
    if here:
        ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        sys.path[:] = [
            place for place in sys.path if place == ours or (place and place not in here)
        ]


if __name__ == "__main__":
    main()
