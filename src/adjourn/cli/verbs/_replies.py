"""What approve, reject and answer have in common: record replies, and say what happens next."""

import os
import sys
from collections.abc import Collection, Iterable, Sequence

import msgspec

from adjourn.cli.session import Session
from adjourn.controller.controller import Controller
from adjourn.core import exits
from adjourn.core.ask import Ask, Reply, Verb
from adjourn.core.authority.signed import LARGEST, DecisionFile, Signed, document_of
from adjourn.core.call import Call
from adjourn.core.errors import Conflict, Misuse, NotFound, StoreProblem
from adjourn.core.states import AskState, TaskState
from adjourn.core.task import Task
from adjourn.core.text.render import visible
from adjourn.core.trail.receipt import Receipt
from adjourn.system.files import write_whole
from adjourn.views.call import call_block
from adjourn.views.next_step import command
from adjourn.wiring import has_worker
from adjourn.wiring.authority import sign


def record(
    session: Session, replies: Sequence[Reply], *, sign: str | None = None, save: str | None = None
) -> int:
    """Record replies, all or none, and print a receipt for each.

    With a key they are signed, or only signed and saved.
    """
    if sign or save:
        return record_signed(session, replies, key=sign, save=save)
    return tell(session, session.decisions.decide(replies, by=session.principal))


def tell(session: Session, settled: Sequence[Ask]) -> int:
    """Print a receipt for each reply that was recorded, and say what happens next."""
    try:
        _tell(session, settled)
    except StoreProblem as error:  # whoever reads of it must not think that nothing was decided
        what = "it was" if len(settled) == 1 else "they were"
        raise StoreProblem(
            f"{what} recorded, and then {error.why}",
            way_out=command(session, "show", settled[0].task_id),
        ) from error
    return 0


def _tell(session: Session, settled: Sequence[Ask]) -> None:
    decisions = session.decisions
    receipts = decisions.receipts(settled)
    with decisions.store.read() as view:
        calls = [view.call(ask.task_id, ask.call) if ask.call else None for ask in settled]
        tasks = {ask.task_id: view.task(ask.task_id) for ask in settled}
    if session.wants_json:
        _say_json(
            session,
            zip(settled, calls, strict=True),
            tasks,
            receipts,
            original=_original(session, calls),
        )
    else:
        _say_text(
            session,
            zip(settled, calls, strict=True),
            tasks,
            {receipt.ask: receipt for receipt in receipts},
        )


def _original(session: Session, calls: Sequence[Call | None]) -> bytes | None:
    """Return what a call was before it was edited; several are never edited at once."""
    call = calls[0] if len(calls) == 1 else None
    if call is None:
        return None
    # Loaded here: `approve` is a hot path, and most calls are approved as they are
    from adjourn.core.kept_documents import ORIGINAL

    with session.decisions.store.read() as view:
        return ORIGINAL.read_of(view, call)


def _say_json(
    session: Session,
    settled: Iterable[tuple[Ask, Call | None]],
    tasks: dict[str, Task],
    receipts: list[Receipt],
    *,
    original: bytes | None,
) -> None:
    docs = ask_docs(settled, original=original)
    states = {task.id: task.state for task in tasks.values()}
    session.document(
        {
            "schema_version": 1,
            "outcome": "recorded",
            "asks": docs,
            "tasks": states,
            "receipts": receipts,
        }
    )


def ask_docs(
    asks: Iterable[tuple[Ask, Call | None]], *, original: bytes | None = None
) -> list[object]:
    """Describe asks, each with its call."""
    from adjourn.core.documents import ask_doc

    return [
        ask_doc(ask, {call.number: call} if call else {}, original=original) for ask, call in asks
    ]


