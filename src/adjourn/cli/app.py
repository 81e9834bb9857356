"""The command itself: finds the verb, and turns every error into a sentence and an exit code."""

import errno
import os
import sys
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from typing import Any

import click

from adjourn.cli.options import help_option, telling
from adjourn.cli.session import Session
from adjourn.cli.terminal import flush, lost_output, make_ready, rows_of_stdout
from adjourn.core import exits
from adjourn.core.errors import AdjournError, Misuse, NotAllowed
from adjourn.core.text.render import block, prose, word_rows
from adjourn.system.machine import take_key_from

_INTERRUPTED = 130  # as a shell has it
_WORDY = frozenset({"ask", "clarify", "answer", "approve", "reject", "resume", "settle", "-c"})

# Their exit code is how a task or a plan ended, whatever becomes of what they print
_OWN_OUTCOME = frozenset({"run", "resume", "restart", "fork", "execute"})

VERBS = {
    "run": "Run a command, or an agent on a prompt; it may stop for a person.",
    "ask": "Inside a run: print the answer to a question, or register it and exit 10.",
    "clarify": "Inside a run: print the answers to several questions, or leave with a checkpoint"
    " and exit 10.",
    "execute": "Execute a plan: its tasks one at a time, each after those that it needs.",
    "plan": "Show the state of a plan.",
    "inbox": "List what waits for a person.",
    "tui": "Open the inbox in the whole terminal.",
    "approve": "Approve calls.",
    "reject": "Reject calls.",
    "answer": "Answer a question.",
    "decide": "Record decisions that somebody signed, from a file or a webhook.",
    "snooze": "Hide asks from the inbox for a while.",
    "settle": "Record whether an uncertain call ran.",
    "resume": "Continue a task, with decisions or an answer if you like.",
    "fork": "Start a new task from an earlier checkpoint of an agent.",
    "restart": "Run a task again from nothing; its history stays.",
    "pause": "Interrupt a running task; it can be resumed.",
    "cancel": "End a task.",
    "tasks": "List tasks, newest first.",
    "show": "Show a task: its state, asks, calls and history.",
    "runs": "List the runs of a task.",
    "logs": "Print what a task printed.",
    "watch": "Show what runs, waits and has ended, kept up to date.",
    "wait": "Wait until tasks have ended or need a person.",
    "policy": "Explain how the rules judge a command, and check the rules.",
    "rules": "List, add and revoke always-allow rules.",
    "worker": "Take ready tasks and run them; a decision starts its task at once.",
    "setup": "Write the first policy and settings, or make adjourn known to claude or codex.",
    "users": "Add, list and remove those who may log in to the web inbox.",
    "delegate": "Let an agent decide for a task that it did not start.",
    "serve": "Serve the HTTP API, the pages and MCP.",
    "tokens": "Make, list and revoke tokens of the HTTP API.",
    "mcp": "Serve MCP on stdin and stdout, for a parent agent.",
    "config": "Show the settings of the built-in agent, and their origins.",
    "notify": "List who gets notified, and deliver what waits.",
    "audit": "Verify the audit trail, or export it.",
    "doctor": "Check the installation and the store, and suggest fixes.",
    "prune": "Delete ended tasks.",
    "store": "Maintain the store.",
    "demo": "Show a pause and a resume, in a directory of its own.",
    "completion": "Print the line that turns on shell completion.",
}

# What is in no group is with the last one
GROUPS = {
    "Run": ("run", "execute", "resume", "restart", "fork", "pause", "cancel", "ask", "clarify"),
    "Decide": ("inbox", "approve", "reject", "answer", "snooze", "settle", "decide", "delegate"),
    "Look": ("watch", "tasks", "show", "runs", "logs", "wait", "plan"),
    "Set up": (
        "setup",
        "policy",
        "rules",
        "users",
        "tokens",
        "notify",
        "config",
        "completion",
    ),
    "Look after": ("worker", "serve", "mcp", "doctor", "store", "audit", "prune"),
}
_NAMES = 13  # columns of the names of groups
_ALL_ROWS = 62  # that a list with a line for each verb needs

