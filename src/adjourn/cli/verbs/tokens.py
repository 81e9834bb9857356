"""adjourn tokens: who may call the HTTP API."""

import click
import msgspec

from adjourn.cli.options import DURATION, verb
from adjourn.cli.session import Session
from adjourn.core.authority.scopes import AGENT_SCOPES, Scope
from adjourn.core.errors import Conflict, Misuse, NotAllowed, NotFound
from adjourn.core.text.render import visible
from adjourn.core.text.when import stamp
from adjourn.process.ancestry import enclosing_run
from adjourn.settings.api_tokens import (
    ApiToken,
    change_tokens,
    digest_of_token,
    new_secret,
    read_tokens,
    require_name,
)
from adjourn.system.machine import now
from adjourn.views.block import Table

_QUARTER = 90 * 24 * 60 * 60 * 1000


class TokenDoc(msgspec.Struct, frozen=True, kw_only=True):
    """A token, without the token."""

    name: str
    principal: str
    scopes: tuple[Scope, ...]
    person: bool
    also: tuple[str, ...]
    created_at: str
    created_by: str
    expires_at: str | None
    expired: bool


@click.group("tokens", no_args_is_help=False)
def command() -> None:
    """Let programs call the HTTP API of `adjourn serve`, or agents its MCP.

    A token counts for all your stores. Only its hash is kept, beside your config.
    """


@verb("add")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice([scope.value for scope in Scope]),
    help="What it may do; repeat it.",
)
@click.option(
    "--expires",
    type=DURATION,
    default=_QUARTER,
    metavar="TIME",
    help="How long it counts: 8h, 30d (default: 90 days).",
)
@click.option("--person", is_flag=True, help="A person holds it: its decisions are a person's.")
@click.option(
    "--also", multiple=True, metavar="NAME", help="Another name of that person: uid:1000."
)
@click.option("--agent", is_flag=True, help="It is an agent's, for MCP over HTTP.")
def add(
    session: Session,
    *,
    name: str,
    scopes: tuple[str, ...],
    expires: int,
    person: bool,
    also: tuple[str, ...],
    agent: bool,
) -> None:
    """Make a token called NAME, and print it: this once, and never again."""
    require_name(name)
    if agent and (scopes or person or also):
        raise Misuse(
            "--agent stands alone: an agent starts, answers and approves for what it started",
            way_out=f"adjourn tokens add {name} --agent",
        )
    if not agent and not scopes:
        raise Misuse(
            "a token without a scope may do nothing: name one",
            way_out=f"adjourn tokens add {name} --scope request",
        )
    if also and not person:
        raise Misuse("--also goes with --person", way_out="adjourn tokens add --help")
    by = _require_admin(session, "tokens add")
    secret = new_secret()
    given = AGENT_SCOPES if agent else frozenset(map(Scope, scopes))
    token = ApiToken(
        name=name,
        kind="agent" if agent else "token",
        scopes=tuple(scope for scope in Scope if scope in given),
        is_person=person,
        also=also,
        sha256=digest_of_token(secret),
        at=stamp(now()),
        by=by,
        expires_at=now() + expires,
    )

    def with_it(tokens: tuple[ApiToken, ...]) -> tuple[ApiToken, ...]:
        kept = tuple(each for each in tokens if not (each.name == name and each.is_over(now())))
        if any(each.name == name for each in kept):
            raise Conflict(
                f"there is a token {name} already", way_out=f"adjourn tokens revoke {name}"
            )
        return (*kept, token)

    change_tokens(with_it)
    session.is_copy, session.prints_whole = False, True  # the token is what was asked for
    if session.wants_json:
        document = {"schema_version": 1, "token": secret, **msgspec.to_builtins(_doc(token))}
        session.print_document(document)
        return
    session.print(secret)
    until = stamp(token.expires_at) if token.expires_at else "ever"
    session.warn(
        f"adjourn: {token.principal} may {', '.join(token.scopes)} until {until}. Keep the token"
        " now: only its hash is kept here."
    )


@verb("list")
def list_all(session: Session) -> None:
    """List tokens: what each may do, and until when."""
    tokens = read_tokens()
    if session.wants_json:
        documents = [_doc(token) for token in tokens]
        session.print_document({"schema_version": 1, "tokens": documents})
        return
    if not tokens:
        session.print("No tokens.")
        return
    rows = [
        (
            visible(token.principal),
            ", ".join(token.scopes),
            "person" if token.is_person else "",
            "expired" if token.is_over(now()) else stamp(token.expires_at or 0),
        )
        for token in tokens
    ]
    session.show([Table(head=("TOKEN", "SCOPES", "HELD BY", "UNTIL"), rows=rows)])


@verb("revoke")
@click.argument("name")
def revoke(session: Session, *, name: str) -> None:
    """Take the token NAME back; from now on it opens nothing. What it decided stays decided."""
    _require_admin(session, "tokens revoke")
    gone: list[ApiToken] = []

    def without_it(tokens: tuple[ApiToken, ...]) -> tuple[ApiToken, ...]:
        gone[:] = [each for each in tokens if name in {each.name, each.principal}]
        if not gone:
            raise NotFound(f"there is no token {name}", way_out="adjourn tokens list")
        return tuple(each for each in tokens if each not in gone)

    change_tokens(without_it)
    if session.wants_json:
        session.print_document({"schema_version": 1, "revoked": _doc(gone[0])})
    else:
        session.print(f"Revoked {visible(gone[0].principal)}.")


def _require_admin(session: Session, verb: str) -> str:
    """Refuse a process of a run and a caller without the admin scope; return who it is."""
    if enclosing_run():
        raise NotAllowed(
            f"{verb} is refused inside a run: what runs under adjourn may ask, never decide",
            way_out="do it from a terminal of your own",
        )
    if not session.has_store:
        return session.principal(None).name
    decisions = session.open_decisions()
    by = session.principal(decisions)
    decisions.authorise_alone(by, verb)
    return by.name


def _doc(token: ApiToken) -> TokenDoc:
    return TokenDoc(
        name=token.name,
        principal=token.principal,
        scopes=token.scopes,
        person=token.is_person,
        also=token.also,
        created_at=token.at,
        created_by=token.by,
        expires_at=stamp(token.expires_at) if token.expires_at is not None else None,
        expired=token.is_over(now()),
    )


for each in (add, list_all, revoke):
    command.add_command(each)
