"""A worker that says through a named pipe when it has claimed a task.

The moment in which the commit was over.
"""

import os
import time

from adjourn.__main__ import main
from adjourn.controller.runs import Claimed, Runs
from adjourn.core.task import Task

_claim = Runs.claim
_PIPE = os.open(os.environ["XDG_STATE_HOME"] + ".claimed", os.O_WRONLY)


def claim(self: Runs, task_id: str, *, supervisor: str) -> Claimed | Task:
    """Claim, and say when."""
    claimed = _claim(self, task_id, supervisor=supervisor)
    os.write(_PIPE, f"{time.perf_counter()}\n".encode())
    return claimed


if __name__ == "__main__":
    Runs.claim = claim  # type: ignore[method-assign]  # -- in this process alone, which measures
    main()
