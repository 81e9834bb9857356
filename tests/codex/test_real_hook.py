"""A broken hook never lets the real Codex make a call, not even where nothing else would ask."""

import contextlib
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from adjourn.runners import hook as wire
from adjourn.runners.codex import hook
from tests.codex.scene import Scene, install_plugin, outputs, shell, tool, traces
from tests.e2e.shell import ADJOURN, until
from tests.model.script import Turn
from tests.model.server import Model, Request

DONE = Turn(text="All done.")
SEAL = "5ea1" * 8
YES = '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'
NOT_ASKED = "Not run: adjourn has not said yes"

# What stands in the place of `adjourn _hook`: a script, or nothing of the kind.
BROKEN = {
    "is silent": "exit 0",
    "is empty": "",
    "exits 1": "exit 1",
    "exits 2 without a word": "exit 2",
    "exits 3": "exit 3",
    "exits 10": "exit 10",
    "exits 126": "exit 126",
    "exits 127": "exit 127",
    "exits 255": "exit 255",
    "is killed": "kill -9 $$",
    "is terminated": "kill -15 $$",
    "has a segmentation fault": "kill -11 $$",
    "complains": "echo broken >&2; exit 1",
    "says yes by itself": f"echo '{YES}'",
    "says yes and is killed": f"echo {SEAL}; kill -9 $$",
    "says half a yes": f"echo {SEAL[:20]}",
    "says half of what Codex reads": f"printf '%s' '{YES[:40]}'",
    "says more than yes": f"echo {SEAL}{SEAL}",
    "says an empty object": "echo '{}'",
    "says another schema": """echo '{"decision":"approve"}'""",
    "says another seal": f"echo {SEAL[::-1]}",
    "asks": f"echo '{YES.replace('allow', 'ask')}'",
    "defers": f"echo '{YES.replace('allow', 'defer')}'",
    "says what is no UTF-8": "printf '\\377\\376\\200'",
    "says zeros": "head -c 1000 /dev/zero",
    "says very much": "head -c 20000000 /dev/zero | tr '\\0' x",
    "says garbage and fails": "head -c 100000 /dev/urandom; exit 1",
    "closes its outputs": "exec >&- 2>&-; exit 0",
    "repeats its words": 'echo "$@"',
}
UNFIT: dict[str, Callable[[Path], object]] = {  # not even a script
    "is not there": Path.exists,
    "cannot be executed": lambda place: place.write_text("#!/bin/sh\nexit 0\n"),
    "has no interpreter": lambda place: _executable(place, b"#!/no/such/python\n"),
    "is a directory": lambda place: place.mkdir(),
    "is a link to nothing": lambda place: place.symlink_to("/no/such/adjourn"),
    "is no program": lambda place: _executable(place, b"\x7fELF" + bytes(100)),
}
# What the driver does, or does not do, when the real `adjourn _hook` asks it.
DRIVERS = {
    "nobody listens": None,
    "leaves at once": b"",
    "says half an answer": YES[:40].encode(),
    "says what is no JSON": b"yes",
    "says what is no UTF-8": b'{"hookSpecificOutput":"\xff"}',
    "forgets its seal": YES.encode(),
    "is of another run": f"{YES}\nanother".encode(),
    "says no": f"{YES.replace('allow', 'deny')}\n{SEAL}".encode(),
}


def _install(place: Path, kind: str) -> None:
    """Put something broken where the hook's program is expected."""
    shutil.rmtree(place, ignore_errors=True)
    place.unlink(missing_ok=True)
    if kind in UNFIT:
        UNFIT[kind](place)
        return
    _executable(place, f"#!/bin/sh\ncat >/dev/null\n{BROKEN[kind]}\n".encode())


def _executable(place: Path, text: bytes) -> None:
    place.write_bytes(text)
    place.chmod(0o700)


def _turns(kinds: Sequence[str]) -> list[Turn]:
    """Return a turn for each kind: a command and a tool of an MCP server, side by side."""
    calls = [
        (
            shell(f"echo '{kind}' >> made.txt", name=f"sh_{number}"),
            tool("write", kind, name_of_call=f"mcp_{number}"),
        )
        for number, kind in enumerate(kinds)
    ]
    return [*(Turn(calls=both) for both in calls), DONE]


