"""adjourn config: what the built-in agent is set to, and by what."""

import click

from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.core.call import canonical
from adjourn.core.text.render import clipped, visible
from adjourn.views.block import Table
from adjourn.wiring.runners import agent_settings, options_of

_WIDEST = 48  # columns of a value; all of it is in the JSON


@verb("config", finds_store=False)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="As for `adjourn run`; repeat it.",
)
def command(session: Session, *, options: tuple[str, ...]) -> None:
    """Show every setting of the built-in agent, its value, and where that comes from.

    A flag wins over the environment, the environment over the user's config, and the config over
    the defaults. A project sets nothing. In ~/.config/adjourn/config.toml:

    \b
    pause_on_approval = true
    [agent]
    model = "openai:NAME"
    """  # noqa: D301 -- click keeps the lines of a paragraph that begins with a backspace
    found = agent_settings(options_of(options))
    if session.wants_json:
        session.print_document({"schema_version": 1, "agent": found})
        return
    rows = [[visible(each.key), _value(each.value), visible(each.origin)] for each in found]
    session.show([Table(head=("SETTING", "VALUE", "FROM"), rows=rows)])


def _value(value: object) -> str:
    if value is None:
        return "-"
    return clipped(
        visible(value if isinstance(value, str) else canonical(value).decode()), columns=_WIDEST
    )
