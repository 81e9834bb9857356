"""One ask, whole, as its page, a batch and the page of a link show it."""

from collections.abc import Iterable
from typing import Any, assert_never

import msgspec

from adjourn.controller.controller import Controller
from adjourn.core.ask import (
    ApprovalAsk,
    Ask,
    Principal,
    QuestionAsk,
    UncertainAsk,
    Verb,
)
from adjourn.core.authority.scopes import SCOPES
from adjourn.core.call import COMMAND
from adjourn.core.errors import AdjournError
from adjourn.core.scene import Scene
from adjourn.core.text.render import WHOLE, Cut, visible
from adjourn.ports.store import View
from adjourn.settings.web_users import WebUser, read_users
from adjourn.views.agent import resumability_blocks
from adjourn.views.ask_row import ask_gist
from adjourn.views.block import Block, Commands, to_text
from adjourn.views.keys import keys_for
from adjourn.views.task import ask_blocks, settled_blocks, work_blocks
from adjourn.views.workspace import workspace_blocks
from adjourn.web.html import to_html
from adjourn.wiring.scenes import resumability_of, workspace_since

_SHOWN = 20_000  # characters of a value, unless all of it is wanted
_REST = "not all of it is shown here"
_COMMANDS = Commands("adjourn", None)
_NOT_SHOWN: dict[str, Any] = {"resumable": None, "can_resume": True}


def show_ask(
    controller: Controller,
    ask: Ask,
    *,
    by: Principal,
    shows_all: bool,
    now: int,
    passkey_host: str | None = None,
) -> dict[str, Any]:
    """Return what the template of one ask is filled with: what it is, and who may settle it.

    `passkey_host` is where the user has a passkey, which may sign what a session may not approve.
    """
    cut = WHOLE if shows_all else Cut(limit=_SHOWN, rest=_REST)
    scene = controller.scene_of(ask)
    call = scene.call_of(ask)
    blocks = ask_blocks(ask, scene, now=now, cut=cut)
    verb = _verb_for(ask)
    with controller.store.read() as view:
        why_not = controller.decisions.why_not(view, ask, verb, by=by)
        gist = ask_gist(view, ask, scene.task, None)
        may = {
            each: controller.decisions.why_not(view, ask, each, by=by) is None
            for each in (Verb.APPROVE, Verb.REJECT, Verb.ANSWER, Verb.SETTLE)
        }
        signer = Principal(name=f"passkey:{by.name.partition(':')[2]}", inside_run=by.inside_run)
        can_sign = (
            passkey_host is not None
            and isinstance(ask, ApprovalAsk)
            and controller.decisions.why_not(view, ask, Verb.APPROVE, by=signer) is None
        )
    terms = ask.terms if isinstance(ask, ApprovalAsk) else None
    is_cut = _REST in to_text(blocks)
    return {
        "ask_id": ask.id,
        "task_id": ask.task_id,
        "kind": str(ask.kind),
        "heading": f"{str(ask.kind).capitalize()}: {gist}",
        "title": f"{ask.kind} {ask.id[:8]}",
        "view": to_html(blocks),
        "work": to_html(work_blocks(scene, cut=cut)),
        **(_resumable(controller, scene) if ask.is_open else _NOT_SHOWN),
        "workspace": _workspace(controller, scene) if ask.is_open else None,
        "settled": _settled(ask, scene, cut=cut),
        "is_open": ask.is_open,
        "is_cut": is_cut,
        "digest": call.digest if call else "",
        "who": _who_may(ask, verb, read_users()),
        "why_not": None if can_sign else why_not,
        "is_never": bool(terms and terms.override),
        "override": _COMMANDS("approve", ask.id, "--override", "why it must run"),
        # What a session may not approve, a passkey may have to sign
        "needs_signature": bool(terms and terms.signed) or (can_sign and not may[Verb.APPROVE]),
        "sign_command": _COMMANDS("approve", ask.id, "--sign", "KEY"),
        "can_approve": (may[Verb.APPROVE] or can_sign) and not is_cut,
        "needs_passkeys": can_sign,
        "can_reject": may[Verb.REJECT],
        "can_answer": may[Verb.ANSWER] and not is_cut,
        "can_settle": may[Verb.SETTLE],
        "can_edit": isinstance(ask, ApprovalAsk) and (may[Verb.APPROVE] or can_sign),
        "can_snooze": may[Verb.REJECT],
        "takes_value": bool(
            isinstance(ask, ApprovalAsk)
            and call
            and call.tool == COMMAND
            and not ask.gate
            and not ask.terms.is_counted
        ),
        "is_review": isinstance(ask, QuestionAsk) and ask.review,
        "is_snoozed": ask.is_snoozed(now),
        "choices": [visible(each) for each in ask.choices] if isinstance(ask, QuestionAsk) else [],
        "keys": keys_for(ask),
        "passkey": passkey_host if can_sign else None,
    }


def next_path(view: View, ask_id: str, *, now: int) -> str:
    """Return where the next open ask is shown: the one after this, or the first; else the inbox."""
    for asks in (
        view.open_asks(limit=1, after=ask_id, awake_at=now),
        view.open_asks(limit=1, awake_at=now),
    ):
        if asks and asks[0].id != ask_id:
            return f"/asks/{asks[0].id}"
    return "/"


def _verb_for(ask: Ask) -> Verb:
    match ask:
        case ApprovalAsk():
            return Verb.APPROVE
        case QuestionAsk():
            return Verb.ANSWER
        case UncertainAsk():
            return Verb.SETTLE
        case _:
            assert_never(ask)


def _who_may(ask: Ask, verb: Verb, users: Iterable[WebUser]) -> str:
    """Say who may settle an ask: its people, or all who have the scope."""
    if isinstance(ask, ApprovalAsk) and ask.terms.people is not None:
        names = ", ".join(person.name for person in ask.terms.people) or "nobody of the config"
        return f"May approve: {names}."
    scope = SCOPES[verb]
    names = ", ".join(user.name for user in users if scope in user.scopes)
    here = f"{names} here, and " if names else ""
    return f"May {verb}: {here}at a terminal the owner of the store and whom the config names."


def _resumable(controller: Controller, scene: Scene) -> dict[str, Any]:
    """Return whether an agent could go on from here; of a command there is nothing to say."""
    try:
        found = resumability_of(controller, scene.task, commands=_COMMANDS)
    except AdjournError as error:
        return {"resumable": error.sentence, "can_resume": False}
    if found is None:
        return _NOT_SHOWN
    return {
        "resumable": to_html(resumability_blocks(found)[1:]),
        "can_resume": found.can_be_resumed,
    }


def _workspace(controller: Controller, scene: Scene) -> Any:
    found = workspace_since(controller, scene)
    return to_html(workspace_blocks(found)[1:]) if found else None


def _settled(ask: Ask, scene: Scene, *, cut: Cut) -> Any:
    blocks: list[Block] = settled_blocks(msgspec.structs.replace(scene, asks=(ask,)), cut=cut)
    return to_html(blocks[1:]) if blocks else None
