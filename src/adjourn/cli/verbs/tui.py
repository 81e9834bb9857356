"""adjourn tui: the inbox that fills the terminal."""

import gc
import os
import sys

import click

from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.cli.verbs._home_of_asks import all_roots
from adjourn.core import exits
from adjourn.core.errors import Misuse


@verb("tui")
@click.option("--everywhere", is_flag=True, help="All your stores, not only this one.")
@click.option(
    "--plain", is_flag=True, help="Line by line, for screen readers: the same as `inbox -i`."
)
@click.pass_context
def command(context: click.Context, session: Session, *, everywhere: bool, plain: bool) -> int:
    """Open the inbox in the whole terminal: what waits, the whole of each ask, and keys for it.

    `?` shows the keys. Ctrl+C pauses the task that you started there, or quits. Inside a run you
    can only look.
    """
    if plain:
        if everywhere:
            raise Misuse("--plain is of one store", way_out="adjourn tui --plain")
        # Only without a screen
        from adjourn.cli.verbs.inbox import command as inbox

        return int(context.invoke(inbox, interactive=True, **_common(context)) or 0)
    streams = (sys.stdin, sys.stdout, sys.stderr)  # Textual draws on stderr
    if not all(each.isatty() for each in streams) or os.environ.get("TERM") == "dumb":
        raise Misuse(
            "the TUI needs a terminal that can place a cursor", way_out="adjourn tui --plain"
        )
    roots = all_roots(session) if everywhere else [session.root]
    if not roots or not everywhere:
        session.require_store()
    gc.enable()  # short commands go without; this one lasts
    try:
        # An extra, and slow to import
        from adjourn.tui.app import TuiApp
    except ModuleNotFoundError as error:
        if error.name not in {"textual", "rich"}:
            raise
        raise Misuse(
            "the TUI needs Textual, which is not installed",
            way_out="pip install 'adjourn[tui]', or: adjourn tui --plain",
        ) from None
    from adjourn.tui.options import read_tui_options  # of the extra

    for name in ("COLUMNS", "LINES"):  # Textual would believe them more than the terminal
        os.environ.pop(name, None)
    options = read_tui_options(TuiApp.theme_names())
    app = TuiApp(roots, commands_for=session.commands_for, options=options)
    app.run()
    if app.failure:
        raise app.failure
    return app.return_code or exits.COMPLETED


def _common(context: click.Context) -> dict[str, object]:
    return {
        name: value for name, value in context.params.items() if name not in {"everywhere", "plain"}
    }
