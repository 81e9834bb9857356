"""What every notifier promises.

It returns when the receiver has taken the document, and says why not otherwise, in time.
"""

import base64
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from importlib import import_module
from pathlib import Path

import pytest

from adjourn.core.authority.webhook import signature
from adjourn.notifiers.command import CommandNotifier
from adjourn.notifiers.webhook import WebhookNotifier
from adjourn.ports.notifier import NotDelivered
from tests.needs import missing
from tests.receiver import Receiver, answering, receiving

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 -- the example of the specification
KEY = base64.b64decode(SECRET.removeprefix("whsec_"))
BODY = b'{"text": "hello"}'


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Return a server on this machine."""
    with receiving() as there:
        yield there


def hook(url: str, *, timeout: float = 5) -> WebhookNotifier:
    return WebhookNotifier(url, key=KEY, timeout=timeout)


def test_a_webhook_gets_the_document_with_its_id_and_signature(receiver: Receiver) -> None:
    hook(receiver.url).send("evt_1", BODY, at=1_700_000_000_123)
    ((headers, body),) = receiver.taken
    assert body == BODY
    assert headers["webhook-id"] == "evt_1"
    assert headers["webhook-timestamp"] == "1700000000"
    assert headers["webhook-signature"] == signature(KEY, "evt_1", BODY, at=1_700_000_000)


def test_the_signature_is_that_of_the_specification() -> None:
    """The example of the Standard Webhooks reference libraries."""
    body = b'{"test": 2432232314}'
    assert signature(KEY, "msg_p5jXN8AQM9LWM0D4loKWxJek", body, at=1614265330) == (
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )


def test_the_reference_library_accepts_the_signature(receiver: Receiver) -> None:
    try:
        webhooks = import_module("standardwebhooks.webhooks")
    except ImportError:
        missing("standardwebhooks")
    hook(receiver.url).send("evt_1", BODY, at=time.time_ns() // 1_000_000)
    ((headers, body),) = receiver.taken
    assert webhooks.Webhook(SECRET).verify(body, headers) == {"text": "hello"}


@pytest.mark.parametrize("status", [400, 404, 410, 429, 500, 503])
def test_an_answer_that_is_not_2xx_is_a_refusal(receiver: Receiver, status: int) -> None:
    receiver.answer = answering(status)
    with pytest.raises(NotDelivered, match=f"it answered {status}"):
        hook(receiver.url).send("evt_1", BODY, at=0)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_redirect_is_followed(receiver: Receiver, status: int) -> None:
    receiver.answer = answering(status, Location=receiver.url)
    with pytest.raises(NotDelivered, match="redirects are not followed"):
        hook(receiver.url).send("evt_1", BODY, at=0)
    assert len(receiver.taken) == 1


def test_a_receiver_that_is_not_there_is_a_refusal() -> None:
    with pytest.raises(NotDelivered, match="no answer"):
        hook("http://127.0.0.1:9/").send("evt_1", BODY, at=0)


def test_a_receiver_that_hangs_costs_no_more_than_the_timeout(receiver: Receiver) -> None:
    receiver.answer = lambda _: time.sleep(3)
    begun = time.monotonic()
    with pytest.raises(NotDelivered, match=r"no answer within 0\.3 s"):
        hook(receiver.url, timeout=0.3).send("evt_1", BODY, at=0)
    assert time.monotonic() - begun < 2


def test_a_receiver_that_answers_a_byte_at_a_time_costs_no_more_than_the_timeout(
    receiver: Receiver,
) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        for _ in range(40):
            handler.wfile.write(b"H")
            time.sleep(0.1)

    receiver.answer = drip
    begun = time.monotonic()
    with pytest.raises(NotDelivered):
        hook(receiver.url, timeout=0.5).send("evt_1", BODY, at=0)
    assert time.monotonic() - begun < 3


def test_an_answer_that_is_no_http_is_a_refusal(receiver: Receiver) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"\xff\xfe\0 what?\r\n\r\n")

    receiver.answer = answer
    with pytest.raises(NotDelivered, match="no answer"):
        hook(receiver.url).send("evt_1", BODY, at=0)


def a_command(code: str, *words: str, timeout: float = 20) -> CommandNotifier:
    return CommandNotifier([sys.executable, "-I", "-S", "-c", code, *words], timeout=timeout)


def test_a_command_gets_the_document_on_its_stdin_and_no_shell(tmp_path: Path) -> None:
    code = (
        "import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.read() + sys.argv[2].encode())"
    )
    a_command(code, str(tmp_path / "told"), "$(id); `id`").send("evt_1", BODY, at=0)
    assert (tmp_path / "told").read_bytes() == BODY + b"$(id); `id`"


def test_a_command_that_fails_is_a_refusal() -> None:
    with pytest.raises(NotDelivered, match="it exited with 3"):
        a_command("raise SystemExit(3)").send("evt_1", BODY, at=0)


def test_a_command_that_is_not_there_is_a_refusal() -> None:
    with pytest.raises(NotDelivered, match="it could not be started"):
        CommandNotifier(["/no/such/command"], timeout=1).send("evt_1", BODY, at=0)


def test_a_command_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "late"
    code = "import subprocess, sys, time; subprocess.Popen(['sh', '-c', 'sleep 2; touch ' + sys.argv[1]]); time.sleep(60)"
    begun = time.monotonic()
    with pytest.raises(NotDelivered, match=r"it took longer than 0\.5 s"):
        a_command(code, str(mark), timeout=0.5).send("evt_1", BODY, at=0)
    assert time.monotonic() - begun < 2
    time.sleep(2)
    assert not mark.exists()


@pytest.mark.parametrize("ignored", [b"x" * 10, b"x" * 1_000_000])
def test_a_command_may_leave_its_stdin_alone(ignored: bytes) -> None:
    a_command("pass").send("evt_1", ignored, at=0)
