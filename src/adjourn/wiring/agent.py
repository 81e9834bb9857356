"""Puts together the built-in agent's processes."""

import os

from adjourn.core.errors import NotInsideARun
from adjourn.core.states import CallState
from adjourn.core.task import task_of_run
from adjourn.runners.agent import driver
from adjourn.wiring import open_desk
from adjourn.wiring.driving import driving
from adjourn.wiring.judging import open_gate


def go_on() -> int:
    """Go on with the agent of the run that this process is, and return its exit code."""
    with driving() as drive:
        return driver.drive_agent(drive)


def carry_out(call_id: str) -> int:
    """Carry out the call that this process was started for, and no other: the gate was opened for that one."""
    root = os.environ.get("ADJOURN_STORE")
    task_id, _, label = call_id.partition(".")
    if not root or os.environ.get("ADJOURN_CALL_ID") != call_id:
        raise NotInsideARun("nobody runs this: it is a part of adjourn's own", way_out='adjourn run "PROMPT"')
    store, gate = open_desk(root).store, open_gate(root)
    with store.read() as view:
        task, call = view.task(task_of_run(task_id)), view.call_labelled(task_id, label)
        tools, directories = view.document(task_id, driver.TOOLS), gate.directories(view, task)
    store.close()
    if call is None or call.state is not CallState.EXECUTING:
        raise NotInsideARun(f"call {call_id} is not let through", way_out=f"adjourn show {task_id}")
    return driver.carry_out(task, call, tools=tools, directories=directories)
