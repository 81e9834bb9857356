"""The HTTP API over a real `adjourn serve`: the documents of the program, and one decision per ask.

Issue 18, points 1 and 6; A-R6, A-R29, A-R85.
"""

import contextlib
import json
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from adjourn.core.ask import Principal, Reply, Verb
from tests.e2e.shell import Document, Shell, until
from tests.web.api_client import (
    PREFIX,
    Api,
    approvals,
    approve,
    controller_of,
    new_token,
    questions,
)
from tests.web.served import SECONDS, Served

SCOPES = ("--scope", "request", "--scope", "approve", "--scope", "answer")


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """Return one server on each kind of store for all tests here; each makes its own asks."""
    shell = Shell(tmp_path_factory.mktemp("api"))
    with contextlib.ExitStack() as stack:
        if request.param == "postgres":
            postgres = request.getfixturevalue("postgres")
            shell.share(stack.enter_context(postgres.empty_database()))
        shell.adjourn("run", "--", "true")
        with Served(shell) as served:
            yield served
        assert shell.end() == {}


@pytest.fixture(scope="module")
def api(served: Served) -> Iterator[Api]:
    """Return a client that may start, approve and answer."""
    with Api(served.url, new_token(served.shell, "ci", *SCOPES)) as api:
        yield api


# --- documents ------------------------------------------------------------------------------------


def test_the_documents_are_those_of_the_program(served: Served, api: Api) -> None:
    shell, ask = served.shell, approvals(served.shell, 1)[0]
    task = ask["task"]
    listed = api.get("/asks?limit=200")
    assert listed.pop("next") is None
    assert listed == shell.json("inbox", "--limit", "200")
    tasks = api.get("/tasks?limit=200")
    assert tasks.pop("next") is None
    assert tasks == shell.json("tasks", "--limit", "200")
    assert api.get(f"/tasks/{task}") == shell.json("show", task)
    assert api.get(f"/tasks/{task[:10]}/runs") == shell.json("runs", task)
    shown = api.get(f"/asks/{ask['id']}")
    whole = shell.json("show", ask["id"])
    assert {key: shown[key] for key in whole} == whole
    assert (shown["tool"], shown["arguments"]["argv"]) == ("command", ["true"])
    assert shown["you_may_decide"] is True
    events = api.get(f"/audit?task={task}")["events"]
    export = json.loads(shell.adjourn("audit", "export", task, "--output", "json").out)
    assert events == export["events"]


def test_lists_go_page_by_page(served: Served, api: Api) -> None:
    made = {ask["id"] for ask in questions(served.shell, 5)}
    path, found = "/asks?kind=question&limit=2", list[str]()
    while path:
        answer = api.send("GET", path)
        found += [ask["id"] for ask in answer.json()["asks"]]
        link = answer.headers.get("link", "")
        assert bool(link) == (answer.json()["next"] is not None)
        path = link.partition(">")[0].removeprefix(f"<{PREFIX}") if link else ""
    assert made <= set(found)
    assert len(found) == len(set(found))
    for name in made:
        api.post(f"/asks/{name}/reply", {"verb": "answer", "text": "yes"})
    settled, after = list[str](), ""
    while len(settled) < 5:
        page = api.get(f"/asks?state=settled&limit=2{after}")
        settled += [ask["id"] for ask in page["asks"]]
        after = f"&after={page['next']}"
    assert set(settled[:5]) == made
    assert api.get("/asks?after=zzzzz", expect=404)["code"] == "not_found"


# --- deciding -------------------------------------------------------------------------------------


