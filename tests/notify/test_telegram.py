"""Buttons in Telegram: who may press, what a press decides, and what every message says then."""

from tests.e2e.shell import Shell, until
from tests.e2e.test_gate import gated, users_policy
from tests.notify.channels import (
    ANNA,
    BEN,
    NEEDS_APPROVAL,
    STRANGER,
    ask_approval,
    decisions,
    first_ask,
    sending_and_hearing,
    trail,
    with_telegram,
)
from tests.notify.telegram_server import Json, TelegramServer, buttons


def test_a_press_approves_and_the_message_says_who_did(shell: Shell, bot: TelegramServer) -> None:
    """A-R: from the pause to the end, by one worker and one press."""
    with_telegram(shell, bot)
    task = shell.paused(*NEEDS_APPROVAL)
    ask = task["asks"][0]["id"]
    worker = shell.start("worker", "--hear", stdout=None, stderr=None)
    try:
        (message,) = bot.until(lambda: bot.of_ask(ask), what="the ask is shown")
        assert list(buttons(message)) == ["Approve", "Reject…"]
        press = bot.press(message["message_id"], "Approve", user=ANNA)
        answer = bot.until(lambda: bot.answer_to(press), what="the press is answered")
        assert answer["text"] == f"Approved by anna (telegram:{ANNA})"
        bot.until(lambda: not buttons(message), what="the message is locked")
        assert message["text"].startswith(f"Approved by anna (telegram:{ANNA})\n")
        until(lambda: shell.state(task["task_id"]) == "succeeded", what="the task went on")
    finally:
        worker.terminate()
        assert worker.wait(60) == 0
    assert decisions(shell, ask) == [("ask_approved", f"telegram:{ANNA}")]


def test_strangers_latecomers_and_rejections(shell: Shell, bot: TelegramServer) -> None:
    with_telegram(shell, bot)
    ask = ask_approval(shell)
    with sending_and_hearing(shell):
        (message,) = bot.until(lambda: bot.of_ask(ask), what="the ask is shown")
        number = message["message_id"]

        # A stranger is told alone, and it is recorded
        press = bot.press(number, "Approve", user=STRANGER)
        answer = bot.until(lambda: bot.answer_to(press), what="the stranger is answered")
        assert answer["show_alert"]
        assert f"telegram:{STRANGER} may not approve" in answer["text"]
        assert buttons(message)

        # A rejection asks for its reason, of whoever may reject only
        press = bot.press(number, "Reject…", user=STRANGER)
        answer = bot.until(lambda: bot.answer_to(press), what="the stranger is answered")
        assert f"telegram:{STRANGER} may not reject" in answer["text"]
        press = bot.press(number, "Reject…", user=BEN)
        prompt = bot.until(lambda: prompts(bot), what="it asks why")[0]
        assert prompt["reply_markup"]["force_reply"]
        bot.reply(prompt["message_id"], "me too", user=STRANGER)
        bot.until(lambda: told_alone(bot, STRANGER), what="the stranger is told alone")
        bot.reply(prompt["message_id"], "not on *Friday* @all http://evil.example", user=BEN)
        bot.until(lambda: not buttons(message), what="the message is locked")
        rejected = f"Rejected by ben (telegram:{BEN}): not on *Friday*"
        assert message["text"].replace("\nmore │ ", "").startswith(rejected)

        # Who comes later is told who was first
        bot.messages[number]["reply_markup"] = {
            "inline_keyboard": [[{"text": "Approve", "callback_data": f"a:{ask}:{'0' * 16}"}]]
        }
        press = bot.press(number, "Approve", user=ANNA)
        answer = bot.until(lambda: bot.answer_to(press), what="the late one is answered")
        assert answer["text"].startswith(f"Too late: rejected by ben (telegram:{BEN})")
        assert not buttons(bot.messages[number])
    assert decisions(shell, ask) == [("ask_rejected", f"telegram:{BEN}")]
    refused = [event for event in trail(shell) if event["kind"] == "refused"]
    assert [event["by"] for event in refused] == [f"telegram:{STRANGER}"] * 3
    assert [event["facts"]["verb"] for event in refused] == ["approve", "reject", "reject"]


