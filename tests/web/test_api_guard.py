"""What every request passes: hosts, origins, sizes, types; and where `serve` refuses to start.

Issue 18, faults: cross-site posts, DNS rebinding, foreign Host, replays, bad input.
"""

import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from starlette.datastructures import Headers

from adjourn.core.errors import Misuse
from adjourn.settings.api_tokens import is_secret, new_secret
from adjourn.web.guard import refuse_foreign
from adjourn.web.operations import preferred_wait
from adjourn.web.problems import HttpRefusal
from adjourn.web.serve import Listen, address_of, read_listen
from adjourn.web.site import Address
from tests.e2e.shell import Shell
from tests.web.api_client import Api, approvals, approve, new_token
from tests.web.served import Served

HOME = Address(
    public_url="https://inbox.example",
    hosts=frozenset({"inbox.example", "127.0.0.1", "::1"}),
    is_secure=True,
)
OWN = "https://inbox.example"


@pytest.mark.parametrize(
    ("method", "headers", "is_fine"),
    [
        ("GET", {"host": "inbox.example"}, True),
        ("GET", {"host": "INBOX.example:443"}, True),
        ("GET", {"host": "[::1]:7373"}, True),
        ("GET", {"host": "evil.example"}, False),
        ("GET", {"host": "inbox.example.evil.example"}, False),
        ("GET", {"host": "inbox.example@evil.example"}, False),
        ("GET", {"host": "[::1"}, False),
        ("GET", {}, False),
        ("POST", {"host": "inbox.example", "sec-fetch-site": "same-origin"}, True),
        ("POST", {"host": "inbox.example", "sec-fetch-site": "same-site"}, False),
        ("POST", {"host": "inbox.example", "sec-fetch-site": "cross-site"}, False),
        ("POST", {"host": "inbox.example", "sec-fetch-site": "none"}, False),
        # A browser says both: what it says of the site counts
        ("POST", {"host": "inbox.example", "sec-fetch-site": "cross-site", "origin": OWN}, False),
        ("POST", {"host": "inbox.example", "origin": OWN}, True),
        ("POST", {"host": "inbox.example", "origin": "https://evil.example"}, False),
        ("POST", {"host": "inbox.example", "origin": "http://inbox.example"}, False),
        ("POST", {"host": "inbox.example", "origin": "null"}, False),
        ("POST", {"host": "inbox.example"}, True),  # no browser, and nothing that it has by itself
        ("POST", {"host": "inbox.example", "cookie": "session=x"}, False),
        ("DELETE", {"host": "inbox.example", "cookie": "session=x"}, False),
    ],
)
def test_a_request_of_a_foreign_page_is_refused(
    method: str,
    headers: dict[str, str],
    is_fine: bool,  # noqa: FBT001 -- pytest hands it over so
) -> None:
    if is_fine:
        refuse_foreign(HOME, method, Headers(headers))
        return
    with pytest.raises(HttpRefusal, match=r"another site|not called"):
        refuse_foreign(HOME, method, Headers(headers))


@pytest.mark.parametrize(
    ("text", "public", "says"),
    [
        ("0.0.0.0:7373", None, "in the clear"),
        ("192.168.1.5:7373", None, "in the clear"),
        ("0.0.0.0:7373", None, "needs to know its address"),
        ("unix:/run/x.sock", None, "needs to know its address"),
        ("127.0.0.1:7373", "https://a.example/path", "with no path"),
        ("127.0.0.1:7373", "ftp://a.example", "with no path"),
        ("127.0.0.1:7373", "https://u@a.example", "with no path"),
        ("nowhere", None, "HOST:PORT"),
        ("127.0.0.1:99999", None, "HOST:PORT"),
        ("127.0.0.1:80/x", None, "HOST:PORT"),
        ("unix:", None, "needs a path"),
    ],
)
def test_serve_refuses_an_address_that_is_not_safe(
    text: str, public: str | None, says: str
) -> None:
    is_behind_proxy = says.startswith("needs to know")
    with pytest.raises(Misuse, match=says):
        address_of(
            read_listen(text), public_url=public, has_tls=False, is_behind_proxy=is_behind_proxy
        )