def _before_each(model: Model, kinds: Sequence[str], prepare: Callable[[str], None]) -> None:
    """Prepare for each kind before the model makes its calls."""

    def prepared(request: Request) -> None:
        if request.turn is not None and request.turn < len(kinds):
            prepare(kinds[request.turn])

    model.prepare = prepared


def _codex(scene: Scene, program: str) -> None:
    """Run `codex exec` with our hook's line around another program, where Codex itself allows everything."""
    setting = hook.override(hook.hook_command(program, SEAL))
    words = [
        "exec",
        "--json",
        "--skip-git-repo-check",
        "-s",
        "danger-full-access",
        "-c",
        setting,
        "do it",
    ]
    argv = [scene.shell.environment["ADJOURN_CODEX"], *words]
    environment, nothing = scene.shell.environment, subprocess.DEVNULL
    subprocess.run(
        argv,
        cwd=scene.work,
        env=environment,
        stdin=nothing,
        capture_output=True,
        check=True,
        timeout=100,
    )


def _require_nothing_ran(scene: Scene, model: Model, kinds: Sequence[str]) -> None:
    assert len(model.asked) == len(kinds) + 1
    assert scene.lines() == []
    assert scene.lines("trace.txt") == []
    told = outputs(model.asked[-1])
    assert len(told) == 2 * len(kinds)
    assert all("blocked by PreToolUse hook" in each for each in told.values()), told


# 33 kinds of breakage
def test_whatever_is_in_the_place_of_the_hook_nothing_runs(real: Scene) -> None:
    kinds, broken = [*BROKEN, *UNFIT], real.home / "broken adjourn"
    with real.model(_turns(kinds), more=traces(real, approves=True)) as model:
        _before_each(model, kinds, lambda kind: _install(broken, kind))
        _codex(real, str(broken))
        _require_nothing_ran(real, model, kinds)
        assert all(NOT_ASKED in each for each in outputs(model.asked[-1]).values())


def test_whatever_the_driver_does_that_is_no_sealed_yes_nothing_runs(
    real: Scene,
) -> None:  # 8 kinds, with the real `adjourn _hook`
    kinds, place = list(DRIVERS), real.work / "runs" / "task.1" / "driver"
    place.mkdir(parents=True)
    real.shell.environment |= {"ADJOURN_RUN_ID": "task.1", "ADJOURN_STORE": str(real.work)}
    with (
        real.model(_turns(kinds), more=traces(real, approves=True)) as model,
        _driver(place) as play,
    ):
        _before_each(model, kinds, lambda kind: play(DRIVERS[kind]))
        _codex(real, str(ADJOURN))
        _require_nothing_ran(real, model, kinds)


# A hook that takes too long is a yes
def test_codex_waits_for_the_hook_far_longer_than_the_hook_for_its_driver() -> None:
    assert hook.SECONDS > 10 * wire.PATIENCE


def test_a_sealed_yes_lets_the_call_run(real: Scene) -> None:  # else the tests above show nothing
    broken = real.home / "adjourn"
    _executable(broken, f"#!/bin/sh\ncat >/dev/null\necho {SEAL}\n".encode())
    with real.model(_turns(["yes"]), more=traces(real, approves=True)):
        _codex(real, str(broken))
    assert real.lines() == ["yes"]
    assert real.lines("trace.txt") == ["write yes"]


@contextlib.contextmanager
def _driver(place: Path) -> Iterator[Callable[[bytes | None], None]]:
    """Play a driver that answers each hook with the same words, until it is told others.

    None means that it is not there.
    """
    said: list[bytes] = [b""]
    with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(place):
        listener.bind(wire.SOCKET)
        listener.listen()
        threading.Thread(target=_serve, args=(listener, said), daemon=True).start()

        def play(answer: bytes | None) -> None:
            (place / wire.SOCKET).rename(place / "away") if answer is None else None
            (place / "away").rename(place / wire.SOCKET) if answer is not None and (
                place / "away"
            ).exists() else None
            said[0] = answer or b""

        yield play


def _serve(listener: socket.socket, said: list[bytes]) -> None:
    with contextlib.suppress(OSError):
        while True:
            line, _ = listener.accept()
            with line, contextlib.suppress(OSError):
                while said[0] and line.recv(65_536):
                    pass
                line.sendall(said[0])


# --- Codex does not ask the hook, or does not hear it ---------------------------------------------

