"""Signs replies, and records them or puts them into a file that can be carried anywhere."""

import os
from collections.abc import Sequence

import msgspec

from adjourn.cli.session import Session
from adjourn.controller.controller import Controller
from adjourn.core.ask import Ask, Principal, Reply
from adjourn.core.authority.signed import LARGEST, DecisionFile, Signed, document_of
from adjourn.core.errors import Conflict, Misuse
from adjourn.system.files import write_whole
from adjourn.wiring.authority import sign


def record_signed(
    session: Session,
    controller: Controller,
    replies: Sequence[Reply],
    *,
    by: Principal,
    key: str | None,
    save: str | None,
) -> list[Ask] | None:
    """Sign replies and record them; with `save`, write them to a new file and return None."""
    if key is None:
        raise Misuse(
            "--save goes with --sign: what is not signed proves nothing",
            way_out="adjourn approve --help",
        )
    decisions = [document_of(controller.signing.decision_on(reply)) for reply in replies]
    signed = [Signed(document=each, signature=sign(each.encode(), key=key)) for each in decisions]
    if save is None:
        return controller.signing.decide_signed(signed, carried_by=by)

    path = os.path.abspath(save)
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
        count = len(signed)
        document = {"schema_version": 1, "outcome": "saved", "file": path, "decisions": count}
        session.print_document(document)
    else:
        noun = "decision" if len(signed) == 1 else "decisions"
        session.print(f"Signed {len(signed)} {noun}; nothing is recorded yet.")
        session.print(f"Record with: {session.commands('decide', path)}")
    return None