# Parts of adjourn that adjourn itself starts.
DRIVERS = {"_drive": "drive", "_tool": "tool"}
HIDDEN = frozenset({*DRIVERS, "_front", "_hook", "_permission", "_supervise"})
# The tasks of earlier versions have these in their records
_EARLIER = {f"_{runner}": ["_drive", runner] for runner in ("agent", "claude", "codex")}


class Verbs(click.Group):
    """Imports a verb only when it is asked for: starting is a hot path."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order in which one meets them."""
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a verb."""
        del ctx
        if cmd_name not in VERBS and cmd_name not in HIDDEN:
            return None
        if cmd_name in DRIVERS:
            command = getattr(import_module("adjourn.cli.verbs._drivers"), DRIVERS[cmd_name])
        else:
            command = import_module(f"adjourn.cli.verbs.{cmd_name}").command
        assert isinstance(command, click.Command)  # noqa: S101 -- our own table
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb that the first word names, or say which one may have been meant."""
        if (
            args[0] not in VERBS
            and args[0] not in HIDDEN
            and not args[0].startswith("-")
            and not ctx.resilient_parsing
        ):
            from difflib import get_close_matches  # seldom needed

            near = get_close_matches(args[0], VERBS, n=1)
            raise Misuse(
                f"there is no verb {args[0]}" + (f": did you mean {near[0]}?" if near else ""),
                way_out="adjourn --help",
            )
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Return the verbs that begin so, each with what it does, without importing them."""
        # Only the shell asks for it
        from click.shell_completion import CompletionItem

        verbs = [
            CompletionItem(name, help=does)
            for name, does in VERBS.items()
            if name.startswith(incomplete)
        ]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options and the verbs; both at once where a terminal has room for it."""
        if _is_low_terminal():
            self.format_commands(ctx, formatter)
        else:
            super().format_options(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs in groups: a line for each, or on a terminal only what it has room for.

        No verb is imported for it.
        """
        del ctx
        named = {name for names in GROUPS.values() for name in names}
        *_, last = GROUPS
        groups = {group: [*names] for group, names in GROUPS.items()}
        groups[last] += [name for name in VERBS if name not in named]
        if _is_low_terminal():
            formatter.write("\n")
            for group, names in groups.items():
                rows = word_rows(names, columns=formatter.width - _NAMES)
                for at, row in enumerate(rows):
                    formatter.write(f"{'' if at else group:<{_NAMES}}{row}\n")
            formatter.write(
                "\nOne verb: adjourn VERB --help; a line for each: adjourn --help | less\n"
            )
            return
        for group, names in groups.items():
            with formatter.section(group):
                formatter.write_dl([(name, VERBS[name]) for name in names if name in VERBS])


def _is_low_terminal() -> bool:
    """Return whether a list with a line for each verb would not fit where help is printed."""
    return sys.stdout.isatty() and rows_of_stdout() < _ALL_ROWS


def _version(_: click.Context) -> str:
    from importlib.metadata import version  # seldom wanted

    return f"adjourn {version('adjourn')}"


@click.group(
    cls=Verbs,
    subcommand_metavar="VERB ...",
    add_help_option=False,
    params=[telling(["--version"], _version, says="Show the version and leave."), help_option()],
    context_settings={"help_option_names": ["-h", "--help"]},  # of groups of verbs
)
def cli() -> None:
    """Let a headless agent or tool stop for a person, leave, and come back with the answer.

    \b
    adjourn run -- ./deploy.sh     run a command; exit code 10: it needs a person
    adjourn inbox                  see what waits
    adjourn approve ASK --resume   decide, and go on
    adjourn                        see what waits and what runs

    `adjourn -a "PROMPT"` is `adjourn run "PROMPT"`, and `adjourn -c ID …` is `adjourn resume ID …`.

    Exit codes: 0 completed, 1 failed, 2 usage, 3 not found, 4 conflict, 5 not allowed, 6 cannot be
    resumed, 10 paused.
    """  # noqa: D301 -- click keeps the lines of a paragraph that begins with a backspace


def run(argv: list[str]) -> int:
    """Run one command line and return its exit code.

    Nothing that a person can cause shows a traceback.
    """
    make_ready()
    take_key_from(os.environ)
    own = argv[: argv.index("--")] if "--" in argv else argv
    session = Session(wants_json="--output=json" in own or ("--output", "json") in pairwise(own))
    try:
        if argv and argv[0] in _WORDY and not "".join(argv).isascii():
            # Commands and paths may be in any encoding; questions, answers and decisions may not
            try:
                "".join(argv).encode()
            except UnicodeEncodeError:
                way_out = f"adjourn {argv[0]} --help"
                raise Misuse("the arguments are not UTF-8", way_out=way_out) from None
        session.is_prompt = argv[:1] == ["-a"]
        result: Any = cli.main(
            args=_spelled_out(argv), prog_name="adjourn", standalone_mode=False, obj=session
        )
        code = result if isinstance(result, int) else exits.COMPLETED
    except AdjournError as error:
        if isinstance(error, NotAllowed):
            session.tell_refusal(argv[0] if argv else "", error)
        code = session.fail(error)
    except click.ClickException as error:
        code = session.fail(Misuse(_on_one_line(error), way_out=_help_for(error, argv)))
    except (click.Abort, KeyboardInterrupt):
        code = _INTERRUPTED  # a person pressed Ctrl+C while nothing of ours ran
    except OSError as error:
        code = session.fail(_of_the_system(error, session))
    except Exception as error:  # noqa: BLE001 -- the last edge: a defect of ours is told in a sentence, too
        code = session.fail(_defect(error, session))
    session.warn_of_unreadable()
    flush()
    if lost := lost_output():
        why = prose(lost.strerror or "the system does not say why")
        session.warn(f"adjourn: not all of the output could be written: {why}")
        session.warn(f"  what was done stays done; see: {session.commands('tasks')}")
        # How a task ended is more than whether it could be printed
        code = code if code or _verb_of(argv) in _OWN_OUTCOME else exits.FAILED
    return code if code in exits.MEANINGS or code > exits.PAUSED else exits.FAILED


def _verb_of(argv: list[str]) -> str:
    return _spelled_out(argv)[0]


def _spelled_out(argv: list[str]) -> list[str]:
    """Accept `-c ID …` for `resume ID …` and `-a PROMPT` for `run PROMPT`; alone it shows all."""
    if argv[:1] == ["-c"]:
        return ["resume", *argv[1:]]
    if argv[:1] == ["-a"]:
        return ["run", *argv[1:]]
    return [*_EARLIER.get(argv[0], argv[:1]), *argv[1:]] if argv else ["_front"]


def _on_one_line(error: click.ClickException) -> str:
    """Say what Click says; it lists choices below each other, which would be spelled out."""
    return error.format_message().replace("\n\t", " ")


def _help_for(error: click.ClickException, argv: list[str]) -> str:
    if isinstance(error, click.UsageError) and error.ctx:
        return f"{error.ctx.command_path} --help"
    # Click does not say whose option lacks its value
    verbs = [word for word in argv[:1] if word in VERBS]
    return " ".join(["adjourn", *verbs, "--help"])


def _of_the_system(error: OSError, session: Session) -> AdjournError:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        with suppress(AdjournError, OSError):
            # Most commands start without it (bench start)
            from adjourn.system.files import disk_full

            return disk_full(
                os.path.dirname(os.fsdecode(error.filename))
                if error.filename
                else session.root or os.getcwd()
            )
    if error.errno in {errno.EMFILE, errno.ENFILE}:
        return AdjournError(
            "too many files are open", way_out="ulimit -n 1024, then run the command again"
        )
    if isinstance(error, FileNotFoundError) and error.filename is None:
        return AdjournError(
            "the current directory does not exist any more", way_out="cd to a directory that exists"
        )
    return AdjournError(
        f"{error.filename or 'the system'}: {error.strerror}",
        way_out="fix this, then run the command again",
    )


def _defect(error: Exception, session: Session) -> AdjournError:
    if session.verbose:
        # Slow to import, and seldom needed
        import traceback

        lines = (
            block(session.open_redactor().text("".join(traceback.format_exception(error))))
            .rstrip("\n")
            .split("\n")
        )
        session.warn("\n".join(f"  {line}" for line in lines))
    return AdjournError(
        f"a defect in adjourn: {type(error).__name__}: {error}",
        way_out="run the command again with --verbose, and report the output",
    )
