"""The link by which runs find this very adjourn: no kill and no race while it is made closes the store."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from adjourn.supervision.shims import directory_of_own
from tests.e2e.shell import Shell

pytestmark = pytest.mark.one_machine("it is about files of an embedded store")

# Dies as by a kill, in the moment in which the link is there and not yet under its name.
KILLED = """
import os, sys
from adjourn.supervision.shims import directory_of_own
os.rename = lambda *_: os._exit(9)
directory_of_own(*sys.argv[1:])
"""


def test_a_kill_while_the_link_is_made_leaves_a_store_that_can_be_used(shell: Shell) -> None:
    task = shell.paused("sh", "-c", '[ "$AUTO_APPROVAL" ] || exit 90; echo ran >> effects')
    (shell.store / "bin" / "adjourn").unlink()
    words = [sys.executable, "-c", KILLED, str(shell.store), "/bin/true"]
    assert subprocess.run(words, check=False).returncode == 9
    shell.adjourn("approve", task["asks"][0]["id"])
    shell.adjourn("resume", task["task_id"])
    assert shell.lines("effects") == ["ran"]
    assert os.listdir(shell.store / "bin") == ["adjourn"]


# Two versions of adjourn change it in turn.
CHANGES = """
import sys
from adjourn.supervision.shims import directory_of_own
for _ in range(1000):
    directory_of_own(*sys.argv[1:])
"""


def test_several_supervisors_that_make_the_link_at_once_do_not_disturb_each_other(
    tmp_path: Path,
) -> None:
    """None fails, and whoever opens the store meanwhile finds no link beside the database."""
    words = [sys.executable, "-c", CHANGES, str(tmp_path)]
    makers = [subprocess.Popen([*words, own]) for own in ("/bin/true", "/bin/false")]
    found: set[str] = set()
    while any(maker.poll() is None for maker in makers):
        found |= {entry.name for entry in os.scandir(tmp_path) if entry.is_symlink()}
    assert found == set()
    assert [maker.returncode for maker in makers] == [0, 0]
    directory_of_own(str(tmp_path), "/bin/true")
    assert os.listdir(tmp_path / "bin") == ["adjourn"]
