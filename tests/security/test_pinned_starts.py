"""What was let through by its digest is what runs.

What cannot be pinned is named before, and told of afterwards.
"""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import msgspec
import pytest

from adjourn.core.ask import Principal, Reply, Verb
from adjourn.core.call import command_of
from adjourn.core.policy.opening import NOT_PINNED
from adjourn.core.task import Spec
from adjourn.wiring.supervisor import open_supervisor
from tests.e2e.shell import Shell

ME = Principal(name=f"uid:{os.getuid()}")
SOMEBODY = 54_321  # a user with no rights

# Each script is started directly and through a gate, and must see the same: its name, its words,
# its directory, its exits.
SCRIPTS = {
    "words": '#!/bin/sh\necho "$0" "$#" "$@" "$*"\nexit 3\n',
    "directory": '#!/bin/sh\ncd "$(dirname "$0")" && pwd && cat beside.txt\n',
    "errexit": "#!/bin/sh -e\necho one\nfalse\necho two\n",
    "nounset": '#!/bin/bash -eu\nset -o pipefail\necho "${1:-none}"\necho "$nothing"\n',
    "env": '#!/usr/bin/env bash\necho "$0" ${BASH:+bash} "$LINENO"\n[[ -n $1 ]] && echo yes\n',
    "traps": "#!/bin/bash\ntrap 'echo leaving $?' EXIT\nf() { return 4; }\nf\necho $?\nexit 5\n",
    "functions": '#!/bin/sh\nmain() { [ -n "$1" ] || return 7; echo "$1"; }\nmain "$@"\nmain || exit $?\n',
    "here": "#!/bin/sh\ncat <<END\n$0 $1\nEND\nread -r line || echo no input\n",
    "own lines": '#!/bin/sh\ntail -n 1 "$0"\nexit 0\nthis is data\n',
    "locks": '#!/bin/bash\nexec 9>"$(dirname "$0")/lock"\nflock -n 9 && echo locked\n',
    "killed": "#!/bin/sh\nkill -9 $$\n",
    "last": "#!/bin/sh\nsh -c 'exit 6'",
    "source": '#!/bin/bash\necho "${BASH_SOURCE[0]}" "$0"\n[[ ${BASH_SOURCE[0]} == "$0" ]] && echo main\n',
    "sourced": "#!/bin/bash\n(return 0 2>/dev/null) && echo sourced || echo run\n",
    "python": "#!/usr/bin/env python3\nimport sys, os\nprint(sys.argv, __file__, os.path.isdir(sys.path[0]))\n",
}
OPENED_BY_PATH = {"source", "sourced", "python"}


def _gated(shell: Shell, *argv: str) -> str:
    """Put a command before the gate, approve it, and return its task."""
    paused = shell.json("run", "--pause-on-approval", "--", *argv, expect=10)
    shell.adjourn("approve", paused["asks"][0]["id"])
    return str(paused["task_id"])


def test_a_pinned_script_sees_nothing_else_than_one_that_is_not(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "beside.txt").write_text("beside\n")
    controller, supervisor = open_supervisor(str(tmp_path / ".adjourn"))
    try:
        for name, text in SCRIPTS.items():
            script = tmp_path / "bin" / name
            script.write_text(text)
            script.chmod(0o755)
            argv = (f"bin/{name}", "first", "second word", "")
            plain = subprocess.run(
                argv, cwd=tmp_path, capture_output=True, stdin=subprocess.DEVNULL, check=False
            )
            task = controller.tasks.start(
                Spec(runner="command", argv=argv, workspace=str(tmp_path), pause_on_approval=True),
                by=ME,
            )
            (ask,) = controller.scene(task.id).open_asks
            controller.decisions.decide([Reply(ask_id=ask.id, verb=Verb.APPROVE)], by=ME)
            supervisor.run(controller.decisions.find_task(task.id))
            with controller.store.read() as view:
                run = view.run(task.id, 2)
                shown = command_of(view.call(task.id, 1).body).files[str(script)]
                (executed,) = [
                    event for event in view.events(task.id) if event.kind == "program_executed"
                ]
            output = tmp_path / ".adjourn" / "runs" / run.id
            assert (output / "stdout").read_bytes() == plain.stdout, name
            assert (-run.signal if run.signal else run.exit_code) == plain.returncode, name
            assert shown.endswith(NOT_PINNED) == (name in OPENED_BY_PATH), name
            assert ("script" in executed.facts) == (name not in OPENED_BY_PATH), name
    finally:
        supervisor.close()
        controller.store.close()