def test_an_approval_needs_the_digest_that_was_shown_and_runs_once(
    served: Served, api: Api
) -> None:
    """D-R26: what was shown is what is approved; the receipt proves it."""
    shell = served.shell
    script = shell.script("echo ran >> effects", name=f"effect{random.random()}.sh")
    before = len(shell.lines("effects"))
    ask = approvals(shell, 1, script)[0]
    path = f"/asks/{ask['id']}/reply"
    assert api.post(path, {"verb": "approve"}, expect=422)["code"] == "usage"
    stale = api.post(path, {"verb": "approve", "digest": "0" * 64}, expect=409)
    assert "not the one that was shown" in stale["detail"]
    assert api.post(path, {"verb": "answer", "text": "yes"}, expect=409)["code"] == "conflict"
    recorded = api.post(path, approve(ask, comment="looked at it"))
    receipt = recorded["receipts"][0]
    assert (receipt["by"], receipt["level"], receipt["verb"]) == ("token:ci", "L0", "approve")
    shell.adjourn("audit", "verify", "--receipt", f"{receipt['place']}:{receipt['seal']}")
    assert api.wait(ask["task"])["state"] == "succeeded"
    assert len(shell.lines("effects")) == before + 1

    # The same reply again is the same receipt; another one is told who was first
    assert api.post(path, approve(ask))["receipts"] == recorded["receipts"]
    first = api.post(path, {"verb": "reject", "reason": "no"}, expect=409)
    assert first["code"] == "already_settled"
    assert first["settled"]["by"] == "token:ci"
    assert first["settled"]["state"] == "approved"
    assert len(shell.lines("effects")) == before + 1


def test_of_32_who_decide_at_once_one_wins_and_all_are_told_who(served: Served, api: Api) -> None:
    ask = approvals(served.shell, 1)[0]
    path = f"{PREFIX}/asks/{ask['id']}/reply"
    names = [f"racer{number}" for number in range(2)]
    tokens = [new_token(served.shell, name, "--scope", "approve") for name in names]
    barrier = threading.Barrier(32)

    def decide(number: int) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {tokens[number % 2]}"}
        body = {"verb": "reject", "reason": f"by {number}"}
        with httpx2.Client(base_url=served.url, headers=headers, timeout=SECONDS) as client:
            client.get("/healthz")  # a connection is there before it counts
            barrier.wait(SECONDS)
            return client.post(path, json=body)

    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(decide, range(32)))
    winners = [answer.json() for answer in answers if answer.status_code == 200]
    losers = [answer.json() for answer in answers if answer.status_code == 409]
    assert (len(winners), len(losers)) == (1, 31)
    winner = winners[0]["receipts"][0]["by"]
    assert {loser["settled"]["by"] for loser in losers} == {winner}
    events = api.get(f"/audit?task={ask['task']}&limit=2000")["events"]
    assert [each["kind"] for each in events].count("ask_rejected") == 1
    for name in names:
        served.shell.adjourn("tokens", "revoke", name)


def test_several_replies_count_all_or_none(served: Served, api: Api) -> None:
    first, second = approvals(served.shell, 2)
    asked = questions(served.shell, 1, "yes", "no")[0]
    replies = [
        {"ask": first["id"], "verb": "reject"},
        {"ask": asked["id"], "verb": "answer", "text": "perhaps"},
        {"ask": second["id"], "verb": "approve", "digest": "f" * 64},
    ]
    refused = api.post("/replies", {"replies": replies}, expect=409)
    assert refused["code"] == "nothing_recorded"
    assert [item["result"] for item in refused["items"]] == [
        "would be rejected",
        "refused",
        "refused",
    ]
    assert {api.get(f"/asks/{each['id']}")["state"] for each in (first, second, asked)} == {
        "pending"
    }
    replies[1]["text"] = "yes"
    replies[2]["digest"] = second["digest"]
    recorded = api.post("/replies", {"replies": replies})
    assert [ask["state"] for ask in recorded["asks"]] == ["rejected", "answered", "approved"]
    assert len(recorded["receipts"]) == 3
    assert api.wait(second["task"])["state"] == "succeeded"


