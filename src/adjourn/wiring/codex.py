"""Puts together what drives Codex inside a run."""

import os
import shutil


def drive() -> int:
    """Drive the Codex of the run that this process is, and return the exit code that says how it ended."""
    from adjourn.runners.codex.driver import drive_codex
    from adjourn.wiring.driving import driving

    with driving() as drive:
        return drive_codex(drive, os.environ, adjourn=shutil.which("adjourn") or "adjourn")
