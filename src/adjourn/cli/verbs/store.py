"""adjourn store: look after the store."""

import os
import sys
from collections.abc import Mapping, Sequence
from itertools import count

import click

from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.cli.terminal import flush, is_pasted, wait_for_silence
from adjourn.core.errors import Conflict, Misuse
from adjourn.core.text.render import prose
from adjourn.core.text.when import stamp
from adjourn.views.call import call_blocks
from adjourn.wiring import is_shared, name_of_store

TYPE_CHECKING = False

if TYPE_CHECKING:  # only who takes a store needs it
    from adjourn.wiring.ownership import StoreContents, Taken


@click.group("store", no_args_is_help=False)
def command() -> None:
    """Maintain the store."""


@verb("backup")
@click.argument("target", type=click.Path())
def backup(session: Session, *, target: str) -> None:
    """Copy the store, as of one moment and while it is in use, into the new file TARGET."""
    path = os.path.abspath(target)
    if os.path.lexists(path):
        raise Conflict(
            f"{path} exists already",
            way_out=session.commands("store", "backup", _free_name(target)),
        )
    # Only this verb copies and moves stores: other verbs of the group start without it.
    from adjourn.wiring.migration import back_up

    back_up(session.open_controller(), path)
    if session.wants_json:
        session.print_document(
            {"schema_version": 1, "backup": path, "bytes": os.path.getsize(path)}
        )
    else:
        session.print(
            f"Backed up {name_of_store(session.root)} to {path} ({os.path.getsize(path):,} bytes)."
        )


def _free_name(target: str) -> str:
    """Return a name like this one that no file has."""
    stem, suffix = os.path.splitext(target)
    return next(
        name for number in count(2) if not os.path.lexists(name := f"{stem}-{number}{suffix}")
    )


@verb("migrate")
@click.option(
    "--from",
    "source",
    type=click.Path(),
    metavar="DIR",
    help="Move all that this directory keeps into the database.",
)
def migrate(session: Session, *, source: str | None) -> None:
    """Bring the store's schema up to date.

    With --from, move a store of one machine into a database that machines share.
    """
    if source is None:
        session.open_controller().store.close()  # opening a store upgrades its schema
        if session.wants_json:
            session.print_document({"schema_version": 1, "store": name_of_store(session.root)})
        else:
            session.print(f"{name_of_store(session.root)} is up to date.")
        return
    # Other verbs of the group start without it
    from adjourn.wiring.migration import migrate as move

    moved = move(source, session.root)
    amounts = {"tasks": len(moved.tasks), "asks": len(moved.asks), "events": len(moved.events)}
    if session.wants_json:
        session.print_document({"schema_version": 1, "from": os.path.abspath(source), **amounts})
    else:
        told = ", ".join(
            f"{amount:,} {name.removesuffix('s') if amount == 1 else name}"
            for name, amount in amounts.items()
        )
        session.print(f"Moved {told}, and compared each of them.")
        session.print(
            f"{source} leads to the database from now on; what it kept is put aside there."
        )


@verb("roles")
def roles(session: Session) -> None:
    """Make the roles adjourn_agent, _approver, _worker and _server in the database.

    It holds each to what it may do.
    """
    # Other verbs of the group start without it
    from adjourn.wiring.migration import ROLES, make_roles

    make_roles(session.open_controller())
    if session.wants_json:
        session.print_document({"schema_version": 1, "roles": list(ROLES)})
        return
    session.print(
        "Made the roles adjourn_agent, adjourn_approver, adjourn_worker and adjourn_server."
        " Give each login one of them:"
    )
    session.print(
        "  GRANT adjourn_worker TO ci; GRANT adjourn_approver TO anna; GRANT adjourn_agent TO bot;"
    )


_MOST = 20  # calls that are shown
_YES = click.option("--yes", is_flag=True, help="Do not ask.")


@verb("adopt")
@_YES
def adopt(session: Session, *, yes: bool) -> None:
    """Bind a store that is a copy, or comes from another machine or user, to this machine and you.

    It says what the store holds and asks. What was approved in it, or was running, may have run
    elsewhere: each becomes a question. Where `database.json` leads to a database, it is followed
    from then on.
    """
    # Other verbs of the group start without it
    from adjourn.wiring.ownership import follow_address, read_contents, take, unfollowed_address

    _require_person(session)
    if url := unfollowed_address(session.root):
        session.print(f"{prose(session.root)} leads to {prose(url)}.")
        _confirm(session, "Use it from now on, and send your credentials there?", "adopt", yes=yes)
        follow_address(session.root)
        _tell(session, {"store": session.root, "database": url}, "It is used from now on.")
        return
    _require_directory(session)
    contents = read_contents(session.root)
    if contents.is_ours:
        raise Conflict(
            f"{session.root} is bound to this machine and you already",
            way_out=session.commands("tasks"),
        )
    _show(session, contents)
    _confirm(session, "Adopt it?", "adopt", yes=yes)
    _tell_taken(session, take(session.root, adopts=True), "Adopted")


@verb("accept")
@_YES
def accept(session: Session, *, yes: bool) -> None:
    """Go on with a store that was restored from a backup, or lost its log, as it is.

    It says what is missing and asks. What was approved, or was running, may have run since then:
    each becomes a question. Of a database that machines share, one machine accepts an older copy
    for all of them.
    """
    # Other verbs of the group start without it
    from adjourn.wiring.ownership import accept_shared, read_contents, take

    _require_person(session)
    if is_shared(session.root):
        decisions = session.open_decisions()
        decisions.authorise_alone(session.principal(decisions), "accept")
    contents = read_contents(session.root)
    name = name_of_store(session.root)
    if not contents.is_ours:
        raise Conflict(contents.why, way_out=session.commands("store", "adopt"))
    if contents.missing is None:
        raise Conflict(
            f"{name} lacks nothing that this machine has seen",
            way_out=session.commands("tasks"),
        )
    _show(session, contents)
    _confirm(session, "Continue with the store as it is?", "accept", yes=yes)
    root = session.root
    taken = accept_shared(root) if is_shared(root) else take(root, adopts=False)
    _tell_taken(session, taken, "Accepted")


