"""What a test does about a tool that this machine lacks: skip for a user, fail in CI."""

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

import pytest


def needs(tool: str) -> str:
    """Return the path of a program, in a test or at a module's top: `gcc = needs("gcc")`."""
    beside_python = str(Path(sys.executable).parent)
    path = os.pathsep.join([beside_python, os.environ.get("PATH", os.defpath)])
    return shutil.which(tool, path=path) or missing(tool)


def missing(what: str) -> NoReturn:
    """Give up this test, or this module, for want of `what`."""
    if os.environ.get("CI", "false") not in {"", "0", "false"}:
        pytest.fail(f"{what} is missing, and CI must have it", pytrace=False)
    pytest.skip(f"{what} is missing on this machine", allow_module_level=True)
