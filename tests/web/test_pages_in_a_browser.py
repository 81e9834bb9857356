"""The pages in a real Chromium: live, by keys, on a phone, for everybody, and with passkeys.

Issue 18, points 2 and 3; facts 3.4.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from adjourn.core.text.render import argv_lines
from tests.e2e.shell import Shell, until
from tests.programs import program
from tests.web.browsers import PATIENCE, Watched, chromium
from tests.web.served import Served

DESKTOP = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 800}, "has_touch": True, "is_mobile": True}
NARROW = {"viewport": {"width": 360, "height": 640}}

SIGNED = """
[[rule]]
tool = "command"
args = ["touch", "signed"]
action = "prompt"
signed = true
[[rule]]
tool = "command"
args = ["touch", "void"]
action = "prompt"
approvals = 2
approvers = ["anna", "ben"]
"""
PEOPLE = """
[[person]]
name = "anna"
principals = ["passkey:signer"]
[[person]]
name = "ben"
principals = ["{me}"]
"""

expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    shell = Shell(tmp_path_factory.mktemp("browser"))
    shell.adjourn("run", "--", "true")
    with Served(shell) as served:
        yield served
    assert shell.end() == {}


def approval(served: Served, *words: str) -> str:
    task = served.shell.json("run", "--pause-on-approval", "--", *words, expect=10)["task_id"]
    store = served.shell.open_store()
    with contextlib.closing(store), store.read() as view:
        return view.open_asks_of(task)[-1].id


def decided(served: Served, ask: str) -> tuple[str, str | None, str | None]:
    """Return the state of an ask, who settled it, and the level."""
    store = served.shell.open_store()
    with contextlib.closing(store), store.read() as view:
        found = view.ask(ask)
    settled = found.settlement
    return str(found.state), settled.by if settled else None, settled.level if settled else None


def go(page: Page, path: str) -> None:
    """Open a page, once the one before is whole: two navigations at once end each other."""
    page.wait_for_load_state()
    page.goto(path)


def log_in(page: Page, served: Served, user: str) -> None:
    """Open a link as it was printed, and press the button."""
    page.goto(served.link(user))
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()


def test_a_link_logs_in_and_its_token_leaves_the_address(browser: Browser, served: Served) -> None:
    with Watched(browser, served.url) as page:
        link = served.link("anna")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(link)
        expect(page.locator("#code")).to_have_value(link.partition("#")[2])
        assert "#" not in page.url
        page.get_by_role("button", name="Log in", exact=True).click()
        expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
        assert all(link.partition("#")[2] not in url.partition("#")[0] for url in asked)


def test_one_decides_and_the_other_sees_it_at_once(browser: Browser, served: Served) -> None:
    """A key in one window, and the other window's list and open form follow."""
    first, second = approval(served, "true", "first"), approval(served, "true", "second")
    with Watched(browser, served.url) as one, Watched(browser, served.url) as two:
        log_in(one, served, "anna")
        log_in(two, served, "ben")
        with Watched(browser, served.url) as three:
            log_in(three, served, "cleo")
            go(three, f"/asks/{first}")
            expect(two.locator(f"#ask-{first}")).to_be_visible()
            go(one, f"/asks/{first}")
            # A key that is held down decides nothing; pressed once, it does
            one.evaluate(
                "document.body.dispatchEvent("
                "new KeyboardEvent('keydown', {key: 'a', repeat: true, bubbles: true}))"
            )
            assert decided(served, first)[0] == "pending"
            one.keyboard.press("a")
            # It moves on to the next one
            expect(one.get_by_role("status").first).to_contain_text("was approved by web:anna")
            assert one.url.partition("?")[0].endswith(f"/asks/{second}")
            expect(two.locator(f"#ask-{first}")).to_have_count(0)
            expect(three.locator("#settled")).to_contain_text("It was approved by web:anna")
            expect(three.locator("#act button").first).to_be_disabled()
        # A new ask appears, and the title counts it
        before = two.title()
        third = approval(served, "true", "third")
        expect(two.locator(f"#ask-{third}")).to_be_visible()
        assert two.title() != before
        # j and k move, Enter opens
        two.keyboard.press("j")
        two.keyboard.press("Enter")
        expect(two.get_by_role("heading", name="Decide")).to_be_visible()
        two.wait_for_load_state()
        two.keyboard.press("?")
        expect(two.get_by_text("Approve this call, as it is shown.")).to_be_visible()
        go(two, f"/asks/{third}")
        two.keyboard.press("r")
        two.keyboard.type("not so")
        two.get_by_role("button", name="Reject", exact=True).click()
        expect(two.get_by_role("status").first).to_contain_text("was rejected by web:ben")
    assert decided(served, first) == ("approved", "web:anna", "L0")


