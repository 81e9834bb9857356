"""What approve, reject and answer have in common: record replies, and print what happens next."""

import sys
from collections.abc import Sequence

import msgspec

from adjourn.cli.session import Session
from adjourn.controller.decisions import ENOUGH, Decisions, require_named
from adjourn.controller.transaction import call_asked_about
from adjourn.core.ask import ApprovalAsk, Ask, Reply, Verb
from adjourn.core.call import COMMAND, Call
from adjourn.core.errors import Misuse, NotFound, StoreProblem
from adjourn.core.states import AskState, TaskState
from adjourn.core.task import WHOLE_ID, Task
from adjourn.core.text.render import prose, visible
from adjourn.views.block import Id, Span, line
from adjourn.views.call import call_blocks
from adjourn.wiring import has_worker, name_of_store


class ReplyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a person may add to a reply."""

    sign: str | None = None
    save: str | None = None
    in_editor: bool = False
    sets: Sequence[str] = ()
    override: str | None = None
    digest: str | None = None  # the beginning of that of the call that was shown
    comment: str | None = None
    resumes: bool = False  # whether its task goes on here


def reply_to(
    session: Session, verb: Verb, ids: Sequence[str], text: str | None, how: ReplyOptions
) -> int:
    """Record a reply to each ask, all or none, and print a receipt for each.

    With a key they are signed, or only signed and saved. One call may be edited first.
    """
    if how.comment is not None and (how.sign or how.save):
        raise Misuse("a signed decision carries no comment", way_out="leave out --comment")
    if how.resumes and how.save:
        raise Misuse(
            "--save decides nothing yet, so --resume cannot follow", way_out="adjourn decide"
        )
    if how.override is not None and (len(ids) != 1 or "-" in ids):
        raise Misuse(
            "--override goes with one ask, named on the command line",
            way_out='adjourn approve ASK --override "why it must run"',
        )
    if how.digest is not None and (len(ids) != 1 or "-" in ids):
        raise Misuse(
            "--digest goes with one ask, named on the command line",
            way_out="adjourn approve ASK --digest HEX",
        )
    texts = read_ids(ids)
    decisions = _open_where_they_are(session, verb, texts)
    is_edited, is_signed = bool(how.in_editor or how.sets), bool(how.sign or how.save)
    # Only what is edited or signed needs more than decisions do
    controller = session.open_controller() if is_edited or is_signed else None
    decisions = controller.decisions if controller else decisions
    by = session.principal(decisions)
    decisions.authorise(by, verb)
    found = decisions.find_asks(texts)

    shown = session.row_digests  # what a row showed is what is approved
    replies = [Reply(ask_id=ask, verb=verb, text=text, digest=shown.get(ask)) for ask in found]
    if how.override is not None:
        replies = [msgspec.structs.replace(reply, override=how.override) for reply in replies]
    if how.comment is not None:
        replies = [msgspec.structs.replace(reply, comment=how.comment) for reply in replies]
    if how.digest is not None:
        digest = decisions.digest_shown(found[0], how.digest)
        replies = [msgspec.structs.replace(reply, digest=digest) for reply in replies]
    if controller and is_edited:
        # Most commands start without it (bench start)
        from adjourn.cli.verbs._editing import edited_reply

        edited = edited_reply(
            session, controller, found, value=text, in_editor=how.in_editor, sets=how.sets
        )
        replies = [msgspec.structs.replace(edited, comment=how.comment)]
    if controller and is_signed:
        # Most commands start without it (bench start)
        from adjourn.cli.verbs._signing import record_signed

        settled = record_signed(session, controller, replies, by=by, key=how.sign, save=how.save)
    else:
        settled = decisions.decide(replies, by=by)
    if settled is None:
        return 0
    code = print_settled(session, decisions, settled, tells_next=not how.resumes)
    if not how.resumes:
        return code
    # Who only decides does without what runs (bench start)
    from adjourn.cli.verbs._resuming import resume_tasks

    decisions.store.close()
    return resume_tasks(session, dict.fromkeys(ask.task_id for ask in settled))


def approvals_of(session: Session, text: str) -> tuple[str, ...]:
    """Return the open approvals of a task, without those that have to be named."""
    decisions = session.open_decisions()
    require_named(text)
    task = decisions.find_task(text, shortest=ENOUGH)
    with decisions.store.read() as view:
        asks = [ask for ask in view.open_asks_of(task.id) if isinstance(ask, ApprovalAsk)]
    covered = [ask.id for ask in asks if not (ask.terms.by_name or ask.terms.override)]
    for ask in asks:
        if ask.id not in covered:
            session.warn(f"adjourn: ask {ask.id} has to be named: --all does not cover it")
    if not covered:
        way_out = session.commands("show", task.id)
        raise NotFound(f"task {task.id} asks for no approval that --all covers", way_out=way_out)
    return tuple(covered)


def _open_where_they_are(session: Session, verb: Verb, texts: Sequence[str]) -> Decisions:
    """Open the store that has these asks: this one, or another one of this user's."""
    decisions = session.open_decisions() if session.has_store else None
    if session.given_store:
        session.require_store()
    elif decisions and all(len(text) == WHOLE_ID for text in texts):
        with decisions.store.read() as view:
            if all(view.asks_like(text) for text in texts):
                return decisions
    # What is named in full and is here needs no other store (bench start)
    from adjourn.cli.verbs._home_of_asks import find_home

    home = None if session.given_store else find_home(session, texts)
    if home is None:
        return decisions or session.open_decisions()
    # Only a decision on another store needs it
    from adjourn.wiring.ownership import require_outside_of_all_runs

    require_outside_of_all_runs(verb)
    session.change_root(home)
    return session.open_decisions()


