"""Receipts, `audit verify` and `audit export`, as people and scripts use them."""

import csv
import io
import json
import sys
from pathlib import Path

import pytest

from adjourn.core.task import Spec
from adjourn.testing.values import an_event
from adjourn.wiring.controller import open_controller
from tests.e2e.shell import Document, Shell
from tests.e2e.signer import waiting
from tests.e2e.terminal import Terminal
from tests.hostile import HOSTILE, JOINER


def receipts(shell: Shell, *words: str) -> list[str]:
    said = shell.adjourn(*words).out.splitlines()
    return [line.split()[1] for line in said if line.startswith("receipt ")]


def test_every_decision_has_a_receipt_that_verify_finds_again(shell: Shell) -> None:
    """A-R84."""
    kept: list[str] = []
    for verb in ("approve", "reject"):
        kept += receipts(shell, verb, waiting(shell)[1])
    question = shell.paused(shell.agent("deploy.sh"))["asks"][0]["id"]
    kept += receipts(shell, "answer", question, "eu")
    words = [word for receipt in kept for word in ("--receipt", receipt)]
    assert len(kept) == 3
    assert shell.adjourn("audit", "verify", *words).out.count("holds") == 3


def test_a_resume_that_decides_says_its_receipt_on_stderr_if_it_may_speak(shell: Shell) -> None:
    """Its stdout is the command's."""
    task, _ = waiting(shell)
    done = shell.adjourn("resume", task, "--approve-all", "--verbose")
    assert done.out == "done with approved\n"
    (kept,) = [line.split()[1] for line in done.err.splitlines() if line.startswith("receipt ")]
    shell.adjourn("audit", "verify", "--receipt", kept)
    assert "receipt" not in shell.adjourn("resume", waiting(shell)[0], "--approve-all").err


def test_a_receipt_says_who_what_when_and_where(shell: Shell) -> None:
    task, ask = waiting(shell)
    (receipt,) = shell.json("approve", ask)["receipts"]
    events: list[Document] = [
        json.loads(line) for line in shell.adjourn("audit", "export").out.splitlines()
    ]
    (told,) = [event for event in events if event["place"] == receipt["place"]]
    assert (told["kind"], told["seal"], told["by"], told["at"]) == (
        "ask_approved",
        receipt["seal"],
        receipt["by"],
        receipt["at"],
    )
    assert (receipt["ask"], receipt["task"], receipt["verb"], receipt["level"]) == (
        ask,
        task,
        "approve",
        "L0",
    )


def test_an_edited_trail_is_told_with_the_first_broken_event(shell: Shell) -> None:
    task, ask = waiting(shell)
    (kept,) = receipts(shell, "approve", ask)
    place = int(kept.partition(":")[0])
    shell.sql(f"UPDATE event SET body = (SELECT body FROM event WHERE no = 1) WHERE no = {place}")  # noqa: S608 -- a number
    said = shell.adjourn("audit", "verify", "--receipt", kept, expect=1).out
    assert f"Broken at event {place} (task_created of task {task})" in said
    assert "not found: it is not from this trail" in said
    document = shell.adjourn("audit", "verify", "--output", "json", expect=1).doc
    assert (document["outcome"], document["audit"]["broken"]["place"]) == ("broken", place)


@pytest.mark.one_machine("it swaps the file of the database")
def test_a_store_that_was_swapped_for_an_older_copy_is_found_by_a_receipt(shell: Shell) -> None:
    _, ask = waiting(shell)
    shell.adjourn("store", "backup", "older")
    (kept,) = receipts(shell, "approve", ask)
    for name in ("adjourn.db", "adjourn.db-wal", "adjourn.db-shm"):
        (shell.store / name).unlink(missing_ok=True)
    (shell.place / "older").rename(shell.store / "adjourn.db")
    assert shell.adjourn("audit", "verify").out.startswith("Whole")
    assert (
        "not found: it is not from this trail"
        in shell.adjourn("audit", "verify", "--receipt", kept, expect=1).out
    )


def test_a_pruned_task_leaves_a_trail_that_is_whole(shell: Shell) -> None:
    shell.adjourn("run", "--", "true")
    shell.adjourn("prune", "--older-than", "0")
    assert "pruned" in shell.adjourn("audit", "verify").out
    gone = [json.loads(line) for line in shell.adjourn("audit", "export").out.splitlines()]
    assert all(set(event) == {"place", "link", "seal"} for event in gone)


# --- export ---------------------------------------------------------------------------------------


