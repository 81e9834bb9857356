"""`audit verify` names the first call that started and had neither a decision nor a rule, also in a trail that closes."""

import pytest

from adjourn.core.trail.events import Event
from tests.e2e.shell import Shell

pytestmark = pytest.mark.one_machine("the forger writes into the files of an embedded store")


def _forged_start(shell: Shell, **facts: str | int) -> str:
    """Add the start of a call to the trail, as a program would that checks nothing.

    The chain closes.
    """
    task: str = shell.json("run", "--pause-on-approval", "--", "touch", "effect", expect=10)[
        "task_id"
    ]
    store = shell.open_store()
    with store.change() as tx:
        digest = tx.call(task, 1).digest
        told: dict[str, str | int | None] = {"run": 2, "call": 1, "digest": digest, **facts}
        tx.append(Event(task_id=task, kind="call_executing", by="adjourn", at=1, facts=told))
    store.close()
    return task


@pytest.mark.parametrize(
    "facts", [{}, {"grounds": "ungated"}, {"grounds": "driver"}, {"grounds": "none of ours"}]
)
def test_a_start_without_a_reason_is_named(shell: Shell, facts: dict[str, str | int]) -> None:
    task = _forged_start(shell, **facts)
    said = shell.adjourn("audit", "verify", expect=1).out
    assert "call 1 started, and neither a decision nor a rule let it" in said
    assert task in said


def test_a_start_that_names_an_ask_that_nobody_approved_is_named(shell: Shell) -> None:
    _forged_start(shell, grounds="decision", ask="nobody")
    assert "nobody had approved it" in shell.adjourn("audit", "verify", expect=1).out


def test_what_truly_started_is_whole(shell: Shell) -> None:
    shell.adjourn("run", "--", "true")
    task = shell.json("run", "--pause-on-approval", "--", "true", expect=10)["task_id"]
    shell.adjourn("approve", shell.inbox()[0]["id"])
    shell.adjourn("resume", task)
    shell.adjourn("restart", task, expect=10)
    assert "Whole" in shell.adjourn("audit", "verify").out


def test_a_trail_that_is_forged_as_a_whole_is_not_found_without_a_receipt(shell: Shell) -> None:
    """The true outcome on one machine: the chain has no key.

    Only a signature, or a receipt, resists this.
    """
    task = shell.json("run", "--pause-on-approval", "--", "touch", "effect", expect=10)["task_id"]
    ask = shell.inbox()[0]["id"]
    store = shell.open_store()
    with store.change() as tx:
        digest = tx.call(task, 1).digest
        facts: dict[str, str | int | None] = {
            "ask": ask,
            "call": 1,
            "level": "L0",
            "digest": digest,
        }
        tx.append(Event(task_id=task, kind="ask_approved", by=shell.me, at=1, facts=facts))
    store.close()
    approved = "UPDATE ask SET state = 'approved', settled_at = 1, level = 'L0', settled_by = "
    shell.sql(f"{approved}'{shell.me}'")
    shell.sql("UPDATE call SET state = 'approved'")
    shell.sql("UPDATE task SET state = 'queued', next_call = 1")
    shell.adjourn("resume", task)
    assert (shell.place / "effect").exists()
    assert "Whole" in shell.adjourn("audit", "verify").out
