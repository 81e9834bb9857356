"""A driver without a model.

Each line of its prompt is one answer, a JSON list of commands to run; it ends after the last.
"""

import sys

import msgspec

from adjourn.core.agent.calls import Held, Proposed, Report
from adjourn.core.call import tool_body
from adjourn.core.states import CallState
from adjourn.wiring.drivers import Driver, driving


def main() -> int:
    """Go through the answers that have not been told yet."""
    with driving() as drive:
        answers = (drive.task.spec.prompt or "").splitlines()
        told = len(drive.messages())
        for number in range(told, len(answers)):
            held = drive.batch() or drive.propose(_batch(answers[number]))
            held = drive.wait_for_calls()
            if any(
                each.call and each.call.state in {CallState.PENDING, CallState.UNCERTAIN}
                for each in held
            ):
                return 10
            _tell(drive, held, after=number)
        drive.report(Report(message=f"{len(answers)} answers", steps=len(answers)))
    return 0


def _batch(answer: str) -> list[Proposed]:
    commands = msgspec.json.decode(answer, type=list[str])
    return [
        Proposed(tool="run_command", body=tool_body("run_command", {"command": command}))
        for command in commands
    ]


def _tell(drive: Driver, held: list[Held], *, after: int) -> None:
    results = [(each.call.state.value, each.result) for each in held if each.call]
    drive.conclude([msgspec.json.encode(results)], after=after)


sys.exit(main())
