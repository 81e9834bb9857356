"""What a user gets who installs the core and nothing else."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.project import PACKAGE, ROOT, pyproject
from tests.needs import missing, needs

MOST_DISTRIBUTIONS = 5
MOST_BYTES = 20_000_000  # of what is shipped; each Python makes its own bytecode of it
NO_NETWORK = re.compile(
    r"No matching distribution|NewConnectionError|ConnectTimeout|ReadTimeout|ProxyError|Temporary failure"
)

pytestmark = pytest.mark.xdist_group("install")  # one installation serves all


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install adjourn as a user would, without extras, into a folder of its own."""
    target = tmp_path_factory.mktemp("core")
    needs("pip")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-qq",
        "--disable-pip-version-check",
        "--target",
        str(target),
        ".",
    ]
    variables = os.environ | {
        "PIP_CONSTRAINT": "constraints.txt",
        "PIP_BUILD_CONSTRAINT": "constraints.txt",
    }
    done = subprocess.run(
        command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False
    )
    if NO_NETWORK.search(done.stderr):
        missing("a package index")
    assert done.returncode == 0, done.stderr
    return target


def test_the_man_page_is_where_man_looks_for_it(installed: Path) -> None:
    page = installed / "share" / "man" / "man1" / "adjourn.1"
    assert page.read_text().startswith('.\\"')


def test_the_core_install_stays_small(installed: Path) -> None:
    distributions = sorted(path.name for path in installed.glob("*.dist-info"))
    shipped = [path for path in installed.rglob("*") if "__pycache__" not in path.parts]
    size, whole = (
        sum(path.lstat().st_size for path in paths) for paths in (shipped, installed.rglob("*"))
    )
    print(
        f"core install: {len(distributions)} distributions, {size / 1e6:.1f} MB, {whole / 1e6:.1f} MB with bytecode"
    )
    assert len(distributions) <= MOST_DISTRIBUTIONS, distributions
    assert size <= MOST_BYTES


def test_every_file_of_the_package_is_installed(installed: Path) -> None:
    wanted = {
        path.relative_to(PACKAGE)
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {path for path in wanted if not (installed / "adjourn" / path).is_file()} == set()


def test_all_that_the_project_asks_for_is_pinned_by_name_and_version_alone() -> None:
    lines = [
        line
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []
    pinned = {canonical(line) for line in lines}
    groups = pyproject()["dependency-groups"].values()
    wanted = [entry for group in groups for entry in group if isinstance(entry, str)]
    wanted += pyproject()["project"]["dependencies"] + pyproject()["build-system"]["requires"]
    assert {canonical(requirement) for requirement in wanted} - pinned == set()


def canonical(requirement: str) -> str:
    """Return a requirement's name as package indexes compare it."""
    name = re.match(r"[\w.-]+", requirement)
    assert name, requirement
    return re.sub(r"[-_.]+", "-", name[0]).lower()
