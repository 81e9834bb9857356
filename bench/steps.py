"""What a step of an agent costs as its conversation grows: the bytes it writes, and the time it takes.

A whole step of the real loop, against a scripted model over HTTP: the answer is written down, a file is read, what came of it is
written down. The request is counted apart, for the APIs want the whole conversation each time, and that grows with it.
"""

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec
from _figures import Figure, ms, report, words
from _scripted import model

from adjourn.controller.controller import Controller
from adjourn.core.agent.transcript import (
    Assistant,
    Message,
    ToolCall,
    ToolResult,
    Usage,
    User,
    encoded,
)
from adjourn.core.ask import Principal
from adjourn.core.task import ProcessId, Spec
from adjourn.runners.agent.interrupt import Stop
from adjourn.runners.agent.loop import Agent
from adjourn.runners.agent.options import AgentSetup
from adjourn.runners.agent.retry import RetryingModel
from adjourn.runners.agent.tools.tool import Tool
from adjourn.runners.agent.tools.toolbox import toolbox
from adjourn.system.files import run_directory
from adjourn.wiring import STORE
from adjourn.wiring.controller import open_controller
from adjourn.wiring.drivers import Driver

FEW, MANY = 100, 5_000
TEXT = "x" * 1_900
MORE_BYTES, MORE_TIME = 1.2, 1.5


class Step(NamedTuple):
    """What one step cost."""

    written: float  # bytes
    ours: float  # seconds
    cpu: float
    request: float


def main() -> int:
    """Measure, print, and say by the exit code whether a goal was missed."""
    parser = words(__doc__)
    parser.add_argument("--steps", type=int, default=40)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="adjourn-bench-") as place:
        few, many = (
            cost(os.path.join(place, str(count)), count, steps=given.steps) for count in (FEW, MANY)
        )
    figures = [
        Figure(
            f"bytes at {MANY:,} messages",
            f"{many.written:,.0f}",
            f"at {FEW} {few.written:,.0f}",
            many.written / few.written,
            MORE_BYTES,
        ),
        Figure(
            f"time at {MANY:,} messages",
            ms(many.ours),
            f"at {FEW} {ms(few.ours)}",
            many.ours / few.ours,
            MORE_TIME,
        ),
    ]
    code = report(f"A step that reads a file of 2 KB, median of {given.steps}", figures)
    print(f"CPU of that: {ms(many.cpu)} against {ms(few.cpu)}, {many.cpu / few.cpu:.2f}x")
    print(
        f"the request, which carries the whole conversation: {ms(many.request)} against {ms(few.request)}"
    )
    return code


def cost(place: str, count: int, *, steps: int) -> Step:
    """Return what a step costs after so many messages."""
    os.makedirs(place)
    Path(place, "notes.txt").write_text(TEXT)
    with model(place, script(count // 2, steps)) as (url, _):
        setup = AgentSetup(model="openai:scripted", base_url=url, max_steps=10 * MANY)
        controller = open_controller(os.path.join(place, STORE))
        with (
            closing(controller.store),
            closing(RetryingModel(setup, "Work.", hear=_ignore, tell=_ignore)) as asking,
        ):
            driver = begun(controller, place, setup, conversation(count))
            watched = Watched(asking)
            Agent(
                driver, setup, toolbox(setup, [], workspace=place, pauses=False), watched, Stop()
            ).run()
    return watched.middle()


class Watched:
    """Asks the model, and looks at the clock before and after."""

    def __init__(self, asking: RetryingModel) -> None:
        self._asking = asking
        self._looks: list[tuple[Step, Step]] = []

    def __call__(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Assistant:
        """Ask the model."""
        before = _look()
        answer = self._asking(messages, tools)
        self._looks.append((before, _look()))
        return answer

    def summarise(self, text: str) -> Assistant:
        """Have the model summarise a conversation."""
        return self._asking.summarise(text)

    def middle(self) -> Step:
        """Return the middle of all steps but the first: there everything is opened."""
        requests = [after.ours - before.ours for before, after in self._looks[1:]]
        between = [
            (ended[1], begun[0])
            for ended, begun in zip(self._looks[1:], self._looks[2:], strict=False)
        ]
        written, ours, cpu = (
            median(end[field] - begin[field] for begin, end in between) for field in range(3)
        )
        return Step(written, ours, cpu, median(requests))


def _look() -> Step:
    return Step(_written(), time.perf_counter(), time.process_time(), 0.0)


def _written() -> int:
    """Return how many bytes this process has handed to the system to write."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


def _ignore(_: str) -> None:
    pass


def begun(
    controller: Controller, place: str, setup: AgentSetup, messages: Sequence[Message]
) -> Driver:
    """Return a driver whose task has had this conversation."""
    body = msgspec.json.encode(setup).decode()
    spec = Spec(
        runner="agent", argv=("adjourn", "_agent"), workspace=place, prompt="work", setup=body
    )
    task = controller.tasks.start(spec, by=Principal(name=f"uid:{os.getuid()}"), supervisor="bench")
    claimed = controller.runs.claimed(task.id, supervisor="bench")
    assert claimed is not None
    controller.runs.execute(claimed.run, shim=ProcessId(boot_id="bench", pid=1, start_time=1))
    controller.agents.append_messages(
        claimed.run.id, [encoded(message) for message in messages], after=0
    )
    root = os.path.join(place, STORE)
    os.makedirs(run_directory(root, claimed.run.id))
    return Driver(controller, root=root, run_id=claimed.run.id)


def conversation(count: int) -> list[Message]:
    """Return so many messages of 2 KB.

    The model's words with a call, and what came of it, in turn.
    """
    messages: list[Message] = [User(text=TEXT)]
    for number in range(count // 2):
        call = ToolCall(id=f"past_{number}", name="read_file", arguments={"path": "notes.txt"})
        messages.append(
            Assistant(text=TEXT, tool_calls=(call,), usage=Usage(input=9, output=9, cost="0.001"))
        )
        messages.append(ToolResult(tool_call_id=call.id, name=call.name, text=TEXT))
    return messages


def script(past: int, steps: int) -> str:
    """Return a script that reads a file so many times after so many answers."""
    read = {"text": TEXT, "calls": [{"name": "read_file", "arguments": {"path": "notes.txt"}}]}
    return msgspec.json.encode(
        {"turns": [{"text": "past"}] * past + [read] * (steps + 3) + [{"text": "Done."}]}
    ).decode()


if __name__ == "__main__":
    sys.exit(main())
