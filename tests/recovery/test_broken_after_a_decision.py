"""The connection breaks after a decision was saved: it counts, and the next command says so."""

from pathlib import Path

import pytest

from tests.e2e.shell import Shell
from tests.needs import missing
from tests.shared.proxy import wire

RECEIPT = b"SELECT no, body, seal FROM adjourn.event"


@pytest.mark.timeout(120)
def test_a_decision_that_was_saved_before_the_connection_broke_is_not_lost(
    database: str, tmp_path: Path
) -> None:
    if "host=/" not in database and "host=%2F" not in database:
        missing("a server that listens on a unix socket")
    (tmp_path / "work").mkdir()
    (tmp_path / "socket").mkdir()
    direct = Shell(tmp_path / "work")
    direct.share(database)
    ask = direct.paused("sh", "-c", "exit 90")["asks"][0]["id"]
    with wire(database, tmp_path / "socket") as (laid, url):
        reached = laid._target

        def go_away() -> None:
            laid._target = str(tmp_path / "nowhere")

        laid.cut_at, laid.carries_the_word, laid.meanwhile = RECEIPT, False, go_away
        far = {"ADJOURN_STORE": url}
        broken = direct.adjourn("approve", ask, expect=1, env=far)
        assert laid.cuts == 1
        assert "cannot be reached" in broken.err
        laid._target = reached
        again = direct.adjourn("approve", ask, expect=4, env=far)
        assert f"was approved by {direct.me}" in again.err
    assert direct.json("show", ask_task(direct))["asks"][0]["state"] == "approved"


def ask_task(shell: Shell) -> str:
    task: str = shell.json("tasks")["tasks"][0]["task_id"]
    return task