def test_an_export_can_be_checked_without_adjourn(shell: Shell) -> None:
    """Both chains, from the lines alone.

    SHA-256 of the seal before and the link; the link of the one before and the event.
    """
    program = """
import hashlib, json, sys
seal, heads = bytes(32), {}
for line in sys.stdin:
    row = json.loads(line)
    if "kind" in row:
        from datetime import datetime
        at = round(datetime.fromisoformat(row["at"]).timestamp() * 1000)
        event = {"at": at, "by": row["by"], "kind": row["kind"], "task_id": row["task_id"]}
        event |= {"facts": row["facts"]} if row["facts"] else {}
        words = json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        link = heads[row["task_id"]] = hashlib.sha256(heads.get(row["task_id"], bytes(32)) + words).digest()
    else:
        link = bytes.fromhex(row["link"])
    seal = hashlib.sha256(seal + link).digest()
    assert seal.hex() == row["seal"], row
"""
    waiting(shell)
    shell.adjourn("run", "--", "true")
    shell.adjourn("prune", "--older-than", "0")
    waiting(shell)
    exported = shell.adjourn("audit", "export").raw
    shell.run(sys.executable, "-c", program, stdin=exported)


def test_an_export_is_of_one_task_or_of_a_time(shell: Shell) -> None:
    one, _ = waiting(shell)
    waiting(shell)
    events = [
        json.loads(line) for line in shell.adjourn("audit", "export", one[:10]).out.splitlines()
    ]
    assert {event["task_id"] for event in events} == {one}
    everything = shell.adjourn("audit", "export").out
    assert shell.adjourn("audit", "export", "--since", "1h").out == everything
    assert shell.adjourn("audit", "export", "--since", "2001-01-01").out == everything
    assert shell.adjourn("audit", "export", "--since", "2100-01-01T00:00:00Z").out == ""
    document = shell.adjourn("audit", "export", "--output", "json").doc
    assert [event["place"] for event in document["events"]] == list(
        range(1, len(document["events"]) + 1)
    )


@pytest.mark.parametrize("when", ["yesterday", "", "8", "8x", "-1h", "2026-13-01"])
def test_a_time_that_is_none_is_told(shell: Shell, when: str) -> None:
    waiting(shell)
    shell.adjourn("audit", "export", "--since", when, expect=2)


def hostile_trail(place: Path) -> list[str]:
    """Put every hostile string into a trail, as who did it, as a kind and as a fact."""
    words = [
        *HOSTILE,
        "=1+1",
        "+1",
        "-2+3",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        '=HYPERLINK("http://x")',
        '","=1',
        "a\nb",
    ]
    words = [word.encode("utf-8", "replace").decode() for word in words if len(word) < 10_000]
    controller = open_controller(str(place))
    spec = Spec(runner="command", argv=("true",), workspace="/")
    task = controller.tasks.start(spec, by=controller.decisions.principal())
    store = controller.store
    with store.change() as tx:
        for word in words:
            tx.append(an_event(task.id, by=word, facts={"said": word}))
    store.close()
    return words


def test_no_hostile_string_gets_through_a_csv_and_all_come_back_from_json_lines(
    shell: Shell,
) -> None:
    words = hostile_trail(shell.store)
    done = shell.adjourn("audit", "export", "--format", "csv")
    rows = list(csv.reader(io.StringIO(done.out)))
    assert len(rows) == len(words) + 2
    for row in rows[1:]:
        assert all(not cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row)
        assert all(JOINER.sub("", cell).isprintable() for cell in row)
    assert len({row[4] for row in rows[2:]}) == len(set(words))
    exported = shell.adjourn("audit", "export").out
    assert exported.isascii()
    lines = [json.loads(line) for line in exported.splitlines()]
    assert [line["facts"]["said"] for line in lines[1:]] == words
    assert shell.adjourn("audit", "verify").out.startswith("Whole")


# --- much -----------------------------------------------------------------------------------------


@pytest.mark.timeout(600)
def test_a_hundred_thousand_events_are_verified_with_progress_on_a_terminal(shell: Shell) -> None:
    hostile_trail(shell.store)
    store = open_controller(str(shell.store)).store
    with store.read() as view:
        task = view.tasks(limit=1)[0].id
    # A database cuts off whoever says nothing for ten seconds
    for first in range(0, 100_000, 10_000):
        with store.change() as tx:
            for number in range(first, first + 10_000):
                facts = {"run": number, "call": 1, "digest": "ab" * 32, "grounds": "ungated"}
                tx.append(an_event(task, "call_executing", facts=facts))
    store.close()
    done = shell.adjourn("audit", "verify")
    assert done.out.startswith("Whole: 100,")
    assert done.err == ""
    with Terminal(shell, "audit", "verify") as terminal:
        assert terminal.ends() == 0
        assert b"of 100," in terminal.raw
        assert terminal.lines[0].startswith("Whole: 100,")


def test_the_owner_decides_whatever_is_wrong_with_the_config(shell: Shell) -> None:
    """It is read only for somebody who is not the owner."""
    _, ask = waiting(shell)
    config = Path(shell.environment["XDG_CONFIG_HOME"]) / "adjourn" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("= this is no TOML")
    assert receipts(shell, "approve", ask)