@pytest.mark.parametrize("settings", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "plain"])
def test_everything_can_be_done(
    browser: Browser, served: Served, settings: dict[str, Any], *, scripts: bool
) -> None:
    """Log in, filter, open, edit, approve; select several, confirm, with and without scripts."""
    name = f"{'scripts' if scripts else 'plain'}{settings['viewport']['width']}"
    asks = [approval(served, "true", f"{name} {number}") for number in range(3)]
    with Watched(browser, served.url, java_script_enabled=scripts, **settings) as page:
        link = served.link("anna")
        go(page, "/")
        page.get_by_label("Link or code").fill(link)
        page.get_by_role("button", name="Log in", exact=True).click()
        page.locator("summary", has_text="Filter").click()
        page.get_by_label("Text").fill(name)
        page.get_by_role("button", name="Show those").click()
        expect(page.locator("a.ask")).to_have_count(3)

        page.locator("a.ask").first.click()
        page.get_by_role("link", name="Edit, then approve").click()
        text = page.get_by_label("Arguments, as JSON")
        text.fill(text.input_value().replace(f"{name} 0", f"{name} edited"))
        page.get_by_role("button", name="Show what would run").click()
        expect(
            page.get_by_text(f"+ {name} edited").or_(page.get_by_text(f"{name} edited").first)
        ).to_be_visible()
        page.get_by_role("button", name="Approve it so").click()
        expect(page.get_by_role("status").first).to_contain_text("was approved by web:anna")

        go(page, f"/?q={name}")
        for box in page.get_by_role("checkbox").all():
            box.check()
        page.get_by_role("button", name="Reject…").click()
        page.get_by_label("Reason (optional)").fill("no more")
        page.get_by_role("button", name="Reject all 2").click()
        expect(page.get_by_role("status").first).to_contain_text("was rejected by web:anna")
        go(page, "/settled")
        expect(page.get_by_text(f"{name} edited").first).to_be_visible()
    assert [decided(served, ask)[0] for ask in asks] == ["approved", "rejected", "rejected"]


def test_every_page_is_usable_by_everybody(browser: Browser, served: Served) -> None:
    """axe-core finds nothing serious in both colour schemes; 360 px need no sideways scrolling."""
    axe = Path(program("axe")).read_text(encoding="utf-8")
    ask = approval(served, "sh", "-c", "echo " + "long-word-without-a-break" * 20)
    served.shell.json("run", "--", "adjourn", "ask", "Which one?", "--choice", "a", expect=10)
    store = served.shell.open_store()
    with contextlib.closing(store), store.read() as view:
        task = view.ask(ask).task_id
        question = next(each.id for each in view.open_asks(limit=100) if each.kind == "question")
    paths = [
        *("/", "/snoozed", "/settled", "/tasks", "/rules", "/audit", "/account"),
        *(f"/asks/{ask}", f"/asks/{question}", f"/asks/{ask}/edit", f"/tasks/{task}"),
        f"/asks/{'a' * 26}",
    ]
    for scheme in ("light", "dark"):
        with Watched(browser, served.url, color_scheme=scheme, **NARROW) as page:
            log_in(page, served, "anna")
            for path in paths:
                go(page, path)
                width = page.evaluate("document.documentElement.scrollWidth")
                assert width <= 360, f"{path} is {width} px wide"
                small = page.evaluate(
                    "[...document.querySelectorAll('a.button, button, nav a, select, summary, a.ask')]"
                    ".filter(each => each.offsetParent && each.getBoundingClientRect().height < 44)"
                    ".map(each => each.outerHTML)"
                )
                assert small == [], f"{path}: targets of less than 44 px"
                page.evaluate(axe)
                found = page.evaluate("axe.run().then(found => found.violations)")
                serious = [
                    (each["id"], each["nodes"][0]["html"])
                    for each in found
                    if each["impact"] in {"serious", "critical"}
                ]
                assert serious == [], f"{path} in {scheme}"


