"""What every notifier promises: the contract of `adjourn.ports.notifier`, as tests."""

import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from adjourn.ports.notifier import NotDelivered, Notifier

AT = 1_700_000_000_123
BODY = '{"text": "naïve ☃"}'.encode()
LARGE = b'{"text": "' + b"x" * 1_000_000 + b'"}'
PATIENCE = 10.0  # seconds: far more than a timeout that suits a test

Taken = Callable[[], list[bytes]]


class NotifierContract:
    """The tests that a notifier has to pass.

    Derive a class whose name begins with `Test` and return from its three methods a notifier whose
    receiver behaves as the method says.
    """

    def accepting(self, directory: Path) -> tuple[Notifier, Taken]:
        """Return a notifier whose receiver takes every document, and what lists those it took."""
        raise NotImplementedError

    def refusing(self, directory: Path) -> Notifier:
        """Return a notifier whose receiver takes no document."""
        raise NotImplementedError

    def hanging(self, directory: Path, *, timeout: float) -> Notifier:
        """Return a notifier whose receiver never answers, with this timeout in seconds."""
        raise NotImplementedError

    @pytest.mark.parametrize("body", [BODY, LARGE], ids=["small", "large"])
    def test_the_receiver_has_the_document_when_send_returns(
        self, tmp_path: Path, body: bytes
    ) -> None:
        notifier, taken = self.accepting(tmp_path)
        notifier.send("evt_1", body, at=AT)
        assert taken() == [body]

    def test_a_notifier_sends_again_and_again(self, tmp_path: Path) -> None:
        notifier, taken = self.accepting(tmp_path)
        for number in range(3):
            notifier.send(f"evt_{number}", b"%d" % number, at=AT)
        assert taken() == [b"0", b"1", b"2"]

    def test_a_refusal_says_why(self, tmp_path: Path) -> None:
        with pytest.raises(NotDelivered) as refusal:
            self.refusing(tmp_path).send("evt_1", BODY, at=AT)
        assert str(refusal.value)

    def test_a_receiver_that_hangs_costs_no_more_than_the_timeout(self, tmp_path: Path) -> None:
        began = time.monotonic()
        with pytest.raises(NotDelivered) as refusal:
            self.hanging(tmp_path, timeout=0.5).send("evt_1", BODY, at=AT)
        assert str(refusal.value)
        assert time.monotonic() - began < PATIENCE

    def test_hanging_up_breaks_off_what_another_thread_sends(self, tmp_path: Path) -> None:
        notifier = self.hanging(tmp_path, timeout=6 * PATIENCE)
        refusals: list[NotDelivered] = []

        def send() -> None:
            try:
                notifier.send("evt_1", BODY, at=AT)
            except NotDelivered as refusal:
                refusals.append(refusal)

        sender = Thread(target=send, daemon=True)
        sender.start()
        deadline = time.monotonic() + PATIENCE
        # It may not have begun to send: so it is told until it ends.
        while sender.is_alive() and time.monotonic() < deadline:
            notifier.hang_up()
            sender.join(0.1)
        assert not sender.is_alive()
        assert len(refusals) == 1

    def test_hanging_up_without_anything_to_break_off_does_no_harm(self, tmp_path: Path) -> None:
        notifier, _ = self.accepting(tmp_path)
        notifier.hang_up()
