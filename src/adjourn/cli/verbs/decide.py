"""adjourn decide: record decisions that somebody signed."""

import sys
from hashlib import sha256

import click

from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.cli.verbs._replies import print_settled
from adjourn.core.ask import Principal
from adjourn.core.authority.signed import read_file
from adjourn.core.authority.webhook import read_request, reply_of, require_genuine
from adjourn.core.errors import Misuse, NotAllowed, NotFound
from adjourn.process.ancestry import enclosing_run
from adjourn.settings.principals import secret_of_webhook
from adjourn.system.machine import now

_LARGEST = 1024 * 1024


@verb("decide", prints_whole=True)
@click.argument("file", required=False, metavar="[FILE]")
@click.option(
    "--webhook",
    metavar="NAME",
    help="Read a signed request from stdin: headers, an empty line, a JSON body.",
)
def command(session: Session, *, file: str | None, webhook: str | None) -> int:
    """Record the signed decisions in FILE, or on stdin if it is `-`: all of them, or none.

    The signer is the one who decided, wherever the file comes from. The same file again gives the
    same receipts. With --webhook the request is signed as Standard Webhooks says, with the secret
    of that [[webhook]] in the user's config:

    \b
    [[webhook]]
    name = "ci"
    scopes = ["approve"]
    secret_env = "CI_SECRET"
    """  # noqa: D301 -- click keeps the lines of a paragraph that begins with a backspace
    if (file is None) == (webhook is None):
        raise Misuse("give a FILE to record, or --webhook NAME", way_out="adjourn decide --help")
    if file:
        signed = read_file(_stdin() if file == "-" else _content(file))
        controller = session.open_controller()
        settled = controller.signing.decide_signed(
            signed, carried_by=session.principal(controller.decisions)
        )
    else:
        by = Principal(name=f"webhook:{webhook}", inside_run=enclosing_run())
        key = secret_of_webhook(webhook or "")
        request = read_request(_stdin())
        require_genuine(request, key, now=now() // 1000)
        # The same request once more is the same decision
        identity = sha256(f"{webhook}/{request.id}".encode("utf-8", "replace")).hexdigest()
        controller = session.open_controller()
        settled = controller.signing.decide_once(
            f"webhook:{identity}", sha256(request.body).digest(), [reply_of(request)], by=by
        )
    return print_settled(session, controller.decisions, settled)


def _stdin() -> bytes:
    return _limited(sys.stdin.buffer.read(_LARGEST + 1) if sys.stdin else b"")


def _content(file: str) -> bytes:
    try:
        with open(file, "rb") as opened:
            return _limited(opened.read(_LARGEST + 1))
    except FileNotFoundError:
        raise NotFound(
            f"there is no file {file}", way_out="adjourn approve ASK --sign KEY --save FILE"
        ) from None


def _limited(content: bytes) -> bytes:
    if len(content) > _LARGEST:
        raise NotAllowed(
            f"a decision has at most {_LARGEST:,} bytes", way_out="decide fewer asks with one file"
        )
    return content
