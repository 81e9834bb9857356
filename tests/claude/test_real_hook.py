"""A broken hook never lets the real Claude Code make a call, not even one that its own settings allow."""

import os
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest

from adjourn.runners.claude import setup
from tests.claude.scene import Scene, bash, history
from tests.e2e.shell import until
from tests.model.script import Turn

RAN = Turn(text="I run it.", calls=(bash("echo ran >> made.txt", name="toolu_A"),))
TWO = Turn(text="Two.", calls=(bash("echo ran >> made.txt", name="toolu_A"), bash("echo too >> made.txt", name="toolu_B")))
DONE = Turn(text="All done.")
ALLOWS = '{"permissions": {"allow": ["Bash"]}, "disableAllHooks": true}'
YES = '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'

# What happens in the place of `adjourn _hook`. These fail, and are a no even where Claude Code's own settings allow the call.
FAILS = {
    "exits 1": "exit 1",
    "exits 1 and says yes": f"echo '{YES}'; exit 1",
    "exits 3": "exit 3",
    "exits 126": "exit 126",
    "exits 127": "exit 127",
    "exits 255": "exit 255",
    "is killed": "kill -9 $$",
    "is killed after a yes": f"echo '{YES}'; kill -9 $$",
    "is terminated": "kill -15 $$",
    "aborts": "kill -6 $$",
    "complains": "echo broken >&2; exit 1",
    "prints garbage and fails": "head -c 100000 /dev/urandom; exit 1",
    "is no program": None,
    "cannot be executed": "",
}
# These end well and say nothing that means anything. Ours never does that; should it, nothing that is not allowed runs.
SAYS = {
    "says nothing": "exit 0",
    "says no JSON": "echo allow",
    "says half a yes": f"printf '%s' '{YES[:-3]}'",
    "says an empty object": "echo '{}'",
    "invents a decision": f"echo '{YES.replace('allow', 'yes')}'",
    "asks": f"echo '{YES.replace('allow', 'ask')}'",
    "speaks of another event": f"echo '{YES.replace('PreToolUse', 'PostToolUse')}'",
    "never answers": "sleep 60",
}


def _broken(place: Path, text: str | None) -> str:
    """Return an adjourn that is broken in some way."""
    program = place / "broken adjourn"
    if text is not None:
        program.write_text(f"#!/bin/sh\ncat >/dev/null\n{text}\n")
        program.chmod(0o700 if text else 0o600)
    return setup.hook_command(str(program))


def _run(real: Scene, hook: str, turn: Turn) -> None:
    """Run Claude Code with our command line and another hook."""
    words = setup.start_argv(setup.Setup(), session=str(uuid4()), prompt="do it", hook=hook)
    words = [word.replace('"timeout":900', '"timeout":2') for word in words]
    with real.model([turn, DONE]) as model:
        environment = setup.environment(real.shell.environment)
        argv = [environment["ADJOURN_CLAUDE"], *words[1:]]
        subprocess.run(
            argv, cwd=real.work, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=90
        )
        assert model.asked


@pytest.mark.parametrize("text", FAILS.values(), ids=list(FAILS))
def test_a_hook_that_fails_blocks_even_what_the_settings_allow(real: Scene, tmp_path: Path, text: str | None) -> None:
    (real.home / ".claude").mkdir()
    (real.home / ".claude" / "settings.json").write_text(ALLOWS)
    _run(real, _broken(tmp_path, text), RAN)
    assert real.lines() == []


@pytest.mark.parametrize("text", SAYS.values(), ids=list(SAYS))
def test_a_hook_that_says_nothing_of_meaning_lets_nothing_through(real: Scene, tmp_path: Path, text: str) -> None:
    _run(real, _broken(tmp_path, text), TWO)
    assert real.lines() == []


def test_a_driver_whose_socket_is_gone_lets_nothing_through(real: Scene) -> None:
    slowly = Turn(text=RAN.text, calls=RAN.calls, delay=2.0)
    with real.model([slowly, DONE]) as model:
        process = real.shell.start("run", "--runner", "claude", "do it")
        until(lambda: len(model.asked) == 1, what="the model was asked")
        os.unlink(real.shell.store / "runs" / f"{real.task}.1" / "driver" / "hook.sock")
        process.communicate(timeout=60)
    assert real.lines() == []
    assert b"adjourn could not be asked" in history(model.asked[-1])[-1]
