"""Puts together what drives Claude Code inside a run, and what its hook says."""

import os

from adjourn.core.errors import NotInsideARun


def drive() -> int:
    """Drive the Claude Code of the run that this process is, and return the exit code that says how it ended."""
    from adjourn.runners.claude.driver import ClaudeDriver
    from adjourn.wiring.driving import driving
    from adjourn.wiring.judging import own_program

    with driving() as drive:
        return ClaudeDriver(drive, adjourn=own_program() or "adjourn", inherited=os.environ).run()


def ask_driver(request: bytes) -> bytes:
    """Take the input of a hook to the driver of the run that it belongs to, and return what to print, or raise."""
    from adjourn.process.local import run_directory
    from adjourn.runners import hook

    run_id, root = os.environ.get("ADJOURN_RUN_ID"), os.environ.get("ADJOURN_STORE")
    if not run_id or not root:
        raise NotInsideARun("nobody runs this: it is a part of adjourn's own")
    return hook.ask(os.path.join(run_directory(root, run_id), "driver"), request)
