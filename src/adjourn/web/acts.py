"""What forms do: each is one call of the controller, then the next page. Nothing acts on GET."""

from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from adjourn.controller.controller import Controller
from adjourn.controller.edits import schema_of, spec_of
from adjourn.core.ask import (
    ApprovalAsk,
    Ask,
    Principal,
    QuestionAsk,
    Reply,
    UncertainAsk,
    Verb,
    Verdict,
    require_open,
)
from adjourn.core.call import canonical
from adjourn.core.edit.edit import difference, editable, read_back, written
from adjourn.core.errors import (
    AdjournError,
    Conflict,
    Misuse,
    NotAllowed,
    NotFound,
    NothingRecorded,
)
from adjourn.core.text.render import WHOLE, prose, visible
from adjourn.core.text.when import milliseconds
from adjourn.views.call import call_blocks
from adjourn.views.task import ask_blocks, difference_blocks
from adjourn.web.forms import Form, read_form
from adjourn.web.html import to_html
from adjourn.web.login import own_passkey_host, require_login
from adjourn.web.shown_asks import next_path
from adjourn.web.stores import chosen_site, site_with_ask, site_with_task
from adjourn.web.templating import page

_HOUR = 3_600_000
_MOST = 100  # asks that are decided together
_VERBS = {"approve": Verb.APPROVE, "reject": Verb.REJECT}


def act_routes() -> list[BaseRoute]:
    """Return the routes of all forms."""
    return [
        Route("/asks/{ask}/edit", _show_editor, methods=["GET"]),
        Route("/asks/{ask}/edit", _preview, methods=["POST"]),
        Route("/asks/{ask}/settle", _settle, methods=["POST"]),
        Route("/asks/{ask}/snooze", _snooze, methods=["POST"]),
        Route("/asks/{ask}/{verb:str}", _decide, methods=["POST"]),
        Route("/batch", _show_batch, methods=["POST"]),
        Route("/batch/confirm", _decide_batch, methods=["POST"]),
        Route("/tasks/{task}/stop", _stop, methods=["POST"]),
    ]


# --- one ask --------------------------------------------------------------------------------------


async def _decide(request: Request) -> Response:
    by, form = await require_login(request), await read_form(request)
    name, verb = request.path_params["ask"], request.path_params["verb"]

    def act(controller: Controller) -> Response:
        ask = find_ask(controller, name)
        reply = reply_of(ask, verb, form)
        record(controller, [reply], by=by)
        return _go_on(controller, ask)

    return await (await site_with_ask(request)).call(act)


def find_ask(controller: Controller, name: str) -> Ask:
    """Return the ask of that id; a page never shortens one."""
    with controller.store.read() as view:
        if view.asks_like(name) != [name]:
            raise NotFound(f"no ask is called {visible(name)}", way_out="adjourn inbox")
        return view.ask(name)


def reply_of(ask: Ask, verb: str, form: Form) -> Reply:
    """Return the reply that a form gives. An approval says which bytes it is for."""
    digest = form.get("digest") or None
    match verb:
        case "approve":
            if digest is None:
                raise Conflict(
                    "an approval must say what was shown", way_out=f"adjourn show {ask.id}"
                )
            return Reply(
                ask_id=ask.id,
                verb=Verb.APPROVE,
                text=form.get("value") or None,
                digest=digest,
                edited=form.get("edited").encode() or None,
            )
        case "reject":
            reason = form.get("reason").strip() or None
            return Reply(ask_id=ask.id, verb=Verb.REJECT, text=reason, digest=digest)
        case "answer":
            return Reply(ask_id=ask.id, verb=Verb.ANSWER, text=_answer(ask, form))
        case _:
            raise NotFound(f"nothing is called {visible(verb)} here", way_out="adjourn inbox")


def _answer(ask: Ask, form: Form) -> str:
    """Return the text of an answer: a choice by its number, a review, or what was typed."""
    text, review, choice = form.get("text"), form.get("review"), form.get("choice")
    if review:
        return f"{review}: {text.strip()}" if text.strip() and review != "approve" else review
    if not choice:
        return text
    choices = ask.choices if isinstance(ask, QuestionAsk) else ()
    if not (choice.isascii() and choice.isdigit() and int(choice) < len(choices)):
        raise Misuse("that is not one of the choices", way_out=f"adjourn show {ask.id}")
    return choices[int(choice)]


