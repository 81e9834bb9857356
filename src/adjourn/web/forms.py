"""Reads what a form posts, and where a page may lead back to."""

from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request

from adjourn.web.problems import HttpRefusal

_FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 2_000


class Form(msgspec.Struct, frozen=True):
    """The fields of a form, in their order; a name may be there several times."""

    fields: tuple[tuple[str, str], ...]

    def get(self, name: str) -> str:
        """Return the first value of a field, with plain line ends, or an empty text."""
        return next((_plain(value) for key, value in self.fields if key == name), "")

    def all(self, name: str) -> list[str]:
        """Return all values of a field."""
        return [_plain(value) for key, value in self.fields if key == name]


def _plain(value: str) -> str:
    # A browser sends every line end of a text as CR LF
    return value.replace("\r\n", "\n")


async def read_form(request: Request) -> Form:
    """Return what a form posted, or refuse anything else. The guard has limited its size."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not kind and not await request.body():
        return Form(())
    if kind != _FORM:
        raise HttpRefusal(415, "not_a_form", f"a form is sent as {_FORM}")
    try:
        text = (await request.body()).decode()
        pairs = parse_qsl(
            text, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"
        )
    except (ValueError, UnicodeDecodeError):
        raise HttpRefusal(400, "bad_form", "the form cannot be read") from None
    return Form(tuple(pairs))


def local_path(text: str) -> str:
    """Return a path of this site, or `/` where it would lead elsewhere."""
    is_local = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable()
    return text if is_local else "/"
