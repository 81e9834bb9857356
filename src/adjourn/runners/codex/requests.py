"""What Codex asks of whoever drives it, read once and turned into calls and questions."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from adjourn.core.call import tool_body
from adjourn.core.errors import Misuse
from adjourn.runners.codex.channel import Message
from adjourn.runners.codex.items import Item, Option

COMMAND = "item/commandExecution/requestApproval"
CHANGE = "item/fileChange/requestApproval"
ELICITATION = "mcpServer/elicitation/request"
QUESTIONS = "item/tool/requestUserInput"
SHELL_TOOL = "shell"
PATCH_TOOL = "apply_patch"
_SHELL_TEXT = ("-c", "-lc")

Id = int | str


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A call that Codex makes if it gets a yes."""

    request: Id
    item: str
    tool: str
    arguments: dict[str, Any]
    words: str = ""  # what the model says for it
    elicits: bool = False  # whether it is a question of an MCP server, which is answered in other words

    @property
    def body(self) -> bytes:
        """The bytes that a decision is about."""
        return tool_body(self.tool, self.arguments)

    def answer(self, *, yes: bool) -> dict[str, Any]:
        """Return the reply to the request."""
        if self.elicits:
            return {"id": self.request, "result": {"action": "accept" if yes else "decline", "content": {} if yes else None}}
        return {"id": self.request, "result": {"decision": "accept" if yes else "decline"}}


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """One question of the model."""

    id: str
    question: str
    header: str = ""
    options: tuple[Option, ...] | None = ()
    other: bool = msgspec.field(default=False, name="isOther")

    @property
    def choices(self) -> tuple[str, ...]:
        """The only answers that count; none where the model takes other words, too."""
        return () if self.other else tuple(option.label for option in self.options or ())

    @property
    def prompt(self) -> str:
        """The question, with what the model offers for an answer."""
        offered = [
            f"{option.label}: {option.description}" if option.description else option.label for option in self.options or ()
        ]
        return "\n- ".join((self.question, *offered)) + ("\n- or other words" if offered and self.other else "")


class Questions(msgspec.Struct, frozen=True, kw_only=True):
    """Several questions that the model wants answered before it goes on."""

    request: Id
    item: str
    questions: tuple[Query, ...]

    def answer(self, replies: Sequence[str | None]) -> dict[str, Any]:
        """Return the reply to the request."""
        given = {
            query.id: {"answers": [] if reply is None else [reply]} for query, reply in zip(self.questions, replies, strict=True)
        }
        return {"id": self.request, "result": {"answers": given}}


class Strange(msgspec.Struct, frozen=True, kw_only=True):
    """A request that nobody knows how to judge: it is refused."""

    request: Id
    method: str
    why: str

    def answer(self) -> dict[str, Any]:
        """Return the reply to the request."""
        return {"id": self.request, "error": {"code": -32601, "message": f"adjourn refuses {self.method}: {self.why}"}}


Request = Wanted | Questions | Strange


def read_request(message: Message, *, thread: str, items: Mapping[str, Item]) -> Request:
    """Return what a request is about, with the help of what was said of its item before."""
    request, method = message.id if message.id is not None else "", message.method or ""
    try:
        params = msgspec.json.decode(message.params, type=dict[str, Any])
        if params.get("threadId") != thread:
            return Strange(request=request, method=method, why="it belongs to another thread")
        return _READERS[method](request, params, items)
    except (LookupError, TypeError, AttributeError, msgspec.MsgspecError, Misuse) as error:
        return Strange(request=request, method=method, why=f"it cannot be read ({error!r})")


def _command(request: Id, params: dict[str, Any], items: Mapping[str, Item]) -> Request:
    del items
    command, item = params.get("command"), str(params.get("itemId"))
    if not isinstance(command, str) or params.get("kind", "command") != "command":
        return Strange(request=request, method=COMMAND, why="it names no command")
    arguments = {**shell_arguments(command), "cwd": params.get("cwd")}
    return Wanted(request=request, item=item, tool=SHELL_TOOL, arguments=arguments, words=params.get("reason") or "")


def shell_arguments(command: str) -> dict[str, Any]:
    """Return a command line as a policy reads it: the text that a shell gets, and which shell."""
    words = words_of(command)
    if len(words) == len(("bash", "-lc", "text")) and words[1] in _SHELL_TEXT:
        return {"command": words[2], "shell": list(words[:2])}
    return {"command": list(words)}


def words_of(command: str) -> Sequence[str]:
    """Return the words of a command line as Codex quotes them."""
    try:
        return shlex.split(command)
    except ValueError:
        return [command]


def _change(request: Id, params: dict[str, Any], items: Mapping[str, Item]) -> Request:
    item, words = items.get(params["itemId"]), params.get("reason") or ""
    if item is None or not item.changes or params.get("grantRoot"):
        return Strange(request=request, method=CHANGE, why="it does not say what would change")
    changes = [msgspec.to_builtins(change) for change in item.changes]
    return Wanted(request=request, item=item.id, tool=PATCH_TOOL, arguments={"changes": changes}, words=words)


class _Meta(msgspec.Struct):
    codex_approval_kind: str = ""
    tool_params: dict[str, Any] | None = None


def _elicitation(request: Id, params: dict[str, Any], items: Mapping[str, Item]) -> Request:
    meta = msgspec.convert(params.get("_meta") or {}, _Meta)
    asked = [item for item in items.values() if _is_asked_about(item, str(params.get("serverName")), meta)]
    if meta.codex_approval_kind != "mcp_tool_call" or len(asked) != 1:
        return Strange(request=request, method=ELICITATION, why="it is not about one known tool call")
    tool = f"mcp__{asked[0].server}__{asked[0].tool}"
    return Wanted(request=request, item=asked[0].id, tool=tool, arguments=meta.tool_params or {}, elicits=True)


def _is_asked_about(item: Item, server: str, meta: _Meta) -> bool:
    is_of_server = item.type == "mcpToolCall" and item.server == server and item.is_under_way
    return is_of_server and (item.arguments or {}) == (meta.tool_params or {})


def _questions(request: Id, params: dict[str, Any], items: Mapping[str, Item]) -> Request:
    del items
    asked = msgspec.convert(params["questions"], tuple[Query, ...])
    return Questions(request=request, item=params["itemId"], questions=asked)


_READERS = {COMMAND: _command, CHANGE: _change, ELICITATION: _elicitation, QUESTIONS: _questions}
