"""Passkeys in the browser: add and remove one, log in with one, sign a decision with one."""

import os
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from adjourn.controller.controller import Controller
from adjourn.core.authority.signed import Signed, decision_of, document_of
from adjourn.core.errors import AdjournError, Conflict, NotAllowed
from adjourn.settings.web_users import WebUser, change_passkeys
from adjourn.web.acts import find_ask, path_after, reply_of, tell_refusal
from adjourn.web.forms import Form, read_form
from adjourn.web.login import host_for_passkeys, require_login, user_of, with_session
from adjourn.web.problems import HttpRefusal, problem_response
from adjourn.web.site import site_of
from adjourn.web.stores import site_with_ask
from adjourn.wiring.passkey_users import (
    Assertion,
    NewPasskey,
    add_passkey,
    challenge_of,
    decoded,
    encoded,
    proof_text,
    user_of_assertion,
)

T = TypeVar("T")
Answer = Callable[[Request], Awaitable[Response]]
_MINUTES = 300.0  # seconds that a challenge lasts
_SIGNED_LASTS = 300_000  # milliseconds from the document of a decision to its signature
_MOST = 1_000  # challenges at a time


class _SignedReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    document: str
    assertion: Assertion


class Challenges:
    """Challenges that were given out; each serves once, for five minutes."""

    def __init__(self) -> None:
        self._given: OrderedDict[bytes, tuple[str, float]] = OrderedDict()

    def give(self, purpose: str) -> bytes:
        """Return a new challenge for a purpose."""
        challenge = os.urandom(32)
        self._given[challenge] = purpose, time.monotonic() + _MINUTES
        while len(self._given) > _MOST:
            self._given.popitem(last=False)
        return challenge

    def take(self, client_data: str, purpose: str) -> bytes:
        """Return the challenge that a browser answers, once, or refuse it."""
        try:
            challenge = decoded(msgspec.json.decode(decoded(client_data), type=_Asked).challenge)
        except (msgspec.MsgspecError, ValueError):
            raise NotAllowed("that answers no challenge", way_out="try again") from None
        given, until = self._given.pop(challenge, ("", 0.0))
        if given != purpose or until < time.monotonic():
            raise NotAllowed("that challenge is unknown, used or too old", way_out="try again")
        return challenge


class _Asked(msgspec.Struct):
    challenge: str


def passkey_routes() -> list[BaseRoute]:
    """Return the routes by which passkeys are added, used and removed."""
    challenges = Challenges()

    async def begin_adding(request: Request) -> Response:
        user, host = await _require_user(request), host_for_passkeys(request)
        return _json(
            {
                "challenge": encoded(challenges.give(f"add {user.name}")),
                "rp_id": host,
                "user": user.name,
                "user_id": encoded(sha256(user.name.encode()).digest()),
                "exclude": [each.id for each in user.passkeys],
            }
        )

    async def add(request: Request) -> Response:
        user, host = await _require_user(request), host_for_passkeys(request)
        new = await _read(request, NewPasskey)
        challenge = challenges.take(new.client_data, f"add {user.name}")
        add_passkey(user.name, new, challenge=challenge, rp_id=host)
        return _json({"added": new.id})

    async def begin_login(request: Request) -> Response:
        # No ids: a stranger does not learn who has passkeys here
        challenge = encoded(challenges.give("log in"))
        return _json({"challenge": challenge, "rp_id": host_for_passkeys(request), "allow": []})

    async def log_in(request: Request) -> Response:
        assertion = await _read(request, Assertion)
        challenge = challenges.take(assertion.client_data, "log in")
        user = user_of_assertion(assertion, challenge)
        request.state.principal = f"web:{user.name}"
        return with_session(request, _json({"user": user.name}), user.name, how="passkey")

    return [
        Route("/account/passkeys/begin", _tells_problems(begin_adding), methods=["POST"]),
        Route("/account/passkeys/add", _tells_problems(add), methods=["POST"]),
        Route("/account/passkeys/remove", _remove, methods=["POST"]),
        Route("/login/passkey/begin", _tells_problems(begin_login), methods=["POST"]),
        Route("/login/passkey", _tells_problems(log_in), methods=["POST"]),
        Route("/asks/{ask}/{verb}/sign", _tells_problems(_document), methods=["POST"]),
        Route("/asks/{ask}/{verb}/signed", _tells_problems(_record), methods=["POST"]),
    ]


async def _document(request: Request) -> Response:
    """Return the document of a decision, whose digest the passkey is to sign. Records nothing."""
    user, host = await _require_user(request), host_for_passkeys(request)
    fields = await _read(request, dict[str, str])
    name, verb = request.path_params["ask"], request.path_params["verb"]

    def write(controller: Controller) -> str:
        reply = reply_of(find_ask(controller, name), verb, Form(tuple(fields.items())))
        decision = controller.signing.decision_on(reply, lifetime=_SIGNED_LASTS)
        if reply.digest and decision.reply.digest != reply.digest:
            raise Conflict("the call is not the one that was shown", way_out=f"adjourn show {name}")
        return document_of(decision)

    document = await (await site_with_ask(request)).call(write)
    return _json(
        {
            "document": document,
            "challenge": encoded(challenge_of(document.encode())),
            "rp_id": host,
            "allow": [each.id for each in user.passkeys if each.rp_id == host],
        }
    )


async def _record(request: Request) -> Response:
    """Record a decision that a passkey signed; the proof is kept with it."""
    by = await require_login(request)
    given = await _read(request, _SignedReply)
    name = request.path_params["ask"]
    signed = Signed(document=given.document, signature=proof_text(given.assertion))
    if decision_of(signed).reply.ask_id != name:
        raise Conflict("that is signed for another ask", way_out=f"adjourn show {name}")

    def act(controller: Controller) -> str:
        ask = find_ask(controller, name)
        try:
            controller.signing.decide_signed([signed], carried_by=by)
        except NotAllowed as error:
            tell_refusal(controller, name, request.path_params["verb"], error, by=by)
            raise
        return path_after(controller, ask)

    return _json({"next": await (await site_with_ask(request)).call(act)})


async def _remove(request: Request) -> Response:
    user, form = await _require_user(request), await read_form(request)
    gone = form.get("id")
    change_passkeys(user.name, lambda passkeys: tuple(each for each in passkeys if each.id != gone))
    return RedirectResponse("/account", 303)


async def _require_user(request: Request) -> WebUser:
    await require_login(request)
    user = user_of(request)
    if user is None:
        raise HttpRefusal(401, "login", "you are not logged in")
    return user


async def _read(request: Request, type_: type[T]) -> T:
    try:
        return msgspec.json.decode(await request.body(), type=type_)
    except msgspec.MsgspecError:
        raise HttpRefusal(422, "bad_request", "that is not what a page of ours sends") from None


def _json(document: object) -> Response:
    return Response(msgspec.json.encode(document), media_type="application/json")


def _tells_problems(answer: Answer) -> Answer:
    """Send errors as JSON: a script reads these responses, not a person."""

    async def wrapped(request: Request) -> Response:
        try:
            return await answer(request)
        except AdjournError as error:
            return problem_response(error, site_of(request).redactor)

    return wrapped
