"""What an agent can try from inside its run, and what truly comes of it.

`docs/security.md` lists the same ways.
"""

import base64
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adjourn.core.authority.webhook import signature
from tests.e2e.shell import Document, Shell
from tests.e2e.signer import Signers, waiting

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 -- the example of the specification


def inside(shell: Shell, script: str) -> list[str]:
    """Run a script under adjourn and return the exit codes that it noted."""
    shell.adjourn("run", "--", shell.script(f"{script}\nexit 0", name="agent.sh"))
    codes = shell.lines("codes")
    (shell.place / "codes").unlink(missing_ok=True)
    return codes


@contextmanager
def stopping(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Have a process leave at the end, whatever happens."""
    try:
        yield
    finally:
        process.terminate()
        process.communicate(timeout=30)


def is_pending(shell: Shell, ask: str) -> bool:
    return ask in [each["id"] for each in shell.inbox()]


# --- refused --------------------------------------------------------------------------------------


def test_a_signature_is_no_way_round_the_refusal(shell: Shell) -> None:
    """Not even a valid one: what is inside a run could have found the file anywhere."""
    signers = Signers(shell)
    signers.allow("anna")
    _, ask = waiting(shell)
    shell.adjourn("approve", ask, "--sign", signers.key("anna"), "--save", "decision")
    script = f"""
        adjourn decide decision; echo $? >> codes
        env -u ADJOURN_RUN_ID adjourn decide decision; echo $? >> codes
        adjourn approve {ask} --sign {signers.key("anna")}; echo $? >> codes
    """
    assert inside(shell, script) == ["5"] * 3
    assert is_pending(shell, ask)
    shell.adjourn("decide", "decision")


def test_a_webhook_is_no_way_round_it_either(shell: Shell) -> None:
    config = Path(shell.environment["XDG_CONFIG_HOME"]) / "adjourn" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[[webhook]]\nname = "ci"\nscopes = ["approve"]\nsecret = "{SECRET}"\n')
    manifest = shell.paused(shell.agent("approved.sh"))
    ask = manifest["asks"][0]
    body = f'{{"ask": "{ask["id"]}", "verb": "approve", "digest": "{ask["digest"]}"}}'.encode()
    at = int(time.time())
    signed = signature(base64.b64decode(SECRET.removeprefix("whsec_")), "m", body, at=at)
    head = f"webhook-id: m\nwebhook-timestamp: {at}\nwebhook-signature: {signed}\n\n"
    (shell.place / "request").write_bytes(head.encode() + body)
    assert inside(
        shell, "env -u ADJOURN_RUN_ID adjourn decide --webhook ci < request; echo $? >> codes"
    ) == ["5"]
    assert is_pending(shell, ask["id"])


@pytest.mark.parametrize("forged", ["", "x", "x.1", "{task}.1", "adjourn", "uid:0", "{task}"])
def test_a_forged_run_id_decides_nothing(shell: Shell, forged: str) -> None:
    task, ask = waiting(shell)
    run = forged.format(task=task)
    script = f"""
        export ADJOURN_RUN_ID={run}
        adjourn approve {ask}; echo $? >> codes
        adjourn resume {task} --approve-all; echo $? >> codes
        adjourn reject {ask}; echo $? >> codes
        adjourn cancel {task}; echo $? >> codes
    """
    assert inside(shell, script) == ["5"] * 4
    assert is_pending(shell, ask)


def test_an_agent_cannot_decide_for_a_task_that_it_started(shell: Shell) -> None:
    shell.agent("approved.sh")
    script = """
        adjourn run -- ./approved.sh; echo $? >> codes
        adjourn approve "$(adjourn inbox --output json | jq -r '.asks[0].id')"; echo $? >> codes
        exit 10
    """
    shell.adjourn("run", "--", shell.script(script), expect=10)
    assert shell.lines("codes") == ["10", "5"]
    assert len(shell.inbox()) == 1


@pytest.mark.parametrize("names", ["{ask}", "tc_2", "{ask} tc_2", "Q1"])
@pytest.mark.parametrize("content", ["approve", "yes"])
def test_a_response_file_carries_no_decision(shell: Shell, content: str, names: str) -> None:
    task, ask = waiting(shell)
    replies = "".join(
        f"- question_id: {name}\n  answer: {content}\n" for name in names.format(ask=ask).split()
    )
    response = f"agent_id: {task}\nresponses:\n{replies}resume_signal: true\n"
    (shell.place / "response").write_text(response)
    place = f"{shell.store}/clarifications"
    inside(shell, f"mkdir -p {place}; cp response {place}/{task}.response.yaml")
    shell.adjourn("inbox")
    assert is_pending(shell, ask)
    assert shell.state(task) == "waiting"


SHOUT = """
import glob, socket, sys
for path in glob.glob(sys.argv[1] + "/wake/*"):
    for junk in (b"", b"approve", b"\\0" * 60000):
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(junk, path)
"""


@pytest.mark.one_machine(
    "a shared store wakes by NOTIFY, which says nothing but that something happened"
)
def test_datagrams_to_the_store_decide_nothing(shell: Shell) -> None:
    task, ask = waiting(shell)
    (shell.place / "shout.py").write_text(SHOUT)
    with shell.start("worker", "--pool", "another") as worker, stopping(worker):
        while not list((shell.store / "wake").glob("*")):
            time.sleep(0.05)
        assert inside(shell, f"{sys.executable} shout.py {shell.store}; echo $? >> codes") == ["0"]
        assert is_pending(shell, ask)
        assert shell.state(task) == "waiting"


# --- what L0 cannot refuse ------------------------------------------------------------------------


def test_an_answer_by_file_counts_and_is_marked_as_such(shell: Shell) -> None:
    """The true outcome: a file says who owns it, not who wrote it.

    So it answers, and never decides.
    """
    program = "import adjourn; print(adjourn.clarify(['Why?'], linger=0))"
    manifest = shell.paused(sys.executable, "-c", program)
    task: str = manifest["task_id"]
    key = manifest["asks"][0]["key"]
    response = f"agent_id: {task}\nresponses:\n- question_id: {key}\n  answer: because\nresume_signal: true\n"
    (shell.place / "response").write_text(response)
    inside(shell, f"cp response {shell.store}/clarifications/{task}.response.yaml")
    shell.adjourn("inbox")
    answered: Document = shell.json("show", task)["asks"][0]
    assert (answered["state"], answered["settled_by"], answered["level"]) == (
        "answered",
        f"file:uid:{os.getuid()}",
        "L0",
    )


APPROVE_BY_SQL = """
import apsw, sys
apsw.Connection(sys.argv[1] + "/adjourn.db").execute('''
UPDATE call SET state = 'approved', approved_by = 'uid:0' WHERE state = 'pending';
UPDATE ask SET state = 'approved', settled_at = 1, settled_by = 'uid:0', level = 'LEVEL' WHERE state = 'pending';
UPDATE task SET state = 'queued', next_call = 2 WHERE state = 'waiting';
''').fetchall()
"""


def approve_by_sql(shell: Shell, *, level: str) -> list[str]:
    (shell.place / "forge.py").write_text(APPROVE_BY_SQL.replace("LEVEL", level))
    return inside(shell, f"{sys.executable} forge.py {shell.store}; echo $? >> codes")


@pytest.mark.one_machine(
    "who may write into a database is for its roles to say: tests/shared/test_roles.py"
)
def test_whoever_writes_into_the_database_decides_nothing_and_the_audit_shows_it(
    shell: Shell,
) -> None:
    """The trail tells of no decision.

    `verify` says so, nothing starts, and a person is asked once more.
    """
    task, ask = waiting(shell)
    assert approve_by_sql(shell, level="L0") == ["0"]
    assert not is_pending(shell, ask)
    said = shell.adjourn("audit", "verify", expect=1).out
    assert f"ask {ask} is approved, and the trail does not say so" in said
    manifest = shell.json("resume", task, expect=10)
    assert "the audit trail has no approval of it" in manifest["asks"][0]["prompt"]
    assert shell.lines("effects") == []


@pytest.mark.one_machine(
    "who may write into a database is for its roles to say: tests/shared/test_roles.py"
)
def test_whoever_claims_a_signature_in_the_database_opens_no_gate(shell: Shell) -> None:
    task, _ = waiting(shell)
    assert approve_by_sql(shell, level="L2") == ["0"]
    manifest = shell.json("resume", task, expect=10)
    assert "no signature that covers it" in manifest["asks"][0]["prompt"]
    assert shell.lines("effects") == []


def test_a_helper_of_the_same_user_outside_the_run_can_decide(shell: Shell) -> None:
    """The true outcome at L0: a process that was there before (cron, a tmux server) is inside no run. The level says L0."""
    task, ask = waiting(shell)
    os.mkfifo(shell.place / "door")
    helper = subprocess.Popen(
        ["sh", "-c", 'sh -c "$(cat door)"'], cwd=shell.place, env=shell.environment
    )
    inside(shell, f"echo 'adjourn approve {ask}' > door")
    assert helper.wait(30) == 0
    decided: Document = shell.json("show", task)["asks"][0]
    assert (decided["state"], decided["settled_by"], decided["level"]) == (
        "approved",
        shell.me,
        "L0",
    )


def test_an_agent_can_name_itself_in_a_config_of_its_own_user(shell: Shell) -> None:
    """The true outcome at L0: what the user can write, the agent can.

    So `doctor` says who can write the allowed signers.
    """
    signers = Signers(shell)
    signers.allow("anna")
    key = Path(f"{signers.key('mallory')}.pub").read_text().strip()
    inside(shell, f"echo 'mallory {key}' >> {signers.allowed}")
    _, ask = waiting(shell)
    shell.adjourn("approve", ask, "--sign", signers.key("mallory"))
    assert "can write" in shell.adjourn("doctor", expect=1).out


KILL_THE_SHIM = r"""
pid=$$
while read -r line < /proc/$pid/stat; do
  case "$line" in *adjourn-shim*) break;; esac
  pid=$(echo "$line" | sed 's/.*) //' | cut -d' ' -f2)
