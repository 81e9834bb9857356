"""Links in ntfy and mail: GET shows and never decides, POST decides once, and others get nothing."""

import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from tests.e2e.shell import Shell, until
from tests.e2e.test_gate import users_policy
from tests.notify.channels import NEEDS_APPROVAL, decisions, first_ask, trail, write_config
from tests.notify.mail_server import mail_server
from tests.receiver import Receiver, answering, receiving

_SERVING = re.compile(r"serving \S+ on \S+:(\d+)")


@contextmanager
def serving(shell: Shell) -> Iterator[str]:
    """Have a real `adjourn serve`, and return its address."""
    shell.adjourn("run", "--", "true")  # there must be a store
    log = shell.place / "serve.log"
    with log.open("wb") as file:
        process = shell.start(
            "serve", "--listen", "127.0.0.1:0", stdout=subprocess.DEVNULL, stderr=file
        )
    try:
        until(lambda: bool(_SERVING.search(log.read_text())), what="it serves", seconds=60)
        found = _SERVING.search(log.read_text())
        assert found
        yield f"http://localhost:{found[1]}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def fetch(url: str, form: dict[str, str] | None = None, *, method: str = "GET") -> tuple[int, str]:
    """Return the status and the text of a page."""
    body = None if form is None else urlencode(form).encode()
    request = urllib.request.Request(url, body, method="POST" if body else method)  # noqa: S310 -- of this machine
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 -- of this machine
            assert answer.headers["Cache-Control"] == "no-store"
            assert "noindex" in answer.headers["X-Robots-Tag"]
            return answer.status, unescape(answer.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, unescape(error.read().decode())


def published(receiver: Receiver) -> list[dict[str, Any]]:
    """Return what a stand-in of ntfy was told, by the rules of the real one."""
    found = [msgspec.json.decode(body, type=dict[str, Any]) for _, body in receiver.taken]
    for each in found:
        assert len(each["message"].encode()) <= 4096
        assert len(each["actions"]) <= 3
        assert re.fullmatch(r"[-_A-Za-z0-9]{1,64}", each.get("sequence_id", "x"))
        for action in each["actions"]:
            assert action["action"] in {"view", "http"}
    return found


@pytest.fixture
def ntfy() -> Iterator[Receiver]:
    """Return a stand-in of an ntfy server."""
    with receiving() as receiver:
        receiver.answer = answering(200)
        yield receiver


def with_ntfy(shell: Shell, receiver: Receiver, url: str, *, person: str = "") -> None:
    keys = f'topic = "secret-topic"\nurl = "{receiver.url}"\npublic_url = "{url}"\n{person}'
    write_config(shell, f'[[notify]]\nname = "push"\non = ["pause"]\n[notify.ntfy]\n{keys}\n')


def test_a_button_of_ntfy_posts_and_scanners_decide_nothing(shell: Shell, ntfy: Receiver) -> None:
    with serving(shell) as url:
        with_ntfy(shell, ntfy, url)
        ask = first_ask(shell.paused(*NEEDS_APPROVAL))
        shell.adjourn("notify", "--flush")
        (shown,) = published(ntfy)
        assert [action["label"] for action in shown["actions"]] == ["Approve", "Reject", "Open"]
        assert shown["sequence_id"] == f"adjourn-{ask}"
        link = shown["click"]

        # What fetches every link it finds changes nothing
        for number in range(100):
            assert fetch(link, method="HEAD" if number % 2 else "GET")[0] == 200
        assert decisions(shell, ask) == []
        assert ">Approve</button>" in fetch(link)[1]
        assert link.rpartition("/")[2].partition(".")[2] not in shell.adjourn("audit", "export").out

        # Forged, guessed, and without the bytes that were shown
        assert fetch(f"{link}x")[0] == 404
        assert fetch(f"{url}/d/{ask}.{'A' * 43}", {"verb": "approve", "digest": "0"})[0] == 404
        assert fetch(f"{url}/d/nothing", {"verb": "approve"})[0] == 404
        assert fetch(link, {"verb": "approve"})[0] == 422
        assert fetch(link, {"verb": "approve", "digest": "0" * 64})[0] == 409
        assert fetch(link, {"verb": "settle"})[0] == 422
        assert decisions(shell, ask) == []

        approve = shown["actions"][0]
        form = dict(pair.split("=") for pair in approve["body"].split("&"))
        status, page = fetch(approve["url"], form)
        assert (status, "Approved by link:push" in page) == (200, True)
        status, page = fetch(approve["url"], form)
        assert (status, "was approved by link:push" in page) == (409, True)
        assert "Approved by link:push" in fetch(link)[1]
        assert "<button" not in fetch(link)[1]
        shell.adjourn("notify", "--flush")
        last = published(ntfy)[-1]
        assert (last["sequence_id"], last["actions"]) == (shown["sequence_id"], [])
        assert last["title"].startswith("Approved by link:push")
    assert decisions(shell, ask) == [("ask_approved", "link:push")]
    refused = [event["by"] for event in trail(shell) if event["kind"] == "refused"]
    assert refused == ["link:unknown"]


def test_where_a_person_is_needed_a_link_is_none_unless_it_is_somebodys(
    shell: Shell, ntfy: Receiver
) -> None:
    with serving(shell) as url:
        with_ntfy(shell, ntfy, url)
        rule = '[[rule]]\nargs = ["true"]\naction = "prompt"\napprover = "human"\n'
        users_policy(shell, rule)
        run = ("run", "--pause-on-approval", "--", "true")
        ask = first_ask(shell.json(*run, expect=10))
        shell.adjourn("notify", "--flush")
        (shown,) = published(ntfy)
        assert [action["label"] for action in shown["actions"]] == ["Reject", "Open"]
        assert "only a person may approve" in shown["message"].replace("\nmore │ ", "")
        found = re.search(r"sha256 ([0-9a-f]{16})", shown["message"])
        assert found
        digest = found[1]
        status, page = fetch(shown["click"], {"verb": "approve", "digest": digest})
        assert (status, "only a person may approve this" in page) == (403, True)
        assert decisions(shell, ask) == []
        with_ntfy(shell, ntfy, url, person='person = "anna"')
        assert fetch(shown["click"], {"verb": "approve", "digest": digest})[0] == 200
    assert [event["by"] for event in trail(shell) if event["kind"] == "refused"] == ["link:push"]


def test_a_mail_has_a_link_to_a_page_that_decides(shell: Shell) -> None:
    with serving(shell) as url, mail_server() as server:
        keys = (
            'to = ["anna@example.com"]\nfrom = "adjourn@example.com"\nsecurity = "none"\n'
            f'smtp = "127.0.0.1:{server.port}"\npublic_url = "{url}"\nperson = "anna"'
        )
        write_config(shell, f'[[notify]]\non = ["pause"]\n[notify.mail]\n{keys}\n')
        asked = "Ship it?\nBcc: evil@example.com\nhttp://evil.example www.evil.example \u202e"
        ask = first_ask(shell.paused("adjourn", "ask", asked))
        shell.adjourn("notify", "--flush")
        shell.adjourn("notify", "--flush")  # it is sent once
        assert shell.json("notify", "--test")["tests"][0]["delivered"]
        mail, test = server.taken
        assert "test by" in str(test.get_content())
        assert mail["Bcc"] is None
        text: str = mail.get_content()
        assert not re.search("http://evil|www.evil|\u202e", text)
        (link,) = re.findall(rf"{re.escape(url)}/d/\S+", text)
        assert fetch(link)[0] == 200
        status, page = fetch(link, {"verb": "answer", "text": "<b>yes</b>"})
        assert (status, "Answered by link:mail" in page) == (200, True)
        shell.adjourn("notify", "--flush")
        assert len(server.taken) == 2  # its page shows the outcome
    assert decisions(shell, ask) == [("ask_answered", "link:mail")]


def test_an_expired_link_decides_nothing(shell: Shell, ntfy: Receiver) -> None:
    with serving(shell) as url:
        with_ntfy(shell, ntfy, url)
        asked = ("adjourn", "ask", "Now?", "--choice", "yes", "--choice", "no")
        ask = first_ask(shell.paused(*asked))
        shell.adjourn("notify", "--flush")
        (shown,) = published(ntfy)
        assert [action["label"] for action in shown["actions"]] == ["yes", "no", "Open"]
        expire_links(shell)
        assert fetch(shown["click"])[0] == 410
        assert fetch(shown["click"], {"verb": "answer", "choice": "0"})[0] == 410
        assert decisions(shell, ask) == []


def expire_links(shell: Shell) -> None:
    """Have all links be over, past the program."""
    of = "name LIKE 'links:%'"
    ((body,),) = shell.sql(f"SELECT body FROM document WHERE {of}")  # noqa: S608 -- our own words
    ((digest, _),) = msgspec.json.decode(bytes(body))
    over = msgspec.json.encode([[digest, 1]]).hex()
    bytes_of = f"X'{over}'" if shell.database is None else f"'\\x{over}'"
    shell.sql(f"UPDATE document SET body = {bytes_of} WHERE {of}")  # noqa: S608 -- our own words
