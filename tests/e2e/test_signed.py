"""Signed decisions: whoever carries them, they count for one call, by one of the allowed signers, once."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from tests.e2e.shell import Document, Shell
from tests.e2e.signer import Signers, waiting
from tests.needs import needs

needs("ssh-keygen")


@pytest.fixture
def signers(shell: Shell) -> Signers:
    signers = Signers(shell)
    signers.allow("anna")
    return signers


def saved(
    shell: Shell, signers: Signers, ask: str, *words: str, by: str = "anna", verb: str = "approve"
) -> Path:
    """Have a person sign a decision into a file."""
    path = shell.place / f"decision-{len(list(shell.place.glob('decision-*')))}"
    shell.adjourn(verb, ask, *words, "--sign", signers.key(by), "--save", str(path))
    return path


def state(shell: Shell, ask: str) -> tuple[str, str | None, str | None]:
    found: Document = next(
        each
        for task in shell.json("tasks")["tasks"]
        for each in shell.json("show", task["task_id"])["asks"]
        if each["id"] == ask
    )
    return found["state"], found["settled_by"], found["level"]


def test_a_signed_approval_counts_and_says_who_signed(shell: Shell, signers: Signers) -> None:
    """A-R85."""
    task, ask = waiting(shell)
    document = shell.json("approve", ask, "--sign", signers.key("anna"))
    (receipt,) = document["receipts"]
    assert (receipt["by"], receipt["level"], receipt["verb"]) == ("key:anna", "L2", "approve")
    assert state(shell, ask) == ("approved", "key:anna", "L2")
    shell.adjourn("resume", task)
    assert shell.lines("effects") == ["done with approved"]
    assert "level L2" in shell.adjourn("show", task).out
    shell.adjourn("audit", "verify", "--receipt", f"{receipt['place']}:{receipt['seal']}")


def test_a_decision_file_is_carried_by_anybody_and_gives_the_same_receipt_twice(
    shell: Shell, signers: Signers
) -> None:
    task, ask = waiting(shell)
    path = saved(shell, signers, ask, "--value", "canary")
    assert state(shell, ask) == ("pending", None, None)
    first = shell.json("decide", str(path))
    assert shell.json("decide", str(path)) == first
    assert shell.run("sh", "-c", f"adjourn decide --output json - < {path}").doc == first
    shell.adjourn("resume", task)
    assert shell.lines("effects") == ["done with canary"]
    assert shell.json("decide", str(path))["receipts"] == first["receipts"]
    assert shell.lines("effects") == ["done with canary"]


@pytest.mark.parametrize(
    ("verb", "words", "becomes"),
    [("reject", ("--reason", "no"), "rejected"), ("answer", ("eu",), "answered")],
)
def test_a_rejection_and_an_answer_can_be_signed_too(
    shell: Shell, signers: Signers, verb: str, words: tuple[str, ...], becomes: str
) -> None:
    agent = "approved.sh" if verb == "reject" else "deploy.sh"
    ask = shell.paused(shell.agent(agent))["asks"][0]["id"]
    path = saved(shell, signers, ask, *words, verb=verb)
    shell.adjourn("decide", str(path))
    assert state(shell, ask) == (becomes, "key:anna", "L2")


def test_several_decisions_in_one_file_are_recorded_all_or_none(
    shell: Shell, signers: Signers
) -> None:
    asks = [waiting(shell)[1] for _ in range(3)]
    path = shell.place / "all"
    shell.adjourn("approve", *asks, "--sign", signers.key("anna"), "--save", str(path))
    shell.adjourn("reject", asks[1])
    shell.adjourn("decide", str(path), expect=4)
    assert [state(shell, ask)[0] for ask in asks] == ["pending", "rejected", "pending"]


# --- what does not count --------------------------------------------------------------------------

Forge = Callable[[Shell, Signers, str], bytes]


def unpacked(path: Path) -> tuple[dict[str, Any], str]:
    (signed,) = json.loads(path.read_bytes())["decisions"]
    return json.loads(signed["document"]), signed["signature"]


def packed(document: str, signature: str) -> bytes:
    return json.dumps(
        {"schema_version": 1, "decisions": [{"document": document, "signature": signature}]}
    ).encode()


def canonical(document: dict[str, Any]) -> str:
    return msgspec.json.encode(document, order="sorted").decode()


def changed(**changes: Any) -> Forge:
    """Change what was signed, and leave the signature."""

    def forge(shell: Shell, signers: Signers, ask: str) -> bytes:
        document, signature = unpacked(saved(shell, signers, ask))
        reply = {"text": changes["text"]} if "text" in changes else {}
        rest = {key: value for key, value in changes.items() if key != "text"}
        return packed(
            canonical({**document, **rest, "reply": {**document["reply"], **reply}}), signature
        )

    return forge


def expired(shell: Shell, signers: Signers, ask: str) -> bytes:
    document, _ = unpacked(saved(shell, signers, ask))
    late = canonical({**document, "expires_at": document["at"]})
    return packed(late, signers.sign(late.encode(), by="anna"))


def by_a_stranger(shell: Shell, signers: Signers, ask: str) -> bytes:
    return saved(shell, signers, ask, by="mallory").read_bytes()


def of_another_namespace(shell: Shell, signers: Signers, ask: str) -> bytes:
    document, _ = unpacked(saved(shell, signers, ask))
    return packed(
        canonical(document), signers.sign(canonical(document).encode(), by="anna", namespace="file")
    )


def of_something_else(shell: Shell, signers: Signers, ask: str) -> bytes:
    del shell, ask
    return packed("{}", signers.sign(b"{}", by="anna"))


def over_another_call(shell: Shell, signers: Signers, ask: str) -> bytes:
    """Sign the approval of one call, and say that it is for the other."""
    other, _ = unpacked(saved(shell, signers, waiting(shell)[1]))
    document = canonical({**other, "reply": {**other["reply"], "ask_id": ask}})
    return packed(document, signers.sign(document.encode(), by="anna"))


def with_another_nonce(shell: Shell, signers: Signers, ask: str) -> bytes:
    document, _ = unpacked(saved(shell, signers, ask))
    another = canonical({**document, "nonce": "x" * 26})
    return packed(another, signers.sign(another.encode(), by="anna"))


def that_runs_something_else(shell: Shell, signers: Signers, ask: str) -> bytes:
    document, _ = unpacked(saved(shell, signers, ask))
    another = canonical({**document, "runs": "0" * 64})
    return packed(another, signers.sign(another.encode(), by="anna"))


def by_a_revoked_key(shell: Shell, signers: Signers, ask: str) -> bytes:
    content = saved(shell, signers, ask).read_bytes()
    (signers.folder / "revoked_signers").write_text(Path(f"{signers.key('anna')}.pub").read_text())
    return content


def by_one_who_is_out_of_time(shell: Shell, signers: Signers, ask: str) -> bytes:
    content = saved(shell, signers, ask).read_bytes()
    signers.allow("anna", options='namespaces="adjourn",valid-before="20200101"')
    return content


def by_one_who_may_sign_other_things(shell: Shell, signers: Signers, ask: str) -> bytes:
    content = saved(shell, signers, ask).read_bytes()
    signers.allow("anna", options='namespaces="git"')
    return content


def by_one_who_lost_the_scope(shell: Shell, signers: Signers, ask: str) -> bytes:
    content = saved(shell, signers, ask).read_bytes()
    signers.configure('[[principal]]\nname = "key:anna"\nscopes = ["answer"]\n')
    return content


def without_allowed_signers(shell: Shell, signers: Signers, ask: str) -> bytes:
    content = saved(shell, signers, ask).read_bytes()
    signers.allowed.unlink()
    return content


def by_a_file_that_others_can_write(shell: Shell, signers: Signers, ask: str) -> bytes:
    content = saved(shell, signers, ask).read_bytes()
    signers.allowed.chmod(0o666)
    return content


def with_a_config_that_is_wrong(shell: Shell, signers: Signers, ask: str) -> bytes:
    content = saved(shell, signers, ask).read_bytes()
    signers.configure("allowed_signers = 7\n")
    return content


def with_a_list_of_the_revoked_that_is_gone(shell: Shell, signers: Signers, ask: str) -> bytes:
    content = saved(shell, signers, ask).read_bytes()
    signers.configure('revoked_signers = "no-such-file"\n')
    return content


def huge(shell: Shell, signers: Signers, ask: str) -> bytes:
    return saved(shell, signers, ask).read_bytes() + b" " * 2_000_000


FORGERIES: dict[str, tuple[Forge, int]] = {
    "wrong key": (by_a_stranger, 5),
    "another value": (changed(text="everything"), 5),
    "a later end": (changed(expires_at=9_999_999_999_999), 5),
    "another task": (changed(task="a" * 26), 5),
    "expired": (expired, 5),
    "another namespace": (of_another_namespace, 5),
    "no decision": (of_something_else, 5),
    "over another call": (over_another_call, 4),
    "another nonce": (with_another_nonce, 4),
    "other bytes to run": (that_runs_something_else, 4),
    "revoked": (by_a_revoked_key, 5),
    "out of time": (by_one_who_is_out_of_time, 5),
    "signer for other things": (by_one_who_may_sign_other_things, 5),
    "signer without the scope": (by_one_who_lost_the_scope, 5),
    "no allowed signers": (without_allowed_signers, 5),
    "signers that others can write": (by_a_file_that_others_can_write, 5),
    "a config that is wrong": (with_a_config_that_is_wrong, 5),
    "a list of the revoked that is gone": (with_a_list_of_the_revoked_that_is_gone, 5),
    "huge": (huge, 5),
    "garbage": (lambda *_: os.urandom(3_000), 5),
    "not UTF-8": (
        lambda *_: b'{"schema_version":1,"decisions":[{"document":"\xff","signature":"x"}]}',
        5,
    ),
    "nothing": (lambda *_: b"", 5),
    "no decisions": (lambda *_: b'{"schema_version":1,"decisions":[]}', 5),
    "an unknown key": (lambda *_: b'{"schema_version":1,"decisions":[],"by":"uid:0"}', 5),
    "deep": (lambda *_: b"[" * 100_000, 5),
    "a signature of many lines": (
        lambda *_: packed("{}", "-----BEGIN SSH SIGNATURE-----\n" + "A" * 20_000),
        5,
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_what_was_not_signed_for_this_changes_nothing(
    shell: Shell, signers: Signers, forgery: str
) -> None:
    """A-R85."""
    forge, code = FORGERIES[forgery]
    _, ask = waiting(shell)
    path = shell.place / "forged"
    path.write_bytes(forge(shell, signers, ask))
    done = shell.adjourn("decide", str(path), expect=code)
    assert "try: " in done.err
    assert state(shell, ask) == ("pending", None, None)
    assert shell.adjourn("audit", "verify").out.startswith("Whole")


def test_a_decision_on_a_withdrawn_or_settled_ask_is_told(shell: Shell, signers: Signers) -> None:
    task, ask = waiting(shell)
    path = saved(shell, signers, ask)
    shell.adjourn("cancel", task)
    assert "withdrawn" in shell.adjourn("decide", str(path), expect=4).err
    _, other = waiting(shell)
    path = saved(shell, signers, other)
    shell.adjourn("reject", other)
    assert f"rejected by {shell.me}" in shell.adjourn("decide", str(path), expect=4).err


def test_a_replayed_decision_starts_nothing_a_second_time(shell: Shell, signers: Signers) -> None:
    task, ask = waiting(shell)
    path = saved(shell, signers, ask)
    shell.adjourn("decide", str(path))
    shell.adjourn("resume", task)
    for _ in range(3):
        shell.adjourn("decide", str(path))
        shell.adjourn("resume", task, expect=4)
    restarted = shell.json("restart", task, expect=10)["asks"][0]["id"]
    shell.adjourn("decide", str(path))
    assert state(shell, restarted)[0] == "pending"
    assert shell.lines("effects") == ["done with approved"]


# --- the gate looks again -------------------------------------------------------------------------


def queued(shell: Shell, signers: Signers) -> tuple[str, str]:
    task, ask = waiting(shell)
    shell.adjourn("approve", ask, "--sign", signers.key("anna"))
    return task, ask


def test_a_signer_who_was_revoked_meanwhile_opens_no_gate(shell: Shell, signers: Signers) -> None:
    """It is asked once more, and the new ask says why."""
    task, old = queued(shell, signers)
    signers.allow("bert")
    manifest = shell.json("resume", task, expect=10)
    (ask,) = manifest["asks"]
    assert (ask["state"], ask["replaces"]) == ("pending", old)
    assert "does not name the key" in ask["prompt"]
    assert shell.lines("effects") == []
    shell.adjourn("approve", ask["id"], "--sign", signers.key("bert"))
    shell.adjourn("resume", task)
    assert shell.lines("effects") == ["done with approved"]


FORGED_ROWS = {
    "the bytes": "UPDATE call_body SET body = CAST(replace(CAST(body AS TEXT), 'approved.sh', 'another1.sh') AS BLOB)",
    "the digest": "UPDATE call SET digest = zeroblob(32) WHERE state = 'approved'",
    "the nonce": "UPDATE call SET nonce = 'another' WHERE state = 'approved'",
    "the document": "UPDATE document SET body = CAST(replace(CAST(body AS TEXT), 'approve', 'approvE') AS BLOB)",
    "the signature": "DELETE FROM document WHERE name LIKE 'signed:%'",
}


@pytest.mark.parametrize("what", FORGED_ROWS)
@pytest.mark.one_machine(
    "who may write into a database is for its roles to say: tests/shared/test_roles.py"
)
def test_what_was_changed_in_the_database_after_the_signature_opens_no_gate(
    shell: Shell, signers: Signers, what: str
) -> None:
    task, _ = queued(shell, signers)
    db = apsw.Connection(str(shell.store / "adjourn.db"))
    db.execute(FORGED_ROWS[what])
    db.close()
    shell.adjourn("resume", task, expect=10)
    assert shell.lines("effects") == []
    assert len(shell.inbox()) == 1


SIGNED = '[[rule]]\ntool = "command"\naction = "prompt"\nsigned = true\n'


def test_a_policy_that_wants_signatures_lets_nothing_else_through(
    shell: Shell, signers: Signers
) -> None:
    """A-R85."""
    (signers.folder / "policy.toml").write_text(SIGNED)
    manifest = shell.json("run", "--pause-on-approval", "--", "touch", "done", expect=10)
    task, ask = manifest["task_id"], manifest["asks"][0]["id"]
    said = shell.adjourn("approve", ask, expect=5).err
    assert "--sign KEY" in said
    shell.adjourn("resume", task, "--approve", "tc_1", expect=5)
    assert not (shell.place / "done").exists()
    path = saved(shell, signers, ask)
    shell.adjourn("decide", str(path))
    shell.adjourn("resume", task)
    assert (shell.place / "done").exists()


@pytest.mark.one_machine(
    "who may write into a database is for its roles to say: tests/shared/test_roles.py"
)
def test_a_signature_that_the_policy_wants_cannot_be_left_out_in_the_database(
    shell: Shell, signers: Signers
) -> None:
    """Neither by forging the decision, nor by forging the terms of the ask as well.

    The policy is asked again.
    """
    (signers.folder / "policy.toml").write_text(SIGNED)
    task = shell.json("run", "--pause-on-approval", "--", "touch", "done", expect=10)["task_id"]
    for terms in (False, True):
        db = apsw.Connection(str(shell.store / "adjourn.db"))
        forge_approval(db, without_terms=terms)
        db.close()
        shell.adjourn("resume", task, expect=10)
    assert not (shell.place / "done").exists()


def forge_approval(db: Any, *, without_terms: bool) -> None:
    """Approve what is pending past the program."""
    db.execute("UPDATE task SET next_call = (SELECT max(no) & 1048575 FROM call), state = 'queued'")
    db.execute("UPDATE call SET state = 'approved', approved_by = 'uid:0' WHERE state = 'pending'")
    ((no, body),) = db.execute(
        "SELECT no, body FROM ask JOIN ask_body USING (no) WHERE state = 'pending'"
    ).fetchall()
    fields = msgspec.msgpack.decode(body)
    if without_terms:
        db.execute(
            "UPDATE ask_body SET body = ? WHERE no = ?",
            (msgspec.msgpack.encode([*fields[:5], {}, *fields[6:]]), no),
        )
    words = "state = 'approved', settled_at = 1, settled_by = 'uid:0', level = 'L0'"
    db.execute(f"UPDATE ask SET {words} WHERE no = ?", (no,))  # noqa: S608 -- our own words


def test_an_edit_is_signed_with_the_rest(shell: Shell, signers: Signers) -> None:
    manifest = shell.json("run", "--pause-on-approval", "--", "touch", "one", expect=10)
    ask = manifest["asks"][0]["id"]
    path = saved(shell, signers, ask, "--set", 'argv=["touch", "two"]')
    shell.adjourn("decide", str(path))
    shell.adjourn("resume", manifest["task_id"])
    assert (shell.place / "two").exists()
    assert not (shell.place / "one").exists()


# --- how it is said -------------------------------------------------------------------------------


FAKE = """#!/bin/sh
echo anna
echo '-----BEGIN SSH SIGNATURE-----'
echo '-----END SSH SIGNATURE-----'
exit 0
"""


def test_a_fake_ssh_keygen_on_path_verifies_nothing(shell: Shell, signers: Signers) -> None:
    _, ask = waiting(shell)
    path = saved(shell, signers, ask, by="mallory")
    (shell.place / "bin").mkdir()
    (shell.place / "bin" / "ssh-keygen").write_text(FAKE)
    (shell.place / "bin" / "ssh-keygen").chmod(0o755)
    here = {
        "PATH": os.pathsep.join([str(shell.place / "bin"), "bin", ".", shell.environment["PATH"]])
    }
    shell.adjourn("decide", str(path), env=here, expect=5)
    assert state(shell, ask)[0] == "pending"


def test_words_that_do_not_fit_are_told(shell: Shell, signers: Signers) -> None:
    _, ask = waiting(shell)
    shell.adjourn("approve", ask, "--save", "x", expect=2)
    shell.adjourn("approve", ask, "--sign", "no-such-key", expect=2)
    shell.adjourn("decide", expect=2)
    shell.adjourn("decide", "x", "--webhook", "y", expect=2)
    shell.adjourn("decide", "no-such-file", expect=3)
    saved(shell, signers, ask)
    shell.adjourn("approve", ask, "--sign", signers.key("anna"), "--save", "decision-0", expect=4)
