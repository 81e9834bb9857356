"""`adjourn doctor`: what it finds, and that what it says helps."""

import os
import signal
from pathlib import Path

import pytest

from tests.e2e.shell import Document, Shell, until
from tests.e2e.signer import Signers, waiting


def findings(shell: Shell, *, expect: int = 0) -> dict[str, list[Document]]:
    document = shell.json("doctor", expect=expect)
    assert document["outcome"] == ("attention" if expect else "fine")
    assert any(not each["fine"] for each in document["findings"]) == bool(expect)
    assert all(each["remedy"] for each in document["findings"] if not each["fine"])
    by_check: dict[str, list[Document]] = {}
    for each in document["findings"]:
        by_check.setdefault(each["check"], []).append(each)
    return by_check


def bad(shell: Shell, check: str) -> Document:
    """Return the one thing of that kind that needs attention."""
    (found,) = [each for each in findings(shell, expect=1)[check] if not each["fine"]]
    return found


def test_where_all_is_well_everything_that_was_looked_at_is_told(shell: Shell) -> None:
    waiting(shell)
    told = findings(shell)
    assert told.keys() >= {
        "platform",
        "config",
        "signers",
        "notifiers",
        "filesystem",
        "permissions",
        "database" if shell.database else "sqlite",
        "level",
        "policy",
        "runs",
    }
    if not shell.database:
        assert "wal" in told["sqlite"][0]["says"]
        assert "FULL" in told["sqlite"][0]["says"]
    assert shell.me.replace("uid:", "uid ") in told["level"][0]["says"]
    lines = shell.adjourn("doctor").out.splitlines()
    assert all(line.startswith("fine  ") for line in lines)


@pytest.mark.one_machine("a database is there before adjourn is")
def test_where_there_is_no_store_none_is_made(shell: Shell) -> None:
    assert "no store at" in findings(shell)["store"][0]["says"]
    assert not shell.store.exists()


@pytest.mark.parametrize(
    "name",
    [pytest.param("adjourn.db", marks=pytest.mark.one_machine("it is about that very file")), ""],
)
def test_what_others_can_read_is_told_and_the_remedy_helps(shell: Shell, name: str) -> None:
    waiting(shell)
    (shell.store / name).chmod(0o755)
    remedy = bad(shell, "permissions")["remedy"]
    shell.line(remedy)
    findings(shell)


def test_a_config_that_cannot_be_used_is_told_once_for_all_who_need_it(shell: Shell) -> None:
    signers = Signers(shell)
    waiting(shell)
    for content in (
        "[[principal]]\nname = 7\n",
        "[[webhok]]\n",
        "=",
        '[[principal]]\nname = "uid:1"\nscopes = ["all"]\n',
    ):
        signers.configure(content)
        assert str(signers.folder) in bad(shell, "config")["says"]
    signers.configure('[[principal]]\nname = "uid:1"\nscopes = ["answer"]\n')
    assert "uid:1" in findings(shell)["config"][0]["says"]


def test_allowed_signers_that_the_agents_can_write_are_told(shell: Shell) -> None:
    signers = Signers(shell)
    signers.allow("anna", "bert")
    assert "name a signer of its own" in bad(shell, "signers")["says"]
    assert "anna, bert" in findings(shell, expect=1)["signers"][0]["says"]


def test_a_run_without_a_supervisor_is_told_and_nothing_is_changed(shell: Shell) -> None:
    task = shell.detached("sleep", "60")
    os.kill(shell.supervisor(f"{task}.1"), signal.SIGKILL)
    until(
        lambda: bool(
            [each for each in shell.json("doctor", expect=1)["findings"] if each["check"] == "runs"]
        ),
        what="it is seen",
    )
    assert f"{task}.1" in bad(shell, "runs")["says"]
    shell.adjourn("cancel", task)
    findings(shell)


def test_an_uncertain_call_and_a_queue_without_a_worker_are_told(shell: Shell) -> None:
    task = shell.detached("sleep", "60")
    supervisor, shim = shell.supervisor(f"{task}.1"), shell.shim(f"{task}.1")
    for pid in (supervisor, shim):
        os.kill(pid, signal.SIGKILL)
    until(lambda: shell.state(task) == "waiting", what="it is asked about")
    assert bad(shell, "uncertain")["remedy"] == f"adjourn show {task}"
    assert f"adjourn settle {task}.tc_1 it-ran\n" in shell.adjourn("show", task).out
    shell.adjourn("settle", f"{task}.tc_1", "it-ran")
    other, ask = waiting(shell)
    shell.adjourn("approve", ask)
    shell.line(bad(shell, "queue")["remedy"])
    assert shell.state(other) == "succeeded"
    findings(shell)


def test_a_notifier_that_is_not_reached_is_told(shell: Shell) -> None:
    Signers(shell).configure('[[notify]]\ncommand = ["false"]\nname = "pager"\n')
    waiting(shell)
    shell.adjourn("notify", "--flush", expect=1)
    assert "pager" in bad(shell, "notifiers")["says"]


@pytest.mark.one_machine("it damages the file of the database")
def test_a_damaged_store_is_told_without_a_traceback(shell: Shell) -> None:
    waiting(shell)
    for name in ("adjourn.db-wal", "adjourn.db-shm"):
        (shell.store / name).unlink(missing_ok=True)
    (shell.store / "adjourn.db").write_bytes(b"not a database at all" * 1000)
    assert bad(shell, "store")["remedy"]


def test_a_database_of_a_newer_adjourn_is_told(shell: Shell) -> None:
    waiting(shell)
    shell.sql(
        "INSERT INTO schema_version VALUES (99)" if shell.database else "PRAGMA user_version = 99"
    )
    try:
        assert "schema 99" in bad(shell, "store")["says"]
    finally:
        if shell.database:
            # The next test has the same database
            shell.sql("DELETE FROM schema_version WHERE version = 99")


def test_a_policy_that_is_wrong_is_told_with_its_place(shell: Shell) -> None:
    waiting(shell)
    policy = shell.project / "policy.toml"
    policy.write_text('[[rule]]\ntool = "command"\naction = "auto"\n')
    found = bad(shell, "policy")
    assert f"{policy}:3" in found["says"]
    policy.write_text('[[rule]]\ntool = "command"\naction = "never"\n')
    assert str(policy) in findings(shell)["policy"][0]["says"]


def test_inside_a_run_it_says_so(shell: Shell) -> None:
    shell.adjourn("run", "--", "sh", "-c", "adjourn doctor > said; echo $? >> said")
    said = Path(shell.place / "said").read_text()
    assert "inside the run" in said
    assert said.endswith("1\n")
