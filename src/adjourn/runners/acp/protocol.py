"""The messages of the Agent Client Protocol, and what an agent's requests mean.

What a person is shown of a call is built here, from what the agent would run; its title is only
words.
"""

import re
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from adjourn.core.call import tool_body
from adjourn.core.policy.locations import NOT_TOLD
from adjourn.runners.acp.agents import Agent

VERSION = 1  # of the protocol
SHELL_TOOL = "shell"
ACTS = frozenset({"execute", "edit", "delete", "move", "fetch"})  # the kinds that have effects
SHOWS_NO_MORE = "the agent shows no more than this title"
_ENDED = frozenset({"completed", "failed"})
# An option with one of these words does more than to let one call run
_MORE = re.compile(
    r"always|auto|mode|session|policy|risk|remember|again|future|every|all\b|yolo|trust|bypass",
    re.IGNORECASE,
)
# A mode with one of these names lets calls run that nobody was asked about
_CARELESS = re.compile(
    r"yolo|autopilot|auto[-_ ]?(approve|edit|accept)|accept[-_ ]?edits|bypass|full[-_ ]?access"
    r"|^auto$|never[-_ ]?ask|don'?t[-_ ]?ask|dangerous",
    re.IGNORECASE,
)
_DIRECTORIES = ("cwd", "workdir", "working_directory", "workingDirectory")
_OTHER_DIRECTORIES = ("directory", "dir_path", "dir", "path")  # which policies do not know

Id = int | str


class Mode(msgspec.Struct, frozen=True):
    """One of the modes that an agent has."""

    id: str
    name: str = ""


class Modes(msgspec.Struct, frozen=True, rename="camel"):
    """The mode of a session, and the others that there are."""

    current_mode_id: str = ""
    available_modes: tuple[Mode, ...] = ()


class Opened(msgspec.Struct, frozen=True, rename="camel"):
    """A session that is open."""

    session_id: str | None = None
    modes: Modes | None = None


class Capabilities(msgspec.Struct, frozen=True, rename="camel"):
    """What an agent can do, as far as it matters here."""

    load_session: bool | None = False
    session_capabilities: dict[str, Any] | None = None

    @property
    def can_resume(self) -> bool:
        """Whether a session goes on without its history being told again."""
        return (self.session_capabilities or {}).get("resume") is not None


class Implementation(msgspec.Struct, frozen=True):
    """Who an agent says that it is."""

    name: str = ""
    version: str = ""


class Hello(msgspec.Struct, frozen=True, rename="camel"):
    """What an agent says first."""

    protocol_version: int
    agent_capabilities: Capabilities | None = None
    agent_info: Implementation | None = None


class Usage(msgspec.Struct, frozen=True, rename="camel"):
    """The tokens that a turn took, where an agent tells."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_read_tokens: int | None = 0


class Stopped(msgspec.Struct, frozen=True, rename="camel"):
    """How a turn ended."""

    stop_reason: str
    usage: Usage | None = None


class AgentCall(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A call of an agent, as far as its updates have told."""

    tool_call_id: str
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    content: list[Any] | None = None
    locations: list[Any] | None = None
    raw_input: Any = None
    raw_output: Any = None

    def joined(self, newer: "AgentCall") -> "AgentCall":
        """Return the call with what a newer update adds to it."""
        told = {
            name: value
            for name in self.__struct_fields__
            if (value := getattr(newer, name)) is not None
        }
        return msgspec.structs.replace(self, **told)

    @property
    def has_ended(self) -> bool:
        """Whether the agent has said how it ended."""
        return self.status in _ENDED

    @property
    def has_acted(self) -> bool:
        """Whether it did something that may have had an effect."""
        return self.status == "completed" and self.kind in ACTS

    @property
    def shows_something(self) -> bool:
        """Whether the agent tells more of it than a title."""
        return bool(self.raw_input) or any(map(_text_or_diff, self.content or ()))

    @property
    def what(self) -> str:
        """What it is, in a line."""
        command = fields_of(self.raw_input).get("command")
        return command if isinstance(command, str) else self.title or self.kind or "a call"

    @property
    def output(self) -> str:
        """What it gave back, as text."""
        texts = [text for each in self.content or () if (text := _text_of(each))]
        if not texts and self.raw_output is not None:
            raw = self.raw_output
            texts = [raw if isinstance(raw, str) else msgspec.json.encode(raw).decode()]
        return "\n".join(texts)


