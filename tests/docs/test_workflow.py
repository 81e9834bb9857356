"""The workflow that docs/how-to/use-in-ci-and-cron.md prints works as it is printed.

Its `run:` steps run in their order, each job in a fresh checkout on a machine of its own. Only GitHub's
actions have stand-ins: a checkout copies the repository, the cache is kept by tar as theirs is.
"""

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.page import ROOT, blocks
from tests.docs.shell import environment

PAGE = ROOT / "docs" / "how-to" / "use-in-ci-and-cron.md"
EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")
CONDITION = re.compile(r"([\w.-]+) == '(\w+)'")
TWO_GATES = """\
#!/usr/bin/env python3
import adjourn

done = adjourn.checkpoint.load([])
for tool in ("migrate", "switch"):
    if tool not in done:
        with adjourn.approval(f"Shall I {tool}?", tool=tool, arguments={"to": "v2"}):
            with open("../proof", "a") as proof:
                print(tool, file=proof)
        done.append(tool)
        adjourn.checkpoint.save(done)
"""


@dataclass
class Runner:
    """GitHub's part: the repository, the cache, contexts, and one machine per job."""

    place: Path
    workflow: dict[str, Any]
    contexts: dict[str, str]
    attempt: int = 1
    outcome: dict[str, bool] = field(default_factory=dict)

    @property
    def workspace(self) -> Path:
        return self.place / "work"

    def job(self, name: str) -> str:
        """Run a job to its end, or to its first step that fails; return its log."""
        job = self.workflow["jobs"][name]
        self.contexts |= {"github.run_id": "7", "github.run_attempt": str(self.attempt)}
        log = ""
        steps: dict[str, str] = {}
        for step in job["steps"]:
            if not self.holds(step.get("if"), steps):
                continue
            if "uses" in step:
                self.use(step["uses"], step.get("with", {}), steps)
                continue
            output = self.place / "output"
            output.write_text("")
            variables = self.workflow["env"] | step.get("env", {})
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=self.workspace,
                env=environment(self.workspace)
                | {key: self.filled(str(value), steps) for key, value in variables.items()}
                # A machine of its own: nothing outside of the checkout is kept
                | {"XDG_STATE_HOME": str(self.place / f"state-{name}-{self.attempt}")}
                | {"GITHUB_OUTPUT": str(output), "PIP_NO_INDEX": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=120,
                check=False,
            )
            log += done.stdout
            for line in output.read_text().splitlines():
                key, _, value = line.partition("=")
                steps[f"steps.{step['id']}.outputs.{key}"] = value
            self.outcome[name] = done.returncode == 0
            if done.returncode:
                break
        for key, value in job.get("outputs", {}).items():
            self.contexts[f"needs.{name}.outputs.{key}"] = self.filled(value, steps)
        return log

    def use(self, action: str, given: dict[str, str], steps: dict[str, str]) -> None:
        """Do what one of GitHub's actions does."""
        key = self.filled(given.get("key", ""), steps)
        caches = self.place / "caches"
        caches.mkdir(exist_ok=True)
        match action.partition("@")[0]:
            case "actions/checkout":
                shutil.rmtree(self.workspace, ignore_errors=True)
                shutil.copytree(self.place / "repository", self.workspace)
            case "actions/cache/save":
                archive = caches / f"{key}.tar"
                assert not archive.exists(), "a key of the cache is saved once"
                tar = ["tar", "-cf", str(archive), given["path"]]
                subprocess.run(tar, cwd=self.workspace, check=True, stderr=subprocess.DEVNULL)
            case "actions/cache/restore":
                prefix = self.filled(given["restore-keys"], steps)
                found = caches / f"{key}.tar"
                if not found.exists():
                    found = max(caches.glob(f"{prefix}*.tar"), key=lambda one: one.stat().st_mtime)
                subprocess.run(["tar", "-xf", str(found)], cwd=self.workspace, check=True)
            case other:
                pytest.fail(f"no stand-in for {other}")

    def filled(self, text: str, steps: dict[str, str]) -> str:
        """Return a text with the values of its expressions."""
        known = self.contexts | steps
        return EXPRESSION.sub(lambda hit: known.get(hit[1], ""), text)

    def holds(self, condition: str | None, steps: dict[str, str] | None = None) -> bool:
        """Return whether a job or step runs."""
        if condition is None:
            return True
        match = CONDITION.fullmatch(condition)
        assert match, f"the stand-in does not know this condition: {condition}"
        return (self.contexts | (steps or {})).get(match[1]) == match[2]


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """Return a machine that runs the page's workflow."""
    (block,) = [block for block in blocks(PAGE) if block.language == "yaml"]
    workflow: dict[str, Any] = yaml.safe_load(block.text)
    (tmp_path / "repository").mkdir()
    # What pip would fetch is installed here already: any package of ours satisfies it
    workflow["env"]["ADJOURN"] = "adjourn"
    return Runner(tmp_path, workflow, {"secrets.ADJOURN_STORE_KEY": "k" * 64})


def program(runner: Runner, text: str) -> None:
    path = runner.place / "repository" / "deploy.sh"
    path.write_text(text)
    path.chmod(0o755)


def test_two_gates_take_two_approvals_and_each_call_runs_once(runner: Runner) -> None:
    """A-R73 to A-R76, A-R90."""
    program(runner, TWO_GATES)
    assert "Shall I migrate?" in runner.job("start")
    assert runner.outcome["start"]
    assert runner.contexts["needs.start.outputs.exit_code"] == "10"
    assert runner.holds(runner.workflow["jobs"]["go-on"]["if"])
    proof = runner.place / "proof"
    assert not proof.exists()

    log = runner.job("go-on")
    assert not runner.outcome["go-on"], "a red job asks its reviewers again"
    assert "Shall I switch?" in log
    assert proof.read_text() == "migrate\n"

    runner.attempt = 2
    log = runner.job("go-on")
    assert runner.outcome["go-on"], log
    assert proof.read_text() == "migrate\nswitch\n"


@pytest.mark.parametrize(("code", "is_green"), [(0, True), (5, False)])
def test_without_a_gate_the_first_job_has_the_last_word(
    runner: Runner, code: int, *, is_green: bool
) -> None:
    program(runner, f"#!/bin/sh\nexit {code}\n")
    runner.job("start")
    assert runner.outcome["start"] is is_green
    assert not runner.holds(runner.workflow["jobs"]["go-on"]["if"])