OFF = "[features]\nhooks = false\n"
DISABLED = '[hooks.state."/<session-flags>/config.toml:pre_tool_use:0:0"]\nenabled = false\n'
EXEC = ("--option", "way=exec")


@pytest.mark.parametrize("way", [(), EXEC], ids=["app-server", "exec"])
def test_a_codex_that_does_not_ask_the_hook_is_not_run(real: Scene, way: tuple[str, ...]) -> None:
    with real.model([*_turns(["x"])], more=OFF) as model:
        for settings in (OFF, DISABLED):
            real.configure(model.openai, more=settings)
            assert "switches hooks off" in real.run(expect=1, options=way).err
        assert model.asked == []
    assert real.lines() == []


def test_where_the_shell_of_the_hook_is_broken_codex_itself_asks_and_nothing_runs_unasked(
    real: Scene,
) -> None:
    broken = real.home / "environment"
    broken.write_text("exit 0\n")
    real.shell.environment["BASH_ENV"] = str(broken)  # every hook ends well now, and says nothing
    turns = [
        Turn(calls=(tool(name, "x", name_of_call=f"call_{name}"),)) for name in ("write", "look")
    ]
    again = [
        Turn(calls=(tool(name, "x", name_of_call=f"again_{name}"),)) for name in ("write", "look")
    ]
    both = [turns[0], again[0], turns[1], again[1], DONE]
    with real.model(both, more=traces(real, approves=True)) as model:
        real.run()
        real.approve_all()
        real.resume(expect=10)
        assert real.lines("trace.txt") == ["write x"]
        real.approve_all()
        real.resume()
        assert real.lines("trace.txt") == ["write x", "look x"]
        rules = real.codex_home / "rules"
        rules.mkdir()
        (rules / "default.rules").write_text('prefix_rule(pattern=["touch"], decision="allow")\n')
        assert "without asking the hook" in real.run(expect=1).err
        assert "without asking the hook" in real.run(expect=1, options=EXEC).err
        assert len(model.asked) == len(both)


def test_a_tool_that_a_plugin_brings_waits_at_the_hook_and_is_not_to_be_had_where_that_is_broken(
    real: Scene,
) -> None:
    """Codex itself does not ask about one that calls itself read-only, and cannot be made to."""
    looks = [Turn(calls=(tool("look", "x", name_of_call=f"call_{number}"),)) for number in range(2)]
    with real.model([*looks, DONE]) as model:
        install_plugin(real)
        real.run()
        assert real.lines("trace.txt") == []
        real.approve_all()
        real.resume()
        assert real.lines("trace.txt") == ["look x"]
        broken = real.home / "environment"
        broken.write_text("exit 0\n")
        real.shell.environment["BASH_ENV"] = str(broken)
        assert "without asking the hook" in real.run(expect=1).err
        assert len(model.asked) == 3
        assert real.lines("trace.txt") == ["look x"]


def test_a_model_that_calls_two_calls_by_one_name_gets_no_second_one_for_one_approval(
    real: Scene,
) -> None:
    """A tool of a plugin is asked about at the hook alone, so that nothing else would tell them apart."""
    with real.model(
        [*(Turn(calls=(tool("look", "x", name_of_call=name),)) for name in "ABB"), DONE]
    ):
        install_plugin(real)
        real.run()
        real.approve_all()
        real.resume(expect=10)
        assert real.lines("trace.txt") == ["look x"]


# Though nobody has to be asked
def test_without_the_socket_or_the_store_of_its_run_nothing_runs(real: Scene) -> None:
    slowly = Turn(calls=(shell("echo hi >> made.txt", name="call_A"),), delay=1.5)
    with real.model([slowly, DONE]) as model:
        for number in (0, 2):
            process = real.shell.start(
                "run", "--runner", "codex", "--no-pause-on-approval", "do it"
            )
            until(partial(_is_asked, model, more_than=number), what="the model is asked")
            for place in real.shell.store.glob("runs/*/driver/hook.sock"):
                place.unlink()
            if number:
                real.shell.store.rename(real.home / "away")
            process.communicate(timeout=60)
            # A store that is away is not written to
            assert process.returncode == (1 if number else 0)
    assert real.lines() == []


def _is_asked(model: Model, *, more_than: int) -> bool:
    return len(model.asked) > more_than
