"""What a person calls a task or an ask: ids, beginnings of ids, rows of a list, the newest."""

import os
import re
from pathlib import Path

import pytest

from tests.e2e.shell import ADJOURN, Shell
from tests.e2e.terminal import Terminal

GATED = '[ "$AUTO_APPROVAL" ] || exit 90; echo released'


class Screen:
    """A shell at one terminal, in which commands are typed one after the other."""

    def __init__(self, shell: Shell) -> None:
        (shell.place / ".shellrc").write_text("PS1=; PS2=; set +m\n")
        self.terminal = Terminal(
            shell, "-i", program="/bin/sh", columns=80, rows=24, env={"ENV": ".shellrc"}
        )
        self._count = 0

    def do(self, line: str) -> str:
        """Run a line, and return what it printed."""
        self._count += 1
        before = len(self.terminal.raw)
        self.terminal.type(f"{line}; echo end-$?-{self._count}.\n".encode())
        self.terminal.sees_match(rf"end-\d+-{self._count}\.".encode(), after=before)
        return self.terminal.raw[before:].decode()


@pytest.mark.serial
@pytest.mark.one_machine(why="a terminal keeps the directory of a store")
def test_rows_of_the_last_list_at_this_terminal_have_names(shell: Shell) -> None:
    shell.paused("sh", "-c", GATED)
    ask = shell.paused("sh", "-c", GATED)["asks"][0]
    screen = Screen(shell)
    with screen.terminal:
        assert ask["id"][:8] in screen.do("adjourn inbox")
        shell.adjourn("run", "--", "true")  # elsewhere, and in a pipe: names nothing here
        screen.do("adjourn tasks | cat; adjourn run -- adjourn tasks >/dev/null")
        assert f"approved {ask['id'][:8]}\r" in screen.do("cd /; adjourn approve @2")
        assert "end-3" in screen.do("adjourn approve @7")
        assert "too vague to decide by" in screen.do(f"cd {shell.place}; adjourn reject last")
    assert [each["id"] for each in shell.inbox()] != [ask["id"]]
    assert len(shell.inbox()) == 1
    refused = shell.adjourn("approve", "@1", expect=2)
    assert "no list was printed here" in refused.err
    folder = Path(shell.environment["XDG_STATE_HOME"]) / "adjourn" / "terminals"
    assert os.stat(folder).st_mode & 0o077 == 0


@pytest.mark.serial
@pytest.mark.one_machine(why="a call is changed behind the program's back")
def test_a_row_approves_only_the_call_that_it_showed(shell: Shell) -> None:
    shell.script("exit 90", name="deploy.sh")
    ask = shell.paused("./deploy.sh")["asks"][0]
    screen = Screen(shell)
    with screen.terminal:
        screen.do("adjourn inbox")
        shell.sql("UPDATE call SET digest = zeroblob(32)")
        assert "the call is not the one that was shown" in screen.do("adjourn approve @1")
    assert [each["id"] for each in shell.inbox()] == [ask["id"]]


def test_every_verb_takes_an_ask_a_task_or_a_run(shell: Shell) -> None:
    manifest = shell.paused("sh", "-c", GATED)
    task, ask = manifest["task_id"], manifest["asks"][0]["id"]
    shown = shell.adjourn("show", ask[:8]).out
    assert shown.startswith(f"approval {ask}")
    assert "Approve with:" in shown
    assert "history" not in shown
    assert shell.json("show", ask)["id"] == ask
    for name in (ask, ask[:6], f"{task}.1", "last"):
        assert shell.json("runs", name)["runs"][0]["task_id"] == task
        assert shell.adjourn("logs", name).out == ""
    shell.adjourn("approve", "last", expect=2)
    shell.adjourn("resume", "last", "--approve-all", expect=2)
    shell.adjourn("approve", task[:8])  # it asks one thing
    shell.adjourn("resume", ask[:8])
    assert "approved by" in shell.adjourn("show", ask).out
    assert "has no open ask" in shell.adjourn("approve", task, expect=3).err


def test_a_task_that_asks_several_things_stands_for_none(shell: Shell) -> None:
    script = shell.script('adjourn ask "A?" --key a & adjourn ask "B?" --key b; wait; exit 10')
    task = shell.json("run", "--", script, expect=10)["task_id"]
    assert len(shell.inbox()) == 2
    refused = shell.adjourn("answer", task, "yes", expect=3)
    assert "has 2 open asks" in refused.err
    assert len(shell.inbox()) == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    (
        (("app",), r"^plain,approve$"),
        (("approve", "--com"), r"^plain,--comment$"),
        (("approve", "{ask}"), r"^plain,{ask8}$"),
        (("show", "{task}"), r"^plain,{task8}$"),
    ),
)
def test_tab_completes_verbs_options_and_ids(
    shell: Shell, words: tuple[str, ...], expected: str
) -> None:
    manifest = shell.paused("sh", "-c", GATED)
    ask, task = manifest["asks"][0]["id"], manifest["task_id"]
    typed = " ".join(["adjourn", *words]).format(ask=ask[:3], task=task[:3])
    env = {"_ADJOURN_COMPLETE": "bash_complete", "COMP_WORDS": typed}
    env["COMP_CWORD"] = str(len(words))
    done = shell.run(str(ADJOURN), env=env)
    assert re.search(expected.format(ask8=ask[:8], task8=task[:8]), done.out, re.MULTILINE)
    fish = {
        "_ADJOURN_COMPLETE": "fish_complete",
        "COMP_WORDS": typed,
        "COMP_CWORD": typed.split()[-1],
    }
    if len(words) > 1 and not words[1].startswith("-"):
        assert "sh -c" in shell.run(str(ADJOURN), env=fish).out  # with what it is