@verb("forget")
@click.argument("directories", nargs=-1, type=click.Path(), metavar="[DIR]...")
@_YES
def forget(session: Session, *, directories: tuple[str, ...], yes: bool) -> None:
    """Remove what your state directory keeps of deleted stores: of all, or of those in DIR.

    It lists them and asks. A store whose disk may not be mounted is left alone. One that was moved
    and then forgotten has to be adopted: use it once where it is now, and it is not listed any
    more.
    """
    # Other verbs of the group start without it
    from adjourn.wiring.ownership import deleted_stores, forget_stores

    _require_outside()
    stores = deleted_stores(directories)
    if stores and not session.wants_json:
        for store in stores:
            session.print(f"{prose(store.path)}: {store.fate.value}")
        session.print(
            "If you moved one of them, run `adjourn doctor --store DIR` where it is now,"
            " and it stays."
        )
    if stores:
        _confirm(session, "Forget them?", "forget", *directories, yes=yes)
        forget_stores(stores)
    told = (
        f"Forgot {len(stores):,} {'store' if len(stores) == 1 else 'stores'}."
        if stores
        else "Nothing to forget."
    )
    _tell(session, {"forgotten": [store.path for store in stores]}, told)


def _require_person(session: Session) -> None:
    session.require_store()
    _require_outside()


def _require_outside() -> None:
    # Other verbs of the group start without it
    from adjourn.wiring.ownership import require_outside_of_all_runs

    require_outside_of_all_runs("taking or forgetting a store")


def _require_directory(session: Session) -> None:
    if is_shared(session.root):
        name = name_of_store(session.root)
        sentence = f"{name} is a database that machines share: it is bound by its logins"
        raise Misuse(sentence, way_out=session.commands("doctor"))


def _show(session: Session, contents: "StoreContents") -> None:
    """Say what a store holds, what is missing, and which approved calls would be asked about."""
    if session.wants_json:
        return
    session.print(prose(contents.why))
    if contents.identity:
        made = stamp(contents.identity.made_at)
        session.print(
            f"Made by {prose(contents.identity.made_by)} at {made}, as the store itself says."
        )
    tasks = (
        ", ".join(f"{amount:,} {state}" for state, amount in sorted(contents.tasks.items()))
        or "none"
    )
    session.print(
        f"Tasks: {tasks}. Open asks: {contents.open_asks:,}. Events: {contents.events:,}."
    )
    if contents.missing:
        session.print(f"This machine has seen {contents.missing:,} events.")
    session.print(
        f"Approved or running calls, which may have run already: {len(contents.approved):,}."
    )
    for call in contents.approved[:_MOST]:
        session.print(
            f"  task {call.task_id}, {call.state}, by {prose(call.approved_by or 'nobody')}:"
        )
        shown = call if sys.stdout.isatty() else session.open_redactor().call(call)
        session.show(call_blocks(shown, cut=session.cut(call.task_id)))
    if len(contents.approved) > _MOST:
        session.print(f"  and {len(contents.approved) - _MOST:,} more: {session.commands('tasks')}")


def _confirm(session: Session, question: str, *words: str, yes: bool) -> None:
    """Take a yes to this command of `store` at a terminal, or --yes."""
    if yes:
        return
    flush()
    if session.wants_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        way_out = session.commands("store", *words, "--yes")
        raise Misuse("no terminal to confirm at: nothing was changed", way_out=way_out)
    wait_for_silence()  # a yes that was typed before this was shown is no yes to it
    if not click.confirm(question, default=False) or is_pasted():
        raise Misuse("not confirmed: nothing was changed", way_out=session.commands("tasks"))


def _tell_taken(session: Session, taken: "Taken", verb_done: str) -> None:
    doubts, inbox = taken.doubts, session.commands("inbox")
    told = [f"{verb_done} {prose(name_of_store(session.root))}."]
    if doubts.uncertain:
        told.append(f"{_tasks(doubts.uncertain, 'has', 'have')} a call that may have run: {inbox}")
    if doubts.asked_again:
        told.append(
            f"{_tasks(doubts.asked_again, 'has', 'have')} approvals that are asked for again:"
            f" {inbox}"
        )
    if doubts.paused:
        told.append(
            f"{_tasks(doubts.paused, 'is', 'are')} paused and may have gone on:"
            " look before you resume."
        )
    document = {
        "store": session.root,
        "uncertain": list(doubts.uncertain),
        "asked_again": list(doubts.asked_again),
        "paused": list(doubts.paused),
    }
    _tell(session, document, "\n".join(told))


def _tasks(names: Sequence[str], one: str, many: str) -> str:
    return f"1 task {one}" if len(names) == 1 else f"{len(names):,} tasks {many}"


def _tell(session: Session, document: Mapping[str, object], text: str) -> None:
    if session.wants_json:
        session.print_document({"schema_version": 1, **document})
    else:
        session.print(text)


command.add_command(accept)
command.add_command(adopt)
command.add_command(backup)
command.add_command(forget)
command.add_command(roles)
command.add_command(migrate)
