"""The project as a tree of files."""

import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.needs import needs

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "adjourn"


def pyproject() -> dict[str, Any]:
    """Return pyproject.toml as it parses."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def project_files() -> list[Path]:
    """Return every file that is, or may soon be, part of the project's history."""
    # safe.directory: in CI the checkout may belong to another user.
    listing = [
        needs("git"),
        "-c",
        "safe.directory=*",
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]
    names = subprocess.run(
        listing, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def numbered_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each line of a file with the place to point at."""
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1):
        yield f"{path.relative_to(ROOT)}:{number}", line
