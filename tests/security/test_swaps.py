"""A file that is swapped between the last look and the start: the other bytes never run."""

import json
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.security.ordinary import OrdinaryShell, ordinary_shell
from tests.security.sweep import SCRIPTS, sweep

CI, FULL, PART = 300, 10_000, 100
HERE = Path(__file__).resolve().parents[2]
WHAT = ["program", *SCRIPTS]
WHO = ["root", "ordinary"] if os.getuid() == 0 else ["ordinary"]


def _swept_by(shell: OrdinaryShell, what: str, count: int) -> "Counter[tuple[str, str]]":
    """Have an ordinary user carry out the sweep, in parts that each end within the time of a command."""
    results: Counter[tuple[str, str]] = Counter()
    for first in range(0, count, PART):
        part = [what, str(min(PART, count - first)), str(shell.place), str(first)]
        words = [sys.executable, "-m", "tests.security.sweep", *part]
        done = shell.run(*words, env={"PYTHONPATH": str(HERE)})
        results.update({(swapped, ran): times for swapped, ran, times in json.loads(done.out)})
    return results


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("what", WHAT)
def test_a_swap_between_the_look_and_the_start_runs_no_other_bytes(
    tmp_path: Path, request: pytest.FixtureRequest, what: str, who: str
) -> None:
    total = FULL if request.config.getoption("--sweep") == "full" else CI
    count = -(-total // (len(WHAT) * len(WHO)))
    if who == "root":
        results = sweep(tmp_path, what, count)
    else:
        with ordinary_shell() as shell:
            results = _swept_by(shell, what, count)
    print(f"{count} swaps of a {what} by {who}: {dict(results)}")
    assert results.total() == count
    assert not [found for found in results if found[1] == "evil"], results
    assert results["swapped", "good"] + results["idle", "good"] > 0, results
    assert results["swapped", "good"] + results["swapped", "nothing"] > 0, results
