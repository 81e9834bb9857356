"""Where several people must approve, the database holds each login to its own approval.

Promises 20; A-R82, D-R19.
"""

import json
import re
from pathlib import Path

import psycopg
import pytest
from psycopg import errors

from tests.e2e.shell import Shell
from tests.postgres import Server
from tests.shared.conftest import Roles, as_role  # noqa: F401 -- a fixture
from tests.shared.test_logins import shell_of

pytestmark = pytest.mark.xdist_group("roles")  # they belong to the whole server: one at a time
DEPLOY = ("--pause-on-approval", "--", "sh", "-c", "echo deployed >> effects")
WRITE = """
SELECT adjourn.write_ask(
    no, %(state)s, call, expires_at, %(at)s, %(by)s, %(level)s, snoozed_until, %(given)s, remind_at, body
) FROM adjourn.ask WHERE id = %(ask)s
"""


class Staff:
    """A worker whose config knows the people, and two approvers whose machines know nobody."""

    def __init__(self, roles: Roles, place: Path) -> None:
        self.urls = {
            name: roles(name, of=role)
            for name, role in (("ci", "worker"), ("anna", "approver"), ("bert", "approver"))
        }
        self.ci, self.anna, self.bert = (
            shell_of(place / name, url) for name, url in self.urls.items()
        )
        self.folder = Path(self.ci.environment["XDG_CONFIG_HOME"]) / "adjourn"
        self.folder.mkdir(parents=True)
        people = "".join(
            f'[[person]]\nname = "{name}"\nprincipals = ["{shell.me}"]\n'
            for name, shell in (("anna", self.anna), ("bert", self.bert))
        )
        (self.folder / "config.toml").write_text(people)
        self.rule()

    def rule(self, more: str = "") -> None:
        (self.folder / "policy.toml").write_text(
            f'[[rule]]\ntool = "command"\nargs = ["sh", "**"]\naction = "prompt"\napprovals = 2\n{more}'
        )

    def waiting(self) -> tuple[str, str]:
        manifest = self.ci.json("run", *DEPLOY, expect=10)
        return manifest["task_id"], manifest["asks"][0]["id"]

    def given(self, ask: str) -> list[dict[str, object]]:
        with psycopg.connect(self.urls["ci"], autocommit=True) as login:
            row = login.execute("SELECT given FROM adjourn.ask WHERE id = %s", [ask]).fetchone()
        assert row
        found: list[dict[str, object]] = json.loads(row[0])
        return found


@pytest.fixture
def staff(as_role: Roles, tmp_path: Path) -> Staff:  # noqa: F811 -- the fixture
    return Staff(as_role, tmp_path)


def effects(shell: Shell) -> list[str]:
    path = shell.place / "effects"
    return path.read_text().split() if path.exists() else []


def test_two_logins_approve_and_one_that_lost_its_role_counts_no_more(
    staff: Staff, postgres: Server
) -> None:
    task, ask = staff.waiting()
    said = staff.anna.adjourn("approve", ask).out
    assert "1 of 2 approvals (anna); still missing: bert" in said
    assert f"L1 by {staff.anna.me}" in said
    assert "anna approved ask" in staff.anna.adjourn("approve", ask, expect=4).err
    assert "2 of 2 approvals (anna, bert)" in staff.bert.adjourn("approve", ask).out
    staff.ci.adjourn("resume", task)
    assert effects(staff.ci) == ["deployed"]
    staff.ci.adjourn("audit", "verify")

    task, ask = staff.waiting()
    staff.anna.adjourn("approve", ask)
    staff.bert.adjourn("approve", ask)
    postgres.do(f"REVOKE adjourn_approver FROM {staff.anna.me.removeprefix('db:')}")
    again = staff.ci.json("resume", task, expect=10)["asks"][0]
    assert f"{staff.anna.me} may not approve any more" in str(again)
    assert effects(staff.ci) == ["deployed"]


def test_an_edit_of_one_approver_is_approved_by_the_other(staff: Staff) -> None:
    task, ask = staff.waiting()
    staff.bert.adjourn("approve", ask)
    staff.anna.adjourn("approve", ask, "--set", "argv.2=echo edited >> effects")
    assert [each["person"] for each in staff.given(ask)] == ["anna"]
    staff.bert.adjourn("approve", ask, expect=4)
    digest = str(staff.bert.json("show", task)["asks"][0]["digest"])
    staff.bert.adjourn("approve", ask, "--digest", digest)
    staff.ci.adjourn("resume", task)
    assert effects(staff.ci) == ["edited"]


