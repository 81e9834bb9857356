"""The pages as a browser without JavaScript has them: everything can be done, nothing acts on GET.

Issue 18, points 2 and 3; A-R6, A-R85, D-R26.
"""

import contextlib
import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from adjourn.core.ask import number_of_call
from tests.e2e.shell import Shell, until
from tests.web.served import Client, Served


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return one server for all tests here; each makes its own asks."""
    shell = Shell(tmp_path_factory.mktemp("web"))
    shell.adjourn("run", "--", "true")
    with Served(shell) as served:
        yield served
    assert shell.end() == {}


@pytest.fixture(scope="module")
def anna(served: Served) -> Iterator[Client]:
    """Return the browser of somebody who may approve and answer."""
    with served.browser("anna") as client:
        yield client


def approval(served: Served, *words: str) -> str:
    """Have a command wait for an approval, and return the ask."""
    done = served.shell.json("run", "--pause-on-approval", "--", *words, expect=10)
    return newest_ask(served, done["task_id"])


def question(served: Served, *words: str) -> str:
    done = served.shell.json("run", "--", "adjourn", "ask", *words, expect=10)
    return newest_ask(served, done["task_id"])


def newest_ask(served: Served, task: str) -> str:
    store = served.shell.open_store()
    with contextlib.closing(store), store.read() as view:
        return view.open_asks_of(task)[-1].id


def state(served: Served, ask: str) -> dict[str, str | None]:
    """Return how an ask stands in the store."""
    store = served.shell.open_store()
    with contextlib.closing(store), store.read() as view:
        found = view.ask(ask)
        settled, number = found.settlement, number_of_call(found)
        return {
            "task_id": found.task_id,
            "digest": view.call(found.task_id, number).digest if number else "",
            "state": str(found.state),
            "settled_by": settled.by if settled else None,
            "level": settled.level if settled else None,
            "reply": settled.reply if settled else None,
        }


def digest_of(served: Served, ask: str) -> str:
    return str(state(served, ask)["digest"])


# --- who it is ------------------------------------------------------------------------------------


def test_a_link_logs_in_once_and_the_file_lets_nobody_in(served: Served) -> None:
    link = served.link("once")
    with served.browser() as first, served.browser() as second:
        assert first.get("/").to == "/login?next=%2F"
        page = first.log_in(link)
        assert (page.status, page.to) == (303, "/")
        cookie = page.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert first.get("/").status == 200
        assert second.log_in(link).status == 403
        assert second.log_in(f"{served.url}/login#{'A' * 43}").status == 403

        # What is kept is a hash: it is no cookie
        state_home = Path(served.shell.environment["XDG_STATE_HOME"])
        kept = (state_home / "adjourn" / "web" / "sessions.json").read_text()
        token = first.cookies["adjourn"]
        assert token not in kept
        assert link.partition("#")[2] not in kept
        for session in json.loads(kept)["sessions"]:
            second.cookies.set("adjourn", session["sha256"])
            assert second.get("/").status == 303

        assert first.post("/logout").to == "/login"
        second.cookies.clear()
        second.cookies.set("adjourn", token)
        assert second.get("/").status == 303


def test_a_removed_user_is_out_at_once(served: Served) -> None:
    with served.browser("gone") as client:
        assert client.get("/account").status == 200
        served.shell.adjourn("users", "remove", "gone")
        assert client.get("/account").status == 303
        assert client.post("/batch/confirm", {"verb": "approve"}).status == 401


def test_only_whom_a_scope_allows_decides_and_the_refusal_is_recorded(served: Served) -> None:
    ask = approval(served, "true", "scoped")
    served.shell.adjourn("users", "add", "reader", "--scope", "answer")
    with served.browser("reader") as reader:
        page = reader.get(f"/asks/{ask}")
        assert "You may not: web:reader may not approve: that needs the scope approve" in page.text
        assert "May approve: anna" in page.text or "May approve:" in page.text
        assert "/approve" not in page.html
        refused = reader.post(f"/asks/{ask}/approve", {"digest": digest_of(served, ask)})
        assert refused.status == 403
    assert state(served, ask)["state"] == "pending"
    exported = served.shell.adjourn("audit", "export", str(state(served, ask)["task_id"])).out
    assert "refused" in exported
    assert "web:reader" in exported


def test_users_are_no_business_of_a_run(served: Served) -> None:
    """Link tokens are kept as hashes, and a run cannot have one made."""
    done = served.shell.json("run", "--", "adjourn", "users", "link", "anna", expect=1)
    log = served.shell.adjourn("logs", done["task_id"]).err
    assert "refused inside a run" in log


# --- deciding -------------------------------------------------------------------------------------


def test_approve_shows_what_runs_and_moves_on(served: Served, anna: Client) -> None:
    """A-R6: the person decides on the page, and the task goes on with exactly what was shown."""
    ask, later = approval(served, "touch", "made by web"), approval(served, "true", "later")
    assert {ask, later} <= set(anna.get("/").asks)
    page = anna.get(f"/asks/{ask}")
    assert "touch 'made by web'" in page.text
    assert "In" in page.text or "in" in page.text
    task = str(state(served, ask)["task_id"])

    decided = anna.post(f"/asks/{ask}/approve", {"digest": page.field("digest")})
    assert decided.status == 303
    assert decided.to
    assert decided.to.endswith(f"?done={ask}")
    following = anna.get(decided.to)
    assert "was approved by web:anna" in following.text
    assert ask not in anna.get("/").asks
    assert "made by web" in anna.get("/settled").text

    found = state(served, ask)
    assert (found["state"], found["settled_by"], found["level"]) == ("approved", "web:anna", "L0")
    # The server has it go on
    until((served.shell.place / "made by web").exists, what=f"task {task} went on", seconds=60)
    anna.post(f"/asks/{later}/reject")


def test_the_second_is_told_who_was_first(served: Served, anna: Client) -> None:
    ask = approval(served, "true", "raced")
    digest = anna.get(f"/asks/{ask}").field("digest")
    with served.browser("ben") as ben:
        ben.post(f"/asks/{ask}/reject", {"reason": "not today", "digest": digest})
    late = anna.post(f"/asks/{ask}/approve", {"digest": digest})
    assert late.status == 409
    assert "was rejected by web:ben" in late.text
    assert "not today" in late.text


@pytest.mark.parametrize("digest", ["", "0" * 64])
def test_an_approval_of_anything_else_than_what_was_shown_is_none(
    served: Served, anna: Client, digest: str
) -> None:
    ask = approval(served, "true", "stale")
    assert anna.post(f"/asks/{ask}/approve", {"digest": digest}).status == 409
    assert state(served, ask)["state"] == "pending"
    anna.post(f"/asks/{ask}/reject")


def test_edit_then_approve(served: Served, anna: Client) -> None:
    ask = approval(served, "touch", "wrong name")
    page = anna.get(f"/asks/{ask}/edit")
    assert '"wrong name"' in page.text
    digest, arguments = (
        page.field("digest"),
        json.dumps({"argv": ["touch", "right"], "cwd": str(served.shell.place)}),
    )
    assert anna.post(f"/asks/{ask}/edit", {"digest": digest, "edited": "{"}).status == 422
    preview = anna.post(f"/asks/{ask}/edit", {"digest": digest, "edited": arguments})
    assert preview.status == 200
    assert "touch" in preview.text
    assert state(served, ask)["state"] == "pending", "a preview decides nothing"
    edited = preview.field("edited")
    anna.post(f"/asks/{ask}/approve", {"digest": digest, "edited": edited})
    assert state(served, ask)["state"] == "approved"
    until((served.shell.place / "right").exists, what="the task went on", seconds=60)
    assert not (served.shell.place / "wrong name").exists()


def test_answers(served: Served, anna: Client) -> None:
    free = question(served, "What <b>now</b>?")
    page = anna.get(f"/asks/{free}")
    assert "What <b>now</b>?" in page.text
    anna.post(f"/asks/{free}/answer", {"text": "two\r\nlines"})
    assert state(served, free)["reply"] == "two\nlines"

    few = question(served, "Which?", "--choice", "red", "--choice", 'b"lue')
    assert 'value="1"' in anna.get(f"/asks/{few}").html
    assert anna.post(f"/asks/{few}/answer", {"choice": "2"}).status == 422
    anna.post(f"/asks/{few}/answer", {"choice": "1"})
    assert state(served, few)["reply"] == 'b"lue'
    assert anna.post(f"/asks/{few}/answer", {"choice": "0"}).status == 409


def test_batches_are_shown_in_full_and_decided_together(served: Served, anna: Client) -> None:
    asks = [approval(served, "true", f"batch {number}") for number in range(3)]
    page = anna.post("/batch", {"verb": "approve", "ask": asks})
    assert all(f"batch {number}" in page.text for number in range(3))
    assert {state(served, ask)["state"] for ask in asks} == {"pending"}
    digests = [digest_of(served, ask) for ask in asks]
    # One that changed since: nothing is recorded
    wrong = anna.post(
        "/batch/confirm", {"verb": "approve", "ask": asks, "digest": [*digests[:2], "0" * 64]}
    )
    assert wrong.status == 409
    assert "would be approved" in wrong.text
    assert {state(served, ask)["state"] for ask in asks} == {"pending"}
    anna.post("/batch/confirm", {"verb": "reject", "ask": asks, "digest": digests, "reason": "no"})
    assert {(state(served, ask)["state"], state(served, ask)["reply"]) for ask in asks} == {
        ("rejected", "no")
    }


def test_snooze_hides_and_shows_again(served: Served, anna: Client) -> None:
    ask = approval(served, "true", "sleepy")
    anna.post(f"/asks/{ask}/snooze", {"for": "8h"})
    assert ask not in anna.get("/").asks
    assert ask in anna.get("/snoozed").asks
    anna.post(f"/asks/{ask}/snooze", {"for": ""})
    assert ask in anna.get("/").asks
    anna.post("/batch", {"verb": "snooze", "ask": [ask]})
    assert ask in anna.get("/snoozed").asks
    anna.post(f"/asks/{ask}/reject")


def test_an_uncertain_call_is_settled(served: Served, anna: Client) -> None:
    task = served.shell.detached("sleep", "600")
    run = f"{task}.1"
    for pid in (served.shell.supervisor(run), served.shell.shim(run)):
        os.kill(pid, signal.SIGKILL)
    until(lambda: bool(served.shell.json("inbox", "--task", task)["asks"]), what="it is uncertain")
    (ask,) = served.shell.json("inbox", "--task", task)["asks"]
    assert "uncertain" in anna.get(f"/asks/{ask['id']}").text
    assert anna.post(f"/asks/{ask['id']}/settle", {"verdict": "perhaps"}).status == 422
    assert anna.post(f"/asks/{ask['id']}/settle", {"verdict": "it-did-not"}).status == 303
    assert state(served, ask["id"])["settled_by"] == "web:anna"
    served.shell.adjourn("cancel", task)


def test_a_never_is_not_overridden_by_a_button(served: Served, anna: Client) -> None:
    policy = served.shell.project / "policy.toml"
    policy.write_text('[[rule]]\ntool = "command"\nargs = ["rm", "**"]\naction = "never"\n')
    try:
        ask = approval(served, "rm", "-rf", "nothing")
        page = anna.get(f"/asks/{ask}")
        assert "Your policy says never" in page.text
        assert f"/asks/{ask}/approve" not in page.html
        digest = digest_of(served, ask)
        tried = anna.post(f"/asks/{ask}/approve", {"digest": digest, "override": "because I can"})
        assert tried.status == 403
        assert state(served, ask)["state"] == "pending"
        assert anna.post(f"/asks/{ask}/reject").status == 303
    finally:
        policy.unlink()


# --- pages ----------------------------------------------------------------------------------------


def test_every_page_of_a_task_is_there(served: Served, anna: Client) -> None:
    done = served.shell.json(
        "run", "--", "sh", "-c", "printf 'out <i>\\033[31m'; echo err >&2; exit 3", expect=1
    )
    task = done["task_id"]
    assert task[:8] in anna.get("/tasks").text
    page = anna.get(f"/tasks/{task}")
    assert "Failed" in page.text
    assert "History" in page.text
    output = anna.get(f"/tasks/{task}/runs/1")
    assert "out <i>\\x1b[31m" in output.text or "out <i>" in output.text
    assert "\x1b" not in output.html
    assert "err" in output.text
    assert anna.get(f"/tasks/{task}/runs/2").status == 404
    assert anna.get(f"/tasks/{task}/transcript").status == 409
    assert anna.get("/tasks/nobody").status == 404
    assert "events, sealed by" in anna.get("/audit").text
    assert "no always-allow rules" in anna.get("/rules").text


def test_filters_and_pages(served: Served, anna: Client) -> None:
    one, two = approval(served, "true", "needle"), question(served, "hay?")
    assert anna.get("/?q=NEEDLE").asks == [one]
    assert two in anna.get("/?kind=question").asks
    assert one not in anna.get("/?kind=question").asks
    task = state(served, two)["task_id"]
    assert anna.get(f"/?task={task}").asks == [two]
    assert anna.get(f"/?after={one}&q=needle").asks == []
    anna.post(f"/asks/{one}/reject")
    anna.post(f"/asks/{two}/answer", {"text": "straw"})


# --- what others send -----------------------------------------------------------------------------


def test_nothing_acts_on_get_or_from_elsewhere(served: Served, anna: Client) -> None:
    """100 prefetches of each address, and posts of other sites: 0 decisions."""
    ask = approval(served, "true", "guarded")
    digest = anna.get(f"/asks/{ask}").field("digest")
    paths = [
        f"/asks/{ask}",
        f"/asks/{ask}/approve?digest={digest}",
        f"/asks/{ask}/reject",
        "/login",
    ]
    for path in paths:
        for _ in range(25):
            assert anna.get(path).status in {200, 405}
    fields: dict[str, str | list[str]] = {"digest": digest}
    for headers in (
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "none"},
    ):
        assert anna.post(f"/asks/{ask}/approve", fields, **headers).status == 403
    rebound = anna.post(f"/asks/{ask}/approve", fields, Host="evil.example")
    assert rebound.status == 421
    assert anna.get("/", Host="evil.example").status == 421
    assert state(served, ask)["state"] == "pending"
    anna.post(f"/asks/{ask}/reject")


@pytest.mark.parametrize("path", ["//evil.example", "/\\evil.example", "https://evil.example", ""])
def test_a_login_leads_nowhere_else(served: Served, path: str) -> None:
    with served.browser() as client:
        page = client.post("/login", {"code": served.link("anna"), "next": path})
        assert page.to == "/"


def test_a_large_argument_is_shown_whole_before_it_is_approved(
    served: Served, anna: Client
) -> None:
    long = "x" * 60_000
    ask = approval(served, "true", long)
    page = anna.get(f"/asks/{ask}")
    assert "Not all of it is shown" in page.text
    assert f"/asks/{ask}/approve" not in page.html
    whole = anna.get(f"/asks/{ask}?full=1")
    assert long in whole.text
    assert f"/asks/{ask}/approve" in whole.html
    anna.post(f"/asks/{ask}/reject")


def test_all_stores_of_a_user_are_one_inbox(tmp_path: Path) -> None:
    """Decisions go to the store that has the ask, whichever it is."""
    here, there = Shell(tmp_path / "here"), Shell(tmp_path / "there")
    here.place.mkdir()
    there.place.mkdir()
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        there.environment[name] = here.environment[name]
    near = Served(here, "--everywhere")
    asks = [approval(Served(shell), "true", shell.place.name) for shell in (here, there)]
    with near, near.browser("anna") as anna:
        page = anna.get("/")
        assert page.asks == asks
        assert str(there.place) in page.text
        digest = anna.get(f"/asks/{asks[1]}").field("digest")
        assert anna.post(f"/asks/{asks[1]}/approve", {"digest": digest}).status == 303
        assert anna.get("/").asks == asks[:1]
        assert "there" in anna.get(f"/asks/{asks[1]}").text
        key = re.findall(r'name="store" value="(\w+)"', page.html)[1]
        assert "was approved" in anna.get(f"/asks/{asks[1]}").text
        assert asks[1] in anna.get(f"/settled?store={key}").asks
        assert asks[1] not in anna.get("/settled").asks
        assert anna.post(f"/asks/{asks[0]}/reject").status == 303
        until(lambda: there.json("tasks")["tasks"][0]["state"] == "succeeded", what="it went on")
    assert here.end() == {}
    assert there.end() == {}


def test_a_proxys_header_counts_only_on_a_socket_with_the_right_peer(tmp_path: Path) -> None:
    place = tmp_path / "work"
    place.mkdir()
    shell = Shell(place)
    shell.adjourn("run", "--", "true")
    shell.adjourn("users", "add", "anna")
    config = place / ".config" / "adjourn" / "config.toml"
    path, near = str(tmp_path / "web.sock"), Served(shell)

    def status(uid: int, *values: str, transport: httpx2.HTTPTransport | None = None) -> int:
        """Ask for the inbox with these values of the header, while the proxy has this user id."""
        config.write_text(f'[web]\nproxy_uid = {uid}\nproxy_header = "X-Forwarded-User"\n')
        config.chmod(0o600)
        headers = [("X-Forwarded-User", value) for value in values]
        url = "http://localhost" if transport else near.url
        with httpx2.Client(transport=transport, timeout=60) as client:
            return client.get(url, headers=headers).status_code

    def by_socket() -> httpx2.HTTPTransport:
        return httpx2.HTTPTransport(uds=path)

    own = os.getuid()
    with Served(shell, "--public-url", "http://localhost", listen=f"unix:{path}"):
        assert status(own, "anna", transport=by_socket()) == 200
        assert status(own, "nobody", transport=by_socket()) == 303
        assert status(own, "anna", "anna", transport=by_socket()) == 303
        assert status(own, transport=by_socket()) == 303
        assert status(own + 1, "anna", transport=by_socket()) == 303
    with near:
        assert status(own, "anna") == 303
    assert shell.end() == {}