def read_ids(ids: Sequence[str]) -> list[str]:
    """Return the ids, those on stdin where a dash stands for them."""
    if "-" not in ids:
        return list(ids)
    given = sys.stdin.read().split() if sys.stdin else []
    if not given:
        raise NotFound("stdin has no ask ids", way_out="adjourn inbox")
    return [word for text in ids for word in (given if text == "-" else [text])]


def print_settled(
    session: Session, decisions: Decisions, settled: Sequence[Ask], *, tells_next: bool = True
) -> int:
    """Print a receipt for each reply that was recorded, and what happens next."""
    try:
        _print_settled(session, decisions, settled, tells_next=tells_next)
    except StoreProblem as error:  # the reader must not think that nothing was decided
        what = "it was" if len(settled) == 1 else "they were"
        raise StoreProblem(
            f"{what} recorded, and then {error.why}",
            way_out=session.commands("show", settled[0].task_id),
        ) from error
    return 0


def _print_settled(
    session: Session, decisions: Decisions, settled: Sequence[Ask], *, tells_next: bool
) -> None:
    receipts = decisions.receipts(settled)
    with decisions.store.read() as view:
        calls = [call_asked_about(view, ask) for ask in settled]
        tasks = {ask.task_id: view.task(ask.task_id) for ask in settled}

    if session.wants_json and not tells_next:
        return  # the document is that of the task that goes on
    if session.wants_json:
        # Only JSON needs it (bench start)
        from adjourn.wiring.json_documents import recorded_doc

        store = name_of_store(session.root) if session.is_elsewhere else None
        session.print_document(recorded_doc(decisions, settled, store=store))
        return

    by_ask = {receipt.ask: receipt for receipt in receipts}
    for ask, call in zip(settled, calls, strict=True):
        said = f": {visible(ask.reply)}" if ask.reply else ""
        receipt = by_ask.get(ask.id)
        counted = ask.count_words if isinstance(ask, ApprovalAsk) else None
        if counted:
            said = f": {counted}{said}"
        # One of several approvals leaves the ask open
        state = "recorded for" if ask.is_open else ask.state
        session.show([line(f"{state} ", Span(ask.id, "id"), said)])
        if receipt:
            session.print(f"receipt {receipt.token} {receipt.level} by {visible(receipt.by)}")
        if (ask.state is AskState.APPROVED or ask.is_open) and call:
            session.print("what would run:" if ask.is_open else "what runs:")
            copies = _kept_copies(decisions, ask, call)
            session.show(call_blocks(call, cut=session.cut(call.task_id), copies=copies))
    if session.is_elsewhere:
        session.print(f"store: {prose(name_of_store(session.root))}")
    queued = {task.spec.pool for task in tasks.values() if task.state is TaskState.QUEUED}
    pools = {pool for pool in queued if has_worker(session.root, pool)}
    for task in tasks.values() if tells_next else ():
        session.print(_what_next(session, task, has_worker=task.spec.pool in pools))


def _kept_copies(decisions: Decisions, ask: Ask, call: Call) -> dict[str, str | None] | None:
    """Return the texts of files with which an agent's call was shown."""
    if call.tool == COMMAND:
        return None
    # Only an agent's call needs it (bench start)
    from adjourn.core.kept_documents import COPIES

    with decisions.store.read() as view:
        return COPIES.of(ask.id).read(view, ask.task_id)


def _what_next(session: Session, task: Task, *, has_worker: bool) -> str:
    """Say how a task goes on."""
    match task.state:
        case TaskState.QUEUED if has_worker:
            return f"A worker starts it. Follow it with: {session.commands('wait', Id(task.id))}"
        case TaskState.QUEUED:
            return f"Resume with: {session.commands('resume', Id(task.id))}"
        case TaskState.RUNNING:
            return f"It runs. Follow it with: {session.commands('wait', Id(task.id))}"
        case TaskState.WAITING:
            return f"Still open:  {session.commands('show', Id(task.id))}"
        case _:
            name = session.name_of(task.id) if session.shortens_ids else task.id
            return f"Task {name} is {task.state}."


def warn_receipts(session: Session, decisions: Decisions, task: Task) -> None:
    """Print a receipt for each settled ask of a task's run, as the task stood at that time."""
    with decisions.store.read() as view:
        settled = [
            ask
            for ask in view.asks_of_run(task.id, task.runs)
            if ask.settlement and ask.settlement.level
        ]
    for receipt in decisions.receipts(settled):
        session.warn(f"receipt {receipt.token} {receipt.level} by {visible(receipt.by)}")
