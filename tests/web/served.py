"""A real `adjourn serve` over a real store, and people with browsers who log in to it."""

import contextlib
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from types import TracebackType
from typing import Self

import httpx2

from tests.e2e.shell import Shell, until

SECONDS = 30.0
_SERVING = re.compile(r"serving \S+ on (?:\S+:(\d+)|unix:\S+)\n")


class Served:
    """One server, as a person starts it; it has ended when the block has."""

    def __init__(self, shell: Shell, *options: str, listen: str = "127.0.0.1:0") -> None:
        self.shell = shell
        self._listen = listen
        self._options = options
        self.url = ""

    def __enter__(self) -> Self:
        self._log = self.shell.place / "serve.log"
        words = ("serve", "--listen", self._listen, *self._options)
        with self._log.open("wb") as log:
            self.process = self.shell.start(*words, stdout=subprocess.DEVNULL, stderr=log)

        def has_begun() -> bool:
            assert self.process.poll() is None, self._log.read_text()
            return _SERVING.search(self._log.read_text()) is not None

        try:
            until(has_begun, what="the server listens", seconds=SECONDS)
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        found = _SERVING.search(self._log.read_text())
        assert found
        self.url = f"http://localhost:{found[1]}"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> str:
        """Stop it as systemd does, and return its log."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            assert self.process.wait(SECONDS) == 0, self._log.read_text()
        finally:
            self.process.kill()
            self.process.wait()
        return self._log.read_text()

    def link(self, user: str) -> str:
        """Return a link by which a user logs in; the user is added if need be."""
        done = self.shell.adjourn("users", "add", user, "--output", "json", expect=None)
        if done.code:
            done = self.shell.adjourn("users", "link", user, "--output", "json")
        link: str = done.doc["link"]
        return link

    @contextlib.contextmanager
    def browser(self, user: str | None = None) -> Iterator["Client"]:
        """Return a browser without JavaScript, of a user who has logged in."""
        with Client(self.url) as client:
            if user:
                client.log_in(self.link(user))
            yield client


class Client:
    """Gets pages and sends forms as a browser does."""

    def __init__(self, url: str) -> None:
        self._http = httpx2.Client(base_url=url, timeout=SECONDS)
        self._origin = {"Origin": url, "Sec-Fetch-Site": "same-origin"}
        self.cookies = self._http.cookies

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def log_in(self, link: str) -> "Page":
        """Paste a link, as without JavaScript."""
        return self.post("/login", {"code": link})

    def get(self, path: str, **headers: str) -> "Page":
        """Get a page."""
        return Page(self._http.get(path, headers=headers))

    def post(
        self, path: str, fields: Mapping[str, str | list[str]] | None = None, **headers: str
    ) -> "Page":
        """Send a form from one of our own pages; a field may have several values."""
        given = self._origin | {key.replace("_", "-"): value for key, value in headers.items()}
        encoded = httpx2.QueryParams(fields or {})
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return Page(self._http.post(path, content=str(encoded).encode(), headers=given | kind))


class Page:
    """What a browser got."""

    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self.headers = response.headers
        self.html = response.text
        self.to = response.headers.get("location")

    @property
    def text(self) -> str:
        """What a person reads."""
        return text_of(self.html)

    @property
    def asks(self) -> list[str]:
        """The asks that it leads to, in order."""
        return list(dict.fromkeys(re.findall(r'href="/asks/([a-z2-7]{26})"', self.html)))

    def field(self, name: str) -> str:
        """Return the value of the first hidden field of that name."""
        found = re.search(rf'name="{name}" value="([^"]*)"', self.html)
        assert found, f"no field {name}"
        return _unescaped(found[1])


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.elements: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.elements.append(tag)
        self.parts.extend("\n" for _ in [0] if tag in {"p", "li", "div", "dt", "h1", "h2"})


def text_of(html: str) -> str:
    """Return the text of HTML."""
    parser = _Text()
    parser.feed(html)
    parser.close()
    return "".join(parser.parts)


def elements_of(html: str) -> list[str]:
    """Return the names of all elements."""
    parser = _Text()
    parser.feed(html)
    parser.close()
    return parser.elements


def _unescaped(text: str) -> str:
    return text_of(f"<p>{text}</p>").lstrip("\n")
