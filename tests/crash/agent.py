"""An agent's three steps with two tools, killed anywhere.

The supervisor, the agent's own process, or a shim.
"""

import collections
import os

import msgspec

from adjourn.wiring.controller import open_controller
from tests.agent.desk import out_of_order
from tests.crash.product import (
    STORE,
    Sentences,
    effect,
    furniture,
    go_on,
    ledger,
    leftovers,
    settle_down,
    torn_manifests,
)
from tests.crash.scenarios import Command, Tale, Words, of_task
from tests.crash.stage import Ran, Stage

_TOOLS = 2
_ALONE = 20.0  # seconds
MODEL = "SCRIPTED_MODEL"  # names the variable that says where the model is


class Agent(Tale):
    """The same, with promises of its own.

    Each tool once, and a conversation that a model would take.
    """

    def setup(self, stage: Stage) -> None:
        """Say where the recorder is, to whoever runs tools from here on."""
        _name_recorder(stage)
        super().setup(stage)

    def step(self, stage: Stage) -> int:
        """Be the command that is killed."""
        _name_recorder(stage)
        return super().step(stage)

    def aftermath(self, stage: Stage, ran: Ran) -> list[str]:
        """Go on as a person would, until the task has ended, and look at what happened."""
        _name_recorder(stage)
        broken = [f"it hung: {ran.complained[-300:]}"] * ran.hung
        # An agent that nobody supervises any more waits a while for a worker, then leaves
        stage.survivors(patience=_ALONE)
        broken += settle_down(stage) + torn_manifests(stage) + go_on(stage)
        return broken + _once(stage) + _conversation(stage) + leftovers(stage) + furniture(stage)


def _name_recorder(stage: Stage) -> None:
    os.environ["EFFECT"] = " ".join(effect(stage))


def _once(stage: Stage) -> Sentences:
    """Each tool had its effect once; none that was let through is missing."""
    begun = collections.Counter(one.call for one in stage.effects() if one.what == "start")
    seen = ledger(stage)
    states = {call.id: call.state for call in seen.calls if call.is_tool}
    broken = [f"a tool started {times} times" for times in begun.values() if times > 1]
    broken += [
        "a tool is done that never started"
        for call, state in states.items()
        if state == "done" and not begun[call]
    ]
    broken += [
        "a tool started that the store does not know" for call in begun if call not in states
    ]
    tasks = [task for task in seen.tasks if task.state != "succeeded"]
    broken += [f"the task ended as {task.state}" for task in tasks]
    # A shim that died before its gate: the model was told
    failed = sum(state == "failed" for state in states.values())
    if seen.tasks and not tasks and sum(begun.values()) + failed < _TOOLS:
        broken.append(f"{sum(begun.values())} tools ran, and {failed} could not be started")
    return broken


def _conversation(stage: Stage) -> Sentences:
    """A model would take the conversation as it is."""
    root = stage.work / STORE
    if not root.exists():
        return []
    controller = open_controller(str(root))
    tasks = [task.id for task in ledger(stage).tasks]
    told = [
        out_of_order([msgspec.json.decode(body) for body in controller.agents.messages(task)])
        for task in tasks
    ]
    controller.store.close()
    return [f"the conversation is out of order: {problem}" for problem in told if problem]


def ask_agent(*options: str) -> Words:
    """Have the agent call the two tools whose starts are recorded.

    The model's script holds their places.
    """

    def words(_: Stage) -> list[str]:
        model = ["--model", "openai:scripted", "--base-url", f"{os.environ[MODEL]}/v1"]
        return ["run", *options, *model, "deploy it"]

    return words


GATED = Command(ask_agent("--pause-on-approval"), 10)

run_three_steps = Agent(ask_agent())
resume_approving = Agent(of_task("resume", "--approve-all"), after=(GATED,))
