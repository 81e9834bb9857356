"""What a person sees is byte for byte what runs.

A probe tells what it was given, and the screen is read back into bytes.
"""

import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjourn.controller.controller import Controller
from adjourn.controller.runs import Claimed
from adjourn.core.ask import ApprovalAsk, Principal, Reply, Verb
from adjourn.core.call import (
    AUTO_APPROVAL,
    Call,
    Command,
    canonical,
    command_body,
    command_of,
    portable,
    tool_body,
)
from adjourn.core.outcome import Exit
from adjourn.core.states import TaskState
from adjourn.core.task import Spec
from adjourn.core.text.render import WHOLE
from adjourn.supervision.supervisor import Supervisor
from adjourn.testing.values import a_call
from adjourn.views.block import to_text
from adjourn.views.call import call_blocks
from adjourn.wiring.supervisor import open_supervisor
from tests.hostile import HOSTILE_WORDS
from tests.stateful.world import shim_of

CI, FULL = 250, 10_000
ME = Principal(name=f"uid:{os.getuid()}")
# dash writes every byte but NUL as it is, which no word can hold.
PROBE = """#!/bin/sh
printf '%s\\0' "$(pwd -P)" "$AUTO_APPROVAL" "$@" > "$0.got"
"""


# --- from the screen back to bytes ----------------------------------------------------------------

_ESCAPE = re.compile(r'\\(?:\\|"|n|r|t|x([0-9a-f]{2})|u\{([0-9a-f]+)\}|\{(\d+) spaces\})')
_PLAIN = {"\\\\": "\\", '\\"': '"', "\\n": "\n", "\\r": "\r", "\\t": "\t"}


def bytes_of(shown: str) -> bytes:
    """Read rendered text back, as a careful person would."""
    out, at = b"", 0
    for found in _ESCAPE.finditer(shown):
        assert "\\" not in shown[at : found.start()]
        out += shown[at : found.start()].encode() + _unescaped(found)
        at = found.end()
    return out + shown[at:].encode()


def _unescaped(found: re.Match[str]) -> bytes:
    if found[1]:
        return bytes([int(found[1], 16)])
    if found[2]:
        return chr(int(found[2], 16)).encode("utf-8", "surrogatepass")
    return b" " * int(found[3]) if found[3] else _PLAIN[found[0]].encode()


def screen_of(call: Call) -> list[str]:
    """Return the lines that a person sees of a call."""
    return to_text(call_blocks(call, cut=WHOLE)).split("\n")


def read_back(lines: list[str]) -> tuple[list[bytes], bytes, bytes]:
    """Return the words, the directory and the value that a block of lines shows."""
    words = [
        bytes_of(found[1]) for line in lines if (found := re.fullmatch(r' +\d+  "(.*)"', line))
    ]
    (where,) = [
        bytes_of(line.strip().removeprefix("in   "))
        for line in lines
        if line.startswith("    in   ")
    ]
    (value,) = [
        bytes_of(line.partition(f"{AUTO_APPROVAL}=")[2])
        for line in lines
        if line.startswith("    with ")
    ]
    return words, where, value


# --- 10,000 calls through approve -----------------------------------------------------------------