def test_what_changed_since_it_was_read_is_told(served: Served, api: Api) -> None:
    ask = questions(served.shell, 1)[0]
    path = f"/asks/{ask['id']}"
    tag = api.send("GET", path).headers["etag"]
    assert api.send("GET", path, If_None_Match=tag).status_code == 304
    api.post(f"{path}/snooze", {"until": "2099-01-01T00:00:00Z"})
    assert ask["id"] not in {each["id"] for each in api.get("/asks?limit=200")["asks"]}
    assert ask["id"] in {each["id"] for each in api.get("/asks?state=snoozed&limit=200")["asks"]}
    body = {"verb": "answer", "text": "yes"}
    late = api.send("POST", f"{path}/reply", body, If_Match=tag)
    assert late.status_code == 412
    assert api.send("POST", f"{path}/snooze", {}).status_code == 200
    recorded = api.send("POST", f"{path}/reply", body, If_Match=tag)
    assert recorded.status_code == 200
    assert recorded.headers["etag"] == api.send("GET", path).headers["etag"]
    api.post(f"{path}/snooze", {"until": "2001-01-01T00:00:00Z"}, expect=409)
    api.post(f"{path}/snooze", {"until": "tomorrow"}, expect=422)


def test_a_call_of_a_megabyte_is_shown_and_decided(served: Served, api: Api) -> None:
    ask = approvals(served.shell, 1, "true", "x" * 100_000, *["y" * 100_000] * 9)[0]
    shown = api.get(f"/asks/{ask['id']}")
    assert len("".join(shown["arguments"]["argv"])) > 1_000_000
    assert shown["digest"] == ask["digest"]
    api.post(f"/asks/{ask['id']}/reply", {"verb": "reject"})


# --- tasks ----------------------------------------------------------------------------------------


def test_a_task_lives_from_start_to_end_over_http(served: Served, api: Api) -> None:
    shell = served.shell
    shell.agent("approved.sh")
    body = {"command": ["./approved.sh"], "cwd": str(shell.place)}
    started = api.send("POST", "/tasks", body, Idempotency_Key="one")
    assert started.status_code == 201
    task = started.json()["task_id"]
    assert started.headers["location"] == f"{PREFIX}/tasks/{task}"
    again = api.send("POST", "/tasks", body, Idempotency_Key="one")
    assert (again.status_code, again.json()["task_id"]) == (200, task)
    other = {"command": ["true"]}
    assert api.send("POST", "/tasks", other, Idempotency_Key="one").status_code == 409

    waiting = api.wait(task)
    assert waiting["state"] == "waiting"
    call = waiting["asks"][0]
    decision = {"verb": "approve", "tool_call_id": call["tool_call_id"]}
    path = f"/tasks/{task}/resume"
    assert api.post(path, {"decisions": [decision]}, expect=422)["code"] == "usage"
    api.post(path, {"decisions": [decision | {"digest": call["digest"]}]})
    assert api.wait(task)["final_message"].strip() == "done with approved"
    output = api.send("GET", f"/runs/{task}.2/stdout")
    assert output.text == "done with approved\n"
    assert output.headers["x-next-offset"] == "19"
    assert api.send("GET", f"/runs/{task}.2/stdout?offset=19").text == ""
    assert api.post(path, expect=409)["code"] in {"conflict", "move_refused"}
    assert api.get(f"/tasks/{task}/runs")["runs"][1]["resumed_from_run_id"] == f"{task}.1"
    assert api.post(f"/tasks/{task}/restart")["state"] == "queued"
    assert api.wait(task)["state"] == "waiting"
    assert api.post(f"/tasks/{task}/cancel")["state"] == "canceled"
    assert shell.lines("effects")[-1] == "done with approved"


