"""adjourn approve: let calls run."""

from typing import TypedDict, Unpack

import click

from adjourn.cli.options import ASK_NAME, TASK_NAME, resuming, signable, verb
from adjourn.cli.session import Session
from adjourn.cli.verbs._replies import ReplyOptions, approvals_of, reply_to
from adjourn.core.ask import Verb
from adjourn.core.errors import Misuse


class Given(TypedDict):
    """The options of an approval."""

    value: str | None
    edit: bool
    sets: tuple[str, ...]
    override: str | None
    digest: str | None
    comment: str | None
    wants_all: bool
    task: str | None
    resume: bool
    sign: str | None
    save: str | None


@verb("approve", prints_whole=True)
@click.argument("asks", nargs=-1, type=ASK_NAME, metavar="ASK...")
@click.option(
    "--value", metavar="V", help="What the command gets as AUTO_APPROVAL (default: approved)."
)
@click.option(
    "--edit",
    is_flag=True,
    help="Change the call in $VISUAL or $EDITOR, then approve the changed call.",
)
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change one argument, as in argv.2=staging; repeat it.",
)
@click.option(
    "--override",
    metavar="REASON",
    help="Why it may run although the policy says never; for one ASK.",
)
@click.option(
    "--digest",
    metavar="HEX",
    help="Approve only if the call's sha256 starts so; for one ASK. A call that somebody edited"
    " needs it.",
)
@click.option("--comment", metavar="TEXT", help="A note for the audit trail.")
@click.option(
    "--all", "wants_all", is_flag=True, help="With --task: all open approvals of the task."
)
@click.option("--task", type=TASK_NAME, metavar="ID", help="With --all: the task.")
@resuming
@signable
def command(session: Session, *, asks: tuple[str, ...], **given: Unpack[Given]) -> int:
    """Approve calls: all of them, or none if one cannot be.

    ASK may be `-`: the ids then come from stdin. `--all --task ID` approves all calls of a task,
    but for those that have to be named.
    """
    task = given["task"]
    if bool(asks) == given["wants_all"] or given["wants_all"] != (task is not None):
        raise Misuse("name asks, or a task with --all --task ID", way_out="adjourn inbox")
    how = ReplyOptions(
        sign=given["sign"],
        save=given["save"],
        in_editor=given["edit"],
        sets=given["sets"],
        override=given["override"],
        digest=given["digest"],
        comment=given["comment"],
        resumes=given["resume"],
    )
    named = asks if task is None else approvals_of(session, task)
    return reply_to(session, Verb.APPROVE, named, given["value"], how)
