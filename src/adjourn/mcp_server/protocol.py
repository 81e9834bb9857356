"""The Model Context Protocol as a function: a message becomes a reply, or something to wait for.

It speaks both eras on one connection. Versions up to 2025-11-25 begin with `initialize`; since
2026-07-28 every request names its version in `_meta`. Nothing here reads or writes anything.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, TypeGuard

import msgspec

from adjourn.core.errors import AdjournError

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NO_SUCH_RESOURCE = -32002
UNSUPPORTED_VERSION = -32022

_META = "io.modelcontextprotocol/"
_VERSION_KEY = f"{_META}protocolVersion"
_CAPABILITIES_KEY = f"{_META}clientCapabilities"
_CLIENT_KEY = f"{_META}clientInfo"
_SERVER_KEY = f"{_META}serverInfo"
_SUBSCRIPTION_KEY = f"{_META}subscriptionId"
_CACHED = frozenset(
    {
        "server/discover",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }
)
_FOR_A_MINUTE = 60_000  # that a client may keep a list

Id: TypeAlias = int | str
Json: TypeAlias = dict[str, Any]


class Refused(Exception):
    """A request that the protocol itself refuses."""

    def __init__(self, code: int, message: str, data: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, as far as a request or its handshake says."""

    name: str = ""
    version: str = HANDSHAKE_VERSIONS[0]
    capabilities: Json = {}

    @property
    def is_modern(self) -> bool:
        """Whether its requests carry their version."""
        return self.version in MODERN_VERSIONS

    @property
    def can_elicit(self) -> bool:
        """Whether a result may ask it for input."""
        return self.is_modern and "elicitation" in self.capabilities


