"""A stage that begins anew for every shot, on which whoever is aimed at dies at a chosen write."""

import shutil
import subprocess
from collections.abc import Callable

from tests.crash.inject import Aim, Control, Shot
from tests.e2e.shell import until
from tests.stage import Stage

Process = subprocess.Popen[bytes]

_PLACES = ("home", "work")
KEY = "every shot begins with a copy of the same store"


class Range:
    """Plays a step again and again from the same beginning, each time with another death."""

    def __init__(self, stage: Stage, library: str) -> None:
        self._stage = stage
        self._place = stage.home.parent
        self._control = Control(self._place / "control")
        stage.shell.environment["ADJOURN_STORE_KEY"] = KEY
        self._loaded = {"LD_PRELOAD": library, "INJECT_CONTROL": str(self._control.path)}

    def keep(self) -> None:
        """Take how everything stands now for the beginning."""
        for name in _PLACES:
            shutil.copytree(self._place / name, self._place / "kept" / name, symlinks=True)

    def start(self, *words: str) -> Process:
        """Start adjourn; all of its processes look whether they are aimed at."""
        return self._stage.shell.start(*words, env=self._stage.shell.environment | self._loaded)

    def shoot(self, step: Callable[[], Process], aim: Aim) -> Shot:
        """Begin anew, and play a step to its end, in which somebody may die."""
        for name in _PLACES:
            shutil.rmtree(self._place / name)
            shutil.copytree(self._place / "kept" / name, self._place / name, symlinks=True)
        self._control.aim(aim)
        _, err = step().communicate(timeout=240)
        assert b"Traceback" not in err, err
        until(lambda: not self._stage.shell.processes(), what="all of it has left", seconds=120)
        return self._control.shot(aim)
