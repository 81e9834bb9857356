"""The options that every verb has."""

import os
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import click

from adjourn.cli.session import Session
from adjourn.cli.terminal import print_exactly, printed
from adjourn.core.text.when import milliseconds, moment_of
from adjourn.system.machine import take_key_file
from adjourn.views.block import lines

Verb = Callable[..., int | None]

_COMMON = frozenset({"store", "key_file", "output", "full_ids", "verbose"})


def verb(
    name: str, *, finds_store: bool = True, prints_whole: bool = False, **settings: Any
) -> Callable[[Verb], click.Command]:
    """Make a verb: a command with the common options, whose function takes the session first.

    The store's directory has been found, once, when the function is called. From text on stdout
    and stderr secrets are taken out where nobody looks, unless the verb `prints_whole`.
    """

    def decorate(function: Verb) -> click.Command:
        @wraps(function)
        def run(
            session: Session,
            /,
            *args: Any,
            store: str | None,
            key_file: str | None,
            output: str,
            full_ids: bool,
            verbose: bool,
            **options: Any,
        ) -> int | None:
            session.given_store = store
            session.wants_json = output == "json"
            session.verbose = verbose
            session.full_ids = full_ids
            session.prints_whole = prints_whole
            if key_file is not None:
                take_key_file(key_file)
            if verbose:
                os.environ["ADJOURN_VERBOSE"] = "1"  # for what this command starts, too
            if finds_store:
                session.find_root()
            return function(session, *args, **options)

        wrapped = _verbose(_full_ids(_output(_key_file(_store(click.pass_obj(run))))))
        decorator: Callable[[Verb], click.Command] = click.command(
            name, add_help_option=False, **settings
        )
        made = decorator(wrapped)
        # A verb's own options first
        made.params.sort(key=lambda parameter: parameter.name in _COMMON)
        made.params.append(help_option())
        return made

    return decorate


def help_option() -> click.Option:
    """Return `--help`. Click's own looks for a translation of its words first, at every start."""
    return telling(["-h", "--help"], _help_text, says="Show this message and exit.")


def _help_text(context: click.Context) -> str:
    """Return the help of a verb, and an example."""
    from adjourn.cli.examples import EXAMPLES  # only help needs it (bench start)

    example = EXAMPLES.get(context.command_path.partition(" ")[2])
    told = context.get_help()
    return f"{told}\n\nExample:\n  {example}" if example else told


def telling(words: list[str], text: Callable[[click.Context], str], *, says: str) -> click.Option:
    """Return an option that prints something instead of doing anything."""

    def tell(context: click.Context, _: click.Parameter, is_wanted: bool) -> None:  # noqa: FBT001 -- click hands it over so
        if is_wanted and not context.resilient_parsing:
            print_exactly(printed(lines(text(context).split("\n")), sys.stdout))
            context.exit()

    return click.Option(
        words, is_flag=True, is_eager=True, expose_value=False, callback=tell, help=says
    )


class CommandAfterDashes(click.Command):
    """Takes everything after the first `--` as it is."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split our options from the command."""
        if "--" in args:
            at = args.index("--")
            ctx.meta["command"] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


# So that we can say where the dashes belong
TAKE_ALL = {"allow_extra_args": True, "allow_interspersed_args": False}
# Options may stand behind it, too
TAKE_A_PROMPT = {"allow_extra_args": True, "ignore_unknown_options": True}


def bare_verb(name: str) -> Callable[[Verb], click.Command]:
    """Make a verb without the common options: it has no store, and speaks to people only."""

    def decorate(function: Verb) -> click.Command:
        made = click.command(name, add_help_option=False)(click.pass_obj(function))
        made.params.append(help_option())
        return made

    return decorate


def resuming(function: Verb) -> Verb:
    """Let a reply be followed by a resume of its task."""
    resume = click.option(
        "--resume", is_flag=True, help="Then go on with the task, here in the foreground."
    )
    resumed: Verb = resume(function)
    return resumed


