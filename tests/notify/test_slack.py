"""Buttons in Slack by the real slack_sdk, and apprise, which only tells."""

import json

from tests.e2e.shell import Shell
from tests.notify.channels import (
    NEEDS_APPROVAL,
    decisions,
    first_ask,
    sending_and_hearing,
    trail,
    write_config,
)
from tests.notify.slack_server import (
    APP_TOKEN,
    BOT_TOKEN,
    CHANNEL,
    SlackServer,
    buttons,
    slack,
    text_of,
)
from tests.receiver import answering, receiving


def with_slack(shell: Shell, server: SlackServer) -> None:
    path = write_config(
        shell,
        f"""
[[notify]]
name = "team"
on = ["pause"]
[notify.slack]
channel = "{CHANNEL}"
bot_token_file = "bot"
app_token_file = "app"
api = "{server.api}"
approvers = {{ U1 = "anna", U2 = "ben" }}
""",
    )
    (path.parent / "bot").write_text(BOT_TOKEN)
    (path.parent / "app").write_text(APP_TOKEN)


def test_presses_in_slack_decide_and_messages_say_who_did(shell: Shell) -> None:
    with slack() as server:
        with_slack(shell, server)
        hostile = "<!channel> *bold* <http://evil.example|x> @here"
        asks = [
            first_ask(shell.paused(*NEEDS_APPROVAL)),
            first_ask(shell.paused(*NEEDS_APPROVAL)),
            first_ask(shell.paused("adjourn", "ask", hostile)),
        ]
        with sending_and_hearing(shell):
            server.until(lambda: all(map(server.of_ask, asks)), what="all are shown")
            first, second, third = (server.of_ask(ask)[0] for ask in asks)
            for message in (first, second, third):  # nothing of it is parsed by Slack
                assert message["mrkdwn"] is False
                assert "evil" not in message["text"]
                kinds = {block["type"] for block in message["blocks"]}
                assert kinds <= {"rich_text", "actions"}
            assert list(buttons(first)) == ["Approve", "Reject…"]

            # A stranger is told alone
            press = server.press(first, "Approve", user="U666")
            server.until(lambda: press in server.acknowledged, what="it is acknowledged")
            told = server.until(lambda: server.told, what="the stranger is told")[-1]
            assert told["user"] == "U666"
            assert "slack:U666 may not approve" in json.dumps(told)

            server.press(first, "Approve", user="U1")
            server.until(lambda: not buttons(first), what="the first is locked")
            assert text_of(first).startswith("Approved by anna (slack:U1)")

            server.press(second, "Reject…", user="U2")
            view = server.until(lambda: server.views, what="a window asks why")[-1]
            assert view["trigger_id"] == "trigger-U2"
            server.submit(view, "no", user="U2")
            server.until(lambda: not buttons(second), what="the second is locked")
            assert text_of(second).startswith("Rejected by ben (slack:U2): no")

            server.press(third, "Answer…", user="U1")
            view = server.until(lambda: server.views[1:], what="a window asks")[-1]
            server.submit(view, "forty-two", user="U1")
            server.until(lambda: not buttons(third), what="the third is locked")
    assert [decisions(shell, ask) for ask in asks] == [
        [("ask_approved", "slack:U1")],
        [("ask_rejected", "slack:U2")],
        [("ask_answered", "slack:U1")],
    ]
    refused = [event["by"] for event in trail(shell) if event["kind"] == "refused"]
    assert refused == ["slack:U666"]


def test_apprise_tells_and_its_urls_are_secret(shell: Shell) -> None:
    with receiving() as receiver:
        receiver.answer = answering(200)
        port = receiver.server.server_address[1]
        write_config(shell, f'[[notify]]\napprise = ["json://user:hush@127.0.0.1:{port}/"]\n')
        shell.paused(*NEEDS_APPROVAL)
        shown = shell.adjourn("notify", "--flush").out
        assert "hush" not in shown
        assert "apprise: JSON" in shown
        (told,) = [json.loads(body) for _, body in receiver.taken]
        assert told["title"].startswith("Paused")
        receiver.answer = answering(500)
        done = shell.json("notify", "--test", expect=1)
        assert done["tests"][0]["error"] == "apprise could not tell all of its services"
        write_config(shell, '[[notify]]\napprise = ["nothing-known://hush"]\n')
        refused = shell.adjourn("notify", "--check", expect=2)
        assert "apprise does not know URL number 1" in refused.err
        assert "hush" not in refused.err
