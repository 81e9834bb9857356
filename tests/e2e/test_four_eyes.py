"""Four eyes: so many people must approve, each counts once, and every view says who is missing.

Promises 20; D-R19, A-R85.
"""

import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.shell import Document, Shell, until
from tests.e2e.signer import Signers
from tests.needs import needs

needs("ssh-keygen")

RULE = """
[[rule]]
tool = "command"
args = ["sh", "**"]
action = "prompt"
approvals = 2
approvers = ["anna", "team:ops"]
"""
PEOPLE = """
[[person]]
name = "anna"
principals = ["{me}", "key:anna", "key:anna-laptop"]
[[person]]
name = "ben"
principals = ["key:ben"]
[[person]]
name = "cleo"
principals = ["key:cleo"]
[[person]]
name = "dan"
principals = ["key:dan"]
[[team]]
name = "ops"
people = ["ben", "cleo"]
"""
DEPLOY = ("sh", "-c", "echo deployed >> effects")


class Team:
    """People with keys, of whom anna is the user at the shell."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.signers = Signers(shell)
        self.signers.allow("anna", "anna-laptop", "ben", "cleo", "dan")
        self.configure()
        self.policy(RULE)

    def configure(self, more: str = "") -> None:
        self.signers.configure(PEOPLE.format(me=self.shell.me) + more)

    def policy(self, text: str) -> None:
        (self.signers.folder / "policy.toml").write_text(text)

    def project(self, text: str) -> None:
        (self.shell.project / "policy.toml").write_text(text)

    def waiting(self, *command: str) -> tuple[str, str]:
        """Start a task that waits for its approvals, and return it and its ask."""
        words = ("--pause-on-approval", "--", *(command or DEPLOY))
        manifest = self.shell.json("run", *words, expect=10)
        return manifest["task_id"], manifest["asks"][0]["id"]

    def approve(self, ask: str, *words: str, by: str = "anna", expect: int = 0) -> str:
        """Approve as anna at the shell, or as somebody who signs; return what is printed."""
        sign = () if by == "anna" else ("--sign", self.signers.key(by))
        done = self.shell.adjourn("approve", ask, *words, *sign, expect=expect)
        return done.out + done.err


@pytest.fixture
def team(shell: Shell) -> Team:
    return Team(shell)


def ask_of(shell: Shell, task: str) -> Document:
    found: Document = shell.json("show", task)["asks"][-1]
    return found


def effects(shell: Shell) -> list[str]:
    path = shell.place / "effects"
    return path.read_text().split() if path.exists() else []


# --- the promise ----------------------------------------------------------------------------------


def test_the_last_approval_settles_and_every_view_says_who_is_missing(
    shell: Shell, team: Team
) -> None:
    task, ask = team.waiting()
    missing = "0 of 2 approvals; still missing: 2 of anna, ben, cleo"
    assert missing in shell.adjourn("show", task).out
    said = team.approve(ask)
    partly = "1 of 2 approvals (anna); still missing: 1 of ben, cleo"
    assert f"recorded for {ask}: {partly}" in said
    assert "receipt " in said
    assert partly in shell.adjourn("show", task).out
    assert partly in shell.adjourn("inbox").out
    for found in (ask_of(shell, task), shell.json("inbox")["asks"][0]):
        count = found["approvals"]
        assert found["state"] == "pending"
        assert (count["needed"], count["missing"]) == (2, 1)
        assert count["missing_from"] == ["ben", "cleo"]
        assert [each["person"] for each in count["given"]] == ["anna"]
    assert shell.json("resume", task, expect=10)["asks"][0]["id"] == ask  # it goes on waiting
    assert effects(shell) == []

    said = team.approve(ask, by="ben")
    assert f"approved {ask}: 2 of 2 approvals (anna, ben)" in said
    shell.adjourn("resume", task)
    assert effects(shell) == ["deployed"]
    shell.adjourn("audit", "verify")
    kinds = [line for line in shell.adjourn("audit", "export").out.splitlines() if task in line]
    assert sum('"approval_given"' in line for line in kinds) == 2
    assert sum('"ask_approved"' in line for line in kinds) == 1


def test_policy_explain_says_how_many_and_who(team: Team) -> None:
    shell = team.shell
    text = shell.adjourn("policy", "explain", "--", *DEPLOY).out
    assert "2, by: anna, ben, cleo" in text
    assert "2 approvals, approvers anna team:ops" in text
    found = shell.adjourn("policy", "explain", "--output", "json", "--", *DEPLOY).doc
    terms = found["terms"]
    assert (terms["approvals"], terms["approvers"]) == (2, ["anna", "ben", "cleo"])
    shell.adjourn("policy", "check")


def test_one_rejection_rejects(shell: Shell, team: Team) -> None:
    task, ask = team.waiting()
    team.approve(ask)
    shell.adjourn("reject", ask, "--sign", team.signers.key("ben"))
    assert ask_of(shell, task)["state"] == "rejected"
    assert "was rejected by key:ben" in team.approve(ask, by="cleo", expect=4)
    assert effects(shell) == []
    shell.adjourn("audit", "verify")


def test_an_edit_voids_what_was_approved_before_it(shell: Shell, team: Team) -> None:
    task, ask = team.waiting()
    team.approve(ask, by="ben")
    edited = team.approve(ask, "--set", "argv.2=echo edited >> effects")
    assert "1 of 2 approvals (anna); still missing: 1 of ben, cleo" in edited
    shown = shell.adjourn("show", task).out
    assert "edited from sha256" in shown
    # Who types the id alone may have seen the call before the edit
    refused = team.approve(ask, by="ben", expect=4)
    assert "give the digest that you approve" in refused
    approve = next(line for line in shown.splitlines() if "Approve with:" in line)
    digest = approve.split("--digest ")[1].strip()
    assert "not the one that was shown" in team.approve(
        ask, "--digest", "0" * 16, by="ben", expect=4
    )
    team.approve(ask, "--digest", digest, by="ben")
    shell.adjourn("resume", task)
    assert effects(shell) == ["edited"]
    shell.adjourn("audit", "verify")


def test_an_edit_that_is_rejected_leaves_the_task_as_it_was(shell: Shell, team: Team) -> None:
    task, ask = team.waiting()
    team.approve(ask, "--set", "argv.2=echo edited >> effects")
    shell.adjourn("reject", ask)
    assert "echo deployed" in shell.adjourn("show", task).out
    again = shell.json("restart", task, expect=10)["asks"][0]
    assert "echo deployed" in str(again) or "echo deployed" in shell.adjourn("show", task).out


def test_two_edits_in_a_row_void_each_other(shell: Shell, team: Team) -> None:
    task, ask = team.waiting()
    editor = {"EDITOR": """sed -i 's/"-c"/"-e", "-c"/'"""}  # one word more than the task has
    shell.adjourn("approve", ask, "--edit", env=editor)
    team.approve(ask, "--set", "argv.3=echo three >> effects", by="ben")
    digest = ask_of(shell, task)["digest"]
    team.approve(ask, "--digest", digest, by="cleo")
    shell.adjourn("resume", task)
    assert effects(shell) == ["three"]
    assert shell.json("show", task)["state"] == "succeeded"


# --- the same person counts once ------------------------------------------------------------------


@pytest.mark.parametrize("second", ["anna", "anna-laptop"])
def test_the_same_person_counts_once_whatever_the_channel(
    shell: Shell, team: Team, second: str
) -> None:
    task, ask = team.waiting()
    team.approve(ask)
    sign = () if second == "anna" else ("--sign", team.signers.key(second))
    refused = shell.adjourn("approve", ask, *sign, expect=4).err
    assert f"anna approved ask {ask} already, as {shell.me}" in refused
    assert "still missing: 1 of ben, cleo" in refused
    assert ask_of(shell, task)["state"] == "pending"


def test_who_is_no_approver_does_not_count(team: Team) -> None:
    _, ask = team.waiting()
    assert "key:dan is not among those who may approve this" in team.approve(
        ask, by="dan", expect=5
    )
    # A key that the allowed signers know by another spelling is nobody
    team.signers.allow("anna", "Ben", "cleo")
    assert "key:Ben is not among" in team.approve(ask, by="Ben", expect=5)


def test_one_key_under_two_names_is_one_person(shell: Shell, team: Team) -> None:
    """The fingerprint counts: who writes the key once more under another name gains nothing."""
    public = Path(f"{team.signers.key('ben')}.pub")
    words = subprocess.run(
        ["ssh-keygen", "-l", "-f", str(public)], capture_output=True, check=True, text=True
    ).stdout
    fingerprint = words.split()[1]
    people = PEOPLE.format(me=shell.me).replace('["key:ben"]', f'["key:{fingerprint}"]')
    team.signers.configure(people)
    task, ask = team.waiting()
    team.approve(ask, by="ben")
    content = public.read_text().strip()
    team.signers.allowed.write_text(f'cleo namespaces="adjourn" {content}\n')
    assert "key:cleo is not among those" in team.approve(ask, by="ben", expect=5)
    assert ask_of(shell, task)["approvals"]["missing"] == 1
    # And the approval that was given holds no more: nobody signed it who is called ben


def test_a_config_in_which_two_people_may_be_one_lets_nothing_run(shell: Shell, team: Team) -> None:
    """The cases are in tests/contract/test_people.py."""
    team.configure('[[person]]\nname = "eve"\nprincipals = ["key:ben"]\n')
    refused = shell.adjourn("run", "--pause-on-approval", "--", *DEPLOY, expect=2).err
    assert "key:ben is ben already" in refused
    assert effects(shell) == []


# --- policies -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("project", "says"),
    [
        ("approvals = 1", "2, by: anna, ben, cleo"),
        ('approvers = ["dan", "ben", "anna"]', "2, by: anna, ben"),
        ('approvers = ["dan"]', "2, by: nobody of your config (too few: nobody can approve it)"),
    ],
)
def test_a_project_may_only_narrow(shell: Shell, team: Team, project: str, says: str) -> None:
    team.project(f'[[rule]]\ntool = "command"\nargs = ["sh", "**"]\n{project}\n')
    assert says in shell.adjourn("policy", "explain", "--", *DEPLOY).out


def test_a_rule_that_wants_more_between_two_approvals_asks_again(shell: Shell, team: Team) -> None:
    task, ask = team.waiting()
    team.approve(ask)
    team.policy(RULE.replace("approvals = 2", "approvals = 3"))
    team.approve(ask, by="ben")
    again = shell.json("resume", task, expect=10)["asks"][0]
    assert again["id"] != ask
    assert again["approvals"]["needed"] == 3
    assert effects(shell) == []


@pytest.mark.parametrize("taken", ["person", "key"])
def test_an_approval_of_somebody_who_lost_the_right_lapses(
    shell: Shell, team: Team, taken: str
) -> None:
    task, ask = team.waiting()
    team.approve(ask)
    team.approve(ask, by="ben")
    if taken == "person":
        team.signers.configure(PEOPLE.format(me=shell.me).replace('"key:ben"', '"key:other"'))
    else:
        (team.signers.folder / "revoked_signers").write_text(
            Path(f"{team.signers.key('ben')}.pub").read_text()
        )
    again = shell.json("resume", task, expect=10)["asks"][0]
    assert again["id"] != ask
    assert again["approvals"]["given"] == []
    assert effects(shell) == []


# --- each approval is held to what one is held to -------------------------------------------------


def test_not_requester_counts_for_each(shell: Shell, team: Team) -> None:
    team.policy(f"{RULE}not_requester = true\n")
    task, ask = team.waiting()
    assert "still missing: ben, cleo" in shell.adjourn("show", task).out
    assert "somebody else" in team.approve(ask, expect=5)
    # The same person with a key is still the requester
    shell.adjourn("approve", ask, "--sign", team.signers.key("anna"), expect=5)
    team.approve(ask, by="ben")
    team.approve(ask, by="cleo")
    shell.adjourn("resume", task)
    assert effects(shell) == ["deployed"]


def test_signed_counts_for_each(shell: Shell, team: Team) -> None:
    team.policy(f"{RULE}signed = true\n")
    task, ask = team.waiting()
    assert "needs a signed approval" in team.approve(ask, expect=5)
    team.approve(ask, by="ben")
    shell.adjourn("approve", ask, "--sign", team.signers.key("anna-laptop"))
    shell.adjourn("resume", task)
    assert effects(shell) == ["deployed"]


def test_never_needs_an_override_of_each(shell: Shell, team: Team) -> None:
    team.policy(RULE.replace('"prompt"', '"never"'))
    task, ask = team.waiting()
    team.approve(ask, "--override", "the fire")
    assert "needs a reason to override" in team.approve(ask, by="ben", expect=5)
    shell.adjourn("resume", task, "--approve-all", expect=5)
    team.approve(ask, "--override", "the fire", by="ben")
    shell.adjourn("resume", task)
    assert effects(shell) == ["deployed"]
    shell.adjourn("audit", "verify")


def test_resume_approve_and_approve_all_count_for_one(shell: Shell, team: Team) -> None:
    task, ask = team.waiting()
    call = shell.json("show", task)["asks"][0]["tool_call_id"]
    waits = shell.json("resume", task, "--approve", call, expect=10)
    assert waits["asks"][0]["approvals"]["missing"] == 1
    shell.adjourn("resume", task, "--approve-all", expect=4)
    shell.adjourn("resume", task, "--approve", call, expect=4)
    assert effects(shell) == []
    team.approve(ask, by="cleo")
    shell.adjourn("resume", task)
    assert effects(shell) == ["deployed"]


def test_a_value_would_be_other_bytes(shell: Shell, team: Team) -> None:
    team.policy(RULE.replace('args = ["sh", "**"]\n', ""))
    manifest = shell.paused(shell.agent("approved.sh"))
    task, ask = manifest["task_id"], manifest["asks"][0]["id"]
    assert "takes no value" in team.approve(ask, "--value", "canary", expect=2)
    team.approve(ask)
    team.approve(ask, by="ben")
    shell.adjourn("resume", task)
    assert effects(shell) == ["done", "with", "approved"]


def test_a_signed_approval_that_is_carried_twice_counts_once(shell: Shell, team: Team) -> None:
    task, ask = team.waiting()
    path = shell.place / "decision"
    team.approve(ask, "--save", str(path), by="ben")
    shell.adjourn("decide", str(path))
    shell.adjourn("decide", str(path))
    assert ask_of(shell, task)["approvals"]["missing"] == 1
    # Once an edit has voided it, the same file brings it back no more
    team.approve(ask, "--set", "argv.2=echo edited >> effects")
    shell.adjourn("decide", str(path), expect=4)
    count = ask_of(shell, task)["approvals"]
    assert [each["person"] for each in count["given"]] == ["anna"]


# --- what is changed behind the program's back ----------------------------------------------------


@pytest.mark.parametrize("what", ["given", "state"])
def test_what_somebody_writes_into_the_store_starts_nothing(
    shell: Shell, team: Team, what: str
) -> None:
    """An approval counts if the store and the trail agree on it."""
    task, ask = team.waiting()
    team.approve(ask)
    team.approve(ask, by="ben") if what == "given" else None
    if what == "given":
        shell.sql("UPDATE ask SET given = '[]'")
    else:
        forged = shell.sql("SELECT given FROM ask")[0][0]
        second = re.sub(r'"person":"anna","by":"[^"]*"', '"person":"ben","by":"key:ben"', forged)
        both = f"{forged[:-1]},{second[1:]}"
        shell.sql(f"UPDATE ask SET given = '{both}'")  # noqa: S608 -- the test's own words
    refused = shell.adjourn("audit", "verify", expect=1).out
    assert "has other approvals than the trail records" in refused
    if what == "given":
        again = shell.json("resume", task, expect=10)["asks"][0]
        assert again["id"] != ask
    assert effects(shell) == []


# --- reminders ------------------------------------------------------------------------------------


def test_a_reminder_is_sent_once_and_escalates_to_whom_the_rule_names(
    shell: Shell, team: Team
) -> None:
    note = shell.script('cat >> "$1"; echo >> "$1"', name="note.sh")
    notifiers = "".join(
        f'[[notify]]\nname = "{name}"\ncommand = ["{shell.place}/{note}", "{shell.place}/{name}"]\n'
        f"on = {on}\n"
        for name, on in (("all", '["reminder", "decision"]'), ("boss", "[]"), ("quiet", "[]"))
    )
    people = PEOPLE.format(me=shell.me).replace(
        'principals = ["key:dan"]', 'principals = ["key:dan"]\nnotify = ["boss"]'
    )
    team.signers.configure(people + notifiers)
    team.policy(f'{RULE}remind_after = "1s"\nescalate_to = ["dan"]\nexpires_after = "1h"\n')
    task, ask = team.waiting()
    assert ask_of(shell, task)["remind_at"] is not None
    team.approve(ask)

    def told(name: str) -> list[str]:
        path = shell.place / name
        return path.read_text().splitlines() if path.exists() else []

    worker = shell.start("worker")
    try:
        until(lambda: bool(told("boss")), what="the reminder is sent")
    finally:
        worker.terminate()
        worker.communicate()
    shell.adjourn("notify", "--flush")
    assert sum('"reminder"' in line for line in told("all")) == 1
    assert len(told("boss")) == 1
    assert "still missing: 1 of ben, cleo" in told("boss")[0]
    assert told("quiet") == []
    assert any("Approved by anna" in line for line in told("all"))
    # Whoever is told may not approve because of it
    assert "key:dan is not among" in team.approve(ask, by="dan", expect=5)
    kinds = shell.adjourn("audit", "export").out
    assert kinds.count('"ask_reminded"') == 1