def signable(function: Verb) -> Verb:
    """Let a reply be signed with a key, and be saved instead of recorded."""
    sign = click.option("--sign", metavar="KEY", help="Sign it with this SSH key, by ssh-keygen.")
    save = click.option(
        "--save",
        metavar="FILE",
        help="Write the signed decision to FILE; `adjourn decide FILE` records it, on any machine.",
    )
    signed: Verb = sign(save(function))
    return signed


_store = click.option(
    "--store",
    metavar="DIR|URL",
    help="The store's directory (default: the nearest .adjourn), or a postgresql:// URL.",
)
_key_file = click.option(
    "--key-file",
    metavar="FILE",
    help="The key of a store that jobs carry from machine to machine (or ADJOURN_STORE_KEY).",
)
_output = click.option(
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    help="Output for people, or one JSON document on stdout.",
)
_full_ids = click.option("--full-ids", is_flag=True, help="Print full ids.")
_verbose = click.option(
    "--verbose",
    is_flag=True,
    help="Print progress on stderr.",
)


class Amount(click.FloatRange):
    """A number from 0 on; `nan` and `inf` are words that a float takes and nobody means."""

    def __init__(self, most: float | None = None) -> None:
        super().__init__(0, most)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number."""
        number: float = super().convert(value, param, ctx)
        if number - number != 0:
            self.fail(f"{value!r} is not a valid number.", param, ctx)
        return number


class AnyOf(click.Choice[str]):
    """One of several names. They are listed only for help, or if another one is given."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(())
        self.choices = names  # type: ignore[assignment]  # click says Sequence, and infers tuple

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name."""
        return value if value in self.choices else super().convert(value, param, ctx)


class ThingName(click.ParamType[str]):
    """What a person calls a task or an ask: an id, a beginning of one, `@N` or `last`.

    The shell completes ids, with what each is.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; for a row of the last list, the id that it has."""
        del param
        text = str(value)
        session = ctx.find_object(Session) if ctx else None
        if not text.startswith("@") or session is None or (ctx and ctx.resilient_parsing):
            return text
        # Only at a terminal, and only by those who want it
        from adjourn.cli.named_rows import find_row

        row = find_row(text)
        session.row_stores.append(row.store)
        if row.digest:
            session.row_digests[row.id] = row.digest
        return row.id

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[Any]:
        """Return the ids that begin so, each with what it is."""
        del param
        # Only the shell asks for it
        from adjourn.cli.completed_ids import completed_ids

        session = ctx.find_object(Session)
        return completed_ids(session, ctx, self.name, incomplete) if session else []


ASK_NAME, TASK_NAME = ThingName("ask"), ThingName("task")


class Duration(click.ParamType[int]):
    """A length of time: 90s, 15m, 8h, 2d."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return milliseconds."""
        if isinstance(value, int):
            return value
        try:
            return milliseconds(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a time such as 90s, 15m, 8h or 2d", param, ctx)


DURATION = Duration()


class Since(click.ParamType[int]):
    """A moment: so long ago (90s, 15m, 8h, 2d), or a date or time as ISO 8601 has them.

    Without a zone, UTC.
    """

    name = "when"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return milliseconds since 1970."""
        # Slow to import, and seldom needed
        from datetime import UTC, datetime

        # Most commands start without it (bench start)
        from adjourn.system.machine import now

        if isinstance(value, int):
            return value
        try:
            return now() - milliseconds(str(value))
        except ValueError:
            pass
        try:
            moment = datetime.fromisoformat(str(value))
            return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
        except (ValueError, OverflowError):
            self.fail(
                f"{value!r} is neither a time such as 8h or 2d nor a date such as 2026-01-31",
                param,
                ctx,
            )


SINCE = Since()


class Moment(click.ParamType[int]):
    """A moment: 2026-11-17T09:00, in local time unless it ends in Z or an offset."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return milliseconds since 1970."""
        if isinstance(value, int):
            return value
        try:
            return moment_of(str(value))
        except (ValueError, OSError):
            self.fail(f"{value!r} is not a moment such as 2026-11-17T09:00", param, ctx)


MOMENT = Moment()