def test_questions_have_buttons_or_take_a_reply(shell: Shell, bot: TelegramServer) -> None:
    with_telegram(shell, bot)
    choose = shell.paused(
        "adjourn", "ask", "Which?\n@all *a*", "--choice", "red", "--choice", "x" * 60
    )
    say = shell.paused("adjourn", "ask", "Why?")
    first, second = first_ask(choose), first_ask(say)
    with sending_and_hearing(shell):
        (message,) = bot.until(lambda: bot.of_ask(first), what="the choices are shown")
        assert list(buttons(message)) == ["red", f"2. {'x' * 36}…"]
        bot.press(message["message_id"], f"2. {'x' * 36}…", user=ANNA)
        (other,) = bot.until(lambda: bot.of_ask(second), what="the question is shown")
        bot.reply(other["message_id"], "because *it* is", user=BEN)
        bot.until(
            lambda: all(
                message_text(bot, ask).startswith("Answered by ") for ask in (first, second)
            ),
            what="both are answered",
        )
        assert locked(bot, first)
    assert decisions(shell, first) == [("ask_answered", f"telegram:{ANNA}")]
    assert decisions(shell, second) == [("ask_answered", f"telegram:{BEN}")]
    assert shell.adjourn("resume", choose["task_id"]).code == 0
    assert "x" * 60 in shell.adjourn("logs", choose["task_id"]).out
    assert "because *it* is" in message_text(bot, second)


def test_whatever_settles_an_ask_takes_its_buttons(shell: Shell, bot: TelegramServer) -> None:
    """Also for who wants to be told of pauses only: decided at a terminal, canceled, expired."""
    with_telegram(shell, bot, on='on = ["pause"]')
    decided, canceled = shell.paused(*NEEDS_APPROVAL), shell.paused(*NEEDS_APPROVAL)
    expiring = shell.paused("adjourn", "ask", "Soon?", "--expires-after", "1s")
    asks = [first_ask(each) for each in (decided, canceled, expiring)]
    with sending_and_hearing(shell):
        bot.until(lambda: all(map(bot.of_ask, asks[:2])), what="they are shown")
        shell.adjourn("approve", asks[0])
        shell.adjourn("cancel", canceled["task_id"])
        until(lambda: shell.adjourn("inbox").out.count("Soon?") == 0, what="it has expired")
        shell.adjourn("doctor", expect=None)  # settles what is over
        bot.until(lambda: all(locked(bot, ask) for ask in asks[:2]), what="they are locked")
    assert message_text(bot, asks[0]).startswith(f"Approved by {shell.me}\n")
    assert message_text(bot, asks[1]).startswith("Withdrawn: it needs no reply any more")


def test_a_button_never_overrides_and_a_cut_message_cannot_be_approved(
    shell: Shell, bot: TelegramServer
) -> None:
    with_telegram(shell, bot)
    users_policy(shell, '[[rule]]\nargs = ["touch", "**"]\naction = "never"\n')
    never = first_ask(gated(shell, "touch", "made"))
    long = first_ask(shell.json("run", "--pause-on-approval", "--", "echo", "w" * 9000, expect=10))
    with sending_and_hearing(shell):
        (message,) = bot.until(lambda: bot.of_ask(never), what="the never is shown")
        assert list(buttons(message)) == ["Reject…"]
        assert "your policy says never" in message["text"].replace("\nmore │ ", "")
        message["reply_markup"] = {  # as if somebody made the button up
            "inline_keyboard": [[{"text": "Approve", "callback_data": f"a:{never}:{'0' * 16}"}]]
        }
        (cut,) = bot.until(lambda: bot.of_ask(long), what="the long one is shown")
        assert list(buttons(cut)) == ["Reject…"]
        assert "more lines are not shown here. Show all of it with: " in cut["text"]
        press = bot.press(message["message_id"], "Approve", user=ANNA)
        bot.until(lambda: bot.answer_to(press), what="the press is answered")
    assert decisions(shell, never) == []


