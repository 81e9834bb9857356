"""Policy files are read when they are needed, and again when any of them has changed.

Where there are none, nothing is read.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from adjourn.core.errors import BadPolicy
from adjourn.core.policy.policy import NO_POLICY
from adjourn.settings.policies import FilePolicies

RULE = '[[rule]]\nargs = ["{}"]\naction = "prompt"\n'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "adjourn").mkdir(parents=True)
    (tmp_path / "work" / ".adjourn").mkdir(parents=True)
    return tmp_path


def first_words(policies: FilePolicies, place: Path) -> set[str]:
    return {rule.argv[0] for rule in policies.current(str(place / "work")).rules if rule.argv}


def test_without_files_there_is_no_policy(place: Path) -> None:
    assert FilePolicies(str(place / "work" / ".adjourn")).current(str(place / "work")) is NO_POLICY


def test_what_has_not_changed_is_not_read_again(place: Path) -> None:
    (place / "config/adjourn/policy.toml").write_text(RULE.format("a"))
    policies = FilePolicies(str(place / "work" / ".adjourn"))
    assert policies.current(str(place / "work")) is policies.current(str(place / "work"))


def test_what_has_changed_counts_at_once_be_it_included_or_behind_a_link(place: Path) -> None:
    policies = FilePolicies(str(place / "work" / ".adjourn"))
    users, dotfile, more = (
        place / "config/adjourn/policy.toml",
        place / "dotfile",
        place / "config/adjourn/more.toml",
    )
    dotfile.write_text('include = ["more.toml"]\n' + RULE.format("a"))
    users.symlink_to(dotfile)
    more.write_text(RULE.format("b"))
    assert first_words(policies, place) == {"a", "b"}
    more.write_text(RULE.format("longer"))
    assert first_words(policies, place) == {"a", "longer"}
    dotfile.write_text(RULE.format("other"))
    assert first_words(policies, place) == {"other"}
    (place / "work/.adjourn/policy.toml").write_text(RULE.format("project"))
    assert first_words(policies, place) == {"other", "project"}
    (place / "work/.adjourn/policy.toml").write_text("[[rule]]\naction = 1")
    with pytest.raises(BadPolicy):
        first_words(policies, place)
    os.unlink(place / "work/.adjourn/policy.toml")
    users.unlink()
    assert policies.current(str(place / "work")) is NO_POLICY


def test_a_run_without_a_policy_loads_nothing_that_reads_or_judges(place: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "adjourn", "run", "--", "true"]
    loaded = subprocess.run(
        command, cwd=place / "work", capture_output=True, text=True, check=True
    ).stderr
    assert "adjourn.settings.policies" in loaded
    assert [
        name
        for name in ("tomllib", "shlex", "policy.judge", "policy.file")
        if f"{name}\n" in loaded
    ] == []