def test_hostile_text_is_text(browser: Browser, served: Served) -> None:
    """What the renderer shows is what the document holds, and no element is made of it."""
    texts = [
        "<script>document.title='owned'</script>",
        "<img src=x onerror=alert(1)>",
        '"><a href="/asks">x',
        "{{ 7 * 7 }}{% raw %}",
        "&lt;b&gt;",
        "safe\u202e; rm -rf /",
        "\x1b]0;title\x07",
        "</pre></article><h1>Approved</h1>",
    ]
    ask = approval(served, "true", *texts)
    with Watched(browser, served.url) as page:
        log_in(page, served, "anna")
        go(page, f"/asks/{ask}?full=1")
        text = page.locator("article .view").first.evaluate("each => each.textContent")
        for row in argv_lines(["true", *texts]):
            assert row in text
        for character in ("\u202e", "\x1b", "\x07"):
            assert character not in text
        assert page.locator("article script, article img, article h1 h1").count() == 0
        assert page.locator("article h1").count() == 1
        assert "owned" not in page.title()


def test_a_decision_is_signed_with_a_passkey_and_verified_again(
    browser: Browser, served: Served
) -> None:
    """Level L2 from a browser: kept with the decision, verified before the gate, void if removed."""
    policy = served.shell.project / "policy.toml"
    policy.write_text(SIGNED)
    config = Path(served.shell.environment["XDG_CONFIG_HOME"]) / "adjourn"
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.toml").write_text(PEOPLE.format(me=served.shell.me))
    (config / "config.toml").chmod(0o600)
    runs, void, plain = (approval(served, "touch", name) for name in ("signed", "void", "signed"))
    with Watched(browser, served.url) as page:
        log_in(page, served, "signer")
        go(page, f"/asks/{plain}")
        expect(page.get_by_text("It needs a signature")).to_be_visible()
        devices = page.context.new_cdp_session(page)
        devices.send("WebAuthn.enable")
        devices.send(
            "WebAuthn.addVirtualAuthenticator",
            {
                "options": {
                    "protocol": "ctap2",
                    "transport": "internal",
                    "hasResidentKey": True,
                    "hasUserVerification": True,
                    "isUserVerified": True,
                    "automaticPresenceSimulation": True,
                }
            },
        )
        go(page, "/account")
        page.get_by_role("button", name="Add a passkey").click()
        expect(page.get_by_text("for localhost, since")).to_be_visible()

        for ask in (runs, void):
            go(page, f"/asks/{ask}")
            page.get_by_role("button", name="Approve with passkey").click()
            told = "by passkey:signer" if ask == runs else "1 of 2 approvals (anna)"
            expect(page.get_by_role("status").first).to_contain_text(told)
        assert decided(served, runs) == ("approved", "passkey:signer", "L2")

        # The same passkey logs in
        go(page, "/account")
        page.get_by_role("button", name="Log out", exact=True).click()
        page.get_by_role("button", name="Log in with a passkey").click()
        expect(page.get_by_role("heading", name="Inbox")).to_be_visible()

    until((served.shell.place / "signed").exists, what="the task went on", seconds=60)
    served.shell.adjourn("audit", "verify")

    # Its passkey is gone when the second person approves: the gate stays shut
    served.shell.adjourn("users", "remove", "signer")
    served.shell.adjourn("approve", void)
    refused = served.shell.adjourn("resume", void, expect=10)
    exported = served.shell.adjourn("audit", "export", void).out
    assert "nobody has that passkey" in exported + refused.out + refused.err
    assert not (served.shell.place / "void").exists()
    policy.unlink()
    (config / "config.toml").unlink()
