"""What a policy calls never runs only if a person overrides it by name and says why."""

import base64
import json
import time

import pytest

from adjourn.core.authority.webhook import signature
from tests.e2e.shell import Document, Shell
from tests.e2e.test_gate import gated, users_policy

RULES = """
[[rule]]
args = ["touch", "**"]
action = "never"
"""
TIGHTER = f'never = "reject"\n{RULES}'
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 -- the example of the specification


@pytest.fixture
def held(shell: Shell) -> Document:
    """Return the pause of a command that the policy calls never."""
    users_policy(shell, RULES)
    return gated(shell, "touch", "made")


def is_made(shell: Shell) -> bool:
    return (shell.place / "made").exists()


def test_an_ask_says_first_that_the_policy_says_never_and_by_which_rule(
    shell: Shell, held: Document
) -> None:  # A-R71
    (ask,) = held["asks"]
    policy = shell.place / ".config" / "adjourn" / "policy.toml"
    assert ask["why"] == [f"your policy says never: {policy}:2: * touch **: never"]
    assert ask["terms"]["override"] is True
    shown = shell.adjourn("show", held["task_id"]).out.splitlines()
    first = next(at for at, row in enumerate(shown) if row.startswith("approval"))
    assert shown[first + 1].strip().startswith("your policy says never")
    assert "never: touch made" in shell.adjourn("inbox").out


def test_an_override_runs_it_once_and_the_trail_has_who_and_why(
    shell: Shell, held: Document
) -> None:  # A-R71
    (ask,) = held["asks"]
    shell.adjourn("approve", ask["id"], "--override", "ticket 4711: the disk is full")
    shell.adjourn("resume", held["task_id"])
    assert is_made(shell)
    exported = shell.adjourn("audit", "export", held["task_id"]).out.splitlines()
    (approved,) = [
        event for row in exported if (event := json.loads(row))["kind"] == "ask_approved"
    ]
    assert approved["facts"]["override"] == "ticket 4711: the disk is full"
    assert "ticket 4711: the disk is full" in shell.adjourn("show", held["task_id"]).out
    shell.adjourn("audit", "verify")


def test_resume_overrides_one_call_by_name(shell: Shell, held: Document) -> None:
    shell.adjourn("resume", held["task_id"], "--approve", "tc_1", "--override", "because")
    assert is_made(shell)


OTHER_WAYS = [
    (["approve", "{ask}"], 5),
    (["approve", "{ask}", "--override", " "], 5),
    (["approve", "{ask}", "--set", "argv.1=other"], 5),
    (["approve", "{ask}", "--set", "argv.1=other", "--override", "because"], 5),
    (["resume", "{task}", "--approve", "tc_1"], 5),
    (["resume", "{task}", "--approve-all"], 5),
    (["resume", "{task}", "--approve-all", "--override", "because"], 2),
    (["approve", "-", "--override", "because"], 2),
    (["rules", "add", "--ask", "{ask}"], 5),
    (["rules", "add", "--", "touch", "made"], 5),
]


def test_nothing_else_overrides_it(shell: Shell, held: Document) -> None:
    names = {"ask": held["asks"][0]["id"], "task": held["task_id"]}
    for words, code in OTHER_WAYS:
        told = shell.adjourn(*(word.format(**names) for word in words), expect=code)
        assert "never" in told.err or "--override" in told.err
        assert "try: " in told.err
    shell.json("resume", held["task_id"], expect=10)
    assert not is_made(shell)


def test_a_webhook_overrides_nothing(shell: Shell, held: Document) -> None:
    config = shell.place / ".config" / "adjourn" / "config.toml"
    config.write_text(f'[[webhook]]\nname = "ci"\nscopes = ["approve"]\nsecret = "{SECRET}"\n')
    (ask,) = held["asks"]
    body = json.dumps({"ask": ask["id"], "verb": "approve", "digest": ask["digest"]}).encode()
    now, key = int(time.time()), base64.b64decode(SECRET.removeprefix("whsec_"))
    head = f"webhook-id: m\nwebhook-timestamp: {now}\nwebhook-signature: "
    request = (head + signature(key, "m", body, at=now)).encode() + b"\n\n" + body
    told = shell.run("adjourn", "decide", "--webhook", "ci", stdin=request, expect=5)
    assert "only a person" in told.err
    assert f"adjourn approve {ask['id']} --override" in told.err
    assert not is_made(shell)


def test_a_run_overrides_nothing(shell: Shell, held: Document) -> None:
    (ask,) = held["asks"]
    command = f"adjourn approve {ask['id']} --override because"
    users_policy(shell, "")
    shell.adjourn("run", "--", "sh", "-c", command, expect=1)
    assert not is_made(shell)


def test_the_hint_of_such_a_pause_rejects_and_works_as_printed(
    shell: Shell, held: Document
) -> None:  # A-R29
    hint = held["resume_hint"]
    assert "--reject tc_1" in hint
    assert "--approve" not in hint
    shell.run("sh", "-c", hint, expect=1)
    assert shell.state(held["task_id"]) == "failed"
    assert not is_made(shell)


def test_a_policy_that_rejects_by_now_counts_when_somebody_decides(
    shell: Shell, held: Document
) -> None:  # A-R71
    users_policy(shell, TIGHTER)
    (ask,) = held["asks"]
    told = shell.adjourn("approve", ask["id"], "--override", "because", expect=5)
    assert "nothing overrides it" in told.err
    assert f"adjourn reject {ask['id']}" in told.err


def test_a_policy_that_rejects_by_now_counts_at_the_gate(shell: Shell, held: Document) -> None:
    shell.adjourn("approve", held["asks"][0]["id"], "--override", "because")
    users_policy(shell, TIGHTER)
    shell.json("resume", held["task_id"], expect=1)
    assert not is_made(shell)


def test_an_edit_leads_nowhere_that_the_policy_forbids(shell: Shell) -> None:
    users_policy(shell, RULES)
    manifest = gated(shell, "echo", "made")
    (ask,) = manifest["asks"]
    assert ask["why"][0] == "no rule allows it"
    told = shell.adjourn("approve", ask["id"], "--set", "argv.0=touch", expect=5)
    assert "your policy says never of the edited call" in told.err
    assert not is_made(shell)


def test_an_override_is_for_what_is_forbidden_only(shell: Shell) -> None:
    manifest = gated(shell, "touch", "made")
    told = shell.adjourn("approve", manifest["asks"][0]["id"], "--override", "because", expect=2)
    assert "needs no override" in told.err


@pytest.mark.parametrize(
    "command",
    [
        ["env", "-i", "/bin/touch", "made"],
        ["sh", "-c", "command touch made"],
        ["bash", "-c", "$'\\x74ouch' made"],
        ["bash", "-c", "t=touch; $t made"],
    ],
    ids=" ".join,
)
def test_no_spelling_runs_it(shell: Shell, command: list[str]) -> None:
    users_policy(shell, RULES)
    shell.json("run", "--", *command, expect=1)
    gated(shell, *command)
    assert not is_made(shell)


def test_deciding_needs_enough_of_an_id_and_lists_what_matches(
    shell: Shell, held: Document
) -> None:
    (ask,), task = held["asks"], held["task_id"]
    for words, name in [
        (["reject", ask["id"][:3]], ask["id"]),
        (["resume", task[:3], "--reject-all"], task),
        (["cancel", task[:3]], task),
    ]:
        told = shell.adjourn(*words, expect=3)
        assert "give at least 4 characters" in told.err
        assert name in told.err
    assert task in shell.adjourn("show", task[:3]).out  # looking needs no more than before
    shell.adjourn("reject", ask["id"][:4])
