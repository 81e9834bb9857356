"""Sends asks by mail, each with a link to a page that shows all of it and decides."""

import smtplib
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from email.message import EmailMessage
from email.utils import formatdate, parseaddr
from hashlib import sha256
from typing import Any, Literal

import msgspec

from adjourn.notifiers.http_post import is_this_machine, usable_url
from adjourn.ports.notifier import (
    BadTable,
    Message,
    NotDelivered,
    NotifierSettings,
    PreparedNotifier,
    read_keys,
)
from adjourn.views.message import defused, fitting_text

_LIMIT = 100_000  # characters: a page shows what is longer
_SUBJECT = 150
_PORTS = {"starttls": 587, "tls": 465, "none": 25}


class MailTable(
    msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename={"sender": "from"}
):
    """The keys of `[notify.mail]`."""

    to: tuple[str, ...]
    sender: str
    smtp: str
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str = ""
    token_file: str = ""
    token_env: str = ""
    public_url: str = ""
    person: str = ""


class _MailKeys(msgspec.Struct, forbid_unknown_fields=True):
    mail: MailTable


def prepare(values: Mapping[str, Any], settings: NotifierSettings) -> PreparedNotifier:
    """Return the messenger that a table describes."""
    table = read_keys(values, _MailKeys).mail
    for address in (*table.to, table.sender):
        if "@" not in parseaddr(address)[1] or not address.isprintable():
            raise BadTable(f"{address!r} is not an address of mail")
    if not table.to:
        raise BadTable("`to` must be a list of addresses")
    host, _, port = table.smtp.rpartition(":") if ":" in table.smtp else (table.smtp, "", "")
    if not host or (port and not port.isdecimal()):
        raise BadTable("`smtp` must be HOST or HOST:PORT")
    if table.security == "none" and not is_this_machine(host):
        raise BadTable('`security = "none"` is for a server on this machine only')
    if table.public_url:
        usable_url(table.public_url, key="public_url")
    password = settings.read_token(table.token_file, table.token_env) if table.user else ""
    messenger = MailMessenger(
        table,
        host=host,
        port=int(port or _PORTS[table.security]),
        password=password,
        timeout=settings.timeout,
    )
    return PreparedNotifier(
        notifier=messenger,
        name="mail",
        shown=f"mail to {', '.join(table.to)}",
        public_url=table.public_url.rstrip("/") or None,
    )


class MailMessenger:
    """Sends plain text. A mail cannot be changed: the page behind its link shows the outcome."""

    columns = 76

    def __init__(
        self, table: MailTable, *, host: str, port: int, password: str, timeout: float
    ) -> None:
        self._table = table
        self._host = host
        self._port = port
        self._password = password
        self._timeout = timeout
        self._server: smtplib.SMTP | None = None

    def send_message(self, message: Message) -> str | None:
        """Send a mail; of an ask, return its id, so that it is not sent again."""
        text, _ = fitting_text(message, limit=_LIMIT)  # nothing is approved in a mail itself
        ask_id = message.buttons.ask_id if message.buttons else message.id
        name = f"<{sha256(f'{message.id} {ask_id}'.encode()).hexdigest()[:32]}@adjourn>"
        mail = EmailMessage()
        mail["Subject"] = defused(f"{message.subject}: {message.title}")[:_SUBJECT]
        mail["From"] = self._table.sender
        mail["To"] = ", ".join(self._table.to)
        mail["Date"] = formatdate(localtime=False)
        mail["Message-ID"] = name
        mail["Auto-Submitted"] = "auto-generated"
        rest = ""
        if message.link:
            rest = f"\n\nLook at it and decide:\n{message.link}\n"
        elif message.buttons:
            rest = f"\n\nLook at it and decide with: {message.show}\n"
        mail.set_content(f"{defused(text)}{rest}", cte="quoted-printable")
        self._deliver(mail)
        return name if message.buttons else None

    def update_message(self, handle: str, message: Message) -> None:
        """Change nothing: a mail is where it is."""

    def _deliver(self, mail: EmailMessage) -> None:
        table = self._table
        kind = smtplib.SMTP_SSL if table.security == "tls" else smtplib.SMTP
        try:
            # By the own name as it is: to look it up may take longer than the timeout
            own = socket.gethostname()
            with kind(self._host, self._port, own, timeout=self._timeout) as server:
                self._server = server
                if table.security == "starttls":
                    server.starttls(context=ssl.create_default_context())
                if table.user:
                    server.login(table.user, self._password)
                server.send_message(mail)
        except TimeoutError:
            raise NotDelivered(f"no answer within {self._timeout:g} s") from None
        except smtplib.SMTPAuthenticationError:
            raise NotDelivered("the mail server refused the user or the password") from None
        except (OSError, smtplib.SMTPException, ValueError) as error:
            raise NotDelivered(f"the mail was not taken: {error!s:.200}") from error
        finally:
            self._server = None

    def hang_up(self) -> None:
        """Shut the connection if there is one."""
        server = self._server
        if server and server.sock:
            with suppress(OSError):
                server.sock.shutdown(socket.SHUT_RDWR)
