"""Pages behind the links in mail and ntfy. Nothing acts on GET: mail scanners open every link."""

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from adjourn.controller.controller import Controller
from adjourn.core.ask import ApprovalAsk, Ask, QuestionAsk
from adjourn.core.errors import AdjournError, Conflict, Misuse, NotAllowed, NotFound, StoreProblem
from adjourn.core.redact import plainly
from adjourn.core.text.render import prose, visible
from adjourn.hearing.links import FoundLink, LinkExpired, find_link, settle_by_link
from adjourn.views.block import Code
from adjourn.views.message import ask_message, outcome_words
from adjourn.web.html import to_html
from adjourn.web.site import Site, site_of
from adjourn.web.stores import sites_of
from adjourn.web.templating import page

_UNBROKEN = 1_000_000  # columns: a browser breaks the rows itself, inside of their element
_STATUS: tuple[tuple[type[AdjournError], int], ...] = (
    (LinkExpired, 410),
    (NotFound, 404),
    (NotAllowed, 403),
    (Conflict, 409),
    (Misuse, 422),
    (StoreProblem, 503),
)


def link_routes() -> list[Route]:
    """Return the routes of links: GET and HEAD show, POST decides."""
    return [
        Route("/d/{token}", _show, methods=["GET"]),
        Route("/d/{token}", _decide, methods=["POST"]),
    ]


async def _show(request: Request) -> Response:
    token = request.path_params["token"]
    return await _answer(request, lambda site, found: _ask_page(site, found, token))


async def _decide(request: Request) -> Response:
    token = request.path_params["token"]
    body = (await request.body()).decode("utf-8", "replace")
    form = {name: values[-1] for name, values in parse_qs(body, keep_blank_values=True).items()}

    def decide(site: Site, controller: Controller) -> Response:
        settled = settle_by_link(
            controller,
            token,
            form.get("verb", ""),
            digest=form.get("digest"),
            text=form.get("text"),
            choice=form.get("choice"),
        )
        return _ask_page(site, controller, token, done=_words_for(site, settled))

    return await _answer(request, decide)


async def _answer(request: Request, act: Callable[[Site, Controller], Response]) -> Response:
    """Return what comes of a link in the store that it leads to, whichever of ours that is."""
    ask_id = request.path_params["token"].partition(".")[0]

    def has(controller: Controller) -> bool:
        with controller.store.read() as view:
            return ask_id in view.asks_like(ask_id)

    site = site_of(request)
    try:
        for each in sites_of(request):
            if ask_id and await each.call(has):
                site = each
                break
        response = await site.call(lambda controller: act(site, controller))
    except AdjournError as error:
        status = next((code for kind, code in _STATUS if isinstance(error, kind)), 400)
        sentence = plainly(prose(site.redactor.text(error.sentence)))
        response = _page(title="Not decided", sentence=sentence, status=status)
    response.headers["Cache-Control"] = "no-store"
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers["X-Robots-Tag"] = "noindex, nofollow"
    return response


def _words_for(site: Site, ask: Ask) -> str:
    if isinstance(ask, ApprovalAsk) and ask.is_open:
        return f"Your approval counts: {ask.count_words}"
    return plainly(outcome_words(site.redactor.ask(ask), {}))


def _ask_page(
    site: Site, controller: Controller, token: str, *, done: str | None = None
) -> Response:
    """Return the page of an ask: all of it, how it stands, and what may be decided here."""
    found = find_link(controller, token)
    clean = site.redactor
    message = ask_message(
        found.ask.id,
        clean.ask(found.ask),
        clean.scene(found.scene),
        commands=site.commands,
        now=controller.now(),
        columns=_UNBROKEN,
        names={},
        why_no_approval=found.why_no_approval,
    )
    # Once more as a finished text: the holder of a link is not the person at the terminal
    rows = plainly(clean.text(message.text)).split("\n")
    shown = to_html([Code(lines=tuple(rows))])
    return _page(title=message.subject, shown=shown, done=done, **_forms(found))


def _forms(found: FoundLink) -> dict[str, Any]:
    """Return what may be decided here; an approval names the bytes that the page shows."""
    ask = found.ask
    call = found.scene.call_of(ask)
    if not ask.is_open or (isinstance(ask, QuestionAsk) and ask.review):
        return {}
    if isinstance(ask, QuestionAsk):
        choices = [visible(choice) for choice in ask.choices]
        return {"choices": choices, "takes_text": not choices}
    if not isinstance(ask, ApprovalAsk) or call is None:
        return {}
    return {
        "digest": call.digest if found.why_no_approval is None else None,
        "can_reject": True,
    }


def _page(*, title: str, status: int = 200, **values: Any) -> Response:
    usual = {"sentence": None, "shown": None, "digest": None, "can_reject": False}
    lists: dict[str, Any] = {"choices": [], "takes_text": False}
    return page("settle.html", status=status, title=title, **{**usual, **lists, **values})
