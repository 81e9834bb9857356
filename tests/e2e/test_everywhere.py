"""One inbox for all stores of a person."""

import os
import re
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.shell import Document, Shell

pytestmark = pytest.mark.one_machine(why="several directories of one user are at stake")

NewShell = Callable[[str], Shell]


@pytest.fixture
def beside(shell: Shell, tmp_path: Path) -> Iterator[NewShell]:
    """Make further projects of the same user, each with a store of its own."""
    made: list[Shell] = []

    def make(name: str) -> Shell:
        place = tmp_path.with_name(f"{tmp_path.name}-{name}")
        place.mkdir()
        other = Shell(place)
        other.environment |= {
            name: shell.environment[name] for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME")
        }
        made.append(other)
        return other

    yield make
    for other in made:
        other.end()


def ask_of(shell: Shell) -> Document:
    ask: Document = shell.paused("sh", "-c", '[ "$AUTO_APPROVAL" ] || exit 90')["asks"][0]
    return ask


def stores_in(document: Document) -> set[str]:
    return {each["store"] for each in document["stores"]}


def test_the_inbox_and_the_tasks_of_all_stores_are_one_list(shell: Shell, beside: NewShell) -> None:
    other, third = beside("other"), beside("third")
    asks = [ask_of(shell), ask_of(other)]
    shown = shell.adjourn("inbox", "--everywhere").out.splitlines()
    assert shown[0].split() == ["ASK", "KIND", "TASK", "SINCE", "STORE", "WHAT"]
    assert [row.split()[0] for row in shown[1:]] == [ask["id"][:8] for ask in asks]
    assert str(other.place) in shown[2]
    # From a place without a store it is the same, and none is made
    document = third.json("inbox", "--everywhere")
    assert {(ask["id"], ask["store"]) for ask in document["asks"]} == {
        (asks[0]["id"], str(shell.store)),
        (asks[1]["id"], str(other.store)),
    }
    assert document["count"] == 2
    assert not third.store.exists()
    tasks = third.json("tasks", "--everywhere", "--state", "waiting")["tasks"]
    assert {task["store"] for task in tasks} == {str(shell.store), str(other.store)}


def test_an_ask_of_another_store_is_approved_from_here(shell: Shell, beside: NewShell) -> None:
    other = beside("other")
    shell.adjourn("run", "--", "true")
    ask = ask_of(other)
    done = shell.adjourn("approve", ask["id"][:8])
    assert f"store: {other.store}" in done.out
    assert f"--store {other.store}" in done.out  # the next command works from here
    hint = re.search(r"Resume with: (.*)", done.out)
    assert hint
    shell.line(hint[1])
    assert other.state(ask["task_id"]) == "succeeded"
    # A store that is named is the only one that is asked
    again = ask_of(other)
    shell.adjourn("approve", again["id"], "--store", str(shell.store), expect=3)
    assert other.inbox()[0]["id"] == again["id"]


def test_a_beginning_that_several_stores_know_decides_nothing(
    shell: Shell, beside: NewShell
) -> None:
    other = beside("other")
    here, there = ask_of(shell), ask_of(other)
    twin = here["id"][:6] + there["id"][6:]
    other.sql(f"UPDATE ask SET id = '{twin}'")  # noqa: S608 -- ids of ours, in a database of the test's
    refused = shell.adjourn("approve", here["id"][:6], expect=3)
    assert "several asks begin with" in refused.err
    assert twin in refused.err
    assert str(other.store) in refused.err
    assert [ask["id"] for ask in shell.inbox()] == [here["id"]]
    both = shell.adjourn("approve", here["id"], twin, expect=2)
    assert "in several stores" in both.err
    shell.adjourn("approve", here["id"])


def test_only_a_write_registers_a_store_and_what_is_gone_drops_out(
    shell: Shell, beside: NewShell
) -> None:
    other, moved = beside("other"), beside("moved")
    shell.adjourn("run", "--", "true")
    other.adjourn("run", "--", "true")
    clone = moved.place / "clone"
    shutil.copytree(shell.place, clone, symlinks=True)
    looked = moved.adjourn("tasks", "--store", str(clone / ".adjourn"), "--output", "json").doc
    assert len(looked["tasks"]) == 1
    assert stores_in(moved.json("inbox", "--everywhere")) == {str(shell.store), str(other.store)}
    aside = moved.place / ".adjourn"
    other.store.rename(aside)
    assert stores_in(shell.json("inbox", "--everywhere")) == {str(shell.store)}
    moved.adjourn("run", "--", "true")  # now something is written where it is
    assert stores_in(shell.json("inbox", "--everywhere")) == {str(shell.store), str(aside)}
    shutil.rmtree(shell.store)
    assert stores_in(moved.json("inbox", "--everywhere")) == {str(aside)}
    folder = Path(shell.environment["XDG_STATE_HOME"]) / "adjourn" / "stores"
    assert os.stat(folder).st_mode & 0o077 == 0


def test_nothing_inside_a_run_of_any_store_decides_in_another(
    shell: Shell, beside: NewShell
) -> None:
    other = beside("other")
    ask = ask_of(other)
    script = f"env -u ADJOURN_RUN_ID adjourn approve {ask['id']}"
    refused = shell.adjourn("run", "--", "sh", "-c", f"cd {shell.place}; {script}", expect=1)
    assert "is refused inside a run" in refused.err
    assert [each["id"] for each in other.inbox()] == [ask["id"]]


def test_a_database_that_does_not_answer_is_named_and_the_rest_is_shown(shell: Shell) -> None:
    ask = ask_of(shell)
    state = Path(shell.environment["XDG_STATE_HOME"]) / "adjourn"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        dead = state / "0123456789abcdef"
        dead.mkdir(mode=0o700)
        url = f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/none"
        (dead / "database.json").write_text(f'{{"url":"{url}"}}')
        (dead / "database.json").chmod(0o600)
        entry = state / "stores" / f"{dead.name}.json"
        entry.write_text(f'{{"place":"{dead}","url":"{url}"}}')
        done = shell.adjourn("inbox", "--everywhere")
    assert ask["id"][:8] in done.out
    assert "did not answer within 3 s" in done.err