def record(controller: Controller, replies: list[Reply], *, by: Principal) -> list[Ask]:
    """Record replies, all or none. A refusal is told in the trail of its task."""
    try:
        return controller.decisions.decide(replies, by=by)
    except (NotAllowed, NothingRecorded) as error:
        refused = [
            (item.ask_id, item.error)
            for item in (error.items if isinstance(error, NothingRecorded) else ())
            if isinstance(item.error, NotAllowed)
        ]
        if isinstance(error, NotAllowed):
            refused = [(replies[0].ask_id, error)]
        for ask_id, why in refused:
            tell_refusal(controller, ask_id, str(replies[0].verb), why, by=by)
        raise


def tell_refusal(
    controller: Controller, ask_id: str, verb: str, error: AdjournError, *, by: Principal
) -> None:
    """Record that somebody was refused, in the trail of the task."""
    try:
        ask = find_ask(controller, ask_id)
        controller.decisions.tell_refusal(ask.task_id, verb=verb, why=error.sentence, by=by)
    except AdjournError:
        return  # it was refused all the same


def _go_on(controller: Controller, ask: Ask) -> Response:
    """Lead on to the next open ask, whose page says how this one was settled."""
    return RedirectResponse(path_after(controller, ask), 303)


def path_after(controller: Controller, ask: Ask) -> str:
    """Return where a person is led who has just settled an ask."""
    with controller.store.read() as view:
        path = next_path(view, ask.id, now=controller.now())
    return f"{path}?done={ask.id}"


async def _settle(request: Request) -> Response:
    by, form = await require_login(request), await read_form(request)
    name = request.path_params["ask"]
    try:
        verdict = Verdict(form.get("verdict"))
    except ValueError:
        raise Misuse(
            "choose one of the three: it ran, it did not, or run it again",
            way_out=f"adjourn show {visible(name)}",
        ) from None

    def act(controller: Controller) -> Response:
        ask = find_ask(controller, name)
        require_open(ask)
        if not isinstance(ask, UncertainAsk):
            raise Conflict(
                f"ask {ask.id} is not about an uncertain call",
                way_out=f"adjourn show {ask.task_id}",
            )
        try:
            controller.tasks.settle(ask.task_id, ask.call, verdict, by=by)
        except NotAllowed as error:
            tell_refusal(controller, ask.id, Verb.SETTLE, error, by=by)
            raise
        return _go_on(controller, ask)

    return await (await site_with_ask(request)).call(act)


async def _snooze(request: Request) -> Response:
    by, form = await require_login(request), await read_form(request)
    name, lasts = request.path_params["ask"], form.get("for")
    try:
        length = milliseconds(lasts) if lasts else None
    except ValueError:
        raise Misuse(
            f"{visible(lasts)} is not a length of time", way_out="adjourn snooze --help"
        ) from None

    def act(controller: Controller) -> Response:
        ask = find_ask(controller, name)
        until = controller.now() + length if length is not None else None
        controller.decisions.snooze([ask.id], until=until, by=by)
        return _go_on(controller, ask) if until else RedirectResponse(f"/asks/{ask.id}", 303)

    return await (await site_with_ask(request)).call(act)


# --- edit, then approve ---------------------------------------------------------------------------


async def _show_editor(request: Request) -> Response:
    return await _editor(request, await require_login(request), None)


async def _preview(request: Request) -> Response:
    by = await require_login(request)
    return await _editor(request, by, await read_form(request))


async def _editor(request: Request, by: Principal, form: Form | None) -> Response:
    """Show the arguments for editing, and then what would run. It records nothing."""
    name, passkey_host = request.path_params["ask"], own_passkey_host(request)

    def show(controller: Controller) -> Response:
        ask = find_ask(controller, name)
        require_open(ask)
        if not isinstance(ask, ApprovalAsk):
            raise Conflict(
                f"{ask.id} is a {ask.kind}: there is no call to edit",
                way_out=f"adjourn show {ask.task_id}",
            )
        with controller.store.read() as view:
            call, task = view.call(ask.task_id, ask.call), view.task(ask.task_id)
            spec, schema = spec_of(view, task, call), schema_of(view, call)
            count = view.count_open_asks()
        text = form.get("edited") if form else written(editable(call, spec), [])
        values: dict[str, Any] = {"preview": None, "changes": None, "edited": "", "error": None}
        if form:
            try:
                values |= _previewed(controller, ask, call.digest, form)
            except AdjournError as error:
                values["error"] = prose(error.sentence)
        return page(
            "edit.html",
            status=422 if values["error"] else 200,
            title="Edit, then approve",
            user=by.name.partition(":")[2],
            count=count,
            ask_id=ask.id,
            digest=call.digest,
            text=text,
            schema=visible(canonical(schema).decode()) if schema else None,
            needs_signature=ask.terms.signed,
            passkey=passkey_host,
            needs_passkeys=bool(passkey_host),
            **values,
        )

    return await (await site_with_ask(request)).call(show)


