#!/usr/bin/env python3
"""Photographs the web pages for docs/pictures/: a real store, a real server, a real Chromium."""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.e2e.shell import Shell
from tests.web.browsers import chromium
from tests.web.served import Served

PICTURES = Path(__file__).resolve().parent / "pictures"
PLACE = Path("/tmp/anna/shop")  # noqa: S108 -- it is on the pictures, and refused if it is there
SHOTS = {
    "web-inbox": ("/", 1280, "light"),
    "web-inbox-phone": ("/", 390, "dark"),
    "web-ask": ("ask", 1280, "dark"),
    "web-ask-phone": ("ask", 390, "light"),
    "web-question-phone": ("question", 390, "dark"),
    "web-task": ("task", 1280, "light"),
}
PLAN = """[[rule]]
tool = "command"
args = ["rm", "**"]
action = "never"
"""


def main() -> int:
    """Take all pictures, or those that are named."""
    wanted = sys.argv[1:] or list(SHOTS)
    PLACE.parent.mkdir()
    try:
        PLACE.mkdir()
        shell = Shell(PLACE)
        (shell.project / "policy.toml").write_text(PLAN)
        shell.script("echo deployed", name="deploy.sh")
        shell.adjourn("run", "--", "sh", "-c", "echo built 214 files")
        shell.adjourn(
            *("run", "--pause-on-approval", "--", "terraform", "apply", "-auto-approve"),
            *("-var", "region=eu-central-1", "plan.out"),
            expect=10,
        )
        question = shell.json(
            *("run", "--", "adjourn", "ask", "The tests need a database. Which one?"),
            *("--choice", "SQLite, in memory", "--choice", "PostgreSQL 16 in a container"),
            expect=10,
        )["task_id"]
        ask = shell.json("run", "--pause-on-approval", "--", "./deploy.sh", "production", expect=10)
        shell.adjourn("run", "--pause-on-approval", "--", "rm", "-rf", "build", expect=10)
        asks = {each["task_id"]: each["id"] for each in shell.inbox()}
        paths = {
            "ask": f"/asks/{asks[ask['task_id']]}",
            "question": f"/asks/{asks[question]}",
            "task": f"/tasks/{ask['task_id']}",
        }
        with Served(shell) as served, chromium() as browser:
            state = _logged_in(browser, served)
            for name in wanted:
                path, width, scheme = SHOTS[name]
                context = browser.new_context(
                    base_url=served.url,
                    storage_state=state,
                    viewport={"width": width, "height": 800},
                    color_scheme=scheme,
                    device_scale_factor=1 if width > 400 else 2,  # noqa: PLR2004 -- a phone
                )
                page: Page = context.new_page()
                page.goto(paths.get(path, path))
                page.screenshot(path=PICTURES / f"{name}.png", full_page=True)
                context.close()
    finally:
        shutil.rmtree(PLACE.parent)
        shutil.rmtree(PLACE.with_name("shop-state"), ignore_errors=True)
    return 0


def _logged_in(browser: Browser, served: Served) -> str:
    context = browser.new_context()
    page = context.new_page()
    page.goto(served.link("anna"))
    page.get_by_role("button", name="Log in", exact=True).click()
    page.wait_for_url(f"{served.url}/")
    path = PLACE / "cookies.json"
    context.storage_state(path=path)
    context.close()
    return str(path)


if __name__ == "__main__":
    sys.exit(main())
