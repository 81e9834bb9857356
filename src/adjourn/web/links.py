"""Pages behind the links in mail and ntfy. Nothing acts on GET: mail scanners open every link."""

from html import escape
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from adjourn.controller.controller import Controller
from adjourn.core.ask import Ask, QuestionAsk
from adjourn.core.errors import AdjournError, Conflict, Misuse, NotAllowed, NotFound, StoreProblem
from adjourn.core.redact import plainly
from adjourn.core.text.render import prose, visible
from adjourn.hearing.links import FoundLink, LinkExpired, find_link, settle_by_link
from adjourn.views.message import ask_message, outcome_words
from adjourn.web.site import Site, site_of

_COLUMNS = 100
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Robots-Tag": "noindex, nofollow",
}
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
    site, token = site_of(request), request.path_params["token"]
    try:
        return await site.call(lambda controller: _ask_page(site, controller, token))
    except AdjournError as error:
        return _refusal(site, error)


async def _decide(request: Request) -> Response:
    site, token = site_of(request), request.path_params["token"]
    form = parse_qs((await request.body()).decode("utf-8", "replace"), keep_blank_values=True)

    def only(name: str) -> str | None:
        return form.get(name, [None])[-1]

    def decide(controller: Controller) -> Response:
        settled = settle_by_link(
            controller,
            token,
            only("verb") or "",
            digest=only("digest"),
            text=only("text"),
            choice=only("choice"),
        )
        return _ask_page(site, controller, token, told=_told(site, settled))

    try:
        return await site.call(decide)
    except AdjournError as error:
        return _refusal(site, error)


def _told(site: Site, ask: Ask) -> str:
    if ask.is_open:
        return f"Your approval counts: {getattr(ask, 'count_words', '')}"
    return outcome_words(site.redactor.ask(ask), {})


def _ask_page(
    site: Site, controller: Controller, token: str, *, told: str | None = None
) -> Response:
    """Return the page of an ask: all of it, how it stands, and what may be decided here."""
    found = find_link(controller, token)
    ask, clean = found.ask, site.redactor
    message = ask_message(
        ask.id,
        clean.ask(ask),
        clean.scene(found.scene),
        commands=site.commands,
        now=controller.now(),
        columns=_COLUMNS,
        names={},
        why_no_approval=found.why_no_approval,
    )
    text = plainly(clean.text(message.text))
    head = f"<p><strong>{escape(plainly(told))}</strong></p>" if told else ""
    body = f"{head}<pre>{escape(text)}</pre>{_forms(found)}"
    return _page(message.subject, body)


def _forms(found: FoundLink) -> str:
    """Return a form for each thing that may be decided; an approval names the bytes shown here."""
    ask = found.ask
    call = found.scene.call_of(ask)
    if not ask.is_open:
        return ""
    if isinstance(ask, QuestionAsk) and ask.choices:
        return "".join(
            _form("answer", visible(choice), hidden={"text": choice}) for choice in ask.choices
        )
    if isinstance(ask, QuestionAsk):
        return _form("answer", "Answer", field="Your answer", is_required=True)
    if call is None or ask.kind == "uncertain":
        return ""
    approve = ""
    if found.why_no_approval is None:
        approve = _form("approve", "Approve", hidden={"digest": call.digest})
    return f"{approve}{_form('reject', 'Reject', field='Why')}"


def _form(
    verb: str,
    label: str,
    *,
    hidden: dict[str, str] | None = None,
    field: str | None = None,
    is_required: bool = False,
) -> str:
    inputs = "".join(
        f'<input type="hidden" name="{name}" value="{escape(value)}">'
        for name, value in {"verb": verb, **(hidden or {})}.items()
    )
    if field:
        required = " required" if is_required else ""
        inputs += f'<label>{field} <input name="text" maxlength="4000"{required}></label> '
    return f'<form method="post">{inputs}<button>{escape(label)}</button></form>'


def _refusal(site: Site, error: AdjournError) -> Response:
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 400)
    sentence = plainly(prose(site.redactor.text(error.sentence)))
    return _page("adjourn", f"<p>{escape(sentence)}</p>", status=status)


def _page(title: str, body: str, *, status: int = 200) -> Response:
    text = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="robots" content="noindex">'
        f"<title>{escape(title)}</title></head><body><main>{body}</main></body></html>"
    )
    return HTMLResponse(text, status, headers=_HEADERS)
