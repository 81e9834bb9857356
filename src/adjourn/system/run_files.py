"""Where a run, or an agent's call beside it, keeps its private files."""

import os

LOCK, RECORD, RESULT = "shim.lock", "shim.json", "result.json"


def runs_directory(root: str) -> str:
    """Return the directory that holds those of all runs and calls."""
    return os.path.join(root, "runs")


def run_directory(root: str, name: str) -> str:
    """Return the directory of a run, by its id, or of an attempt at a call, by its name."""
    return os.path.join(runs_directory(root), name)


def driver_directory(root: str, run_id: str) -> str:
    """Return where the driver of an agent's run keeps its files."""
    return os.path.join(run_directory(root, run_id), "driver")


def run_names(root: str) -> list[str]:
    """Return the names of the runs and calls that have files here."""
    try:
        return os.listdir(runs_directory(root))
    except FileNotFoundError:
        return []
