"""`setup claude --interactive`: the policy and the inbox behind the prompts of the real Claude Code, at a terminal."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.claude.scene import Scene, bash
from tests.e2e.shell import until
from tests.e2e.terminal import Terminal
from tests.model.script import Turn
from tests.programs import program

PROMPT = "Do you want to proceed?"


@contextmanager
def at_a_terminal(real: Scene, *words: str, turns: list[Turn]) -> Iterator[Terminal]:
    """Have Claude Code in a terminal, past all that it asks a new user, do a first turn."""
    known = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": ["dummy"], "rejected": []},
        "projects": {str(real.work): {"hasTrustDialogAccepted": True}},
    }
    (real.home / ".claude.json").write_text(json.dumps(known))
    with (
        real.model(turns) as model,
        Terminal(real.shell, *words, program=program("claude"), columns=100, rows=40) as person,
    ):
        person.shows("shift+tab" if not words else "manual mode")
        person.type(b"do it")
        person.shows("do it")
        while not model.asked:  # a key that comes too soon is taken for part of a paste
            person.type(b"\r")
            person.listen(1)
        yield person


def until_seen(person: Terminal, is_so: Callable[[], bool], what: str) -> None:
    """Wait for something, and take what is printed meanwhile: a full terminal stops who writes."""

    def looks() -> bool:
        person.listen(0.1)
        return is_so()

    until(looks, what=what, seconds=60)


def asks(real: Scene) -> list[Any]:
    found: list[Any] = real.shell.json("inbox")["asks"] if real.shell.store.exists() else []
    return found


def test_who_answers_first_decides_in_the_inbox_or_at_the_prompt(real: Scene) -> None:
    """The prompt is there as always; what is settled at it leaves the inbox."""
    real.shell.adjourn("setup", "claude", "--interactive")
    turns = [
        Turn(text="One.", calls=(bash("echo one >> made.txt", name="toolu_A"),)),
        Turn(text="Two.", calls=(bash("echo two >> made.txt", name="toolu_B"),)),
        Turn(text="Three.", calls=(bash("echo three >> made.txt", name="toolu_C"),)),
        Turn(text="All done."),
    ]
    with at_a_terminal(real, "--permission-mode", "default", turns=turns) as person:
        until_seen(person, lambda: bool(asks(real)), what="the first call is in the inbox")
        person.shows(PROMPT)
        (ask,) = asks(real)
        assert "$ echo one >> made.txt" in real.shell.adjourn("show", ask["id"]).out
        real.shell.adjourn("approve", ask["id"])
        until_seen(person, lambda: real.lines() == ["one"], what="the approved call was made")
        until_seen(person, lambda: bool(asks(real)), what="the second call is in the inbox")
        person.shows("echo two")
        person.shows(PROMPT)
        person.type(b"1")
        until_seen(
            person, lambda: real.lines() == ["one", "two"], what="the call was made from the prompt"
        )
        until_seen(
            person,
            lambda: len(real.shell.json("tasks")["tasks"]) == 3,
            what="the third is in the inbox",
        )
        until_seen(
            person, lambda: len(asks(real)) == 1, what="what was settled at the prompt has left"
        )
        real.shell.adjourn("reject", asks(real)[0]["id"], "--reason", "not on a Friday")
        person.shows("not on a Friday")
        person.shows("All done.")
    assert real.lines() == ["one", "two"]
    real.shell.adjourn("setup", "claude", "--interactive", "--undo")
    assert (real.home / ".claude" / "settings.json").read_text() == "{}\n"


def test_the_policy_holds_in_auto_mode_and_a_prompt_that_nobody_saw_is_withdrawn(
    real: Scene,
) -> None:
    """Never is denied, auto asks nobody, and what a rule asks for is asked although Claude Code would not."""
    config = real.work / ".config" / "adjourn"
    config.mkdir(parents=True)
    rules = {"never": "never", "asks": "prompt", "fine": "auto"}
    (config / "policy.toml").write_text(
        "".join(
            f'[[rule]]\nargs = ["echo", "{word}", "*"]\naction = "{do}"\n'
            for word, do in rules.items()
        )
    )
    real.shell.adjourn("setup", "claude", "--interactive", "--for", "2s")
    turns = [
        Turn(text="One.", calls=(bash("echo never ran", name="toolu_A"),)),
        Turn(text="Two.", calls=(bash("echo fine day", name="toolu_B"),)),
        Turn(text="Three.", calls=(bash("echo asks you", name="toolu_C"),)),
        Turn(text="All done."),
    ]
    with at_a_terminal(real, turns=turns) as person:
        until_seen(person, lambda: bool(asks(real)), what="the third call is in the inbox")
        until_seen(person, lambda: asks(real) == [], what="its time is over")
        person.shows(PROMPT)
        (task,) = real.shell.json("tasks")["tasks"]
        assert task["state"] == "canceled"
        person.type(b"1")
        person.shows("All done.")