def is_object(value: object) -> TypeGuard[Json]:
    """Return whether a JSON value is an object: its keys are strings then."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Return whether a JSON value is a list."""
    return isinstance(value, list)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a client."""

    id: Id
    method: str
    params: Json
    client: Client

    @property
    def meta(self) -> Json:
        """What the client says about the request."""
        meta = self.params.get("_meta")
        return meta if is_object(meta) else {}

    @property
    def progress_token(self) -> Id | None:
        """The name under which it wants progress reports, if it does."""
        token = self.meta.get("progressToken")
        return token if isinstance(token, int | str) else None


class Cancelled(msgspec.Struct, frozen=True, kw_only=True):
    """A client does not want the reply to a request any more."""

    id: Id


class Waiting(Protocol):
    """A reply that is not there yet."""

    @property
    def deadline(self) -> float | None:
        """When it is given as it is then, by the clock of time.monotonic."""
        ...

    @property
    def fd(self) -> int | None:
        """What to poll besides the store, if anything."""
        ...

    def concerns(self, task_ids: frozenset[str]) -> bool:
        """Return whether changes of these tasks may make it ready."""
        ...

    def result(self, *, is_late: bool) -> Json | None:
        """Return the result if there is one now; when it is late there is one."""
        ...

    def progress(self) -> str:
        """Return in a few words what it waits for."""
        ...


class Subscribed(msgspec.Struct, frozen=True, kw_only=True):
    """A stream of notices that is open until the client ends it."""

    acknowledgement: Json
    uris: frozenset[str]


class Handlers(Protocol):
    """What the methods of the protocol do."""

    @property
    def info(self) -> Json:
        """Name and version of the server."""
        ...

    @property
    def instructions(self) -> str:
        """How a model uses the tools."""
        ...

    def tools(self) -> Sequence[Json]:
        """Return the tools with their schemas."""
        ...

    def call(self, name: str, arguments: Json, request: Request) -> "Json | Waiting":
        """Call a tool; raise Refused if no tool has that name."""
        ...

    def resources(self) -> Sequence[Json]:
        """Return the resources that have a fixed address."""
        ...

    def templates(self) -> Sequence[Json]:
        """Return the patterns of all other addresses."""
        ...

    def read(self, uri: str) -> Sequence[Json]:
        """Return the contents of a resource; raise Refused if it does not exist."""
        ...


class Connection:
    """Answers the messages of one client. It remembers the handshake, and nothing else."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers
        self._shaken = Client()
        self.legacy_uris: set[str] = set()
        self._methods: dict[str, Callable[[Request], Json | Waiting | Subscribed]] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": lambda _: {},
            "tools/list": lambda _: {"tools": self._handlers.tools()},
            "tools/call": self._call,
            "resources/list": lambda _: {"resources": self._handlers.resources()},
            "resources/templates/list": lambda _: {"resourceTemplates": self._handlers.templates()},
            "resources/read": lambda request: {
                "contents": self._handlers.read(_text(request, "uri"))
            },
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "subscriptions/listen": self._listen,
        }

    def read(self, message: bytes) -> Request | Cancelled | Json | None:
        """Read one message: a request, or the error to send back, or nothing to do."""
        try:
            content = msgspec.json.decode(message)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return failure(None, PARSE_ERROR, "this is not JSON")
        if not is_object(content) or content.get("jsonrpc") != "2.0":
            return failure(None, INVALID_REQUEST, 'a message is one object with "jsonrpc": "2.0"')
        name, method = content.get("id"), content.get("method")
        if not isinstance(method, str):
            is_answer = "result" in content or "error" in content
            return None if is_answer else failure(_id(name), INVALID_REQUEST, "there is no method")
        params = content.get("params", {})
        if not is_object(params):
            return failure(_id(name), INVALID_PARAMS, "params must be an object")
        if "id" not in content:
            cancelled = _id(params.get("requestId"))
            is_cancel = method == "notifications/cancelled" and cancelled is not None
            return Cancelled(id=cancelled) if is_cancel and cancelled is not None else None
        known = _id(name)
        if known is None:
            return failure(None, INVALID_REQUEST, "an id is a number or a string")
        try:
            return Request(id=known, method=method, params=params, client=self._client(params))
        except Refused as refused:
            return failure(known, refused.code, str(refused), refused.data)

    def answer(self, request: Request) -> Json | Waiting | Subscribed:
        """Return the reply to a request, or what it has to wait for."""
        try:
            method = self._methods.get(request.method)
            if method is None:
                raise Refused(METHOD_NOT_FOUND, f"there is no method {request.method}")
            outcome = method(request)
        except Refused as refused:
            return failure(request.id, refused.code, str(refused), refused.data)
        except AdjournError as error:
            return failure(request.id, INTERNAL_ERROR, f"{error.sentence}; try: {error.way_out}")
        return self.reply(request, outcome) if isinstance(outcome, dict) else outcome

    def reply(self, request: Request, result: Json) -> Json:
        """Return a whole reply, in the form of the request's era."""
        if request.client.is_modern:
            result = {"resultType": "complete", **result}
            if request.method in _CACHED:
                is_list = request.method != "resources/read"
                result |= {"ttlMs": _FOR_A_MINUTE if is_list else 0, "cacheScope": "private"}
            result["_meta"] = {**result.get("_meta", {}), _SERVER_KEY: self._handlers.info}
        return {"jsonrpc": "2.0", "id": request.id, "result": result}

    def closing(self, request: Request) -> Json:
        """Return the reply that ends a stream of notices."""
        return self.reply(request, {"_meta": {_SUBSCRIPTION_KEY: request.id}})

    # --- methods ----------------------------------------------------------------------------------

    def _client(self, params: Json) -> Client:
        meta = params.get("_meta")
        if not is_object(meta) or _VERSION_KEY not in meta:
            return self._shaken
        version, capabilities = meta[_VERSION_KEY], meta.get(_CAPABILITIES_KEY)
        if not isinstance(version, str) or not is_object(capabilities):
            raise Refused(INVALID_PARAMS, f"_meta needs {_VERSION_KEY} and {_CAPABILITIES_KEY}")
        if version not in MODERN_VERSIONS:
            supported = [*MODERN_VERSIONS, *HANDSHAKE_VERSIONS]
            data = {"supported": supported, "requested": version}
            raise Refused(UNSUPPORTED_VERSION, f"version {version} is not supported", data)
        return Client(
            name=_name_of(meta.get(_CLIENT_KEY)), version=version, capabilities=capabilities
        )

    def _initialize(self, request: Request) -> Json:
        wanted, given = request.params.get("protocolVersion"), request.params.get("capabilities")
        version = wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        self._shaken = Client(
            name=_name_of(request.params.get("clientInfo")),
            version=version,
            capabilities=given if is_object(given) else {},
        )
        return {
            "protocolVersion": version,
            "capabilities": {"tools": {}, "resources": {"subscribe": True}},
            "serverInfo": self._handlers.info,
            "instructions": self._handlers.instructions,
        }

    def _discover(self, request: Request) -> Json:
        del request
        return {
            "supportedVersions": [*MODERN_VERSIONS, *HANDSHAKE_VERSIONS],
            "capabilities": {"tools": {}, "resources": {"subscribe": True}},
            "instructions": self._handlers.instructions,
        }

    def _call(self, request: Request) -> Json | Waiting:
        arguments: object = request.params.get("arguments") or {}
        if not is_object(arguments):
            raise Refused(INVALID_PARAMS, "arguments must be an object")
        return self._handlers.call(_text(request, "name"), arguments, request)

    def _subscribe(self, request: Request) -> Json:
        self.legacy_uris.add(_text(request, "uri"))
        return {}

    def _unsubscribe(self, request: Request) -> Json:
        self.legacy_uris.discard(_text(request, "uri"))
        return {}

    def _listen(self, request: Request) -> Subscribed:
        wanted = request.params.get("notifications")
        listed = wanted.get("resourceSubscriptions") if is_object(wanted) else None
        uris = [uri for uri in listed if isinstance(uri, str)] if is_list(listed) else []
        honoured = {"resourceSubscriptions": uris} if uris else {}
        return Subscribed(
            acknowledgement=notice(
                "notifications/subscriptions/acknowledged",
                {"notifications": honoured, "_meta": {_SUBSCRIPTION_KEY: request.id}},
            ),
            uris=frozenset(uris),
        )


def failure(name: Id | None, code: int, message: str, data: Json | None = None) -> Json:
    """Return a reply that says what is wrong with a message."""
    error: Json = {"code": code, "message": message}
    return {"jsonrpc": "2.0", "id": name, "error": error | ({"data": data} if data else {})}


def notice(method: str, params: Json) -> Json:
    """Return a message that wants no reply."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def updated(uri: str, subscription: Id | None = None) -> Json:
    """Return the notice that a resource has changed, for a stream or a legacy subscription."""
    meta = {} if subscription is None else {"_meta": {_SUBSCRIPTION_KEY: subscription}}
    return notice("notifications/resources/updated", {"uri": uri} | meta)


def progress_notice(request: Request, seconds: int, message: str) -> Json | None:
    """Return the notice that a wait goes on, for a client that asked for progress."""
    if request.progress_token is None:
        return None
    told = {"progressToken": request.progress_token, "progress": seconds, "message": message}
    return notice("notifications/progress", told)


def _id(value: object) -> Id | None:
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None


def _text(request: Request, name: str) -> str:
    value = request.params.get(name)
    if not isinstance(value, str):
        raise Refused(INVALID_PARAMS, f"{request.method} needs {name}, a string")
    return value


def _name_of(info: object) -> str:
    name = info.get("name") if is_object(info) else None
    return name if isinstance(name, str) else ""