def _line_of(text: str, part: str) -> str:
    return next(
        line for line in text.splitlines() if part in line and line.lstrip().startswith("file")
    )


def test_a_file_that_cannot_be_pinned_is_not_shown_as_if_it_were(shell: Shell) -> None:
    """The person reads which files could be swapped before deciding.

    Programs and plain shell scripts are not among them.
    """
    (shell.place / "plan.txt").write_text("plan")
    (shell.place / "deploy.py").write_text("#!/usr/bin/env python3\nprint('deployed')\n")
    (shell.place / "deploy.py").chmod(0o755)
    paused = shell.json("run", "--pause-on-approval", "--", "./deploy.py", "plan.txt", expect=10)
    shown = shell.adjourn("show", paused["task_id"]).out
    (line,) = [line for line in shown.splitlines() if line.strip().startswith("not pinned:")]
    assert re.search(r"not pinned: .*\bdeploy\.py\b.*: opened again by path", line)
    assert "plan.txt" in line
    full = shell.adjourn("show", paused["task_id"], "--full").out
    assert re.search(rf"not pinned: .*{shell.place}/deploy\.py", full)
    script = shell.script("echo applied")
    paused = shell.json("run", "--pause-on-approval", "--", script, expect=10)
    shown = shell.adjourn("show", paused["task_id"]).out
    assert not [
        line
        for line in shown.splitlines()
        if line.strip().startswith("not pinned:") and script[2:] in line
    ]


def test_a_swap_of_what_cannot_be_pinned_is_not_silent(shell: Shell) -> None:
    """A program that changes while it runs, or between the look and the start, leaves an event."""
    script = shell.place / "deploy.py"
    script.write_text("#!/usr/bin/env python3\nimport os\nos.rename('other.py', 'deploy.py')\n")
    script.chmod(0o755)
    (shell.place / "other.py").write_text("print('evil')\n")
    task = _gated(shell, "./deploy.py")
    shell.adjourn("resume", task)
    assert f"files changed  (run 2, call 1, files {script})" in shell.adjourn("show", task).out


def test_what_ran_cannot_be_left_out_of_the_trail(shell: Shell) -> None:
    script = shell.script("echo applied")
    task = _gated(shell, script)
    shell.adjourn("resume", task)
    lines = shell.adjourn("audit", "export").out.splitlines()
    (executed,) = [
        event
        for event in map(msgspec.json.decode, lines)
        if event.get("kind") == "program_executed"
    ]
    shown = shell.adjourn("show", task, "--full").out
    assert executed["facts"]["script"] in _line_of(shown, "script.sh")
    assert executed["facts"]["program"] in _line_of(shown, "/sh ")


def test_a_program_that_somebody_writes_to_is_not_started(shell: Shell) -> None:
    """A writer that has the file open could change it after any look.

    A person is asked again, and told that it is not pinned.
    """
    program = shell.place / "tool"
    shutil.copy("/usr/bin/touch", program)
    task = _gated(shell, "./tool", "ran")
    with program.open("r+b"):
        again = shell.json("resume", task, expect=10)
    assert "(not pinned)" in again["asks"][-1]["prompt"]
    assert not (shell.place / "ran").exists()


def test_the_systems_own_programs_need_no_pin_of_an_ordinary_user() -> None:
    """What only root can write is pinned by its path.

    What the user owns is pinned by its descriptor.
    """
    if os.getuid():
        pytest.skip("only root can become another user")
    from adjourn.system.pinning import can_be_leased, is_out_of_reach

    tmp_path = Path(tempfile.mkdtemp())  # one of pytest's would be closed to others
    tmp_path.chmod(0o755)
    own = tmp_path / "own"
    shutil.copy("/usr/bin/touch", own)
    os.chown(own, SOMEBODY, SOMEBODY)
    foreign = tmp_path / "foreign"
    shutil.copy("/usr/bin/touch", foreign)
    foreign.chmod(0o777)
    (tmp_path / "link").symlink_to("/usr/bin/touch")
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setgid(SOMEBODY)
        os.setuid(SOMEBODY)
        found = [
            is_out_of_reach("/usr/bin/touch"),
            not is_out_of_reach(str(own)),
            can_be_leased(str(own)),
            not is_out_of_reach(str(tmp_path / "link")),
            not can_be_leased(str(foreign)),
        ]
        os._exit(sum(1 << number for number, fine in enumerate(found) if not fine))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    shutil.rmtree(tmp_path)