def _say_text(
    session: Session,
    settled: Iterable[tuple[Ask, Call | None]],
    tasks: dict[str, Task],
    receipts: dict[str, Receipt],
) -> None:
    for ask, call in settled:
        said = f": {visible(ask.reply)}" if ask.reply else ""
        session.say(f"{ask.state} {ask.id}{said}")
        session.say(
            f"receipt {receipts[ask.id].token} {ask.level} by {visible(receipts[ask.id].by)}"
        )
        if ask.state is AskState.APPROVED and call:
            session.say("\n".join(["what runs:", *call_block(session, call)]))
    queued = {task.spec.pool for task in tasks.values() if task.state is TaskState.QUEUED}
    pools = {pool for pool in queued if has_worker(session.root, pool)}
    for task in tasks.values():
        session.say(_what_next(session, task, pools=pools))


def _what_next(session: Session, task: Task, *, pools: Collection[str]) -> str:
    """Say how a task goes on; in some pools a worker is alive."""
    match task.state:
        case TaskState.QUEUED:
            if task.spec.pool in pools:
                return f"A worker starts it. Follow it with: {command(session, 'wait', task.id)}"
            return f"Resume with: {command(session, 'resume', task.id)}"
        case TaskState.RUNNING:
            return f"It runs. Follow it with: {command(session, 'wait', task.id)}"
        case TaskState.WAITING:
            return f"Still open:  {command(session, 'show', task.id)}"
        case _:
            return f"Task {task.id} is {task.state}."


def asked(session: Session, verb: Verb, ids: Sequence[str]) -> list[str]:
    """Return the ids that are meant, each once, for somebody who may decide.

    Of several, an unknown one is kept as it is.
    """
    session.decisions.authorise(session.principal, verb)
    return session.decisions.find_asks(ids_of(ids))


def ids_of(ids: Sequence[str]) -> list[str]:
    """Read the ids from stdin where a dash stands for them."""
    if "-" not in ids:
        return list(ids)
    given = sys.stdin.read().split() if sys.stdin else []
    if not given:
        raise NotFound("nothing on stdin names an ask", way_out="adjourn inbox")
    return [word for text in ids for word in (given if text == "-" else [text])]


def say_receipts(session: Session, controller: Controller, task: Task) -> None:
    """Print a receipt for each settled ask of a task's run, as the task stood when they were settled."""
    with controller.store.read() as view:
        settled = [ask for ask in view.asks_of_run(task.id, task.runs) if ask.level]
    for receipt in controller.decisions.receipts(settled):
        session.warn(f"receipt {receipt.token} {receipt.level} by {visible(receipt.by)}")


def record_signed(
    session: Session, replies: Sequence[Reply], *, key: str | None, save: str | None
) -> int:
    """Sign replies and record them, or put them into a file that can be carried anywhere."""
    if key is None:
        raise Misuse(
            "--save goes with --sign: what is not signed proves nothing",
            way_out="adjourn approve --help",
        )
    decisions = [document_of(session.controller.signing.decision_on(reply)) for reply in replies]
    signed = [Signed(document=each, signature=sign(each.encode(), key=key)) for each in decisions]
    if save is None:
        return tell(
            session, session.controller.signing.decide_signed(signed, carried_by=session.principal)
        )
    return _saved(session, signed, os.path.abspath(save))


def _saved(session: Session, signed: Sequence[Signed], path: str) -> int:
    content = msgspec.json.encode(DecisionFile(decisions=tuple(signed)))
    if len(content) > LARGEST:
        raise Misuse(
            f"a decision file has at most {LARGEST:,} bytes",
            way_out="decide fewer asks with one file",
        )
    if os.path.lexists(path):
        raise Conflict(f"{path} exists already", way_out="name a file that does not exist")
    write_whole(path, content)
    if session.wants_json:
        session.document(
            {"schema_version": 1, "outcome": "saved", "file": path, "decisions": len(signed)}
        )
    else:
        session.say(
            f"Signed {len(signed)} {'decision' if len(signed) == 1 else 'decisions'}; nothing is recorded yet."
        )
        session.say(f"Record with: {command(session, 'decide', path)}")
    return exits.COMPLETED
