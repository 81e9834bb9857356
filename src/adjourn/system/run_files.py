"""Where the runs and the clarifications of a store keep their private files."""

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


def clarifications_directory(root: str) -> str:
    """Return the directory of the files by which agents ask and are answered."""
    return os.path.join(root, "clarifications")


def has_clarifications(root: str) -> bool:
    """Return whether any task of this store ever asked by files."""
    return os.path.isdir(clarifications_directory(root))


def checkpoint_path(root: str, task_id: str) -> str:
    """Return where an agent that asks by files leaves its checkpoint."""
    return os.path.join(root, "checkpoints", f"{task_id}.checkpoint.json")
