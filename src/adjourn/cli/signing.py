"""Signs replies, and records or saves them."""

import os
from collections.abc import Sequence

import msgspec

from adjourn.cli.program import command
from adjourn.cli.replies import tell
from adjourn.cli.session import Session
from adjourn.core import exits
from adjourn.core.ask import Reply
from adjourn.core.errors import Conflict, Misuse
from adjourn.core.signed import LARGEST, DecisionFile, Signed, document_of
from adjourn.files import write_whole
from adjourn.wiring.authority import sign


def record_signed(session: Session, replies: Sequence[Reply], *, key: str | None, save: str | None) -> int:
    """Sign replies and record them, or put them into a file that can be carried anywhere."""
    if key is None:
        raise Misuse("--save goes with --sign: what is not signed proves nothing", way_out="adjourn approve --help")
    decisions = [document_of(session.controller.decision_on(reply)) for reply in replies]
    signed = [Signed(document=each, signature=sign(each.encode(), key=key)) for each in decisions]
    if save is None:
        return tell(session, session.controller.decide_signed(signed, carried_by=session.principal))
    return _saved(session, signed, os.path.abspath(save))


def _saved(session: Session, signed: Sequence[Signed], path: str) -> int:
    content = msgspec.json.encode(DecisionFile(decisions=tuple(signed)))
    if len(content) > LARGEST:
        raise Misuse(f"a decision file has at most {LARGEST:,} bytes", way_out="decide fewer asks with one file")
    if os.path.lexists(path):
        raise Conflict(f"{path} exists already", way_out="name a file that does not exist")
    write_whole(path, content)
    if session.wants_json:
        session.document({"schema_version": 1, "outcome": "saved", "file": path, "decisions": len(signed)})
    else:
        session.say(f"Signed {len(signed)} {'decision' if len(signed) == 1 else 'decisions'}; nothing is recorded yet.")
        session.say(f"Record with: {command(session, 'decide', path)}")
    return exits.COMPLETED
