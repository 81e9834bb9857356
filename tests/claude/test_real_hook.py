"""A broken hook never lets the real Claude Code make a call, not even one that its own settings allow."""

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from uuid import uuid4

import pytest

from adjourn.runners.claude import options
from tests.claude.scene import Scene, bash, history
from tests.e2e.shell import until
from tests.model.script import Turn

RAN = Turn(text="I run it.", calls=(bash("echo ran >> made.txt", name="toolu_A"),))
DONE = Turn(text="All done.")
ALLOWS = '{"permissions": {"allow": ["Bash"]}, "disableAllHooks": true}'
YES = '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'

# What happens in the place of `adjourn _hook`, all of it where Claude Code's own settings allow the
# call. These fail.
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
}
# These end well and say nothing that means anything: so does an adjourn that is cut off in the
# midst of an upgrade.
SAYS = {
    "says nothing": "exit 0",
    "says an empty line": "echo",
    "says no JSON": "echo allow",
    "says half a yes": f"printf '%s' '{YES[:-3]}'",
    "says an empty object": "echo '{}'",
    "invents a decision": f"echo '{YES.replace('allow', 'yes')}'",
    "asks": f"echo '{YES.replace('allow', 'ask')}'",
    "speaks of another event": f"echo '{YES.replace('PreToolUse', 'PostToolUse')}'",
    "says something before its yes": f"echo warning; echo '{YES}'",
    "says something after its yes": f"echo '{YES}'; echo warning",
    "never answers": "sleep 60",
}


def _broken(place: Path, kinds: Mapping[str, str]) -> str:
    """Return an adjourn that is broken in another way for each call, and notes which way it was."""
    numbered = enumerate(kinds.items())
    cases = [
        f"*'\"tool_use_id\":\"toolu_{at}\"'*) echo '{kind}' >> {place}/asked; {text};;\n"
        for at, (kind, text) in numbered
    ]
    program = place / "broken adjourn"
    program.write_text(f"#!/bin/sh\ncase $(cat) in\n{''.join(cases)}esac\n")
    program.chmod(0o700)
    return options.hook_command(str(program))


def _run(real: Scene, hook: str, turn: Turn) -> list[dict[str, object]]:
    """Run Claude Code with our command line and another hook, and return what the model hears of its calls."""
    words = options.start_argv(
        options.ClaudeSetup(), session=str(uuid4()), prompt="do it", hook=hook
    )
    words = [word.replace('"timeout":900', '"timeout":2') for word in words]
    with real.model([turn, DONE]) as model:
        environment = options.environment(options.ClaudeSetup(), real.shell.environment)
        argv = [environment["ADJOURN_CLAUDE"], *words[1:]]
        subprocess.run(
            argv,
            cwd=real.work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=90,
        )
        content = model.asked[-1].body["messages"][-1]["content"]
    return [block for block in content if block["type"] == "tool_result"]


def _calls(kinds: Iterable[str]) -> Turn:
    calls = tuple(
        bash(f"echo '{kind}' >> made.txt", name=f"toolu_{number}")
        for number, kind in enumerate(kinds)
    )
    return Turn(text="All of them.", calls=calls)


def _allows(real: Scene) -> None:
    """Have the user's own settings allow everything, and switch hooks off."""
    (real.home / ".claude").mkdir()
    (real.home / ".claude" / "settings.json").write_text(ALLOWS)


@pytest.mark.parametrize("kinds", [FAILS, SAYS], ids=["fails", "says nothing of meaning"])
def test_whatever_is_broken_about_a_hook_it_lets_no_call_through(
    real: Scene, tmp_path: Path, kinds: dict[str, str]
) -> None:
    _allows(real)
    told = _run(real, _broken(tmp_path, kinds), _calls(kinds))
    assert real.lines() == []
    assert (tmp_path / "asked").read_text().splitlines() == list(kinds)
    assert [block["is_error"] for block in told] == [True] * len(kinds)


@pytest.mark.parametrize(
    "mode", [None, 0o600, 0o700], ids=["is no program", "cannot be executed", "is empty"]
)
def test_a_hook_that_cannot_be_started_lets_no_call_through(
    real: Scene, tmp_path: Path, mode: int | None
) -> None:
    _allows(real)
    if mode:
        (tmp_path / "broken adjourn").touch(mode)
    (told,) = _run(real, options.hook_command(str(tmp_path / "broken adjourn")), _calls(["ran"]))
    assert real.lines() == []
    assert told["is_error"] is True


@pytest.mark.parametrize("options", [("--no-pause-on-approval",), ()], ids=["ungated", "gated"])
def test_a_driver_whose_socket_is_gone_lets_nothing_through_and_does_not_call_it_done(
    real: Scene, options: tuple[str, ...]
) -> None:
    """A model that cannot make its calls says sooner or later that it is done."""
    slowly = Turn(text=RAN.text, calls=RAN.calls, delay=2.0)
    with real.model([slowly, DONE, DONE]) as model:
        process = real.shell.start(
            "run", "--runner", "claude", *options, "do it", stderr=subprocess.PIPE
        )
        until(lambda: len(model.asked) == 1, what="the model was asked")
        os.unlink(real.shell.store / "runs" / f"{real.task}.1" / "driver" / "hook.sock")
        _, said = process.communicate(timeout=60)
        assert b"adjourn could not be asked" in history(model.asked[-1])[-1]
        assert process.returncode == 10
        assert b"the hook of call toolu_A did not reach adjourn" in said
        real.shell.adjourn("resume", real.task)
    assert real.lines() == []
