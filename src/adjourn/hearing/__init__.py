"""Takes what people press in chats, for `adjourn worker --hear` and `adjourn serve`."""

import os
import threading
import time
from collections.abc import Callable
from typing import Protocol

from adjourn.core.backoff import backoff
from adjourn.core.errors import AdjournError, Misuse
from adjourn.core.redact import Redactor
from adjourn.hearing.presses import Presses
from adjourn.hearing.telegram import BotApi, TelegramListener
from adjourn.ports.notifier import NotDelivered
from adjourn.system.files import HeldLock, hold_lock_if_free, private_directory
from adjourn.system.machine import state_directory
from adjourn.views.block import CommandWriter
from adjourn.wiring.notifications import Configured, configured

__all__ = ["Hearing", "start_hearing"]

_FIRST_REST, _LONGEST_REST = 1.0, 30.0  # seconds after a channel or a store did not answer
_TURN = 5.0  # seconds between two checks that somebody else still listens


class Listener(Protocol):
    """What takes updates of one channel."""

    def take_updates(self, *, goes_on: Callable[[], bool]) -> int:
        """Wait for updates, decide each, and return how many came. Raise NotDelivered."""
        ...


class Hearing:
    """The threads that listen, one for each channel; a channel that is away delays no other."""

    def __init__(
        self,
        root: str,
        channels: list[Configured],
        *,
        commands_for: Callable[[str], CommandWriter],
        redactor: Redactor,
        log: Callable[..., None],
    ) -> None:
        self._root = root
        self._channels = channels
        self._commands_for = commands_for
        self._redactor = redactor
        self._log = log
        self._stop = threading.Event()
        self.threads = [
            threading.Thread(target=self._listen, args=(each,), name=each.name, daemon=True)
            for each in channels
        ]

    def start(self) -> None:
        """Begin to listen."""
        for thread in self.threads:
            thread.start()

    def close(self, *, within: float = 5.0) -> None:
        """Stop listening. What is being decided is decided; what is not comes again."""
        self._stop.set()
        deadline = time.monotonic() + within
        while any(thread.is_alive() for thread in self.threads) and time.monotonic() < deadline:
            for each in self._channels:
                each.notifier.hang_up()  # a thread may have begun its next wait just now
            for thread in self.threads:
                thread.join(0.05)

    def _listen(self, channel: Configured) -> None:
        failures = 0
        listener: Listener | None = None
        held: HeldLock | None = None
        while not self._stop.is_set():
            try:
                held = held or self._only_listener(channel)
                if held is None:
                    self._stop.wait(_TURN)
                    continue
                listener = listener or self._open(channel)
                listener.take_updates(goes_on=lambda: not self._stop.is_set())
                failures = 0
            except (NotDelivered, AdjournError) as error:
                if self._stop.is_set():
                    break
                failures += 1
                why = error.sentence if isinstance(error, AdjournError) else str(error)
                self._log("not_heard", notifier=channel.name, why=why)
                self._stop.wait(backoff(failures, first=_FIRST_REST, longest=_LONGEST_REST))
        if held:
            held.close()

    def _only_listener(self, channel: Configured) -> HeldLock | None:
        """Return the right to listen, or None while another process of this user has it.

        A bot has one queue of updates: the listener decides for all stores of the user.
        """
        folder = private_directory(os.path.join(state_directory(os.environ), "hearing"))
        # Two tables may name the same bot, and one bot serves one listener
        bot = getattr(channel.notifier, "bot_id", channel.name)
        return hold_lock_if_free(os.path.join(folder, f"{channel.hears}-{bot}.lock"))

    def _open(self, channel: Configured) -> Listener:
        """Return what takes the updates of a channel, with connections of its own thread's."""
        presses = Presses(
            self._root, channel, commands_for=self._commands_for, redactor=self._redactor
        )
        if channel.hears == "slack":
            try:
                # Needs an optional package
                from adjourn.hearing.slack import SlackApi, SlackListener
            except ImportError as error:
                raise Misuse(
                    f"buttons in Slack need what is not installed: {error.name}",
                    way_out="pip install 'adjourn[slack]'",
                ) from None
            if isinstance(channel.notifier, SlackApi):
                return SlackListener(channel.notifier, presses, log=self._log)
        if isinstance(channel.notifier, BotApi):
            return TelegramListener(channel.notifier, presses, name=channel.name, log=self._log)
        raise Misuse(f"nobody can listen to {channel.name}", way_out="adjourn notify --check")


def start_hearing(
    root: str,
    *,
    commands_for: Callable[[str], CommandWriter],
    redactor: Redactor,
    log: Callable[..., None],
) -> Hearing:
    """Listen to all channels of the user's config that have buttons; `close` ends it."""
    channels = [each for each in configured() if each.hears]
    hearing = Hearing(root, channels, commands_for=commands_for, redactor=redactor, log=log)
    hearing.start()
    return hearing