done
setsid env -i PATH="$PATH" sh -c "kill -9 $pid; adjourn approve ASK --store STORE" &
sleep 30
"""


def test_an_agent_that_kills_its_shim_is_asked_about_and_what_it_decides_in_a_hurry_is_marked(
    shell: Shell,
) -> None:
    """The true outcome at L0.

    It is killed, too; if it was faster, its decision says L0, and the run ends as uncertain.
    """
    task, ask = waiting(shell)
    script = shell.script(
        KILL_THE_SHIM.replace("ASK", ask).replace("STORE", str(shell.store)), name="agent.sh"
    )
    manifest = shell.json("run", "--", script, expect=10)
    assert manifest["asks"][0]["kind"] == "uncertain"
    decided: Document = shell.json("show", task)["asks"][0]
    assert (decided["state"], decided["level"]) in {("pending", None), ("approved", "L0")}


def test_a_forged_run_id_stops_what_that_run_started_and_decides_nothing(shell: Shell) -> None:
    """The true outcome at L0.

    A run may stop its own children, and whose run it is the environment says.
    """
    shell.agent("approved.sh")
    parent = shell.json(
        "run",
        "--",
        shell.script("adjourn run -- ./approved.sh; exit 10", name="parent.sh"),
        expect=10,
    )
    (child,) = parent["waiting_on"]
    ask = shell.inbox()[0]["id"]
    script = f"""
        export ADJOURN_RUN_ID={parent["task_id"]}.1
        adjourn approve {ask}; echo $? >> codes
        adjourn cancel {child}; echo $? >> codes
    """
    assert inside(shell, script) == ["5", "0"]
    assert shell.state(child) == "canceled"
    assert not is_pending(shell, ask)


WEAKER = '[[rule]]\ntool = "*"\naction = "auto"\n'


def test_an_agent_that_weakens_the_projects_policy_stops_everything_and_lets_nothing_through(
    shell: Shell,
) -> None:
    task = shell.json("run", "--pause-on-approval", "--", "touch", "done", expect=10)["task_id"]
    (shell.place / "weaker.toml").write_text(WEAKER)
    inside(shell, f"cp weaker.toml {shell.project}/policy.toml")
    said = shell.adjourn("run", "--pause-on-approval", "--", "touch", "done", expect=None)
    assert said.code not in {0, 10}
    assert "auto" in said.err
    shell.adjourn("resume", task, expect=None)
    assert not (shell.place / "done").exists()


def test_an_agent_that_weakens_the_users_policy_changes_nothing_for_what_waits(
    shell: Shell,
) -> None:
    """The true outcome at L0.

    Where it can write the user's policy, what starts later runs without asking.
    """
    place = Path(shell.environment["XDG_CONFIG_HOME"]) / "adjourn"
    place.mkdir(parents=True)
    task = shell.json("run", "--pause-on-approval", "--", "touch", "done", expect=10)["task_id"]
    (shell.place / "weaker.toml").write_text(WEAKER)
    inside(shell, f"cp weaker.toml {place}/policy.toml")
    shell.adjourn("resume", task, expect=10)
    assert not (shell.place / "done").exists()
    shell.adjourn("run", "--pause-on-approval", "--", "touch", "done")
    assert (shell.place / "done").exists()
