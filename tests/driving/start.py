"""Starts a task of the driver beside this file and supervises it, as `adjourn run` does."""

import os
import sys
from pathlib import Path

from adjourn.core.task import OnRejection, Spec
from adjourn.wiring.supervisor import open_supervisor

DRIVER = Path(__file__).parent / "driver.py"


def main(root: str, prompt: str, *flags: str) -> int:
    """Run a new task to its end, and print its id and its state."""
    controller, supervisor = open_supervisor(root)
    spec = Spec(
        runner="agent",
        argv=(sys.executable, str(DRIVER)),
        workspace=os.getcwd(),
        prompt=prompt,
        pause_on_approval="--ask" in flags,
        on_rejection=OnRejection.TELL,
    )
    task = controller.tasks.start(
        spec,
        by=controller.decisions.principal(),
        supervisor=None if "--queue" in flags else supervisor.name,
    )
    if "--queue" not in flags:
        task = supervisor.run(task)
    print(task.id, task.state)
    supervisor.close()
    return 0


sys.exit(main(*sys.argv[1:]))
