"""Many people press at random, processes are killed at every step, and channels are away.

One decision for each ask, no press lost, none taken twice, and every message says who decided.
"""

import os
import random
import signal
import threading
import time
from typing import Any

import pytest

from tests.e2e.shell import Shell, until
from tests.notify.channels import (
    ANNA,
    BEN,
    CLEO,
    NEEDS_APPROVAL,
    STRANGER,
    decisions,
    first_ask,
    helper,
    sending_and_hearing,
    trail,
    with_telegram,
    write_config,
)
from tests.notify.telegram_server import TelegramServer, buttons

NAMES = {ANNA: "anna", BEN: "ben", CLEO: "cleo"}
SETTLING = {"ask_approved": "Approved", "ask_answered": "Answered"}


def test_many_presses_by_three_people_are_one_decision_each(
    shell: Shell, bot: TelegramServer, sweep: str
) -> None:
    asks_wanted, presses_wanted = (100, 1_000) if sweep == "full" else (6, 60)
    chance = random.Random(18)
    with_telegram(shell, bot, on='on = ["pause"]')
    asks = [_ask(shell, number) for number in range(asks_wanted)]
    with sending_and_hearing(shell):
        bot.until(lambda: all(map(bot.of_ask, asks)), what="all are shown", timeout=300)
        # What each message offered at first: a phone may show it after it was locked
        offered = {ask: dict(bot.of_ask(ask)[0]) for ask in asks}
        presses: list[str] = []
        for _ in range(presses_wanted):
            shown = offered[chance.choice(asks)]
            label = next(iter(buttons(shown)))
            presses.append(bot.press_shown(shown, label, user=chance.choice(list(NAMES))))
        bot.until(lambda: all(map(bot.answer_to, presses)), what="each is answered", timeout=600)
        bot.until(
            lambda: all(not buttons(bot.of_ask(ask)[0]) for ask in asks),
            what="all are settled and locked",
            timeout=300,
        )

    events = [each for each in trail(shell) if each["kind"] in SETTLING]
    decided = {event["facts"]["ask"]: event for event in events}
    assert len(decided) == len(events)  # one each
    for ask, event in decided.items():
        user = int(event["by"].removeprefix("telegram:"))
        text = bot.of_ask(ask)[0]["text"]
        assert text.startswith(f"{SETTLING[event['kind']]} by {NAMES[user]} ({event['by']})")
    assert decided.keys() == set(asks)
    answers = [answer["text"] for press in presses if (answer := bot.answer_to(press))]
    assert sum(not text.startswith("Too late: ") for text in answers) >= len(asks)


def _ask(shell: Shell, number: int) -> str:
    """Make an approval, or a question with choices: their buttons are taken alike."""
    if number % 2:
        return first_ask(shell.paused("adjourn", "ask", "Go?", "--choice", "yes", "--key", "k"))
    return first_ask(shell.paused(*NEEDS_APPROVAL))


STEPS = ("getUpdates", "sendMessage", "editMessageText", "answerCallbackQuery")


@pytest.mark.parametrize("step", STEPS)
def test_whoever_is_killed_loses_no_press_and_takes_none_twice(
    shell: Shell, bot: TelegramServer, step: str
) -> None:
    """The listener and the sender are killed whenever they call, before they hear the answer."""
    with_telegram(shell, bot, on='on = ["pause"]')
    asks = [first_ask(shell.paused(*NEEDS_APPROVAL)) for _ in range(2)]
    kills = 0
    pids: dict[str, int] = {}
    lock = threading.Lock()

    def kill(method: str, result: Any) -> None:
        nonlocal kills
        role = "--hear" if method in {"getUpdates", "answerCallbackQuery"} else "--follow"
        with lock:
            if method != step or kills >= 3 or role not in pids or result == []:
                return
            kills += 1
            os.kill(pids.pop(role), signal.SIGKILL)

    bot.on_call = kill
    stop = threading.Event()
    keepers = [
        threading.Thread(target=_keep, args=(shell, role, pids, lock, stop))
        for role in ("--hear", "--follow")
    ]
    for keeper in keepers:
        keeper.start()
    try:
        bot.until(lambda: all(map(bot.of_ask, asks)), what="both are shown", timeout=120)
        for ask in asks:
            first = bot.of_ask(ask)[0]["message_id"]  # of one that was sent twice, the lost one
            bot.press(first, "Approve", user=ANNA)
            bot.press_shown(bot.of_ask(ask)[0], None, data=f"a:{ask}:{'0' * 16}", user=STRANGER)
        bot.until(
            lambda: all(not buttons(bot.of_ask(ask)[0]) for ask in asks),
            what="the pressed messages are locked",
            timeout=120,
        )
        until(lambda: not bot.updates, what="all updates are confirmed", seconds=120)
    finally:
        stop.set()
        for keeper in keepers:
            keeper.join(60)
    assert kills > 0
    refused = [event["by"] for event in trail(shell) if event["kind"] == "refused"]
    assert refused == [f"telegram:{STRANGER}"] * len(asks)  # each once
    for ask in asks:
        assert decisions(shell, ask) == [("ask_approved", f"telegram:{ANNA}")]
        text = bot.of_ask(ask)[0]["text"]
        assert text.startswith(f"Approved by anna (telegram:{ANNA})")


def _keep(
    shell: Shell, role: str, pids: dict[str, int], lock: threading.Lock, stop: threading.Event
) -> None:
    """Start a process again whenever it was killed, as a worker does."""
    while not stop.is_set():
        with helper(shell, "notify", role) as process:
            with lock:
                pids[role] = process.pid
            while process.poll() is None and not stop.is_set():
                time.sleep(0.02)
            with lock:
                pids.pop(role, None)


def test_a_channel_that_is_away_delays_nobody_and_is_told_later(
    shell: Shell, bot: TelegramServer
) -> None:
    with_telegram(shell, bot)
    config = write_config(
        shell,
        (shell.place / ".config" / "adjourn" / "config.toml").read_text()
        + '[[notify]]\nname = "file"\ncommand = ["sh", "-c", "cat >> told; echo >> told"]\n',
    )
    config.chmod(0o600)
    shell.environment["HOME"] = str(shell.place)
    bot.is_away = True
    ask = first_ask(shell.paused(*NEEDS_APPROVAL))
    with sending_and_hearing(shell):
        told = shell.place / "told"
        until(lambda: told.exists() and ask in told.read_text(), what="the other is told")
        shell.adjourn("approve", ask)
        until(lambda: told.read_text().count('"ask_approved"') == 1, what="of the decision, too")
        bot.is_away = False
        shell.adjourn("notify", "--flush")
    assert decisions(shell, ask) == [("ask_approved", shell.me)]
    assert all(not buttons(each) for each in bot.messages.values())
