"""Builds the injection library and the recorder of effects from their C sources."""

import subprocess
from pathlib import Path

from tests.crash.tools import Tools
from tests.needs import needs

HERE = Path(__file__).parent
COMMON = ("-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror")


def build(into: Path) -> Tools:
    """Compile both into the directory `into`."""
    tools = Tools(library=str(into / "inject.so"), effect=str(into / "effect"))
    gcc = needs("gcc")
    _run(
        gcc,
        *COMMON,
        "-shared",
        "-fPIC",
        "-o",
        tools.library,
        str(HERE / "inject.c"),
        "-ldl",
        "-lpthread",
    )
    _run(gcc, *COMMON, "-static", "-o", tools.effect, str(HERE / "effect.c"))
    return tools


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
