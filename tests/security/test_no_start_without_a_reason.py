"""Whoever can write to the store, but leaves the trail alone, starts nothing.

Not a command, and no call of an agent.
"""

import hashlib
import textwrap
from pathlib import Path

import pytest

from tests.e2e.shell import Document, Shell
from tests.e2e.signer import Signers, waiting

pytestmark = pytest.mark.one_machine(
    "who may write into a database is for its roles to say: tests/shared/test_roles.py"
)

SIGNED = '[[rule]]\ntool = "command"\naction = "prompt"\nsigned = true\n'
APPROVED_ROWS = """
UPDATE call SET state = 'approved', approved_by = 'uid:0' WHERE state = 'pending';
UPDATE ask SET state = 'approved', settled_at = 1, settled_by = 'uid:0', level = 'L0' WHERE state = 'pending';
"""
WITHOUT_ASK = "UPDATE call SET state = 'approved', ask = NULL;"
QUEUED = "UPDATE task SET state = 'queued', next_call = {call} WHERE state IN ('waiting', 'paused', 'succeeded', 'failed');"


def under(shell: Shell, policy: str) -> None:
    """Put a policy of the user in place."""
    place = Path(shell.environment["XDG_CONFIG_HOME"]) / "adjourn"
    place.mkdir(parents=True, exist_ok=True)
    (place / "policy.toml").write_text(policy)


def forge(shell: Shell, *scripts: str) -> None:
    """Run SQL statements past the program."""
    for statement in filter(None, map(str.strip, ";".join(scripts).split(";"))):
        shell.sql(statement)


def replace_spec(shell: Shell, spec: bytes) -> None:
    """Put another spec in the place of the only task's own."""
    shell.sql(f"UPDATE task_spec SET body = X'{spec.hex()}'")  # noqa: S608 -- hexadecimal digits


def gated(shell: Shell) -> str:
    """Return a task that waits for the approval of a command that would leave a file."""
    task: str = shell.json("run", "--pause-on-approval", "--", "touch", "effect", expect=10)[
        "task_id"
    ]
    return task


def asked_again(shell: Shell, task: str) -> Document:
    """Resume a task that must start nothing, and return the ask that says why."""
    manifest = shell.json("resume", task, expect=10)
    assert not (shell.place / "effect").exists()
    asks: list[Document] = manifest["asks"]
    assert [ask["kind"] for ask in asks] == ["approval"]
    return asks[0]


def ends_well(shell: Shell, task: str, ask: Document) -> None:
    """A person approves what is asked instead, and that starts, once."""
    shell.adjourn("approve", ask["id"])
    shell.adjourn("resume", task)
    assert (shell.place / "effect").exists()
    assert "Whole" in shell.adjourn("audit", "verify").out


def test_a_call_without_its_ask_does_not_start(shell: Shell) -> None:
    """The attack that was seen: a call that says that nobody had to be asked."""
    task = gated(shell)
    forge(shell, WITHOUT_ASK, QUEUED.format(call=1))
    ask = asked_again(shell, task)
    assert "the audit trail has no such call" in ask["prompt"]
    shell.adjourn("reject", ask["id"])


def test_a_signed_command_does_not_start_unsigned(shell: Shell) -> None:
    signers = Signers(shell)
    signers.allow("anna")
    under(shell, SIGNED)
    task = gated(shell)
    forge(shell, WITHOUT_ASK, QUEUED.format(call=1))
    ask = asked_again(shell, task)
    assert "signed" in shell.adjourn("approve", ask["id"], expect=5).err
    shell.adjourn("approve", ask["id"], "--sign", signers.key("anna"))
    shell.adjourn("resume", task)
    assert (shell.place / "effect").exists()


@pytest.mark.parametrize("verb", ["resume", "worker"])
def test_an_approval_of_which_the_trail_does_not_tell_starts_nothing(
    shell: Shell, verb: str
) -> None:
    task = gated(shell)
    forge(shell, APPROVED_ROWS, QUEUED.format(call=1))
    if verb == "worker":
        shell.adjourn("worker", "--once")
    ask = asked_again(shell, task)
    assert "the audit trail has no approval of it" in ask["prompt"]
    ends_well(shell, task, ask)


def test_an_approval_of_its_own_command_is_not_forged_either(shell: Shell) -> None:
    task, _ = waiting(shell)
    forge(shell, APPROVED_ROWS, QUEUED.format(call=2))
    manifest = shell.json("resume", task, expect=10)
    assert "the audit trail has no approval of it" in manifest["asks"][0]["prompt"]
    assert shell.lines("effects") == []


