"""Links in messages, whose holder may settle an ask: once, and not for ever."""

from hashlib import sha256
from hmac import compare_digest

import msgspec

from adjourn.controller.controller import Controller
from adjourn.core.ask import ApprovalAsk, Ask, Principal, QuestionAsk, Reply, Verb
from adjourn.core.errors import Conflict, Misuse, NotAllowed, NotFound
from adjourn.core.kept_documents import LINKS
from adjourn.core.scene import Scene
from adjourn.settings.config import read_config
from adjourn.settings.notify import links_in

_LONGEST = 512  # characters of a token
_NO_LINK = "this link leads to nothing"
_UNKNOWN = "link:unknown"


class LinkExpired(NotFound):
    """The time of a link is over."""

    code = "link_expired"


class FoundLink(msgspec.Struct, frozen=True, kw_only=True):
    """An ask that a link leads to, and who may settle it by that link."""

    ask: Ask
    scene: Scene
    by: Principal
    why_no_approval: str | None  # why the holder of the link cannot approve it


def find_link(controller: Controller, token: str) -> FoundLink:
    """Return what a token leads to, or raise NotFound or LinkExpired. Nothing is changed.

    The token itself is kept nowhere: a run that can read the store cannot make one.
    """
    ask_id, _, secret = token.partition(".")
    if not secret or len(token) > _LONGEST or not token.isascii():
        raise NotFound(_NO_LINK, way_out="adjourn inbox")
    with controller.store.read() as view:
        try:
            ask = view.ask(ask_id)
        except NotFound:
            raise NotFound(_NO_LINK, way_out="adjourn inbox") from None
        kept = [
            (name, each)
            for name in links_in(read_config())
            for each in LINKS.of(f"{name}:{ask.id}").read(view, ask.task_id) or ()
        ]
    digest = sha256(secret.encode()).hexdigest()
    found = [(name, each) for name, each in kept if compare_digest(each.hash, digest)]
    if not found:
        raise NotFound(_NO_LINK, way_out="adjourn inbox")
    notifier, link = found[0]
    if controller.now() >= link.expires_at and ask.is_open:
        raise LinkExpired("this link has expired", way_out=f"adjourn show {ask.id}")
    through = controller.decisions.principal().name
    by = Principal(name=f"link:{notifier}", through=through)
    why_not = None
    if ask.is_open and isinstance(ask, ApprovalAsk):
        with controller.store.read() as view:
            why_not = controller.decisions.why_not(view, ask, Verb.APPROVE, by=by)
    return FoundLink(ask=ask, scene=controller.scene_of(ask), by=by, why_no_approval=why_not)


def settle_by_link(
    controller: Controller,
    token: str,
    verb: str,
    *,
    digest: str | None = None,
    text: str | None = None,
    choice: str | None = None,
) -> Ask:
    """Record what the holder of a link decides. An approval names the bytes that were shown.

    Every refusal of a link that leads to an ask is an event of its task.
    """
    try:
        found = find_link(controller, token)
    except NotFound as error:
        _record_refusal(controller, token.partition(".")[0], verb, error.sentence)
        raise
    ask, by = found.ask, found.by
    if verb not in {Verb.APPROVE, Verb.REJECT, Verb.ANSWER}:
        raise Misuse("a link approves, rejects or answers", way_out=f"adjourn show {ask.id}")
    call = found.scene.call_of(ask)
    if verb == Verb.APPROVE and ask.is_open:
        if not digest:
            raise Misuse("an approval names the call that was shown", way_out="open the link again")
        if call is None or not call.digest.startswith(digest):
            raise Conflict(
                "this has changed since it was shown: look at it again", way_out="open the link"
            )
    if isinstance(ask, QuestionAsk) and choice and choice.isdecimal():
        text = next(iter(ask.choices[int(choice[:3]) :]), None)
    if isinstance(ask, QuestionAsk) and verb == Verb.ANSWER and text is None:
        raise Misuse("an answer needs a text", way_out="open the link again")
    is_approval = verb == Verb.APPROVE and call is not None
    reply = Reply(
        ask_id=ask.id,
        verb=Verb(verb),
        text=text or None if verb != Verb.APPROVE else None,
        digest=call.digest if is_approval and call else None,
    )
    try:
        (settled,) = controller.decisions.decide([reply], by=by)
    except NotAllowed as refusal:
        controller.decisions.tell_refusal(ask.task_id, verb=verb, why=refusal.sentence, by=by)
        raise
    return settled


def _record_refusal(controller: Controller, ask_id: str, verb: str, why: str) -> None:
    with controller.store.read() as view:
        known = view.asks_like(ask_id) if len(ask_id) >= 8 else []  # noqa: PLR2004 -- of an id
    if ask_id not in known:
        return
    with controller.store.read() as view:
        task_id = view.ask(ask_id).task_id
    by = Principal(name=_UNKNOWN)
    controller.decisions.tell_refusal(task_id, verb=verb[:20], why=why, by=by)
