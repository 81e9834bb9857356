"""The examples for CI do what their pages say.

Their own shell steps are run here, and exit code 10 is seen for real.
"""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.agent.desk import Desk, command, desk, finish, use
from tests.e2e.shell import Done
from tests.house.project import ROOT
from tests.needs import needs

EXAMPLES = ROOT / "examples" / "ci"
APPLY = use(command("echo applied >> log.txt", "tc_1"), text="I'm about to apply.")

needs("jq")


SECRETS = {"secrets.ADJOURN_STORE_KEY": "of the project, in the settings of its CI"}


class Runner:
    """Runs the steps of a GitHub workflow as GitHub would, as far as shell steps go."""

    def __init__(
        self, person: Desk, *, event: str, inputs: Mapping[str, str] | None = None
    ) -> None:
        self.person = person
        self.outputs: dict[str, dict[str, str]] = {}
        self._known = {
            "github.event_name": event,
            **{f"inputs.{name}": value for name, value in (inputs or {}).items()},
        }
        self.summary = person.place / "summary.md"

    def run(self, *, expect: int = 0) -> None:
        """Run every shell step whose condition holds.

        What `uses:` an action is for the test to play.
        """
        for step in workflow()["jobs"]["agent"]["steps"]:
            if (
                "run" in step
                and "pip install" not in step["run"]
                and self._holds(step.get("if", "true"))
            ):
                self._step(step, expect=expect)

    def _step(self, step: dict[str, Any], *, expect: int) -> None:
        output = self.person.place / "output"
        output.write_text("")
        given = {name: self._filled(str(value)) for name, value in step.get("env", {}).items()}
        key = workflow()["jobs"]["agent"]["env"]["ADJOURN_STORE_KEY"]
        env = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(self.summary), **given}
        env["ADJOURN_STORE_KEY"] = self._filled(key)
        self.person.run("bash", "-e", "-c", step["run"], expect=expect, env=env)
        self.outputs[step.get("id", "")] = dict(
            line.split("=", 1) for line in output.read_text().splitlines()
        )

    def _filled(self, text: str) -> str:
        return re.sub(r"\$\{\{ *(\S+) *\}\}", lambda found: self._value(found[1]), text)

    def _holds(self, condition: str) -> bool:
        cases = [case.strip() for case in condition.split("||")]
        return condition == "true" or any(
            self._equal(*map(str.strip, case.split("=="))) for case in cases
        )

    def _equal(self, name: str, value: str) -> bool:
        return self._value(name) == value.strip("'")

    def _value(self, name: str) -> str:
        if name.startswith("steps."):
            _, step, _, key = name.split(".")
            return self.outputs.get(step, {}).get(key, "")
        return SECRETS.get(name) or self._known.get(name, "")


def workflow() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((EXAMPLES / "github.yml").read_text())
    return loaded


@pytest.mark.one_machine(
    "the workflow carries the directory of the store from one runner to the next"
)
def test_the_github_workflow_sees_the_pause_frees_its_runner_and_goes_on_in_a_later_run(
    tmp_path: Path,
) -> None:
    """A-R76 A-R90, and row 22 of part 2."""
    with desk(tmp_path, APPLY, finish()) as person:
        first = Runner(person, event="push")
        first.run()
        assert first.outputs["agent"] == {"exit_code": "10"}
        assert "`tc_1` run_command" in first.summary.read_text()
        artifact = tmp_path / "adjourn.tar"
        kept = artifact.read_bytes()
        state = Path(person.environment["XDG_STATE_HOME"])
        # The runner is gone, and all that was on it
        for left in (person.store, state, tmp_path / "result.json", artifact):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        assert person.lines("log.txt") == []
        artifact.write_bytes(kept)
        second = Runner(
            person, event="workflow_dispatch", inputs={"run": "1", "decision": "--approve tc_1"}
        )
        second.run()
        assert second.outputs["resumed"] == {"exit_code": "0"}
        assert person.lines("log.txt") == ["applied"]


def test_the_github_workflow_fails_when_the_agent_does(tmp_path: Path) -> None:
    with desk(tmp_path) as person:
        person.environment["ADJOURN_AGENT_MODEL"] = "none"
        with pytest.raises(AssertionError, match="exit code 1, not 0"):
            Runner(person, event="push").run()


def test_the_gitlab_jobs_pass_a_pause_on_to_a_person(tmp_path: Path) -> None:
    """A-R90."""
    jobs = yaml.safe_load((EXAMPLES / "gitlab.yml").read_text())
    with desk(tmp_path, APPLY, finish()) as person:
        assert last_script(person, jobs["agent"], expect=10).out.startswith("adjourn -c ")
        assert jobs["agent"]["allow_failure"] == {"exit_codes": [10]}
        last_script(person, jobs["go-on"], expect=0)
        assert person.lines("log.txt") == ["applied"]
        assert last_script(person, jobs["go-on"], expect=0).out == "nothing waits\n"


def last_script(person: Desk, job: dict[str, Any], *, expect: int) -> Done:
    return person.run("bash", "-e", "-o", "pipefail", "-c", job["script"][-1], expect=expect)


def test_the_line_for_cron_starts_a_task_and_goes_on_with_it(tmp_path: Path) -> None:
    """A-R90."""
    line = (
        (EXAMPLES / "agent.cron")
        .read_text()
        .splitlines()[-1]
        .split(maxsplit=5)[5]
        .replace("/srv/project", str(tmp_path))
    )
    with desk(tmp_path, APPLY, finish()) as person:
        person.line(line)
        task = (tmp_path / "task").read_text().strip()
        person.line(line)
        assert (tmp_path / "task").read_text().strip() == task
        (ask,) = person.json("show", task)["asks"]
        person.adjourn("approve", ask["id"])
        person.line(line)
        assert person.state(task) == "succeeded"
        assert person.lines("log.txt") == ["applied"]


def test_the_steps_of_the_rfc_work_as_it_spells_them(tmp_path: Path) -> None:
    """A-R73 A-R74 A-R75."""
    with desk(tmp_path, APPLY, finish()) as person:
        person.line(
            'adjourn -a "deploy to staging" --pause-on-approval --output json > result.json',
            expect=10,
        )
        assert (
            person.line("jq -r '.pause_reason.pending_tool_calls[].id' result.json").out == "tc_1\n"
        )
        person.line(
            'CHECKPOINT=$(jq -r .checkpoint_id result.json) && adjourn -c "$CHECKPOINT" --approve-all',
            expect=0,
        )
        assert person.lines("log.txt") == ["applied"]
