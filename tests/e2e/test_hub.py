"""One thread follows all stores, and nothing that happens in one of them is missed."""

import os
import queue
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from adjourn.hub import Hub, News
from tests.e2e.shell import Shell, until

pytestmark = pytest.mark.one_machine(why="the directories of several stores are at stake")


@pytest.fixture
def second(tmp_path: Path) -> Iterator[Shell]:
    place = tmp_path.with_name(f"{tmp_path.name}-second")
    place.mkdir()
    other = Shell(place)
    yield other
    other.end()


class Inbox:
    """A subscriber that keeps what it is told."""

    def __init__(self) -> None:
        self.told: queue.Queue[News] = queue.Queue()

    def next(self, seconds: float = 5.0) -> News:
        return self.told.get(timeout=seconds)

    def events(self, count: int) -> list[tuple[str, str]]:
        """Return so many events, each with its store's name."""
        found: list[tuple[str, str]] = []
        while len(found) < count:
            news = self.next()
            found += [(news.root, each.event.kind) for each in news.events]
        return found


def kinds_of(shell: Shell) -> list[str]:
    store = shell.open_store()
    with closing(store), store.read() as view:
        return [happened.event.kind for happened in view.happened(after=0, limit=1000)]


def test_each_event_of_each_store_is_told_once_and_in_order(shell: Shell, second: Shell) -> None:
    shell.adjourn("run", "--", "true")
    second.adjourn("run", "--", "true")
    before = {str(each.store): len(kinds_of(each)) for each in (shell, second)}
    hub, everything, one_task = Hub([str(shell.store), str(second.store)]), Inbox(), Inbox()
    hub.subscribe(everything.told.put)
    hub.start()
    with closing(hub):
        assert {everything.next().root, everything.next().root} == set(before)
        first = shell.json("run", "--", "true")["task_id"]
        hub.subscribe(one_task.told.put, task_id=first)
        second.adjourn("run", "--", "true")
        shell.adjourn("restart", first)
        expected = {
            str(each.store): kinds_of(each)[before[str(each.store)] :] for each in (shell, second)
        }
        told = everything.events(sum(map(len, expected.values())))
        assert {
            root: [kind for where, kind in told if where == root] for root in before
        } == expected
        own = one_task.next()
        assert {each.event.task_id for each in own.events} == {first}
    assert os.listdir(shell.store / "wake") == []


def test_a_dead_database_delays_no_other_store(shell: Shell, tmp_path: Path) -> None:
    """The server takes the connection and never answers."""
    shell.adjourn("run", "--", "true")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        dead = tmp_path / "dead"
        dead.mkdir(mode=0o700)
        url = f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/none"
        address = dead / "database.json"
        address.write_text(f'{{"url":"{url}"}}')
        address.chmod(0o600)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ADJOURN_STATE", str(tmp_path))  # so that it is one of ours
            hub, inbox = Hub([str(dead), str(shell.store)]), Inbox()
            hub.subscribe(inbox.told.put)
            hub.start()
            with closing(hub):
                assert inbox.next(1.0).root == str(shell.store)
                began = time.monotonic()
                shell.adjourn("run", "--", "true")
                assert inbox.events(1)[0][0] == str(shell.store)
                assert time.monotonic() - began < 3


def test_a_store_that_goes_and_comes_back_says_so(shell: Shell, second: Shell) -> None:
    shell.adjourn("run", "--", "true")
    second.adjourn("run", "--", "true")
    hub, inbox = Hub([str(shell.store), str(second.store)], repair=0.2), Inbox()
    hub.subscribe(inbox.told.put)
    hub.start()
    with closing(hub):
        assert inbox.next().is_opening
        assert inbox.next().is_opening
        away = shell.store.with_name("away")
        shell.store.rename(away)
        gone = inbox.next(8.0)
        assert (gone.root, gone.trouble) == (str(shell.store), f"{shell.store} is gone")
        assert not shell.store.exists()  # following a store never makes one
        second.adjourn("run", "--", "true")
        assert inbox.next().root == str(second.store)
        away.rename(shell.store)
        until(lambda: _is_back(inbox, str(shell.store)), what="it is back")


def _is_back(inbox: Inbox, root: str) -> bool:
    try:
        news = inbox.next(0.1)
    except queue.Empty:
        return False
    return news.root == root and news.trouble is None


def test_a_subscriber_that_fails_is_left_out_and_the_others_are_told(shell: Shell) -> None:
    shell.adjourn("run", "--", "true")
    hub, inbox = Hub([str(shell.store)]), Inbox()
    called: list[News] = []

    def fail(news: News) -> None:
        called.append(news)
        raise RuntimeError("its loop is closed")

    hub.subscribe(fail)
    hub.subscribe(inbox.told.put)
    hub.start()
    with closing(hub):
        assert inbox.next().is_opening
        shell.adjourn("run", "--", "true")
        assert inbox.events(1)
    assert len(called) == 1
