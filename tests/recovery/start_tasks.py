"""Starts many gated tasks in one process, as `adjourn run --pause-on-approval` starts one, and prints their ids."""

import os
import sys

from adjourn.core.task import Spec
from adjourn.wiring.controller import open_controller
from adjourn.wiring.runners import command_work


def main(root: str, count: int, *argv: str) -> int:
    """Print the id of each task."""
    controller = open_controller(root)
    for _ in range(count):
        spec = Spec(**command_work(list(argv)), workspace=os.getcwd(), pause_on_approval=True)
        print(controller.tasks.start(spec, by=controller.decisions.principal()).id)
    controller.store.close()
    return 0


sys.exit(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
