"""A review at the terminal: what the task changed, and what the person says of it."""

import os
import sys
from contextlib import closing, suppress

from adjourn.cli.session import Session
from adjourn.cli.terminal import flush, is_pasted, wait_for_silence
from adjourn.controller.controller import Controller
from adjourn.core.ask import Ask, Principal, Reply, Verb, is_review
from adjourn.core.authority.scopes import is_human
from adjourn.core.errors import AdjournError
from adjourn.core.review import APPROVE, APPROVE_AND_STOP, REJECT, REQUEST_CHANGES
from adjourn.core.task import Task
from adjourn.core.text.render import prose
from adjourn.system.poll import Poll, Signals
from adjourn.views.task import ask_blocks

_STDIN = 0
_LINE = 1 << 16
_QUESTION = (
    "approve (a), approve and stop (s), request changes (c TEXT), reject (r [TEXT]),"
    " later (Enter)? "
)
_WHAT = "add what to change, as in: c name the version"
_PASTED = "Several lines came at once, so none of them counts. Type one line."
_WORDS = {"a": APPROVE, "s": APPROVE_AND_STOP, "c": REQUEST_CHANGES, "r": REJECT}


def can_review(session: Session, by: Principal) -> bool:
    """Return whether a person is there who can be asked at once."""
    is_at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return is_at_terminal and not session.wants_json and is_human(by)


def review_now(
    session: Session, controller: Controller, task: Task, signals: Signals, *, by: Principal
) -> bool:
    """Ask until the review is given, here or elsewhere.

    A person who says nothing, or Ctrl+C, leaves it open.
    """
    scene = controller.scene(task.id)
    ask = next(filter(is_review, scene.open_asks))
    session.show(ask_blocks(ask, scene, now=controller.now(), cut=session.cut(task.id)))
    flush()
    wait_for_silence(is_stopped=lambda: signals.count() > 0)
    while (line := _line(session, controller, ask, signals)) and line.strip():
        if is_pasted():
            session.print(_PASTED)
            continue
        try:
            reply = Reply(ask_id=ask.id, verb=Verb.ANSWER, text=_spelled(line))
            controller.decisions.decide([reply], by=by)
        except AdjournError as error:
            session.print(_WHAT if _spelled(line) == REQUEST_CHANGES else prose(error.sentence))
        if not _is_open(controller, ask):
            return True
    return not _is_open(controller, ask)


def _spelled(line: str) -> str:
    """Return a review in full where somebody typed a letter for it."""
    word, _, rest = line.strip().partition(" ")
    if word not in _WORDS:
        return line.strip()
    return f"{_WORDS[word]}: {rest}" if rest else _WORDS[word]


def _line(session: Session, controller: Controller, ask: Ask, signals: Signals) -> str | None:
    """Return what a person typed, or None when somebody said stop, or gave the review elsewhere."""
    with suppress(OSError):  # a terminal that is gone is noticed below
        sys.stdout.write(_QUESTION)
    flush()
    with closing(controller.store.listen()) as listener:
        poll = Poll(listener, signals)
        poll.add(_STDIN)
        while not signals.count() and _is_open(controller, ask):
            if _STDIN in poll.wait():
                with suppress(OSError):
                    return os.read(_STDIN, _LINE).decode(errors="replace")
                return None
    session.print("")
    return None


def _is_open(controller: Controller, ask: Ask) -> bool:
    with controller.store.read() as view:
        return view.ask(ask.id).is_open
