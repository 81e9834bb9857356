"""The task runner explains itself, on a machine that has nothing but Python."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.house.project import ROOT
from tests.needs import missing, needs

VERBS = ("demo", "test", "check", "format", "bench", "env", "programs")


def dev(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ./dev with a bare interpreter: no site-packages, no variables."""
    return subprocess.run(
        [sys.executable, "-I", "-S", ROOT / "dev", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={},
    )


def test_without_a_verb_it_lists_all_of_them() -> None:
    done = dev()
    assert done.returncode == 0
    assert [verb for verb in VERBS if f"\n  {verb}" not in done.stdout] == []


def test_an_unknown_verb_is_a_usage_error_with_the_list() -> None:
    done = dev("dance")
    assert done.returncode == 2
    assert "usage: ./dev" in done.stdout


def test_an_unknown_bench_is_a_usage_error_with_the_list() -> None:
    done = dev("bench", "no-such-bench")
    assert done.returncode == 2
    assert "benches:" in done.stdout


def test_an_activated_environment_can_be_made_afresh(tmp_path: Path) -> None:
    """CONTRIBUTING has one activate it: what is removed then must not be what runs."""
    shutil.copy(ROOT / "dev", tmp_path)
    (tmp_path / "constraints.txt").touch()
    (tmp_path / "pyproject.toml").write_text("[dependency-groups]\ntest = []\n")
    python = tmp_path / ".dev" / "test" / "bin" / "python3"
    venv.create(python.parents[1])
    done = subprocess.run(
        [python, "dev", "env"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PIP_NO_INDEX": "1"},
    )
    assert "Traceback" not in done.stderr
    assert python.exists()


def test_an_environment_is_the_same_for_those_who_are_inside_of_it(tmp_path: Path) -> None:
    """Whoever did as `./dev env` says must not have the environment made anew around them."""
    venv.create(tmp_path / "inside", symlinks=True)
    words = f"import runpy; print(runpy.run_path({str(ROOT / 'dev')!r})['recipe']())"
    pythons = (sys.executable, tmp_path / "inside" / "bin" / "python")
    recipes = {
        subprocess.run([python, "-I", "-c", words], capture_output=True, check=True).stdout
        for python in pythons
    }
    assert len(recipes) == 1


@pytest.mark.parametrize("script", ["dev", ".ci/run"])
def test_scripts_can_be_called_by_name(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)


def test_the_ci_script_parses() -> None:
    assert subprocess.run([needs("bash"), "-n", ROOT / ".ci" / "run"], check=False).returncode == 0


def test_a_missing_tool_skips_for_a_user_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no-such-tool is missing"):
        needs("no-such-tool")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no-such-tool is missing"):
        missing("no-such-tool")