def test_a_task_that_runs_is_paused_resumed_and_ended(served: Served, api: Api) -> None:
    shell = served.shell
    script = shell.script("echo here; exec sleep 600", name="sleeps.sh")
    task = api.post("/tasks", {"command": [script], "cwd": str(shell.place)}, expect=201)["task_id"]
    until(
        lambda: any(each["kind"] == "call_executing" for each in events_of(api, task)),
        what="it runs",
    )
    api.post(f"/tasks/{task}/pause")
    assert api.wait(task)["state"] == "paused"
    tag = api.send("GET", f"/tasks/{task}").headers["etag"]
    still = api.send("GET", f"/tasks/{task}", If_None_Match=tag, Prefer="wait=0")
    assert (still.status_code, still.headers["preference-applied"]) == (304, "wait=0")
    with ThreadPoolExecutor(1) as pool, Api(served.url, api.token) as other:
        waiting = pool.submit(
            other.send, "GET", f"/tasks/{task}", If_None_Match=tag, Prefer="wait=30"
        )
        api.post(f"/tasks/{task}/resume")
        moved = waiting.result(SECONDS)
    assert moved.status_code == 200
    assert moved.headers["etag"] != tag
    api.post(f"/tasks/{task}/cancel")
    assert api.wait(task)["state"] == "canceled"


def events_of(api: Api, task: str) -> list[Document]:
    """Return the newest events of a task."""
    events: list[Document] = api.get(f"/audit?task={task}&limit=2000")["events"]
    return events


def test_what_was_decided_before_a_crash_goes_on_after_it(tmp_path: Path) -> None:
    """A server that ends between a decision and the start of its task loses neither."""
    shell = Shell(tmp_path)
    shell.adjourn("run", "--", "true")
    ask = approvals(shell, 1, shell.script("echo ran >> effects"))[0]
    token = new_token(shell, "ci", *SCOPES)
    with controller_of(shell) as controller:  # as far as this the server had got
        by = Principal(name="token:ci", through=shell.me)
        reply = Reply(ask_id=ask["id"], verb=Verb.APPROVE, digest=ask["digest"])
        controller.decisions.decide([reply], by=by)
    with Served(shell) as served, Api(served.url, token) as api:
        assert api.wait(ask["task"])["state"] == "succeeded"
        api.post(f"/asks/{ask['id']}/reply", approve(ask))  # whoever got no answer sends it again
        log = served.stop()
    assert shell.lines("effects") == ["ran"]
    assert shell.end() == {}

    # The log names routes and principals, and no secret
    assert token not in log
    entries = [json.loads(row) for row in log.splitlines() if row.startswith("{")]
    assert ("/api/v1/asks/{id}/reply", 200, "token:ci") in {
        (each["route"], each["status"], each["by"]) for each in entries
    }


# --- the stream -----------------------------------------------------------------------------------


def places_in(text: str) -> list[int]:
    """Return the places of the events in a stream."""
    return [int(row.removeprefix("id: ")) for row in text.split("\n") if row.startswith("id: ")]


def test_a_stream_that_is_dropped_at_random_has_no_gap_and_no_double(
    served: Served, api: Api, sweep: str
) -> None:
    """The place of the last event is where the next connection begins."""
    drops, chance, seen = 200 if sweep == "full" else 12, random.Random(7), list[int]()
    start, is_enough = api.get("/health")["place"], threading.Event()

    def go_on_asking() -> None:
        while not is_enough.is_set():
            questions(served.shell, 5)

    asking = threading.Thread(target=go_on_asking)
    asking.start()
    headers = {"Authorization": f"Bearer {api.token}"}
    try:
        with httpx2.Client(base_url=served.url, headers=headers, timeout=SECONDS) as client:
            for _ in range(drops):
                last = {"Last-Event-ID": str(seen[-1] if seen else start)}
                wanted, text = chance.randrange(1, 6), ""
                with client.stream("GET", f"{PREFIX}/events", headers=last) as stream:
                    for piece in stream.iter_text():
                        text += piece
                        if len(places_in(text.rpartition("\n\n")[0])) >= wanted:
                            break
                seen += places_in(text.rpartition("\n\n")[0])
    finally:
        is_enough.set()
        asking.join()
    assert seen == list(range(start + 1, start + 1 + len(seen)))
    assert len(seen) >= drops


