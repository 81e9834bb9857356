"""What happens unattended and is killed.

A worker's work, answers by file, and what others are told.
"""

import collections
import os
from pathlib import Path

import msgspec

from tests.crash.product import STORE, Sentences, adjourn, ledger, newest_task
from tests.crash.scenarios import (
    APPROVED,
    DONE,
    PAUSED,
    Command,
    KilledAgain,
    Tale,
    run_script,
    words,
)
from tests.crash.stage import Ran, Stage

FOREIGN = """EFFECT
place=$ADJOURN_STORE/clarifications/$ADJOURN_TASK_ID
if [ -f $place.response.yaml ]; then sed -n 's/.*answer: *//p' $place.response.yaml >> ../effects-heard; exit 0; fi
mkdir -p $ADJOURN_STORE/clarifications $ADJOURN_STORE/checkpoints
printf 'questions:\\n  - question_id: Q1\\n    text: Where?\\n' > $place.needed.yaml
printf '{"agentId": "x", "phase": "waiting_clarification"}' > $ADJOURN_STORE/checkpoints/$ADJOURN_TASK_ID.checkpoint.json
exit 10"""
ASKED_BY_FILES = Command(run_script(FOREIGN), 10)
WORK = words("worker", "--once")


class WorkedAgain(Tale):
    """The same, and the next command is a worker, as an init system would start one."""

    def aftermath(self, stage: Stage, ran: Ran) -> list[str]:
        """Have a worker do what is left, then examine the store."""
        again = stage.play(adjourn("worker", "--once"))
        broken = [f"the next worker left with {again.code}: {again.complained[-300:]}"] * (
            again.code != 0
        )
        return broken + super().aftermath(stage, ran)


class ByFile(Tale):
    """A response lies there when the step begins; whatever is killed, it is the answer, once."""

    def setup(self, stage: Stage) -> None:
        """Have it asked by files, and put the response beside."""
        super().setup(stage)
        task = newest_task(stage)
        text = f"agent_id: {task}\nresponses:\n  - question_id: Q1\n    answer: us\nresume_signal: true\n"
        (stage.work / STORE / "clarifications" / f"{task}.response.yaml").write_text(text)

    def aftermath(self, stage: Stage, ran: Ran) -> list[str]:
        """Examine the store, the answer, and what the agent heard."""
        return super().aftermath(stage, ran) + _answered(stage, "us")


def _answered(stage: Stage, answer: str) -> Sentences:
    asks, heard = ledger(stage).asks, stage.root / "effects-heard"
    said = heard.read_text().split() if heard.exists() else []
    broken = [f"it was asked {len(asks)} times"] * (len(asks) != 1)
    broken += [f"the answer is {ask.reply}" for ask in asks if ask.reply != answer]
    return broken + [f"the agent heard {said}"] * (said not in ([answer], [f'"{answer}"']))


class Told(Tale):
    """A command is told of everything.

    Whatever is killed, it is told at least once, in order, each under one id.
    """

    def setup(self, stage: Stage) -> None:
        """Have the user's config name a command that writes down what it is told."""
        config = _config(stage)
        config.parent.mkdir(parents=True)
        config.write_text(
            f"""[[notify]]\nname = "note"\ncommand = ["sh", "-c", "cat >> {_told(stage)}; echo >> {_told(stage)}"]\n"""
        )
        super().setup(stage)

    def step(self, stage: Stage) -> int:
        """Tell them."""
        return _telling(stage)

    def aftermath(self, stage: Stage, ran: Ran) -> list[str]:
        """Tell what was not told, and compare with what happened."""
        again = stage.play(lambda: _telling(stage))
        broken = [f"the next flush left with {again.code}: {again.complained[-300:]}"] * (
            again.code != 0
        )
        return (
            broken
            + _told_in_order(stage, ["pause", "decision", "completion"])
            + super().aftermath(stage, ran)
        )


def _telling(stage: Stage) -> int:
    os.environ["XDG_CONFIG_HOME"] = str(stage.work / "config")
    # A copy is younger than what happened, and a young notifier is told of nothing old
    os.utime(_config(stage), (0, 0))
    return adjourn("notify", "--flush")()


def _config(stage: Stage) -> Path:
    return stage.work / "config" / "adjourn" / "config.toml"


def _told(stage: Stage) -> Path:
    return stage.root / "effects-told"


def _is_whole(line: bytes) -> bool:
    """Say whether a receiver could read it.

    Of one that is killed as it writes, half may have arrived.
    """
    try:
        msgspec.json.decode(line)
    except msgspec.DecodeError:
        return False
    return True


def _told_in_order(stage: Stage, expected: list[str]) -> Sentences:
    told = _told(stage).read_bytes() if _told(stage).exists() else b""
    notices = [msgspec.json.decode(line) for line in told.splitlines() if _is_whole(line)]
    first = list({notice["id"]: notice["event"] for notice in notices}.values())
    times = collections.Counter(notice["id"] for notice in notices)
    broken = [f"it was told of {first}"] * (first != expected)
    return broken + [f"an event was told {count} times" for count in times.values() if count > 2]


work_once = Tale(WORK, after=(PAUSED, APPROVED))
work_then_work = WorkedAgain(WORK, after=(PAUSED, APPROVED))
work_then_look = KilledAgain(WORK, after=(PAUSED, APPROVED))
ask_by_files = Tale(run_script(FOREIGN), after=(DONE,))
answer_by_file = ByFile(words("tasks"), after=(ASKED_BY_FILES,))
answer_by_file_to_worker = ByFile(WORK, after=(ASKED_BY_FILES,))
tell_command = Told(words("notify", "--flush"), after=(PAUSED, APPROVED, Command(WORK)))
