"""Every form of a `resume_hint`, run by a shell exactly as it was printed.

`Shell` refuses a hint of any other form, whichever test sees it.
"""

import os
import signal

import pytest

from tests.e2e.shell import Document, Shell, until
from tests.hints import OF_COMMANDS, form_of

SEEN: set[str] = set()


def hint_of(shell: Shell, task: str) -> str:
    """Return the hint of a task, and note its form."""
    hint: str = shell.json("show", task)["resume_hint"]
    SEEN.add(form_of(hint))
    return hint


def followed(shell: Shell, task: str, *, expect: int = 0) -> Document:
    """Run the hint of a task as printed, and return how the task stands then."""
    shell.line(hint_of(shell, task), expect=expect)
    return shell.json("show", task)


@pytest.mark.one_machine("what a hint says does not depend on the store")
def test_every_hint_does_what_it_says(shell: Shell) -> None:
    """A-R28, A-R29: approve, reject, answer, go on, start, wait, and look."""
    asks = shell.script('[ -n "$AUTO_APPROVAL" ] || exit 90', name="asks.sh")
    task = shell.paused(asks)["task_id"]
    assert followed(shell, task)["state"] == "succeeded"
    shell.adjourn("restart", task, expect=10)
    shell.adjourn("approve", shell.inbox()[0]["id"])
    assert followed(shell, task)["state"] == "succeeded"  # it was queued

    one = shell.script(
        'adjourn ask "which one?" --choice "a b" --choice c || exit $?', name="one.sh"
    )
    task = shell.paused(one)["task_id"]
    assert followed(shell, task)["state"] == "succeeded"
    two = shell.script(
        "adjourn ask first? --key k1; adjourn ask second? --key k2 || exit $?", name="two.sh"
    )
    task = shell.paused(two)["task_id"]
    assert followed(shell, task)["state"] == "succeeded"

    rule = '[[rule]]\nargs = ["touch", "**"]\naction = "never"\n'
    (shell.project / "policy.toml").write_text(rule)
    held = shell.json("run", "--pause-on-approval", "--", "touch", "made", expect=10)
    assert followed(shell, held["task_id"], expect=1)["state"] == "failed"
    assert not (shell.place / "made").exists()

    work = shell.detached("sh", "-c", "[ -e go ] || exec sleep 300")
    hint = hint_of(shell, work)  # it waits until the task needs a person or has ended
    shell.adjourn("pause", work)
    shell.line(hint, expect=10)
    (shell.place / "go").touch()
    assert followed(shell, work)["state"] == "succeeded"

    lost = shell.detached("sleep", "300")
    supervisor, shim = shell.supervisor(f"{lost}.1"), shell.shim(f"{lost}.1")
    os.kill(supervisor, signal.SIGKILL)
    os.kill(shim, signal.SIGKILL)
    until(lambda: shell.state(lost) == "waiting", what="somebody is asked")
    assert lost in shell.line(hint_of(shell, lost)).out
    assert OF_COMMANDS == SEEN