def test_an_address_knows_its_own_names() -> None:
    local = address_of(
        Listen(host="127.0.0.1", port=7373), public_url=None, has_tls=False, is_behind_proxy=False
    )
    assert local.public_url == "http://localhost:7373"
    assert local.hosts == {"localhost", "127.0.0.1", "::1"}
    assert not local.is_secure
    proxied = address_of(
        Listen(host="0.0.0.0", port=80),  # noqa: S104 -- that is what is tested
        public_url="https://Inbox.example/",
        has_tls=False,
        is_behind_proxy=True,
    )
    assert proxied.hosts == {"inbox.example"}
    assert proxied.is_secure


def test_a_token_has_a_checksum() -> None:
    secret = new_secret()
    assert is_secret(secret)
    assert secret != new_secret()
    wrong = "x" if secret[10] != "x" else "y"
    assert not is_secret(secret[:10] + wrong + secret[11:])
    assert not any(is_secret(text) for text in ("", "adj_", "adj_é", secret[:-1], f"{secret}0"))


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("wait=50", 50),
        ("respond-async, wait=5", 5),
        ('wait="7"', 7),
        ("nowait=3", None),
        ("", None),
        ("wait=x", None),
    ],
)
def test_how_long_a_client_waits_is_in_its_prefer_header(
    header: str, seconds: float | None
) -> None:
    from starlette.requests import Request

    headers = [(b"prefer", header.encode())]
    assert preferred_wait(Request({"type": "http", "headers": headers})) == seconds


# --- a real server --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return one server for all tests here."""
    shell = Shell(tmp_path_factory.mktemp("guard"))
    shell.adjourn("run", "--", "true")
    with Served(shell) as served:
        yield served
    assert shell.end() == {}


def test_no_foreign_page_decides_and_no_bad_body_does(served: Served) -> None:
    """Nothing of this is recorded, and each refusal is a problem document."""
    shell, ask = served.shell, approvals(served.shell, 1)[0]
    path, body = f"/asks/{ask['id']}/reply", approve(ask)
    with Api(served.url, new_token(shell, "ci", "--scope", "approve")) as api:
        full = f"/api/v1{path}"
        json_type = {"Content-Type": "application/json"}
        refused = {
            "host": api.send("POST", path, body, Host="evil.example"),
            "origin": api.send("POST", path, body, Origin="https://evil.example"),
            "site": api.send("POST", path, body, Sec_Fetch_Site="cross-site"),
            "form": api.http.post(
                full, content=b"verb=approve", headers={"Content-Type": "text/plain"}
            ),
            "json": api.http.post(full, content=b"{", headers=json_type),
            "twice": api.http.post(
                full,
                content=b'{"verb":"reject","verb":"approve","digest":"%b"}'
                % ask["digest"].encode(),
                headers=json_type,
            ),
            "field": api.send("POST", path, body | {"by": "uid:0"}),
            "nul": api.send("POST", path, {"verb": "reject", "reason": "a\0b"}),
            "deep": api.http.post(full, content=b"[" * 100_000, headers=json_type),
            "large": api.http.post(full, content=b" " * 1_100_000, headers=json_type),
            "chunked": api.http.post(
                full, content=(b" " * 100_000 for _ in range(11)), headers=json_type
            ),
            "method": api.send("DELETE", path),
            "unknown": api.send("GET", "/nothing"),
            "query": api.send("GET", "/asks?limit=0"),
            "twice in the query": api.send("GET", "/asks?limit=1&limit=2"),
            "name": api.send("GET", "/asks/%00"),
            "token in the query": httpx2.get(f"{served.url}/api/v1/asks?token={api.token}"),
        }
        assert {name: answer.status_code for name, answer in refused.items()} == {
            "host": 421,
            "origin": 403,
            "site": 403,
            "form": 415,
            "json": 400,
            "twice": 422,
            "field": 422,
            "nul": 422,
            "deep": 422,
            "large": 413,
            "chunked": 413,
            "method": 405,
            "unknown": 404,
            "query": 422,
            "twice in the query": 422,
            "name": 404,
            "token in the query": 401,
        }
        for answer in refused.values():
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.headers["content-security-policy"].startswith("default-src 'none'")
            assert answer.json()["status"] == answer.status_code
            assert "access-control-allow-origin" not in answer.headers
        assert api.get(f"/asks/{ask['id']}")["state"] == "pending"
        assert api.send("OPTIONS", path, Origin="https://evil.example").status_code == 405


