"""Reads what Codex asks its driver, once, and turns it into calls and questions."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from adjourn.core.call import tool_body
from adjourn.core.errors import Misuse
from adjourn.core.text.json_text import decode_unambiguous
from adjourn.runners import hook
from adjourn.runners.channel import Message
from adjourn.runners.codex.hook import HOOK

ACTS = frozenset({"commandExecution", "fileChange", "mcpToolCall"})
_HAPPENED = frozenset({"completed", "failed"})


class PatchedFile(msgspec.Struct, frozen=True, kw_only=True):
    """How one file would change."""

    path: str
    kind: Any
    diff: str = ""


class QueryOption(msgspec.Struct, frozen=True, kw_only=True):
    """One of the answers that the model offers."""

    label: str
    description: str = ""


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A question along with words, for whose answer the model does not wait."""

    title: str = ""
    options: tuple[QueryOption | str, ...] | None = ()


class ThreadItem(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One item of a thread, as far as anybody here needs it."""

    id: str
    type: str
    status: str = ""
    text: str = ""
    questions: tuple[Offer, ...] | None = None
    command: str | None = None
    aggregated_output: str | None = None
    exit_code: int | None = None
    changes: tuple[PatchedFile, ...] = ()
    server: str | None = None
    tool: str | None = None
    arguments: Any = None
    result: Any = None
    error: Any = None

    @property
    def is_under_way(self) -> bool:
        """Whether it has begun and not ended."""
        return self.status == "inProgress"

    @property
    def has_acted(self) -> bool:
        """Whether it did something, however it ended."""
        return self.type in ACTS and self.status in _HAPPENED

    @property
    def what(self) -> str:
        """What it did, in a word or a line."""
        return self.command or self.tool or self.type


COMMAND = "item/commandExecution/requestApproval"
CHANGE = "item/fileChange/requestApproval"
ELICITATION = "mcpServer/elicitation/request"
QUESTIONS = "item/tool/requestUserInput"
SHELL_TOOL = "shell"
PATCH_TOOL = "apply_patch"
_SHELL_TEXT = ("-c", "-lc")
_PATCHES = re.compile(r"\s*(cd\s+\S+\s*&&\s*)?apply_?patch\s")
_PIECE = re.compile(
    r"""'(?P<single>[^']*)'|"(?P<double>[^"\\]*(?:\\.[^"\\]*)*)"|\\(?P<one>.)"""
    r"""|(?P<plain>[^ \t\r\n'"\\]+)|(?P<blank>[ \t\r\n]+)""",
    re.DOTALL,
)
_ESCAPED = re.compile(r"""\\(["\\])""")
_TOOLS = {"Bash": SHELL_TOOL}
_HARMLESS = frozenset(
    {
        "create_goal",
        "get_goal",
        "request_user_input_async",
        "tool_search",
        "update_goal",
        "update_plan",
    }
)

Id = int | str


class WantedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that Codex makes if it gets a yes."""

    request: Id
    item: str
    tool: str
    arguments: dict[str, Any]
    words: str = ""  # what the model says for it
    method: str = COMMAND
    given: dict[str, Any] = {}  # the arguments as a hook got them

    @property
    def body(self) -> bytes:
        """The bytes that a decision is about."""
        return tool_body(self.tool, self.arguments)

    def covers(self, asked: "WantedCall") -> bool:
        """Return whether a later request for the same item asks for no more than its hook did."""
        if asked.tool == PATCH_TOOL and self.applies_patch:
            return True  # Codex sees through the shell, and makes the change itself
        if asked.tool != SHELL_TOOL or self.tool != SHELL_TOOL:
            return asked.tool == self.tool and (
                asked.tool == PATCH_TOOL or asked.arguments == self.arguments
            )
        return _essence(asked.arguments) == _essence(self.arguments)

    @property
    def applies_patch(self) -> bool:
        """Whether it changes files, as a call of that tool or as a command of that name."""
        return self.tool == PATCH_TOOL or (
            self.tool == SHELL_TOOL and is_patch(self.arguments.get("command"))
        )

    def answer(self, *, yes: bool) -> "Reply":
        """Return the reply to the request."""
        match self.method:
            case "hook":
                return self.request, hook.allow(self.given) if yes else hook.deny(
                    "adjourn refuses it"
                )
            case "mcpServer/elicitation/request":
                return self.request, {
                    "action": "accept" if yes else "decline",
                    "content": {} if yes else None,
                }
            case _:
                return self.request, {"decision": "accept" if yes else "decline"}


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """One question of the model."""

    id: str
    question: str
    options: tuple[QueryOption, ...] | None = ()
    other: bool = msgspec.field(default=False, name="isOther")

    @property
    def choices(self) -> tuple[str, ...]:
        """The only answers that count; none where the model takes other words, too."""
        return () if self.other else tuple(option.label for option in self.options or ())

    @property
    def prompt(self) -> str:
        """The question, with what the model offers for an answer."""
        offered = [
            f"{option.label}: {option.description}" if option.description else option.label
            for option in self.options or ()
        ]
        return "\n- ".join((self.question, *offered)) + (
            "\n- or other words" if offered and self.other else ""
        )


class Questions(msgspec.Struct, frozen=True, kw_only=True):
    """Several questions that the model wants answered before it goes on."""

    request: Id
    item: str
    questions: tuple[Query, ...]
    # The arguments as a hook got them, if it was a hook that asked
    given: dict[str, Any] | None = None

    def pass_on(self) -> "Reply":
        """Let a hook pass: the questions themselves come after it."""
        return self.request, hook.allow(self.given or {})

    def answer(self, replies: Sequence[str | None]) -> "Reply":
        """Return the reply to the request."""
        given = {
            query.id: {"answers": [] if reply is None else [reply]}
            for query, reply in zip(self.questions, replies, strict=True)
        }
        if self.given is not None:
            return self.request, hook.deny(msgspec.json.encode({"answers": given}).decode())
        return self.request, {"answers": given}


class Strange(msgspec.Struct, frozen=True, kw_only=True):
    """A request that nobody knows how to judge: it is refused."""

    request: Id
    method: str
    why: str

    def answer(self) -> "Reply":
        """Return the reply to the request."""
        if self.method == HOOK:
            return self.request, hook.deny(f"adjourn refuses it: {self.why}")
        return self.request, Unanswerable(
            code=-32601, message=f"adjourn refuses {self.method}: {self.why}"
        )


class Unanswerable(msgspec.Struct, frozen=True, kw_only=True):
    """What is answered to a request that nobody knows."""

    code: int
    message: str


class Harmless(msgspec.Struct, frozen=True, kw_only=True):
    """A call of the model that does nothing but talk to Codex itself."""

    request: Id
    given: dict[str, Any]

    def answer(self) -> "Reply":
        """Return the reply to the request."""
        return self.request, hook.allow(self.given)


Reply = tuple[Id, dict[str, Any] | Unanswerable | hook.Answer]
Request = WantedCall | Questions | Strange | Harmless


def read_request(message: Message, *, thread: str, items: Mapping[str, ThreadItem]) -> Request:
    """Return what a request is about, with the help of what was said of its item before."""
    request, method = message.id if message.id is not None else "", message.method or ""
    try:
        params = decode_unambiguous(bytes(message.params), type=dict[str, Any])
        if params.get("session_id" if method == HOOK else "threadId") != thread:
            return Strange(request=request, method=method, why="it belongs to another thread")
        return _READERS[method](request, params, items)
    except (LookupError, TypeError, AttributeError, msgspec.MsgspecError, Misuse) as error:
        return Strange(request=request, method=method, why=f"it cannot be read ({error!r})")


def _command(request: Id, params: dict[str, Any], items: Mapping[str, ThreadItem]) -> Request:
    del items
    command, item = params.get("command"), str(params.get("itemId"))
    if not isinstance(command, str) or params.get("kind", "command") != "command":
        return Strange(request=request, method=COMMAND, why="it names no command")
    arguments = {**shell_arguments(command), "cwd": params.get("cwd")}
    return WantedCall(
        request=request,
        item=item,
        tool=SHELL_TOOL,
        arguments=arguments,
        words=params.get("reason") or "",
    )


def shell_arguments(command: str) -> dict[str, Any]:
    """Return a command line as a policy reads it: the text that a shell gets, and which shell."""
    words = words_of(command)
    if len(words) == len(("bash", "-lc", "text")) and words[1] in _SHELL_TEXT:
        return {"command": words[2], "shell": list(words[:2])}
    return {"command": list(words)}


def is_patch(command: object) -> bool:
    """Say whether a command is one that Codex does not give to the shell.

    It applies the patch in it by itself.
    """
    return isinstance(command, str) and _PATCHES.match(command) is not None


def _essence(arguments: Mapping[str, Any]) -> tuple[object, ...]:
    """Return what makes two commands the same, however the shell is written."""
    shell, *option = arguments.get("shell") or ("",)
    return arguments.get("command"), arguments.get("cwd"), shell.rpartition("/")[2], option


def words_of(command: str) -> Sequence[str]:
    """Return the arguments of a command line as Codex quotes them.

    Those of `shlex.split`, however many there are.
    """
    words: list[list[str]] = []
    at, is_between = 0, True
    while piece := _PIECE.match(command, at):
        at = piece.end()
        if piece["blank"]:
            is_between = True
            continue
        words += [[]] if is_between else []
        is_between = False
        words[-1].append(_meant(piece))
    return ["".join(word) for word in words] if at == len(command) else [command]


def _meant(piece: re.Match[str]) -> str:
    if piece["double"] is not None:
        return _ESCAPED.sub(r"\1", piece["double"])
    return next(
        text for text in (piece["single"], piece["one"], piece["plain"]) if text is not None
    )


def _change(request: Id, params: dict[str, Any], items: Mapping[str, ThreadItem]) -> Request:
    item, words = items.get(params["itemId"]), params.get("reason") or ""
    if item is None or not item.changes or params.get("grantRoot"):
        return Strange(request=request, method=CHANGE, why="it does not say what would change")
    changes = [msgspec.to_builtins(change) for change in item.changes]
    return WantedCall(
        request=request,
        item=item.id,
        tool=PATCH_TOOL,
        arguments={"changes": changes},
        words=words,
        method=CHANGE,
    )


class _Meta(msgspec.Struct):
    codex_approval_kind: str = ""
    tool_params: dict[str, Any] | None = None


def _elicitation(request: Id, params: dict[str, Any], items: Mapping[str, ThreadItem]) -> Request:
    meta = msgspec.convert(params.get("_meta") or {}, _Meta)
    asked = [
        item
        for item in items.values()
        if _is_asked_about(item, str(params.get("serverName")), meta)
    ]
    if len({item.tool for item in asked}) > 1:  # which of them is said in words only
        asked = [item for item in asked if f'"{item.tool}"' in str(params.get("message"))]
    if meta.codex_approval_kind != "mcp_tool_call" or len({item.tool for item in asked}) != 1:
        return Strange(
            request=request, method=ELICITATION, why="it is not about one known tool call"
        )
    tool = f"mcp__{asked[0].server}__{asked[0].tool}"
    return WantedCall(
        request=request,
        item=asked[0].id,
        tool=tool,
        arguments=meta.tool_params or {},
        method=ELICITATION,
    )


def _is_asked_about(item: ThreadItem, server: str, meta: _Meta) -> bool:
    is_of_server = item.type == "mcpToolCall" and item.server == server and item.is_under_way
    return is_of_server and (item.arguments or {}) == (meta.tool_params or {})


def _questions(request: Id, params: dict[str, Any], items: Mapping[str, ThreadItem]) -> Request:
    del items
    asked = msgspec.convert(params["questions"], tuple[Query, ...])
    return Questions(request=request, item=params["itemId"], questions=asked)


def _hooked(request: Id, params: dict[str, Any], items: Mapping[str, ThreadItem]) -> Request:
    del items
    asked = msgspec.convert(params, hook.HookRequest)
    if asked.tool_name in _HARMLESS:
        return Harmless(request=request, given=asked.tool_input)
    if asked.tool_name == "request_user_input":
        queries = msgspec.convert(asked.tool_input["questions"], tuple[Query, ...])
        return Questions(
            request=request, item=asked.tool_use_id, questions=queries, given=asked.tool_input
        )
    tool, given = _TOOLS.get(asked.tool_name, asked.tool_name), asked.tool_input
    arguments = given | {"cwd": asked.cwd} if tool == SHELL_TOOL else given
    if tool == PATCH_TOOL:
        arguments = {"patch": given["command"], "cwd": asked.cwd}
    return WantedCall(
        request=request,
        item=asked.tool_use_id,
        tool=tool,
        arguments=arguments,
        method=HOOK,
        given=given,
    )


_READERS = {
    HOOK: _hooked,
    COMMAND: _command,
    CHANGE: _change,
    ELICITATION: _elicitation,
    QUESTIONS: _questions,
}
