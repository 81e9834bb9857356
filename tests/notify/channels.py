"""How a test configures channels, starts those who send and listen, and makes asks."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.shell import Document, Shell
from tests.notify.telegram_server import CHAT, TOKEN, TelegramServer

ANNA, BEN, CLEO, STRANGER = 41, 42, 43, 666
NEEDS_APPROVAL = ("sh", "-c", '[ "$AUTO_APPROVAL" ] || exit 90')


def write_config(shell: Shell, text: str) -> Path:
    path = Path(shell.environment["XDG_CONFIG_HOME"]) / "adjourn" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def with_telegram(shell: Shell, bot: TelegramServer, *, more: str = "", on: str = "") -> None:
    """Configure a bot whose buttons Anna, Ben and Cleo may press."""
    path = write_config(
        shell,
        f"""{more}
[[notify]]
name = "phone"
{on}
[notify.telegram]
chat = {CHAT}
token_file = "bot.token"
api = "{bot.api}"
approvers = {{ {ANNA} = "anna", {BEN} = "ben", {CLEO} = "cleo" }}
""",
    )
    (path.parent / "bot.token").write_text(f"{TOKEN}\n")


@contextmanager
def helper(shell: Shell, *words: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Have a process that stays until its stdin is closed, as a worker starts it."""
    process = shell.start(*words, stdin=subprocess.PIPE, stdout=None, stderr=None)
    try:
        yield process
    finally:
        if process.stdin:
            process.stdin.close()
        process.wait(60)


@contextmanager
def sending_and_hearing(shell: Shell) -> Iterator[None]:
    """Have what `worker --hear` starts, without the worker."""
    with helper(shell, "notify", "--follow"), helper(shell, "notify", "--hear"):
        yield


def ask_approval(shell: Shell) -> str:
    """Run a command that pauses, and return the id of its ask."""
    return first_ask(shell.paused(*NEEDS_APPROVAL))


def first_ask(document: Document) -> str:
    found: str = document["asks"][0]["id"]
    return found


def trail(shell: Shell) -> list[Document]:
    """Return everything that happened, oldest first."""
    return [json.loads(line) for line in shell.adjourn("audit", "export").out.splitlines()]


def decisions(shell: Shell, ask: str) -> list[tuple[str, str]]:
    """Return what settled an ask, and who did: it should be one thing."""
    kinds = {"ask_approved", "ask_rejected", "ask_answered", "ask_expired", "ask_withdrawn"}
    return [
        (event["kind"], event["by"])
        for event in trail(shell)
        if event["kind"] in kinds and event["facts"].get("ask") == ask
    ]
