"""Our notifiers keep the contract that `adjourn.testing` ships."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from adjourn.notifiers.command import CommandNotifier
from adjourn.notifiers.webhook import WebhookNotifier
from adjourn.ports.notifier import Notifier
from adjourn.testing.notifier_contract import NotifierContract, Taken
from tests.receiver import Receiver, answering, receiving

APPEND = (
    "import os, sys; name = os.path.join(sys.argv[1], f'{len(os.listdir(sys.argv[1]))}.taken');"
    "open(name, 'wb').write(sys.stdin.buffer.read())"
)


def run_python(code: str, *arguments: str, timeout: float = 20) -> CommandNotifier:
    return CommandNotifier([sys.executable, "-I", "-S", "-c", code, *arguments], timeout=timeout)


class TestCommandNotifier(NotifierContract):
    def accepting(self, directory: Path) -> tuple[Notifier, Taken]:
        return run_python(APPEND, str(directory)), lambda: [
            path.read_bytes() for path in sorted(directory.glob("*.taken"))
        ]

    def refusing(self, directory: Path) -> Notifier:
        del directory
        return run_python("raise SystemExit(3)")

    def hanging(self, directory: Path, *, timeout: float) -> Notifier:
        del directory
        return run_python("import time; time.sleep(60)", timeout=timeout)


class TestWebhookNotifier(NotifierContract):
    _receiver: Receiver

    @pytest.fixture(autouse=True)
    def _receiving(self) -> Iterator[None]:
        with receiving() as self._receiver:
            yield

    def _to_receiver(self, *, timeout: float = 20) -> WebhookNotifier:
        return WebhookNotifier(self._receiver.url, key=b"key", timeout=timeout)

    def accepting(self, directory: Path) -> tuple[Notifier, Taken]:
        del directory
        return self._to_receiver(), lambda: [body for _, body in self._receiver.taken]

    def refusing(self, directory: Path) -> Notifier:
        del directory
        self._receiver.answer = answering(500)
        return self._to_receiver()

    def hanging(self, directory: Path, *, timeout: float) -> Notifier:
        del directory
        self._receiver.answer = lambda _: time.sleep(3)
        return self._to_receiver(timeout=timeout)
