"""Settles asks at the terminal, one after the other, by single keys.

A key counts only if it was pressed after the whole ask was on the screen and the keyboard was
silent, and if nothing follows it at once: what is held down, pasted or typed ahead decides nothing.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import closing
from enum import Enum, auto

from adjourn.cli.session import Session
from adjourn.cli.terminal import flush, is_pasted, pressed_key, wait_for_silence
from adjourn.controller.controller import Controller
from adjourn.core.ask import ApprovalAsk, Ask, Principal, QuestionAsk, Reply, Verb
from adjourn.core.authority.scopes import is_human
from adjourn.core.errors import AdjournError
from adjourn.core.states import TaskState
from adjourn.core.task import Task
from adjourn.core.text.render import prose, visible
from adjourn.system.poll import Poll, Signals, deferred_signals
from adjourn.views.block import BLANK, Block, Span, line
from adjourn.views.keys import Key, KeyAction, keys_for, keys_line
from adjourn.views.task import ask_blocks

_STDIN = 0
_LINE = 1 << 16
_HOUR = 3_600_000
_CTRL_D = "\x04"
_TOO_FAST = "Several keys came at once, so none of them counts."


class _Left(Enum):
    """How a person left one ask."""

    SETTLED = auto()
    NEXT = auto()
    AWAY = auto()


def can_settle_here(session: Session, by: Principal) -> bool:
    """Return whether a person is at this terminal who can be asked at once."""
    if session.wants_json or os.environ.get("CI") or os.environ.get("ADJOURN_PROMPT") == "0":
        return False
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return all(stream and stream.isatty() for stream in streams) and is_human(by)


def settle_task_here(session: Session, controller: Controller, task: Task) -> bool:
    """Have a person settle what a task asks; return whether nothing of it is open any more.

    The asks are on the screen already. Next, Ctrl+D and Ctrl+C leave what is open as it is.
    """
    scene = controller.scene(task.id)
    asks = scene.open_asks
    if not asks or not any(_takes_decision(ask) for ask in asks):
        return False
    settle_asks(session, controller, [ask.id for ask in asks], is_shown=len(asks) == 1)
    with controller.store.read() as view:
        return view.task(task.id).state is TaskState.QUEUED


def settle_asks(
    session: Session, controller: Controller, ask_ids: Sequence[str], *, is_shown: bool = False
) -> bool:
    """Ask a person about each of these asks; return whether they came to the end of them."""
    with deferred_signals() as signals:
        for ask_id in ask_ids:
            with controller.store.read() as view:
                ask = view.ask(ask_id)
            if not ask.is_open:
                continue  # somebody was faster
            if not is_shown:
                scene = controller.scene_of(ask)
                cut = session.cut(ask.task_id)
                blocks: list[Block] = [BLANK]
                session.show(blocks + ask_blocks(ask, scene, now=controller.now(), cut=cut))
            if _settle_one(session, controller, ask, signals) is _Left.AWAY:
                return False
    return True


def _takes_decision(ask: Ask) -> bool:
    return isinstance(ask, ApprovalAsk | QuestionAsk)


def _settle_one(session: Session, controller: Controller, ask: Ask, signals: Signals) -> _Left:
    """Wait for keys until an ask is settled, here or elsewhere, or the person goes on."""
    keys = keys_for(ask)
    digest = _digest(controller, ask)
    session.show([BLANK, line(Span(keys_line(keys), "strong"))])
    flush()
    wait_for_silence(is_stopped=lambda: signals.count() > 0)
    while True:
        with closing(controller.store.listen()) as listener:
            typed = pressed_key(
                Poll(listener, signals),
                lambda: signals.count() > 0 or not _is_open(controller, ask),
            )
        if signals.count() or typed in {None, _CTRL_D}:
            return _Left.AWAY if _is_open(controller, ask) else _Left.SETTLED
        if not _is_open(controller, ask):
            _tell_who(session, controller, ask)
            return _Left.SETTLED
        key = next((each for each in keys if each.key == typed), None)
        if key is None:
            session.print(_TOO_FAST if typed == "" else f"{keys_line(keys)}")
            flush()
            wait_for_silence(is_stopped=lambda: signals.count() > 0)
            continue
        if key.action is KeyAction.NEXT:
            return _Left.NEXT
        try:
            if _act(session, controller, ask, key, keys, digest=digest, signals=signals):
                return _Left.SETTLED
        except AdjournError as error:
            session.print(prose(error.sentence))
        if signals.count():
            return _Left.AWAY
        flush()
        wait_for_silence(is_stopped=lambda: signals.count() > 0)


def _act(
    session: Session,
    controller: Controller,
    ask: Ask,
    key: Key,
    keys: Sequence[Key],
    *,
    digest: str | None,
    signals: Signals,
) -> bool:
    """Do what a key means; return whether the ask needs nobody any more for now."""
    decisions = controller.decisions
    by = session.principal(decisions)
    match key.action:
        case KeyAction.HELP:
            session.print("\n".join(f"  {each.key}  {each.sentence}" for each in keys))
            session.print("  Ctrl+D or Ctrl+C leaves.")
            return False
        case KeyAction.SNOOZE:
            decisions.snooze([ask.id], until=decisions.now() + _HOUR, by=by)
            session.print("Snoozed for an hour.")
            return True
        case KeyAction.APPROVE:
            reply = Reply(ask_id=ask.id, verb=Verb.APPROVE, digest=digest)
        case KeyAction.REJECT:
            reason = _read_line("Reason (Enter for none): ", signals)
            if reason is None:
                return False
            reply = Reply(ask_id=ask.id, verb=Verb.REJECT, text=reason or None)
        case KeyAction.ANSWER:
            text = _read_line(_question(ask), signals)
            if not text:
                return False
            reply = Reply(ask_id=ask.id, verb=Verb.ANSWER, text=_choice(ask, text))
        case KeyAction.EDIT:
            # Only here an editor is needed
            from adjourn.cli.verbs._editing import edited_reply

            reply = edited_reply(session, controller, [ask.id], value=None, in_editor=True, sets=())
        case KeyAction.ALWAYS:
            return _approve_always(session, controller, ask, digest=digest, signals=signals)
        case _:
            return True
    (settled,) = decisions.decide([reply], by=by)
    session.print(f"{settled.state.capitalize()}.")
    return True


def _approve_always(
    session: Session, controller: Controller, ask: Ask, *, digest: str | None, signals: Signals
) -> bool:
    """Show the rule, and on a yes approve the call and keep the rule."""
    # Only here a rule is made
    from adjourn.core.text.when import stamp
    from adjourn.views.allowance import what_it_matches
    from adjourn.wiring.ownership import require_outside_of_all_runs
    from adjourn.wiring.policies import (
        MONTH,
        allowance_of,
        judged_now,
        keep_allowance,
        refuse_never,
        wanted_of_ask,
    )

    by = session.principal(controller.decisions)
    require_outside_of_all_runs("rules add")
    controller.decisions.authorise_alone(by, "rules add")
    wanted = wanted_of_ask(controller, ask.id, workspace=None, task=None)
    refuse_never(judged_now(session.root, wanted))
    rule = allowance_of(wanted, until=MONTH, by=by.name)
    session.print("This would run without asking from now on:")
    session.print("\n".join(f"  {text}" for text in what_it_matches(rule)))
    session.print(f"  in the workspace {visible(wanted.workspace)}, until {stamp(rule.until)}")
    flush()
    wait_for_silence(is_stopped=lambda: signals.count() > 0)
    answer = _read_line("Approve it, and allow this from now on? (yes, or Enter for no): ", signals)
    if answer not in {"y", "yes"}:
        return False
    reply = Reply(ask_id=ask.id, verb=Verb.APPROVE, digest=digest)
    controller.decisions.decide([reply], by=by)
    keep_allowance(rule)
    session.print(f"Approved, and allowed from now on (adjourn rules revoke {rule.id[:8]}).")
    return True


def _digest(controller: Controller, ask: Ask) -> str | None:
    """Return the digest of the call that is on the screen: nothing else is approved."""
    if not isinstance(ask, ApprovalAsk):
        return None
    with controller.store.read() as view:
        return view.call(ask.task_id, ask.call).digest


def _question(ask: Ask) -> str:
    choices = ask.choices if isinstance(ask, QuestionAsk) else ()
    if not choices:
        return "Answer: "
    numbered = ", ".join(f"{number} {visible(each)}" for number, each in enumerate(choices, 1))
    return f"Answer ({numbered}): "


def _choice(ask: Ask, text: str) -> str:
    """Return the choice that a number stands for, or the text as it is."""
    choices = ask.choices if isinstance(ask, QuestionAsk) else ()
    if text in choices or not (text.isascii() and text.isdigit()):
        return text
    return choices[int(text) - 1] if 1 <= int(text) <= len(choices) else text


def _read_line(question: str, signals: Signals) -> str | None:
    """Return a line that a person typed; None if they left, or pasted several lines."""
    sys.stdout.write(question)
    flush()
    poll = Poll(signals)
    poll.add(_STDIN)
    while not signals.count():
        if _STDIN in poll.wait(60.0):
            try:
                typed = os.read(_STDIN, _LINE)
            except OSError:
                return None
            if is_pasted() or b"\n" in typed.rstrip(b"\n"):
                sys.stdout.write(f"{_TOO_FAST}\n")
                return None
            return typed.decode(errors="replace").strip() if typed else None
    sys.stdout.write("\n")
    return None


def _is_open(controller: Controller, ask: Ask) -> bool:
    with controller.store.read() as view:
        return view.ask(ask.id).is_open


def _tell_who(session: Session, controller: Controller, ask: Ask) -> None:
    with controller.store.read() as view:
        settled = view.ask(ask.id).settlement
    if settled:
        session.print(f"Meanwhile it was {settled.state} by {prose(settled.by)}.")
