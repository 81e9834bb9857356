"""A real Chromium for the tests of the pages: one for all tests of a worker."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, Route, sync_playwright

from tests.needs import needs

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 30_000  # milliseconds, for a busy machine


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser of the distribution; nothing is downloaded."""
    path = needs("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS, headless=True)
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A window in which whatever the browser complains of is noted."""

    def __init__(self, browser: Browser, url: str, **settings: Any) -> None:
        self.context: BrowserContext = browser.new_context(base_url=url, **settings)
        self.context.set_default_timeout(PATIENCE)
        self.complaints: list[str] = []
        self.outside: list[str] = []
        self.context.on("console", lambda said: self._note(said.type, said.text))
        self.context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        self._url = url
        self.context.route("**/*", self._watch)
        self.page: Page = self.context.new_page()

    def _note(self, kind: str, text: str) -> None:
        # A page that tells of a refusal has a status that Chromium calls an error
        if kind in {"error", "warning"} and "status of 4" not in text:
            self.complaints.append(text)

    def _watch(self, route: Route) -> None:
        if not route.request.url.startswith((self._url, "data:")):
            self.outside.append(route.request.url)
        route.continue_()

    def __enter__(self) -> Page:
        return self.page

    def __exit__(self, kind: object, *_: object) -> None:
        self.context.close()
        if kind is None:
            assert self.complaints == [], "the browser complains"
            assert self.outside == [], "pages load nothing from elsewhere"
