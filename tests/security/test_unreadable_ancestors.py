"""Where the processes above cannot be read, nobody decides while something runs.

Neither a local user nor a login.
"""

import os

from tests.e2e.shell import Shell
from tests.e2e.signer import waiting
from tests.needs import missing, needs

WITHOUT_PROC = 'mount -t tmpfs none /proc && exec adjourn "$@"'


def test_without_proc_nobody_decides_while_something_runs(shell: Shell) -> None:
    """On a store of one machine and on a shared one."""
    if os.getuid():
        missing("the right to mount")
    blind = [needs("unshare"), "-m", "sh", "-c", WITHOUT_PROC, "adjourn"]
    task, ask = waiting(shell)
    busy = shell.detached("sleep", "1000")
    verbs: list[tuple[str, ...]] = [("approve", ask), ("reject", ask), ("cancel", busy)]
    # Who resumes on a shared store says first which machine it is, and /proc knows that
    if shell.database is None:
        verbs.append(("resume", task, "--approve-all"))
    for words in verbs:
        said = shell.run(*blind, *words, expect=5).err
        assert "cannot be read in /proc" in said
    assert ask in [each["id"] for each in shell.inbox()]
    shell.adjourn("cancel", busy)
    shell.adjourn("wait", busy, expect=None)
    shell.adjourn("approve", ask)