def test_a_decision_reaches_a_stream_and_a_stream_of_one_task_hears_nothing_else(
    served: Served, api: Api
) -> None:
    ask, other = questions(served.shell, 2)
    path = f"{PREFIX}/events?task={ask['task']}&after=0"
    headers = {"Authorization": f"Bearer {api.token}"}
    with (
        httpx2.Client(base_url=served.url, headers=headers, timeout=SECONDS) as client,
        client.stream("GET", path) as stream,
    ):
        text = ""
        for piece in stream.iter_text():
            if not text:
                api.post(f"/asks/{other['id']}/reply", {"verb": "answer", "text": "x"})
                api.post(f"/asks/{ask['id']}/reply", {"verb": "answer", "text": "x"})
            text += piece
            if "task_answered" in text:
                break
    events = [json.loads(row[6:]) for row in text.split("\n") if row.startswith("data: ")]
    assert {event["task_id"] for event in events} == {ask["task"]}
    assert "ask_answered" in {event["kind"] for event in events}


# --- who ------------------------------------------------------------------------------------------


def test_who_lacks_a_token_or_a_scope_is_refused_and_recorded(served: Served, api: Api) -> None:
    shell, ask = served.shell, approvals(served.shell, 1)[0]
    path = f"/asks/{ask['id']}/reply"
    with Api(served.url, "") as stranger:
        refused = stranger.send("GET", "/asks")
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Bearer")
        assert stranger.http.get("/healthz").json() == {"status": "ok"}
        assert stranger.http.get("/metrics").status_code == 401
    with Api(served.url, new_token(shell, "reader", "--scope", "answer")) as reader:
        shown = reader.get(f"/asks/{ask['id']}")
        assert shown["you_may_decide"] is False
        assert "scope approve" in shown["why_not"]
        assert "scope approve" in reader.post(path, approve(ask), expect=403)["detail"]
        assert reader.post("/tasks", {"command": ["true"]}, expect=403)["code"] == "not_allowed"
        refusals = [each for each in events_of(api, ask["task"]) if each["kind"] == "refused"]
        assert [each["by"] for each in refusals] == ["token:reader"]
        shell.adjourn("tokens", "revoke", "reader")
        reader.get("/asks", expect=401)
    with Api(
        served.url, new_token(shell, "brief", "--scope", "answer", "--expires", "1s")
    ) as brief:
        until(lambda: brief.send("GET", "/asks").status_code == 401, what="it has expired")
    api.post(path, {"verb": "reject"})


def test_an_agent_speaks_mcp_with_its_token_and_decides_only_for_its_own(
    served: Served, api: Api
) -> None:
    ask = approvals(served.shell, 1)[0]
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert api.send("POST", "/mcp", message).status_code == 401  # it is no agent's
    with Api(served.url, new_token(served.shell, "claude", "--agent")) as agent:
        assert len(agent.post("/mcp", message)["result"]["tools"]) == 11
        refused = agent.post(f"/asks/{ask['id']}/reply", approve(ask), expect=403)
        assert "agent:claude" in refused["detail"]
        assert agent.get("/health")["you"] == "agent:claude"
    served.shell.adjourn("tokens", "revoke", "claude")
    api.post(f"/asks/{ask['id']}/reply", {"verb": "reject"})


def test_prometheus_reads_the_figures(served: Served, api: Api) -> None:
    before = figures(api)
    asked = questions(served.shell, 2)
    api.post(f"/asks/{asked[0]['id']}/reply", {"verb": "answer", "text": "yes"})
    after = figures(api)
    assert after["adjourn_inbox_asks"] == before["adjourn_inbox_asks"] + 1
    key = 'adjourn_asks_settled_total{state="answered"}'
    assert after[key] == before[key] + 1
    assert after["adjourn_decision_seconds_count"] == before["adjourn_decision_seconds_count"] + 1
    assert 'adjourn_runs_ended_total{outcome="failed"}' in after


def figures(api: Api) -> dict[str, float]:
    """Return what `/metrics` says."""
    rows = [row for row in api.send("GET", "/metrics").text.split("\n") if row[:1] != "#"]
    return {row.rpartition(" ")[0]: float(row.rpartition(" ")[2]) for row in rows if row}
