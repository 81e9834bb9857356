"""Puts together what drives Codex inside a run."""

import os
from functools import partial


def drive() -> int:
    """Drive the Codex of the run that this process is, and return the exit code that says how it ended."""
    from adjourn.process.linux import die_with
    from adjourn.runners.codex.driver import drive_codex
    from adjourn.wiring.driving import driving
    from adjourn.wiring.judging import own_program

    with driving() as drive:
        adjourn, bind = own_program() or "adjourn", partial(die_with, os.getpid())
        return drive_codex(drive, os.environ, adjourn=adjourn, bind=bind)