def _previewed(controller: Controller, ask: ApprovalAsk, digest: str, form: Form) -> dict[str, Any]:
    """Return what an edited call would be, and how it differs."""
    if form.get("digest") != digest:
        raise Conflict(
            "the call is not the one that was shown", way_out=f"adjourn show {ask.task_id}"
        )
    arguments = read_back(form.get("edited"))
    if arguments is None:
        raise Misuse("there are no arguments", way_out=f"adjourn show {ask.id}")
    edited = controller.decisions.edited(ask.id, canonical(arguments))
    if edited.digest == digest:
        raise Misuse("nothing was changed", way_out=f"adjourn approve {ask.id}")
    with controller.store.read() as view:
        original = view.call(ask.task_id, ask.call)
    changes = difference(edited.tool, original.body, edited.body)
    return {
        "changes": to_html(difference_blocks(changes, indent="", cut=WHOLE)),
        "preview": to_html(call_blocks(edited, cut=WHOLE)),
        "edited": canonical(arguments).decode(),
    }


# --- several asks ---------------------------------------------------------------------------------


async def _show_batch(request: Request) -> Response:
    """Show all selected asks in full, or snooze them. Nothing is decided before it is confirmed."""
    by, form = await require_login(request), await read_form(request)
    names, verb = list(dict.fromkeys(form.all("ask"))), form.get("verb")
    if not names:
        raise Misuse("nothing is selected", way_out="adjourn inbox")
    if len(names) > _MOST:
        raise Misuse(f"select at most {_MOST}", way_out="adjourn inbox")

    def show(controller: Controller) -> Response:
        now = controller.now()
        asks = [find_ask(controller, name) for name in names]
        if verb in {"snooze", "wake"}:
            until = now + _HOUR if verb == "snooze" else None
            controller.decisions.snooze([ask.id for ask in asks], until=until, by=by)
            return RedirectResponse("/", 303)
        if verb not in _VERBS:
            raise Misuse(f"nothing is called {visible(verb)} here", way_out="adjourn inbox")
        shown: list[dict[str, Any]] = []
        for ask in asks:
            if not isinstance(ask, ApprovalAsk):
                raise Misuse(
                    f"{ask.id} is a {ask.kind}: settle it on its own page",
                    way_out=f"adjourn show {ask.id}",
                )
            scene = controller.scene_of(ask)
            call = scene.call_of(ask)
            shown.append(
                {
                    "id": ask.id,
                    "heading": f"approval {ask.id[:8]}",
                    "digest": call.digest if call else "",
                    "view": to_html(ask_blocks(ask, scene, now=now, cut=WHOLE)),
                }
            )
        with controller.store.read() as view:
            count = view.count_open_asks()
        many = f"{len(asks)} {'ask' if len(asks) == 1 else 'asks'}"
        return page(
            "batch.html",
            title=f"{verb.capitalize()} {many}?",
            user=by.name.partition(":")[2],
            count=count,
            asks=shown,
            store=form.get("store"),
            verb=verb,
            confirm=f"{verb.capitalize()} all {len(asks)}" if len(asks) > 1 else verb.capitalize(),
        )

    return await chosen_site(request, form.get("store")).call(show)


async def _decide_batch(request: Request) -> Response:
    by, form = await require_login(request), await read_form(request)
    names, digests = form.all("ask"), form.all("digest")
    verb = _VERBS.get(form.get("verb"))
    if verb is None or not names or len(names) != len(digests) or not all(digests):
        raise Misuse("the form is not whole", way_out="adjourn inbox")
    reason = form.get("reason").strip() or None
    replies = [
        Reply(ask_id=name, verb=verb, digest=digest, text=reason if verb is Verb.REJECT else None)
        for name, digest in zip(names, digests, strict=True)
    ]

    def act(controller: Controller) -> Response:
        for reply in replies:
            find_ask(controller, reply.ask_id)
        record(controller, replies, by=by)
        return RedirectResponse(f"/?done={names[-1]}", 303)

    return await chosen_site(request, form.get("store")).call(act)


# --- tasks ----------------------------------------------------------------------------------------


async def _stop(request: Request) -> Response:
    by, form = await require_login(request), await read_form(request)
    name, wish = request.path_params["task"], form.get("wish")
    if wish not in {"pause", "cancel"}:
        raise Misuse("pause it or cancel it", way_out=f"adjourn cancel {visible(name)}")

    def act(controller: Controller) -> Response:
        controller.decisions.authorise(by, wish)
        stop = controller.tasks.cancel if wish == "cancel" else controller.tasks.pause
        stop(name, by=by)
        return RedirectResponse(f"/tasks/{name}", 303)

    return await (await site_with_task(request)).call(act)