def test_four_eyes_say_who_is_missing_and_what_changed_is_shown_anew(
    shell: Shell, bot: TelegramServer
) -> None:
    people = "".join(
        f'[[person]]\nname = "{name}"\nprincipals = ["key:{name}"]\n' for name in ("anna", "ben")
    )
    with_telegram(shell, bot, more=people)
    rule = '[[rule]]\ntool = "command"\nargs = ["sh", "**"]\naction = "prompt"\n'
    users_policy(shell, f'{rule}approvals = 2\napprovers = ["anna", "ben"]\n')
    manifest = shell.json("run", "--pause-on-approval", "--", "sh", "-c", "true", expect=10)
    ask = first_ask(manifest)
    with sending_and_hearing(shell):
        (message,) = bot.until(lambda: bot.of_ask(ask), what="the ask is shown")
        assert "0 of 2 approvals; still missing: anna, ben" in joined(message)
        press = bot.press(message["message_id"], "Approve", user=ANNA)
        answer = bot.until(lambda: bot.answer_to(press), what="the press is answered")
        assert answer["text"] == "Your approval counts: 1 of 2 approvals (anna); still missing: ben"
        bot.until(lambda: "1 of 2 approvals (anna)" in joined(message), what="it is updated")
        # The same person once more counts no more
        press = bot.press(message["message_id"], "Approve", user=ANNA)
        answer = bot.until(lambda: bot.answer_to(press), what="the press is answered")
        assert "anna approved ask" in answer["text"]
        # A message that shows other bytes than those that would run
        stale = dict(message, message_id=1, text="older")
        stale["reply_markup"] = {
            "inline_keyboard": [[{"text": "Approve", "callback_data": f"a:{ask}:{'0' * 16}"}]]
        }
        bot.messages[1] = stale
        press = bot.press(1, "Approve", user=BEN)
        answer = bot.until(lambda: bot.answer_to(press), what="the press is answered")
        assert answer["text"].startswith("This has changed since it was shown.")
        assert not buttons(stale)
        newest = bot.messages[max(bot.messages)]
        assert newest is not message
        bot.press(newest["message_id"], "Approve", user=BEN)
        bot.until(lambda: locked(bot, ask), what="all are locked")
    assert decisions(shell, ask) == [("ask_approved", f"telegram:{BEN}")]


def test_a_server_takes_presses_too(shell: Shell, bot: TelegramServer) -> None:
    with_telegram(shell, bot, on='on = ["pause"]')
    ask = ask_approval(shell)
    shell.adjourn("notify", "--flush")
    (message,) = bot.of_ask(ask)
    server = shell.start("serve", "--listen", "127.0.0.1:0", stdout=None, stderr=None)
    try:
        press = bot.press(message["message_id"], "Approve", user=ANNA)
        answer = bot.until(lambda: bot.answer_to(press), what="the press is answered")
        assert answer["text"] == f"Approved by anna (telegram:{ANNA})"
    finally:
        server.terminate()
        assert server.wait(60) == 0
    assert decisions(shell, ask) == [("ask_approved", f"telegram:{ANNA}")]


def prompts(bot: TelegramServer) -> list[Json]:
    return [each for each in bot.messages.values() if each["text"].startswith("Why is it rejected")]


def told_alone(bot: TelegramServer, user: int) -> list[Json]:
    return [each for each in bot.messages.values() if each["chat"]["id"] == user]


def locked(bot: TelegramServer, ask: str) -> bool:
    shown = bot.of_ask(ask)
    return bool(shown) and not any(buttons(each) for each in shown)


def message_text(bot: TelegramServer, ask: str) -> str:
    return joined(bot.of_ask(ask)[0])


def joined(message: Json) -> str:
    """Return a message's text without the breaks that its narrow lines need."""
    text: str = message["text"].replace("\nmore │ ", "")
    return text
