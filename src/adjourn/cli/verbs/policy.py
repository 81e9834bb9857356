"""adjourn policy: explain how the rules judge a command, and check the rules."""

import os

import click
import msgspec

from adjourn.cli.options import TAKE_ALL, CommandAfterDashes, verb
from adjourn.cli.session import Session
from adjourn.core import exits
from adjourn.core.call import COMMAND, Command, arguments_of, command_body
from adjourn.core.errors import Misuse
from adjourn.core.policy.policy import Origin
from adjourn.core.text.json_text import decode_unambiguous
from adjourn.core.text.render import prose, visible
from adjourn.settings.policies import Gathering, gather, origins
from adjourn.system.machine import now
from adjourn.views.policy import explanation_blocks, explanation_document
from adjourn.wiring.policies import explained

_NO_POLICY = (
    "There is no policy: every call needs a person, and without --pause-on-approval runs as it is."
)


@click.group("policy", no_args_is_help=False)
def command() -> None:
    """Explain how the rules judge a command, and check the rules."""


@verb(
    "explain",
    cls=CommandAfterDashes,
    options_metavar="[OPTIONS] -- COMMAND [ARGUMENT]...",
    context_settings=TAKE_ALL,
)
@click.option(
    "--workspace",
    metavar="DIR",
    default=".",
    help="Judge as if it were started there (default: here).",
)
@click.option(
    "--cwd",
    metavar="DIR",
    help="Judge as if the call ran in this directory (default: the workspace).",
)
@click.option("--tool", metavar="NAME", help="Judge a call of this tool instead of a command.")
@click.option(
    "--args", "arguments", metavar="JSON", help="The arguments of that call: one JSON object."
)
@click.pass_context
def explain(
    context: click.Context,
    session: Session,
    *,
    workspace: str,
    cwd: str | None,
    tool: str | None,
    arguments: str | None,
) -> None:
    """Explain how the policies judge COMMAND: which rules decide and why, part by part.

    Nothing is run.
    """
    place = _directory(workspace)
    name, given = _call(context, tool, arguments)
    if cwd is not None:
        given["cwd"] = os.path.realpath(os.path.join(place, cwd))
    found = explained(session.root, place, name, given, now=now())
    if session.wants_json:
        session.print_document(explanation_document(found))
    else:
        session.show(explanation_blocks(found))


def _directory(given: str) -> str:
    place = os.path.realpath(given)
    if not os.path.isdir(place):
        raise Misuse(f"{given} is not a directory", way_out="name one with --workspace DIR")
    return place


def _call(
    context: click.Context, tool: str | None, arguments: str | None
) -> tuple[str, dict[str, object]]:
    argv: list[str] = context.meta.get("command", [])
    if context.args:
        raise Misuse(
            "the command stands after two dashes",
            way_out="adjourn policy explain -- COMMAND [ARGUMENT]...",
        )
    if (tool is None) == (not argv) or (tool is None and arguments is not None):
        raise Misuse(
            "give a command after two dashes, or --tool NAME --args JSON",
            way_out="adjourn policy explain --help",
        )
    if tool is None:
        return COMMAND, dict(arguments_of(command_body(Command(argv=tuple(argv), cwd=""))))
    return tool, _object(arguments or "{}")


def _object(text: str) -> dict[str, object]:
    try:
        return decode_unambiguous(text, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise Misuse(
            f"--args is not one JSON object: {error}",
            way_out="""adjourn policy explain --tool NAME --args '{"key": 1}'""",
        ) from None


@verb("check")
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path())
@click.option(
    "--workspace", metavar="DIR", default=".", help="Check what holds there (default: here)."
)
@click.option(
    "--project", is_flag=True, help="Take each FILE for a project's, which may only tighten."
)
def check(session: Session, *, files: tuple[str, ...], workspace: str, project: bool) -> int:
    """Print every mistake in policy files, with its line and column.

    In each FILE, or in all that hold here.
    """
    found = gather(
        _named(files, is_project=project)
        if files
        else origins(session.root, _directory(workspace)),
        required=bool(files),
    )
    if not files:
        found.read_rules()
        found.read_people()
    if session.wants_json:
        session.print_document(_as_document(found))
    else:
        session.print("\n".join(_as_lines(found)))
    return exits.USAGE if found.problems else exits.COMPLETED


def _named(files: tuple[str, ...], *, is_project: bool) -> list[Origin]:
    return [
        Origin(path, is_project or _is_a_projects(path)) for path in map(os.path.abspath, files)
    ]


def _is_a_projects(path: str) -> bool:
    return os.path.basename(os.path.dirname(path)) == ".adjourn"


def _as_document(found: Gathering) -> dict[str, object]:
    problems = [
        {
            "file": visible(each.source),
            "line": each.line,
            "column": each.column,
            "message": prose(each.what),
        }
        for each in found.problems
    ]
    return {
        "schema_version": 1,
        "is_fine": not problems,
        "problems": problems,
        "files": found.sources,
    }


def _as_lines(found: Gathering) -> list[str]:
    if found.problems:
        return [prose(str(each)) for each in found.problems]
    if not found.sources:
        return [_NO_POLICY]
    lines = [f"{each.rules:>6,}  {each.kind:<7}  {visible(each.path)}" for each in found.sources]
    count = sum(each.rules for each in found.sources)
    return [f"{count:,} {'rule is' if count == 1 else 'rules are'} fine.", *lines]


command.add_command(explain)
command.add_command(check)
