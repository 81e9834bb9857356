"""What the page on operating shows is something that systemd and Kubernetes can use, and fits the program."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from adjourn.core.settings import Settings
from adjourn.core.task import Spec
from tests.docs.page import ROOT, blocks
from tests.needs import needs

PAGE = ROOT / "docs" / "how-to" / "deploy-workers.md"
UNITS = [block for block in blocks(PAGE) if block.language == "ini" and block.file]
ADJOURN = Path(sys.executable).parent / "adjourn"
# The longest that nobody asked for
GRACE = max(Spec(runner="command", argv=("true",), workspace="/").grace, Settings().grace)
MARGIN = 10  # seconds to kill, to write down, and to leave


def test_the_units_are_ones(tmp_path: Path) -> None:
    """Whatever systemd does not know, it says."""
    analyze = needs("systemd-analyze")
    for unit in UNITS:
        (tmp_path / unit.file).write_text(unit.text)
    done = subprocess.run(
        [analyze, "verify", *(f"./{unit.file}" for unit in UNITS)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr + done.stdout) == (0, "")


def settings(unit: str) -> dict[str, str]:
    (found,) = [block for block in UNITS if block.file == unit]
    return dict(
        line.split("=", 1) for line in found.lines if "=" in line and not line.startswith("#")
    )


def test_systemd_gives_a_worker_the_time_that_it_needs_and_leaves_its_shims_alone() -> None:
    worker = settings("adjourn-worker@.service")
    assert int(worker["TimeoutStopSec"]) >= GRACE + MARGIN
    assert (worker["KillMode"], worker["KillSignal"]) == ("process", "SIGTERM")
    assert (worker["Delegate"], worker["ProtectControlGroups"]) == ("yes", "no")
    require_words(worker["ExecStart"].removeprefix("/usr/bin/env "))


def require_words(command: str) -> None:
    """Insist that the program knows a verb and its options."""
    name, verb, *rest = command.split()
    assert name == "adjourn"
    told = subprocess.run(
        [str(ADJOURN), verb, "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert [word for word in rest if word.startswith("--") and word not in told] == []


@pytest.fixture
def manifests() -> dict[str, Any]:
    """Return what the page has Kubernetes make, by its kind."""
    (block,) = [block for block in blocks(PAGE) if block.language == "yaml"]
    return {each["kind"]: each for each in yaml.safe_load_all(block.text)}


def test_the_manifests_belong_together(manifests: dict[str, Any]) -> None:
    assert manifests.keys() == {"Secret", "Deployment", "PodDisruptionBudget"}
    deployment, budget = manifests["Deployment"]["spec"], manifests["PodDisruptionBudget"]["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"] == budget["selector"]["matchLabels"] == labels
    assert 0 < budget["minAvailable"] < deployment["replicas"]
    (container,) = deployment["template"]["spec"]["containers"]
    assert container["envFrom"] == [
        {"secretRef": {"name": manifests["Secret"]["metadata"]["name"]}}
    ]
    volumes = {each["name"] for each in deployment["template"]["spec"]["volumes"]}
    assert volumes == {each["name"] for each in container["volumeMounts"]}
    mounted = {each["mountPath"] for each in container["volumeMounts"]}
    assert {container["workingDir"], *(each["value"] for each in container["env"])} <= mounted


def test_kubernetes_gives_a_worker_the_time_that_it_needs(manifests: dict[str, Any]) -> None:
    pod = manifests["Deployment"]["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] >= GRACE + MARGIN
    require_words(" ".join(pod["containers"][0]["command"]))


def test_every_variable_that_is_set_is_one_that_adjourn_reads(manifests: dict[str, Any]) -> None:
    known = (ROOT / "docs" / "reference" / "environment.md").read_text()
    names = [*manifests["Secret"]["stringData"], "XDG_STATE_HOME", "ADJOURN_LISTEN"]
    assert [name for name in names if f"`{name}`" not in known] == []
