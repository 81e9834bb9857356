"""Starts a command again and again while an attacker swaps its file, as whichever user this process is.

usage: python -m tests.security.sweep WHAT COUNT PLACE SEED
"""

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adjourn.core.ask import Principal, Reply, Verb
from adjourn.core.states import TaskState
from adjourn.core.task import Spec
from adjourn.wiring.supervisor import open_supervisor

ME = Principal(name=f"uid:{os.getuid()}")
SWAPPER = Path(__file__).with_name("swapper.py")
KINDS = ("rename", "write", "map", "link", "folder")
EVENTS = 24  # of one start; at any of them the swap may come

SCRIPTS = {
    "script": '#!/bin/sh\ncd "$(dirname "$0")"\necho {word} >> "$1"\n',
    "bash script": '#!/usr/bin/env bash\nset -eu\necho {word} >> "$1"\n',
    "operand": 'echo {word} >> "$1"\n',
}


class Target:
    """A command in a folder of its own, and its double that must never run."""

    def __init__(self, place: Path, what: str) -> None:
        self.what = what
        self.place = place
        self.noted = place / "noted"
        self.folder, self.strange = place / "bin", place / "strange"
        self.file, self.other = self.folder / "apply", self.strange / "apply"

    @property
    def argv(self) -> tuple[str, ...]:
        return (
            ("sh", "bin/apply", str(self.noted))
            if self.what == "operand"
            else ("bin/apply", str(self.noted))
        )

    def lay_out(self, kind: str) -> None:
        """Put everything in its place again."""
        for folder in (
            self.folder,
            self.strange,
            self.place / "real",
            self.place / "bin.old",
            self.place / "bin.draft",
        ):
            if folder.is_symlink():
                folder.unlink()
            shutil.rmtree(folder, ignore_errors=True)
        self.strange.mkdir()
        home = self.place / "real" if kind == "link" else self.folder
        home.mkdir()
        if kind == "link":
            self.folder.symlink_to(home)
        if self.what == "program":
            shutil.copy("/usr/bin/touch", home / "apply")
            shutil.copy("/usr/bin/mkdir", self.other)
        else:
            text = SCRIPTS[self.what]
            (home / "apply").write_text(text.format(word="good"))
            self.other.write_text(text.format(word="evil"))
        (home / "apply").chmod(0o755)
        self.other.chmod(0o755)
        if self.noted.is_dir():
            self.noted.rmdir()
        self.noted.unlink(missing_ok=True)

    def ran(self) -> str:
        """Return which of the two ran, if one did."""
        if self.noted.is_dir():
            return "evil"
        if not self.noted.exists():
            return "nothing"
        return "evil" if "evil" in self.noted.read_text() else "good"


@contextmanager
def swapper() -> Iterator["subprocess.Popen[bytes]"]:
    """Lend the attacker."""
    with subprocess.Popen(
        [sys.executable, "-I", str(SWAPPER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield process
        assert process.stdin
        process.stdin.close()
        assert process.wait(10) == 0


def said(process: "subprocess.Popen[bytes]", line: str) -> str:
    assert process.stdin
    assert process.stdout
    process.stdin.write(f"{line}\n".encode())
    process.stdin.flush()
    return process.stdout.readline().decode().strip()


def sweep(place: Path, what: str, count: int, *, seed: int = 0) -> "Counter[tuple[str, str]]":
    """Return how often the swap came in time, and which file ran then."""
    chance = random.Random(f"swaps of a {what} {seed}")
    target = Target(place, what)
    controller, supervisor = open_supervisor(str(place / ".adjourn"))
    results: Counter[tuple[str, str]] = Counter()
    try:
        with swapper() as attacker:
            for number in range(count):
                kind = KINDS[number % len(KINDS)]
                target.lay_out(kind)
                spec = Spec(
                    runner="command", argv=target.argv, workspace=str(place), pause_on_approval=True
                )
                task = controller.tasks.start(spec, by=ME)
                (ask,) = controller.scene(task.id).open_asks
                controller.decisions.decide([Reply(ask_id=ask.id, verb=Verb.APPROVE)], by=ME)
                order = f"{kind}\t{chance.randint(1, EVENTS)}\t{target.file}\t{target.other}"
                assert said(attacker, order) == "armed"
                with controller.store.read() as view:
                    queued = view.task(task.id)
                ended = supervisor.run(queued)
                swapped = said(attacker, "stop")
                results[swapped, target.ran()] += 1
                if ended.state is TaskState.SUCCEEDED:
                    assert target.ran() != "nothing"
    finally:
        supervisor.close()
        controller.store.close()
    return results


if __name__ == "__main__":
    found = sweep(Path(sys.argv[3]), sys.argv[1], int(sys.argv[2]), seed=int(sys.argv[4]))
    print(json.dumps([[*pair, times] for pair, times in found.items()]))