def test_no_sql_of_a_login_adds_an_approval_of_somebody_else(staff: Staff) -> None:
    """Each attack is one statement of a login, past the program."""
    _, ask = staff.waiting()
    staff.bert.adjourn("approve", ask)
    (berts,) = staff.given(ask)
    anna, bert, ci = staff.anna.me, staff.bert.me, staff.ci.me
    own = {**berts, "person": "anna", "by": anna}

    def refused(login: str, why: str, *given: object, **settled: object) -> None:
        words: dict[str, object] = {"ask": ask, "given": json.dumps(given, separators=(",", ":"))}
        words |= {"state": "pending", "at": None, "by": None, "level": None, **settled}
        with (
            psycopg.connect(staff.urls[login], autocommit=True) as connection,
            pytest.raises(errors.InsufficientPrivilege, match=re.escape(why)),
        ):
            connection.execute(WRITE, words)
        assert staff.given(ask) == [berts]

    approved = {"state": "approved", "at": berts["at"], "by": anna, "level": "L1"}
    once = "may add its own approval"
    refused("anna", "may not speak for", berts, {**own, "by": f"{bert}x"})
    refused("anna", once, berts, {**own, "by": bert})
    refused("anna", once, berts, {**own, "person": "bert"})
    refused("anna", once, own, {**own, "by": f"{anna}x", "person": "carl"})
    refused("anna", once, {**berts, "digest": "00"}, own)
    refused("anna", "is not worth", berts, {**own, "level": "L1", "by": "key:anna"})
    refused("anna", "does not have the time", berts, {**own, "at": 1})
    refused("anna", "without an event of the trail", berts, own)
    refused("anna", "without an event of the trail", own)  # and takes bert's away
    refused("anna", once)
    refused("anna", "without an event of the trail", berts, **approved)
    refused("ci", "may not decide", berts, {**own, "by": ci})
    refused("ci", "may not decide", berts, **(approved | {"by": ci, "level": "L0"}))
    with psycopg.connect(staff.urls["anna"], autocommit=True) as connection:
        for change in ("approvals = 1", "given = '[]'"):
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(f"UPDATE adjourn.ask SET {change}".encode())  # noqa: S608 -- the words of the test


def test_whoever_forges_events_settles_with_too_few_no_more_than_before(staff: Staff) -> None:
    """The events are of a login's own making: what counts is what the row holds."""
    from adjourn.core.trail.events import Event
    from adjourn.stores.postgres.batch import SCHEMA
    from adjourn.stores.shapes import event_body

    task, ask = staff.waiting()
    staff.bert.adjourn("approve", ask)
    (berts,) = staff.given(ask)
    anna = staff.anna.me
    own = {**berts, "person": "anna", "by": anna}
    words: dict[str, object] = {"ask": ask, "at": berts["at"], "by": anna, "level": "L1"}

    def tried(given: list[object], *kinds: str, state: str) -> str:
        """Return why a transaction was refused that writes an ask and tells of it."""
        settled = words if state == "approved" else words | {"at": None, "by": None, "level": None}
        text = json.dumps(given, separators=(",", ":"))
        with psycopg.connect(staff.urls["anna"]) as connection:
            row = connection.execute("SELECT no FROM adjourn.task WHERE id = %s", [task]).fetchone()
            assert row
            connection.execute(WRITE, settled | {"given": text, "state": state})
            for kind in kinds:
                at = int(str(berts["at"]))
                event = Event(task_id=task, kind=kind, by=anna, at=at, facts={"ask": ask})
                connection.execute(
                    f"SELECT adjourn.seal_events({SCHEMA}, ARRAY[%s::bigint], ARRAY[%s::bytea],"
                    " ARRAY['\\x00'::bytea])".encode(),
                    [row[0], event_body(event)],
                )
            try:
                connection.commit()
            except errors.InsufficientPrivilege as error:
                return str(error)
        return ""

    too_few = "needs 2 approvals of what would run"
    assert too_few in tried([berts], "ask_approved", state="approved")
    assert too_few in tried([own], "approval_given", state="pending")
    assert too_few in tried([own], "approval_given", "ask_approved", state="approved")
    other = {**own, "digest": "00"}
    assert too_few in tried([berts, other], "approval_given", "ask_approved", state="approved")
    assert staff.given(ask) == [berts]


def test_only_a_worker_reminds(staff: Staff) -> None:
    staff.rule('remind_after = "1s"\n')
    config = staff.folder / "config.toml"
    told = staff.ci.place / "told"
    note = staff.ci.script(f"cat >> {told}", name="note.sh")
    with config.open("a") as file:
        file.write(f'[[notify]]\ncommand = ["{staff.ci.place}/{note}"]\non = ["reminder"]\n')
    task, ask = staff.waiting()
    with (
        psycopg.connect(staff.urls["anna"], autocommit=True) as connection,
        pytest.raises(errors.InsufficientPrivilege, match="may not change what is asked"),
    ):
        connection.execute(
            WRITE.replace("remind_at", "NULL").encode(),
            {"ask": ask, "given": "[]", "state": "pending", "at": None, "by": None, "level": None},
        )
    staff.ci.run("sleep", "1")
    staff.ci.adjourn("notify", "--flush")
    staff.ci.adjourn("notify", "--flush")
    assert told.read_text().count('"ask_reminded"') == 1
    staff.anna.adjourn("approve", ask)
    staff.bert.adjourn("approve", ask)
    staff.ci.adjourn("resume", task)
    assert effects(staff.ci) == ["deployed"]
