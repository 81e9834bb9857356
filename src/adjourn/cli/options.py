"""The options that every verb has."""

from collections.abc import Callable
from typing import Any

import click

from adjourn.cli.session import Session

Verb = Callable[..., int | None]

with_session = click.make_pass_decorator(Session)


def verb(name: str, **settings: Any) -> Callable[[Verb], click.Command]:  # noqa: ANN401 -- click's own settings
    """Make a verb: a command with the common options, whose function takes the session first."""

    def decorate(function: Verb) -> click.Command:
        wrapped = with_session(function)
        for option in (_store, _output, _verbose):
            wrapped = option(wrapped)
        return click.command(name, **settings)(wrapped)

    return decorate


def _keep_store(context: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.find_object(Session).given_store = value  # type: ignore[union-attr] -- every verb has one


def _keep_output(context: click.Context, _: click.Parameter, value: str) -> None:
    context.find_object(Session).wants_json = value == "json"  # type: ignore[union-attr] -- every verb has one


def _keep_verbose(context: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 -- click's callback
    context.find_object(Session).verbose = value  # type: ignore[union-attr] -- every verb has one


_store = click.option(
    "--store", metavar="DIR", callback=_keep_store, expose_value=False, help="The store's directory (default: the nearest .adjourn)."
)
_output = click.option(
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    callback=_keep_output,
    expose_value=False,
    help="How to answer: for people, or one JSON document on stdout.",
)
_verbose = click.option(
    "--verbose", is_flag=True, callback=_keep_verbose, expose_value=False, help="Say on stderr what happens."
)