def test_who_tries_many_tokens_is_slowed_down_and_others_are_not(served: Served) -> None:
    good = new_token(served.shell, "patient", "--scope", "answer")
    with Api(served.url, new_secret()) as guesser, Api(served.url, good) as patient:
        answers = [guesser.send("GET", "/health").status_code for _ in range(40)]
        assert set(answers) == {401, 429}
        assert answers[-1] == 429
        patient.get("/health")


def test_serve_and_tokens_are_refused_inside_a_run(served: Served) -> None:
    shell = served.shell
    shell.script("adjourn serve --listen 127.0.0.1:0; echo $? >> codes", name="inside.sh")
    shell.adjourn("run", "--", "./inside.sh")
    shell.script("adjourn tokens add x --scope approve; echo $? >> codes", name="inside.sh")
    shell.adjourn("run", "--", "./inside.sh")
    assert shell.lines("codes") == ["5", "5"]


def test_serve_says_why_it_cannot_listen(served: Served) -> None:
    port = served.url.rpartition(":")[2]
    taken = served.shell.adjourn("serve", "--listen", f"127.0.0.1:{port}", expect=2)
    assert "cannot listen" in taken.err
    half = served.shell.adjourn("serve", "--tls-cert", "cert.pem", expect=2)
    assert "go together" in half.err


def test_tokens_are_listed_without_the_token_and_kept_as_hashes(served: Served) -> None:
    shell = served.shell
    secret = new_token(shell, "listed", "--scope", "answer", "--expires", "8h")
    kept = (shell.place / ".config" / "adjourn" / "tokens.json").read_text()
    assert secret not in kept
    listed = shell.adjourn("tokens", "list", "--output", "json").doc["tokens"]
    found = next(token for token in listed if token["name"] == "listed")
    assert (found["principal"], found["scopes"]) == ("token:listed", ["answer"])
    assert secret not in str(listed)
    assert "token:listed" in shell.adjourn("tokens", "list").out
    again = shell.adjourn("tokens", "add", "listed", "--scope", "answer", expect=4)
    assert "already" in again.err
    shell.adjourn("tokens", "add", "powerless", expect=2)
    shell.adjourn("tokens", "add", "../x", "--scope", "answer", expect=2)
    shell.adjourn("tokens", "revoke", "listed")
    shell.adjourn("tokens", "revoke", "listed", expect=3)


def test_a_unix_socket_and_tls_are_served(tmp_path: Path, served: Served) -> None:
    shell = served.shell
    token = new_token(shell, "sockets", "--scope", "answer")
    path = tmp_path / "s"
    options = ("--listen", f"unix:{path}", "--public-url", "https://inbox.example")
    with Served(shell, *options) as _:
        assert path.stat().st_mode & 0o007 == 0
        transport = httpx2.HTTPTransport(uds=str(path))
        headers = {"Authorization": f"Bearer {token}"}
        with httpx2.Client(
            transport=transport, base_url="http://inbox.example", headers=headers
        ) as client:
            answer = client.get("/api/v1/health")
            assert answer.json()["you"] == "token:sockets"
            assert "strict-transport-security" in answer.headers
            assert client.get("/api/v1/health", headers={"Host": "localhost"}).status_code == 200
    assert not path.exists()

    cert, key = certificate(tmp_path)
    with Served(shell, "--tls-cert", str(cert), "--tls-key", str(key)) as secure:
        context = ssl.create_default_context(cafile=str(cert))
        url = secure.url.replace("http://", "https://")
        assert httpx2.get(f"{url}/healthz", verify=context).json() == {"status": "ok"}
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as plain:
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"200" not in plain.recv(100)


def certificate(place: Path) -> tuple[Path, Path]:
    """Write a certificate for localhost, signed by itself, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    cert_path, key_path = place / "cert.pem", place / "key.pem"
    cert_path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return cert_path, key_path
