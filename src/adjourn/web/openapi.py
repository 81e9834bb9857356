"""The OpenAPI document, made of the table of operations and the types that they read and write."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from adjourn.core.documents import Manifest
from adjourn.web.api import OPERATIONS
from adjourn.web.operations import PREFIX, Operation
from adjourn.web.problems import PROBLEM, Problem

Json = dict[str, Any]
_REF = "#/components/schemas/{name}"
_HEADERS = {"Idempotency-Key": {"type": "string", "pattern": "^[!-~]{1,255}$"}}
_ERRORS = {
    400: "The body is not JSON.",
    401: "There is no token that counts.",
    403: "The holder of the token may not do this; the sentence says why.",
    404: "There is nothing of that name.",
    409: "Somebody was first, or it does not fit as things stand; or a name is not unique.",
    412: "The ask changed since it was read.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    422: "The request does not fit the schema.",
    429: "Too many requests with a token that is not known.",
    503: "The store cannot be used just now.",
}


@cache
def openapi_document() -> Json:
    """Return the document that describes the API."""
    types = [
        kind
        for each in OPERATIONS
        for kind in (each.answer, each.body, each.query)
        if kind is not None
    ]
    schemas, components = msgspec.json.schema_components([*types, Problem], ref_template=_REF)
    # What a type cannot say: one of two keys, or not both
    components["StartTask"]["oneOf"] = [{"required": ["command"]}, {"required": ["prompt"]}]
    components["Resume"]["not"] = {"required": ["prompt", "decisions"]}
    by_type = dict(zip(map(_key, [*types, Problem]), schemas, strict=True))
    paths: Json = {}
    for each in OPERATIONS:
        path = paths.setdefault(f"{PREFIX}{each.path}", {})
        path[each.method.lower()] = _operation(each, by_type, components)
    document: Json = {
        "openapi": "3.1.0",
        "info": {
            "title": "adjourn",
            "version": version("adjourn"),
            "description": "Tasks that stop for a person, and what people decide.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "`adjourn tokens add NAME --scope SCOPE`",
                }
            },
        },
    }
    return msgspec.json.decode(msgspec.json.encode(document), type=Json)  # as it is read


def _key(kind: Any) -> str:
    return repr(kind)


def _operation(operation: Operation, schemas: dict[str, Json], components: Json) -> Json:
    doc = re.sub(r"\s*\n\s*", " ", (operation.run.__doc__ or "").strip())
    document: Json = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": f"{doc}\n\nScope: {operation.scope}.",
        "parameters": [*_parameters(operation, schemas, components)],
        "responses": _responses(operation, schemas),
    }
    if operation.body is not None:
        document["requestBody"] = {
            "required": operation.body_needed,
            "content": {"application/json": {"schema": schemas[_key(operation.body)]}},
        }
    return document


def _parameters(operation: Operation, schemas: dict[str, Json], components: Json) -> Iterable[Json]:
    for name in re.findall(r"{(\w+)}", operation.path):
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "description": "An id, or a beginning of one that is unique.",
            "schema": {"type": "string", "minLength": 1},
        }
    if operation.query is not None:
        name = schemas[_key(operation.query)]["$ref"].rpartition("/")[2]
        for key, schema in components[name]["properties"].items():
            parameter = {"name": key, "in": "query", "required": False, "schema": _given(schema)}
            if description := schema.get("description"):
                parameter["description"] = description
            yield parameter
    for name, meaning in operation.headers:
        yield {
            "name": name,
            "in": "header",
            "required": False,
            "description": meaning,
            "schema": _HEADERS.get(name, {"type": "string"}),
        }


def _given(schema: Json) -> Json:
    """Return the schema of a parameter: one that is left out is no null."""
    options = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(options) == 1:
        return {**options[0], **{key: schema[key] for key in ("description",) if key in schema}}
    return {key: value for key, value in schema.items() if key != "default" or value is not None}


def _responses(operation: Operation, schemas: dict[str, Json]) -> Json:
    if operation.answer is None:
        content: Json = {operation.media: {"schema": {"type": "string"}}}
    else:
        content = {operation.media: {"schema": schemas[_key(operation.answer)]}}
    problem = {PROBLEM: {"schema": schemas[_key(Problem)]}}
    responses: Json = {str(operation.status): {"description": "Done.", "content": content}}
    errors = {401, 403, 404, 409, 413, 422, 429, 503}
    if operation.body is not None:
        errors |= {400, 415}
    for status in sorted(errors | set(operation.more)):
        if status == 304:  # noqa: PLR2004 -- the only one without a body
            responses[str(status)] = {"description": "It is as you have it."}
        elif status < 400:  # noqa: PLR2004 -- errors begin there
            responses[str(status)] = {"description": "It was there already.", "content": content}
        else:
            responses[str(status)] = {"description": _ERRORS[status], "content": problem}
    return responses


async def _document(request: Request) -> Response:
    del request
    return Response(msgspec.json.encode(openapi_document()), media_type="application/json")


async def _manifest_schema(request: Request) -> Response:
    del request
    return Response(
        msgspec.json.encode(msgspec.json.schema(Manifest)), media_type="application/json"
    )


def document_routes() -> Sequence[BaseRoute]:
    """Return the routes of the descriptions: they are no secret, and need no token."""
    return [
        Route(f"{PREFIX}/openapi.json", _document, methods=["GET"]),
        Route(f"{PREFIX}/schemas/manifest.json", _manifest_schema, methods=["GET"]),
    ]