class Option(msgspec.Struct, frozen=True, rename="camel"):
    """One of the answers that an agent takes to a request."""

    option_id: str
    name: str = ""
    kind: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether it is about this one call, and changes nothing else."""
        return not _MORE.search(f"{self.option_id} {self.name}")


class Permission(msgspec.Struct, frozen=True, rename="camel"):
    """A request to make a call."""

    session_id: str
    tool_call: AgentCall
    options: tuple[Option, ...] = ()

    @property
    def yeses(self) -> list[Option]:
        """The options that let this one call run, and do no more."""
        return [each for each in self.options if each.kind == "allow_once" and each.is_plain]

    @property
    def no(self) -> Option | None:
        """The option that keeps this one call from running."""
        once = [each for each in self.options if each.kind == "reject_once"]
        return next((each for each in once if each.is_plain), None)

    @property
    def refusal(self) -> dict[str, Any]:
        """The answer that keeps the call from running, and changes nothing else."""
        chosen = {"outcome": "selected", "optionId": self.no.option_id} if self.no else None
        return {"outcome": chosen or {"outcome": "cancelled"}}


class WantedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that an agent makes if it gets a yes."""

    request: Id
    item: str
    permission: Permission
    tool: str = ""
    arguments: dict[str, Any] = {}
    words: str = ""  # what the agent says for it
    members: tuple[str, ...] = ()  # the calls that a yes lets run, where it is for several

    @property
    def can_be_shown(self) -> bool:
        """Whether a person can see what would run."""
        return bool(self.arguments)

    @property
    def body(self) -> bytes:
        """The bytes that a decision is about."""
        return tool_body(self.tool, self.arguments)


def fields_of(value: object) -> dict[str, Any]:
    """Return the fields of a JSON object; none if it is something else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def is_careless(mode: str) -> bool:
    """Say whether an agent in that mode makes calls that nobody was asked about."""
    return _CARELESS.search(mode.rpartition("#")[2]) is not None


def wanted_call(
    request: Id, permission: Permission, calls: Sequence[AgentCall], *, agent: Agent
) -> WantedCall:
    """Return what a request is about: what would run, and beside it what the agent calls it.

    `calls` are the call itself with all that its updates have told, and before it those for which
    the agent asks along with it.
    """
    call = calls[-1]
    words = f"It calls this: {call.title}" if call.title else ""
    shown = [each for each in calls if each.shows_something]
    if len(calls) > 1:
        tool = "batch"
        arguments: dict[str, Any] = (
            {"calls": [{"tool": (of := _shown(each, agent))[0], **of[1]} for each in calls[:-1]]}
            if len(shown) >= len(calls) - 1
            else {}
        )
    elif shown:
        tool, arguments = _shown(call, agent)
    elif agent.title_is_call and call.title:
        is_command = call.kind == "execute"
        tool = SHELL_TOOL if is_command else call.kind or "other"
        arguments = {"command" if is_command else "title": call.title}
        arguments |= {"workdir": NOT_TOLD} if is_command else {}
        words = f"{words} ({SHOWS_NO_MORE})"
    else:
        tool, arguments = call.kind or "other", {}
    return WantedCall(
        request=request,
        item=call.tool_call_id,
        permission=permission,
        tool=tool,
        arguments=arguments,
        words=words,
        members=tuple(each.tool_call_id for each in calls[:-1]),
    )


def _shown(call: AgentCall, agent: Agent) -> tuple[str, dict[str, Any]]:
    """Return the tool and the arguments of a call, as policies and people read them."""
    raw: Any = call.raw_input
    fields = fields_of(raw)
    if call.kind in {"execute", None} and _is_command(fields.get("command")):
        arguments = dict(fields)
        # Where a policy would not see that the command runs elsewhere, it gets to know
        if not any(fields.get(key) for key in _DIRECTORIES):
            elsewhere = next((fields[key] for key in _OTHER_DIRECTORIES if fields.get(key)), None)
            arguments |= {"workdir": elsewhere} if elsewhere else {}
            arguments |= {"workdir": NOT_TOLD} if agent.keeps_shell else {}
        return SHELL_TOOL, arguments
    arguments = {"input": raw} if raw else {}
    changes = [each for each in map(_change_of, call.content or ()) if each]
    named = [fields_of(each).get("path") for each in [*changes, *(call.locations or ())]]
    paths = list(dict.fromkeys(path for path in named if isinstance(path, str)))
    arguments |= {"changes": changes} if changes else {}
    if not raw:
        texts = [text for each in call.content or () if (text := _text_of(each))]
        arguments |= {"content": texts} if texts else {}
    if len(paths) == 1:
        arguments["path"] = paths[0]
    elif paths:
        arguments["paths"] = paths
    return call.kind or "other", arguments


def _is_command(command: object) -> bool:
    return isinstance(command, str) or (
        isinstance(command, list)
        and all(isinstance(word, str) for word in cast("list[object]", command))
    )


def _change_of(content: Any) -> dict[str, Any] | None:
    told = fields_of(content)
    if told.get("type") != "diff":
        return None
    return {
        "path": told.get("path"),
        "old": told.get("oldText"),
        "new": told.get("newText"),
    }


def _text_of(content: Any) -> str:
    text = fields_of(fields_of(content).get("content")).get("text")
    return text if isinstance(text, str) else ""


def _text_or_diff(content: Any) -> bool:
    return bool(_change_of(content) or _text_of(content))
