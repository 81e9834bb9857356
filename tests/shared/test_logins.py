"""Whoever acts on a shared store is the login that the database let in.

What that is worth, and what a run gets of it.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.driving.test_beside import START
from tests.e2e.shell import Shell, until
from tests.shared.conftest import Machine, Roles

pytestmark = pytest.mark.xdist_group("roles")  # they belong to the whole server: one at a time
ASKS_90 = '[ "$AUTO_APPROVAL" ] || exit 90; echo deployed >> effects'


def shell_of(place: Path, url: str) -> Shell:
    """Return the shell of somebody with a login of their own."""
    place.mkdir(exist_ok=True)
    shell = Shell(place)
    shell.share(url)
    return shell


def test_a_decision_by_another_login_than_the_one_that_asked_is_worth_l1(
    as_role: Roles, tmp_path: Path
) -> None:
    """A-R82: request by one database user, decision by another."""
    ci, anna = (shell_of(tmp_path / role, as_role(role)) for role in ("worker", "approver"))
    manifest = ci.paused("sh", "-c", ASKS_90)
    task, ask = manifest["task_id"], manifest["asks"][0]["id"]
    refused = ci.adjourn("approve", ask, expect=5).err
    assert f"{ci.me} may not approve" in refused
    said = anna.adjourn("approve", ask).out
    assert f"L1 by {anna.me}" in said
    shown = anna.json("show", task)["asks"][0]
    assert (shown["settled_by"], shown["level"]) == (anna.me, "L1")
    # She decides, and runs nothing
    assert "does not allow this" in anna.adjourn("worker", "--once", expect=5).err
    ci.adjourn("resume", task)
    assert ci.lines("effects") == ["deployed"]
    assert anna.adjourn("audit", "verify").out.startswith("Whole")
    assert {
        event["by"] for event in map(json.loads, anna.adjourn("audit", "export").out.splitlines())
    } == {
        ci.me,
        anna.me,
        "adjourn",
    }


def test_a_decision_by_the_login_that_asked_is_worth_l0(database: str, tmp_path: Path) -> None:
    owner = shell_of(tmp_path / "owner", database)
    ask = owner.paused("sh", "-c", ASKS_90)["asks"][0]["id"]
    assert f"L0 by {owner.me}" in owner.adjourn("approve", ask).out


def test_the_name_is_the_one_that_the_server_knows_whatever_the_machine_says(
    as_role: Roles, tmp_path: Path
) -> None:
    """The user of the machine is the same for all of them.

    A name in the environment is nobody's.
    """
    anna = shell_of(tmp_path / "anna", as_role("approver"))
    anna.environment |= {"PGUSER": "postgres", "USER": "bert", "LOGNAME": "bert"}
    assert anna.me in anna.adjourn("doctor").out
    assert "bert" not in anna.adjourn("doctor").out


LOOKS_AROUND = """
adjourn doctor | grep level > who
adjourn run -- touch never; echo $? > started
env -u ADJOURN_RUN_ID adjourn doctor | grep level >> who
adjourn ask 'Which region?' --choice eu --choice us > region || exit $?
"""


def test_what_runs_inside_has_a_login_of_its_own_that_asks_and_starts_nothing(
    as_role: Roles, tmp_path: Path
) -> None:
    ci, anna = (shell_of(tmp_path / role, as_role(role)) for role in ("worker", "approver"))
    agent = as_role("agent")
    ci.environment["ADJOURN_INSIDE"] = agent
    manifest = ci.paused(ci.script(LOOKS_AROUND))
    assert all("db:agent_" in line for line in ci.lines("who"))
    assert len(ci.lines("who")) == 2
    assert ci.lines("started") == ["5"]
    anna.adjourn("answer", manifest["asks"][0]["id"], "eu")
    del ci.environment["ADJOURN_INSIDE"]
    ci.adjourn("tasks")  # a short command that does not mention it takes nothing away
    ci.adjourn("resume", manifest["task_id"])
    assert ci.lines("region") == ["eu"]
    assert all("db:agent_" in line for line in ci.lines("who"))
    ci.adjourn("tasks", env={"ADJOURN_INSIDE": ""})
    ci.adjourn("run", "--", "sh", "-c", "adjourn doctor | grep level > who")
    assert ci.me in ci.lines("who")[0]


def test_a_driver_speaks_for_its_worker_and_its_tools_speak_for_the_agent(
    as_role: Roles, tmp_path: Path
) -> None:
    """It writes down what the policy lets through, which an agent's login may not.

    What its agent runs has that login.
    """
    ci = shell_of(tmp_path / "ci", as_role("worker"))
    ci.environment["ADJOURN_INSIDE"] = as_role("agent")
    ci.adjourn("tasks")
    words = ci.run(
        sys.executable, str(START), str(ci.store), json.dumps(["adjourn doctor | grep level > who"])
    ).out.split()
    assert words[1] == "succeeded"
    assert "db:agent_" in ci.lines("who")[0]


def test_a_process_with_nothing_but_a_url_and_the_name_of_its_run_can_ask(
    as_role: Roles, tmp_path: Path
) -> None:
    """As an agent does that is another user, or in another container, and cannot read the worker's files."""
    ci, anna = (shell_of(tmp_path / role, as_role(role)) for role in ("worker", "approver"))
    bot = shell_of(tmp_path / "bot", as_role("agent"))
    line = f"env XDG_STATE_HOME={bot.environment['XDG_STATE_HOME']} ADJOURN_STORE='{bot.database}' adjourn ask Where?"
    manifest = ci.paused(ci.script(f"{line} > where || exit $?"))
    anna.adjourn("answer", manifest["asks"][0]["id"], "here")
    ci.adjourn("resume", manifest["task_id"])
    assert ci.lines("where") == ["here"]


EARS = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'adjourn ear' AND datname = current_database()"


@pytest.mark.parametrize("listen", ["off", None])
def test_without_an_ear_a_worker_looks_every_few_seconds(
    database: str, machine: Callable[[str], Machine], listen: str | None
) -> None:
    one = machine("one")
    if listen:
        one.environment["ADJOURN_LISTEN"] = listen
    one.worker()
    with psycopg.connect(database) as connection:
        ears = connection.execute(EARS).fetchall()
    assert bool(ears) == (listen is None)
    task = one.queue("echo done >> effects")
    until(lambda: one.state(task) == "succeeded", what="it was found", seconds=60)