def test_an_approval_lets_no_other_bytes_start(shell: Shell) -> None:
    """Body and digest fit each other, and the ask was truly approved: but not for these bytes."""
    task = gated(shell)
    shell.adjourn("approve", shell.inbox()[0]["id"])
    body = shell.sql("SELECT body FROM call_body")[0][0].replace(b'"effect"', b'"other"')
    digest = hashlib.sha256(body).digest()
    shell.sql(f"UPDATE call_body SET body = X'{body.hex()}'")  # noqa: S608 -- hexadecimal digits
    shell.sql(f"UPDATE call SET digest = X'{digest.hex()}'")  # noqa: S608 -- hexadecimal digits
    ask = asked_again(shell, task)
    assert "other bytes" in ask["prompt"]
    assert not (shell.place / "other").exists()


def test_what_ran_does_not_run_again_because_it_is_approved_once_more(shell: Shell) -> None:
    task = gated(shell)
    shell.adjourn("approve", shell.inbox()[0]["id"])
    shell.adjourn("resume", task)
    (shell.place / "effect").unlink()
    forge(shell, "UPDATE call SET state = 'approved', claimed_by = NULL", QUEUED.format(call=1))
    assert "it was started before, in run 2" in asked_again(shell, task)["prompt"]


def test_a_person_who_resumes_does_not_launder_a_forged_call(shell: Shell) -> None:
    task = gated(shell)
    forge(
        shell,
        "UPDATE call SET state = 'approved', ask = NULL; UPDATE ask SET state = 'withdrawn', settled_at = 1;",
    )
    forge(shell, "UPDATE task SET state = 'paused', next_call = NULL")
    asked_again(shell, task)


def test_no_task_becomes_one_without_a_gate(shell: Shell) -> None:
    """What its first event says counts, not what the task's own row says."""
    task = gated(shell)
    body = shell.sql("SELECT body FROM task_spec")[0][0]
    spec = (body if isinstance(body, bytes) else body.encode()).replace(
        b',"pause_on_approval":true', b""
    )
    assert b"pause_on_approval" not in spec
    replace_spec(shell, spec)
    forge(shell, WITHOUT_ASK, QUEUED.format(call=1))
    asked_again(shell, task)


def test_no_command_becomes_a_driver_that_starts_freely(shell: Shell) -> None:
    task = gated(shell)
    body = shell.sql("SELECT body FROM task_spec")[0][0]
    spec = (body if isinstance(body, bytes) else body.encode())[:-1] + b',"prompt":"x"}'
    replace_spec(shell, spec)
    forge(shell, WITHOUT_ASK, QUEUED.format(call=1))
    shell.adjourn("resume", task, expect=None)
    assert not (shell.place / "effect").exists()


def test_a_rule_that_lets_it_run_must_still_be_there(shell: Shell) -> None:
    under(shell, '[[rule]]\nargs = ["sh", "work.sh"]\naction = "auto"\n')
    shell.script('adjourn ask "Go on?" || exit 10; touch effect', name="work.sh")
    task = shell.json("run", "--pause-on-approval", "--", "sh", "work.sh", expect=10)["task_id"]
    shell.adjourn("answer", shell.inbox()[0]["id"], "yes")
    under(shell, '[[rule]]\ntool = "command"\nargs = ["ls", "**"]\naction = "auto"\n')
    ask = asked_again(shell, task)
    assert "no rule allows it" in ask["prompt"]
    shell.adjourn("approve", ask["id"])
    shell.adjourn("resume", task)
    assert (shell.place / "effect").exists()
    assert "Whole" in shell.adjourn("audit", "verify").out


def test_a_command_that_was_approved_goes_on_after_its_questions(shell: Shell) -> None:
    """Not an attack: gate, own approval and two questions, and nobody is asked a second time for what was approved."""
    script = shell.script(
        textwrap.dedent("""
        echo "start ${AUTO_APPROVAL-none}" >> starts
        adjourn ask "First?" || exit 10
        [ -e sure ] || { touch sure; exit 90; }
        adjourn ask "Second?" || exit 10
        touch effect
        """)
    )
    task = shell.json("run", "--pause-on-approval", "--", script, expect=10)["task_id"]
    shell.adjourn("approve", shell.inbox()[0]["id"])
    shell.adjourn("resume", task, expect=10)
    shell.adjourn("answer", shell.inbox()[0]["id"], "yes")
    shell.adjourn("resume", task, expect=10)
    shell.adjourn("approve", shell.inbox()[0]["id"])
    shell.adjourn("resume", task, expect=10)
    shell.adjourn("answer", shell.inbox()[0]["id"], "yes")
    shell.adjourn("resume", task)
    assert shell.lines("starts") == ["start none", "start none", "start approved", "start none"]
    assert (shell.place / "effect").exists()
    assert "Whole" in shell.adjourn("audit", "verify").out
