"""A person who presses Ctrl+C once more than needed hears all the same how to go on."""

import signal
import time

from tests.e2e.shell import Shell, until


# D-R9, D-R12, A-R34
def test_a_second_ctrl_c_whenever_it_comes_leaves_a_pause_that_says_how_to_go_on(
    shell: Shell,
) -> None:
    for gap in (0.05, 0.1, 0.15, 0.25):
        process = shell.start("run", "--", "sh", "-c", "echo $$ > begun; exec sleep 30")
        until((shell.place / "begun").exists, what="it has begun")
        process.send_signal(signal.SIGINT)
        time.sleep(gap)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        (shell.place / "begun").unlink()
        task = shell.json("tasks")["tasks"][0]
        assert (process.returncode, task["state"], err) == (10, "paused", b"")
        assert f"Paused. Resume with: adjourn resume {task['task_id']}" in out.decode()
        assert (shell.store / "session" / task["task_id"] / "pause.json").exists()
