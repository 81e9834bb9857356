"""A stand-in of a mail server: aiosmtpd in a thread of its own, on a port that is free."""

import asyncio
import email
import email.policy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import SMTP


class MailServer:
    """Keeps the mails that it was sent."""

    def __init__(self) -> None:
        self.taken: list[EmailMessage] = []
        self.port = 0

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 -- aiosmtpd's name
        del server, session
        self.taken.append(email.message_from_bytes(envelope.content, policy=email.policy.default))
        return "250 OK"


@contextmanager
def mail_server() -> Iterator[MailServer]:
    """Have a mail server for a while."""
    kept, ready, loop = MailServer(), threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        server = await loop.create_server(
            lambda: SMTP(kept, loop=loop, enable_SMTPUTF8=True), "127.0.0.1", 0
        )
        async with server:
            kept.port = server.sockets[0].getsockname()[1]
            ready.set()
            await stop.wait()
        await asyncio.sleep(0)  # what was connected sees its end

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(serve())
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(60)
    try:
        yield kept
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
