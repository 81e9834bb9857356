"""Plays a story once, then pulls the plug at every moment of it, and judges what each disk has left."""

import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import msgspec

from tests.crash import inject, journal
from tests.crash.disk import Disk, Luck
from tests.crash.journal import Entry, Kind
from tests.crash.stage import Effect, Stage, parse_effect

SHARES = (0.0, 0.1, 0.5, 0.9, 1.0)


class Known(msgspec.Struct, kw_only=True):
    """What the outside world had seen when the power failed."""

    said: dict[int, str] = {}
    exits: dict[int, int] = {}
    effects: list[Effect] = []

    def learn(self, mark: str) -> None:
        """Take in a remark: a command ended, or an effect began or ended."""
        first, *rest = mark.split()
        if first == "exit":
            self.exits[int(rest[0])] = int(rest[1])
        elif first in {"ask", "start", "end"}:
            self.effects.append(parse_effect(mark))


class Story(Protocol):
    """Something that a person does with a store, from beginning to end."""

    def setup(self, stage: Stage) -> None:
        """Bring the world to where the story begins; all of it is on the disk for certain."""
        ...

    def tell(self, stage: Stage) -> None:
        """Play every command of the story."""
        ...

    def judge(self, stage: Stage, known: Known, *, thorough: bool) -> list[str]:
        """Recover the store in `stage.work`.

        Return a sentence for each promise that the outside world saw broken.
        """
        ...


class Outage(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """How many images of a story to judge."""

    story: str
    images: int
    seed: int
    thorough_every: int = 25
    # False: a program that never syncs, so that a test can prove that it would be noticed
    syncs_count: bool = True


class Loss(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What came of an outage.

    `broken` counts each sentence, `shown` names an image that shows it.
    """

    outage: Outage
    moments: int
    images: int
    seconds: float
    broken: dict[str, int]
    shown: dict[str, str]


def record(story: Story, stage: Stage) -> tuple[Disk, list[Entry]]:
    """Play the story; return the disk as it was before, and all that happened to it."""
    path = stage.root / "journal"
    story.setup(stage)
    stage.clear()
    disk = Disk(stage.work)
    journal.make(path)
    os.environ["INJECT_JOURNAL"] = str(path)
    inject.begin_journal(path, root=stage.root)
    try:
        story.tell(stage)
    finally:
        inject.end_journal()
        del os.environ["INJECT_JOURNAL"]
        stage.clear()
    entries = journal.read(path)
    path.unlink()
    return disk, entries


def suffer(story: Story, stage: Stage, outage: Outage) -> Loss:
    """Record the story and judge images of every moment of it."""
    disk, entries = record(story, stage)
    boot = stage.root / "boot_id"
    boot.write_text("00000000-0000-4000-8000-00000000dead\n")
    os.environ["INJECT_BOOT_ID"] = str(boot)  # after a power loss every process of before is gone
    begun = time.monotonic()
    broken: dict[str, int] = {}
    shown: dict[str, str] = {}
    count = 0
    for count, (known, luck, dice) in enumerate(
        _moments(disk, entries, outage, stage.root.stat().st_ino), start=1
    ):
        _empty(stage.work)
        disk.image(stage.work, luck=luck, dice=dice)
        for sentence in story.judge(stage, known, thorough=count % outage.thorough_every == 0):
            broken[sentence] = broken.get(sentence, 0) + 1
            shown.setdefault(
                sentence, f"image {count} of seed {outage.seed}: {luck}, known {known}"
            )
    seconds = time.monotonic() - begun
    return Loss(
        outage=outage,
        moments=len(entries),
        images=count,
        seconds=seconds,
        broken=broken,
        shown=shown,
    )


def _moments(
    disk: Disk, entries: list[Entry], outage: Outage, root: int
) -> Iterator[tuple[Known, Luck, random.Random]]:
    """Let everything happen again, stopping `outage.images` times on the way."""
    known = Known()
    outputs: dict[int, int] = {}
    for moment, entry in enumerate(entries):
        if outage.syncs_count or entry.kind not in {Kind.SYNC, Kind.SYNC_ALL}:
            disk.take(entry, moment=moment)
        if entry.kind is Kind.CREATE and entry.dir == root and entry.name.startswith("out."):
            outputs[entry.inode] = int(entry.name[4:])
        elif entry.kind is Kind.WRITE and entry.inode in outputs:
            number = outputs[entry.inode]
            known.said[number] = known.said.get(number, "") + entry.body.decode(errors="replace")
        elif entry.kind is Kind.MARK:
            known.learn(entry.name)
        for image in range(_due(moment, len(entries), outage.images)):
            dice = random.Random(f"{outage.seed}/{moment}/{image}")
            yield known, _luck(moment, dice), dice


def _due(moment: int, moments: int, images: int) -> int:
    """Spread the images evenly over the moments."""
    return (moment + 1) * images // moments - moment * images // moments


def _luck(moment: int, dice: random.Random) -> Luck:
    # Everything in order, up to some moment: what a journaling filesystem tends to leave
    if dice.random() < 0.25:
        return Luck(
            until=dice.randint(max(0, moment - 40), moment), sectors=1.0, names=1.0, noise=False
        )
    return Luck(
        until=moment,
        sectors=dice.choice(SHARES),
        names=dice.choice(SHARES),
        noise=dice.random() < 0.25,
    )


def _empty(dir_: Path) -> None:
    for entry in os.scandir(dir_):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