class Stage:
    """A real store, a real controller and a real supervisor that live as long as all calls take."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.probe = place / "probe.sh"
        self.probe.write_text(PROBE)
        self.probe.chmod(0o700)
        self.controller, self.supervisor = self._open()

    def _open(self) -> tuple[Controller, Supervisor]:
        return open_supervisor(str(self.place / ".adjourn"))

    def asked(self, spec: Spec) -> tuple[ApprovalAsk, Call]:
        """Have a command ask for approval of itself; its first run needs no process to do so."""
        task = self.controller.tasks.start(spec, by=ME)
        claimed = self.controller.runs.claim(task.id, supervisor="nobody")
        assert isinstance(claimed, Claimed)
        self.controller.runs.execute(claimed.run, shim=shim_of(claimed.run.id))
        self.controller.runs.finish(claimed.run, Exit(code=90))
        (ask,) = self.controller.scene(task.id).open_asks
        assert isinstance(ask, ApprovalAsk)
        return ask, self.controller.scene(task.id).calls[ask.call]

    def approve(self, ask: ApprovalAsk, *, value: str | None, edited: bytes | None) -> Call:
        """Approve, and return the call as the receipt shows it."""
        self.controller.decisions.decide(
            [Reply(ask_id=ask.id, verb=Verb.APPROVE, text=value, edited=edited)], by=ME
        )
        with self.controller.store.read() as view:
            return view.call(ask.task_id, ask.call)

    def received(self, task_id: str) -> list[bytes]:
        """Run the approved call, and return what the probe was given."""
        with self.controller.store.read() as view:
            queued = view.task(task_id)
        assert self.supervisor.run(queued).state is TaskState.SUCCEEDED
        got = Path(f"{self.probe}.got")
        taken = got.read_bytes().split(b"\0")[:-1]
        got.unlink()
        return taken


PIECES: list[Callable[[random.Random], str]] = [
    lambda chance: chance.choice(HOSTILE_WORDS),
    lambda chance: os.fsdecode(chance.randbytes(chance.randrange(40))),
    lambda chance: "".join(chr(chance.randrange(1, 0x3000)) for _ in range(chance.randrange(20))),
    lambda chance: "".join(
        chance.choices("\\\"'nrtxu{}0123456789abcdef spaces\n\t ", k=chance.randrange(30))
    ),
    lambda chance: " " * chance.randrange(80),
    lambda chance: chance.choice(
        ["", "-", "--", "--set", "prod", "мир", "日本語", "Ωmega", "a=b", "$HOME", "`id`", "*"]
    ),
]


def a_word(chance: random.Random) -> str:
    """Return any word that a process can be given, as the system hands it over."""
    word = "".join(chance.choice(PIECES)(chance) for _ in range(chance.randrange(1, 3)))
    return os.fsdecode(
        word.encode("utf-8", "surrogateescape" if _is_from_bytes(word) else "replace").replace(
            b"\0", b""
        )
    )


def _is_from_bytes(word: str) -> bool:
    try:
        word.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


@pytest.mark.timeout(7200)
def test_a_probe_receives_exactly_the_bytes_that_were_shown(tmp_path: Path, sweep: str) -> None:
    """Generated calls, a third of them edited before they are approved.

    The words, the directory and the value.
    """
    stage = Stage(tmp_path)
    chance = random.Random(20_261_116)
    try:
        for _ in range(FULL if sweep == "full" else CI):
            words = [str(stage.probe), *(a_word(chance) for _ in range(chance.randrange(6)))]
            ask, call = stage.asked(
                Spec(runner="command", argv=tuple(words), workspace=str(stage.place))
            )
            assert read_back(screen_of(call))[0] == [os.fsencode(word) for word in words]
            value = chance.choice(
                [None, "yes", a_word(chance).encode("utf-8", "replace").decode()[:999]]
            )
            edited = (
                [str(stage.probe), *(a_word(chance) for _ in range(chance.randrange(1, 6)))]
                if chance.random() < 0.3
                else None
            )
            changed = (
                canonical({"argv": [*map(portable, edited)], "cwd": str(stage.place)})
                if edited and edited != words
                else None
            )
            shown = read_back(screen_of(stage.approve(ask, value=value, edited=changed)))
            assert stage.received(ask.task_id) == [shown[1], shown[2], *shown[0][1:]]
    finally:
        stage.supervisor.close()
        stage.controller.store.close()


# --- two different calls never look alike ---------------------------------------------------------

texts = (
    st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
    # Whatever a word can be that is not UTF-8
    | st.binary(max_size=12).map(lambda raw: os.fsdecode(raw.replace(b"\0", b"")))
    | st.sampled_from(HOSTILE_WORDS)
)
near = st.text(alphabet="\\\"'nxu{}0abcdef \n:- filewithsha256", max_size=14)
words = st.lists(texts | near, min_size=1, max_size=4)
commands = st.builds(
    lambda argv, cwd, env, files: command_body(
        Command(argv=tuple(argv), cwd=f"/{cwd}", env=env, files=files)
    ),
    words,
    near,
    st.dictionaries(near, near, max_size=2),
    st.dictionaries(near, near, max_size=2),
)
tools = st.builds(
    tool_body,
    near.filter(lambda name: name != "command"),
    st.dictionaries(
        near,
        near | st.lists(near, max_size=3) | st.integers() | st.none() | st.booleans(),
        max_size=3,
    ),
)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.tuples(st.just("command"), commands) | st.tuples(st.just("tool"), tools),
        min_size=2,
        max_size=6,
    )
)
def test_two_different_calls_never_render_alike(calls: list[tuple[str, bytes]]) -> None:
    """Words, directory, environment, files, tool and arguments.

    Whatever differs can be seen, without the digest.
    """
    seen: dict[str, bytes] = {}
    for kind, body in calls:
        call = a_call(body=body, tool="command" if kind == "command" else _tool(body))
        shown = "\n".join(
            screen_of(call)[1:] if kind == "command" else ["tool", *screen_of(call)[1:]]
        )
        assert seen.setdefault(shown, body) == body


def _tool(body: bytes) -> str:
    name: str = msgspec.json.decode(body)["tool"]
    return name


def test_what_is_read_back_is_what_was_written() -> None:
    command = Command(
        argv=("a\\x41", 'b"c', "\udcff", "\u202e", " " * 40, "\n"),
        cwd="/x y",
        env={AUTO_APPROVAL: "v\x1b"},
    )
    lines = screen_of(a_call(body=command_body(command)))
    assert read_back(lines) == ([os.fsencode(word) for word in command.argv], b"/x y", b"v\x1b")
    assert command_of(command_body(command)) == command
