"""Kills process trees to the last member, and never a stranger."""


def kill_leftovers(run_dir: str, run_id: str) -> int:
    """Kill what is still alive of a run whose shim was killed; return how many there were."""
    raise NotImplementedError
