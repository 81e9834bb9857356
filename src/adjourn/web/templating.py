"""Pages from templates, and the files that they load. Nothing in a page is not escaped."""

import os
from functools import cache
from hashlib import sha256
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from adjourn.web.problems import HttpRefusal

_HERE = os.path.dirname(__file__)
_TYPES = {".css": "text/css", ".js": "text/javascript"}
NAVIGATION = (
    ("/", "Inbox"),
    ("/tasks", "Tasks"),
    ("/rules", "Rules"),
    ("/audit", "Audit"),
)


@cache
def _static_file(name: str) -> tuple[bytes, str]:
    with open(os.path.join(_HERE, "static", name), "rb") as file:
        content = file.read()
    return content, sha256(content).hexdigest()[:16]


def _static_path(name: str) -> str:
    return f"/static/{_static_file(name)[1]}/{name}"


@cache
def _environment() -> Environment:
    made: Any = Environment(  # the type of its globals is not known
        loader=FileSystemLoader(os.path.join(_HERE, "templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(static=_static_path, navigation=NAVIGATION)
    environment: Environment = made
    return environment


# What every page has; a page says what differs
_USUAL: dict[str, Any] = {
    "user": None,
    "count": 0,
    "here": "",
    "done": None,
    "ask_id": None,
    "needs_passkeys": False,
    "links": (),
    "more": None,
    "stores": (),
}


def page(template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page. Text of others is escaped by the template, blocks of views by `to_html`."""
    text = _environment().get_template(template).render({**_USUAL, **values})
    return HTMLResponse(text, status)


async def static_file(request: Request) -> Response:
    """Return a file that pages load; its address holds its hash, so it is kept for ever."""
    name = request.path_params["name"]
    if name not in _NAMES or request.path_params["hash"] != _static_file(name)[1]:
        raise HttpRefusal(404, "not_found", "no such file")
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(
        _static_file(name)[0], media_type=_TYPES[os.path.splitext(name)[1]], headers=headers
    )


_NAMES = frozenset({"app.css", "app.js", "passkeys.js"})
