"""The scripted model speaks the real APIs: what real clients read is what the script says."""

import contextlib
import http.client
from urllib.parse import urlsplit

import msgspec
import pytest

from tests.model.script import Fault, ToolUse, Turn
from tests.model.server import Model, playing

LIST = Turn(text="Let me look.", calls=(ToolUse(name="list_files", arguments={"path": "."}),))
USER = {"role": "user", "content": "hello"}


def post(model: Model, path: str, body: object) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(urlsplit(model.url).netloc, timeout=10)
    connection.request(
        "POST", path, body=msgspec.json.encode(body), headers={"Content-Type": "application/json"}
    )
    with contextlib.closing(connection), connection.getresponse() as answer:
        return (
            answer.status,
            {name.lower(): value for name, value in answer.getheaders()},
            answer.read(),
        )


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages?beta=true"])
def test_a_conversation_with_n_answers_gets_turn_n(path: str) -> None:
    with playing([LIST, Turn(text="Done.")]) as model:
        first = post(model, path, {"messages": [USER]})[2]
        again = post(model, path, {"messages": [USER]})[2]
        second = post(model, path, {"messages": [USER, {"role": "assistant", "content": "…"}]})[2]
        beyond = post(model, path, {"messages": [{"role": "assistant", "content": "…"}] * 2})
    assert b"list_files" in first
    assert first == again
    assert b"Done." in second
    assert beyond[0] == 400
    assert [request.turn for request in model.requests] == [0, 0, 1, None]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_a_stream_brings_the_same_words_in_pieces(path: str) -> None:
    with playing([LIST]) as model:
        status, headers, raw = post(model, path, {"messages": [USER], "stream": True})
    assert (status, headers["content-type"]) == (200, "text/event-stream")
    assert raw.count(b"data: ") > 4
    assert b"call_1_1" in raw


def test_faults_come_first_and_once() -> None:
    turn = Turn(
        text="At last.",
        faults=(Fault(status=429, retry_after="2"), Fault(status=200, garbage="<html>")),
    )
    with playing([turn]) as model:
        seen = [post(model, "/v1/chat/completions", {"messages": [USER]}) for _ in range(3)]
    assert [status for status, _, _ in seen] == [429, 200, 200]
    assert seen[0][1]["retry-after"] == "2"
    assert seen[1][2] == b"<html>"
    assert b"At last." in seen[2][2]
    assert [request.fault for request in model.requests] == [True, True, False]


@pytest.mark.parametrize("stream", [True, False])
def test_a_dropped_connection_breaks_off_in_the_middle(*, stream: bool) -> None:
    with (
        playing([Turn(text="A long answer.", faults=(Fault(drop_after=1),))]) as model,
        pytest.raises(http.client.IncompleteRead),
    ):
        post(model, "/v1/chat/completions", {"messages": [USER], "stream": stream})


def test_what_nobody_scripted_is_recorded_and_refused() -> None:
    with playing([]) as model:
        assert post(model, "/v1/images", {})[0] == 404
    assert [(request.method, request.path) for request in model.requests] == [
        ("POST", "/v1/images")
    ]
