"""The file in which Codex keeps a thread.

What is open in it, and how it is put back when it is gone.
"""

import os
import re
from contextlib import suppress
from glob import escape, glob
from typing import Any

import msgspec

from adjourn.core.policy.locations import NOT_TOLD
from adjourn.runners.codex.usage import CodexUsage
from adjourn.system.files import private_directory, write_whole

TYPE_CHECKING = False

if TYPE_CHECKING:  # a driver does without
    from adjourn.core.agent.transcript import Message, ToolCall

_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
# All that Codex says of a call that it closed by itself; a command may print the same word among
# others.
_ABORTED = re.compile(r"(Wall time: [\d.]+ seconds\n)?aborted( by user( after [\d.]+ ?s)?)?")
_ADDED = ("<environment_context>", "<user_instructions>", "<permissions")
_SET_ASIDE = ".damaged"
_NOT_THERE = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
_BRIEF = 2_000
_SHELL = re.compile(r"<shell>([^<]+)</shell>")


class OpenCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of the model that has no output yet."""

    id: str
    type: str
    name: str = ""
    arguments: str = ""

    @property
    def details(self) -> "Details":
        """What it says beside the command."""
        try:
            return msgspec.json.decode(self.arguments, type=Details)
        except msgspec.MsgspecError:
            return UNKNOWN_DETAILS

    @property
    def is_cell(self) -> bool:
        """Whether it is a script that makes calls of its own."""
        return self.type == "custom_tool_call" and self.name == "exec"

    @property
    def output_type(self) -> str:
        """What its output is called."""
        return f"{self.type}_output"


class Details(msgspec.Struct, frozen=True, kw_only=True):
    """How a command would be run."""

    sandbox_permissions: str | None = None
    with_escalated_permissions: bool | None = None  # how earlier versions said `require_escalated`
    shell: str | None = None
    login: bool | None = None
    workdir: str | None = None


UNKNOWN_DETAILS = Details(sandbox_permissions=NOT_TOLD, workdir=NOT_TOLD)


class _ThreadHead(msgspec.Struct):
    """What the first line of a thread says of it."""

    model_provider: str | None = None


class _RolloutLine(msgspec.Struct):
    type: str = ""
    payload: Any = None


class _Tokens(msgspec.Struct):
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0

    @property
    def whole(self) -> CodexUsage:
        return CodexUsage(**msgspec.structs.asdict(self))


class _Used(msgspec.Struct):
    usage: _Tokens


class _Part(msgspec.Struct):
    text: str = ""


class _Item(msgspec.Struct):
    type: str = ""
    call_id: str = ""
    name: str | None = None
    arguments: str | None = None
    input: str | None = None
    output: Any = None
    role: str | None = None
    content: tuple[_Part, ...] | None = None


class Rollout:
    """A thread as far as it is on disk. Reading on reads only what is new."""

    def __init__(self, path: str, *, prompt: str) -> None:
        self.path = path
        self._prompt = prompt
        self._read = 0
        self._open: dict[str, OpenCall] = {}
        self._answer_is_whole = True
        self._answer: str | None = None  # what the model said last, if nothing came after it
        # Of all answers that were written down; a Codex that writes none down leaves it at nothing
        self.usage = CodexUsage()
        self.answers = 0
        self.has_prompt = False
        self.heard: list[str] = []  # what people have said in it
        self.shell = "bash"  # which one reads commands, unless they say otherwise
        self.closed: dict[str, str] = {}  # what the model was told about its calls, in brief
        # Calls that Codex closed by itself when it was stopped
        self.aborted: frozenset[str] = frozenset()

    def read_on(self) -> "Rollout":
        """Take in what was written since the last time.

        A line that is not whole yet is left for the next.
        """
        for line in self._new_lines():
            try:
                self._take(msgspec.json.decode(line, type=_RolloutLine))
            except msgspec.MsgspecError:
                continue  # Codex itself passes over what it cannot read
        return self

    def _new_lines(self) -> list[bytes]:
        try:
            with open(self.path, "rb") as file:
                file.seek(self._read)
                text = file.read()
        except _NOT_THERE:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        return whole.splitlines()

    def _take(self, line: _RolloutLine) -> None:
        if line.type == "token_usage_record":
            self._answer_is_whole = True
            self.answers += 1
            self.usage = self.usage.plus(msgspec.convert(line.payload, _Used).usage.whole)
        if line.type != "response_item":
            return
        self._take_item(msgspec.convert(line.payload, _Item))

    def _take_item(self, item: _Item) -> None:
        if item.type != "reasoning":
            self._answer = None
        if item.type in _CALLS:
            self._answer_is_whole = False
            self._open[item.call_id] = OpenCall(
                id=item.call_id,
                type=item.type,
                name=item.name or "",
                arguments=str(item.arguments or item.input or ""),
            )
        elif item.type in _OUTPUTS:
            self._open.pop(item.call_id, None)
            self.closed[item.call_id] = str(item.output)[:_BRIEF]
            self.aborted |= (
                {item.call_id} if _ABORTED.fullmatch(_text(item.output)) else frozenset()
            )
        elif item.role == "assistant":
            self._answer, self._answer_is_whole = (
                "".join(part.text for part in item.content or ()),
                False,
            )
        elif item.role == "user":
            self._take_words([part.text for part in item.content or ()])

    def _take_words(self, texts: list[str]) -> None:
        self.has_prompt |= self._prompt in texts
        self.heard += texts
        for text in texts:
            found = _SHELL.search(text) if text.startswith("<environment_context>") else None
            self.shell = found.group(1) if found else self.shell

    @property
    def open_calls(self) -> list[OpenCall]:
        """The calls without an output, in the order in which the model made them."""
        return list(self._open.values())

    @property
    def last_words(self) -> str | None:
        """What the model said, if it was done with that.

        It waits for no call, and nobody has said anything since.
        """
        return self._answer if self._answer_is_whole and not self._open else None

    def call_of(self, item: str) -> str:
        """Return the open call that an item is part of: itself, or the script that makes it."""
        cells = [call.id for call in self._open.values() if call.is_cell]
        return item if item in self._open or not cells else cells[-1]

    @property
    def answer_is_whole(self) -> bool:
        """Whether the model has said everything that its open calls are part of."""
        return self._answer_is_whole


def _text(output: Any) -> str:
    """Return the words of an output, which is a text or a list of parts."""
    return (
        output
        if isinstance(output, str)
        else "".join(part.text for part in msgspec.convert(output or (), tuple[_Part, ...]))
    )


def messages_in(content: bytes) -> "list[Message]":
    """Return the conversation that a thread's file holds, without what Codex adds itself."""
    # Only who wants to read it needs them: a driver does without
    from adjourn.core.agent.transcript import Assistant, ToolResult, Usage, User

    found: list[Message] = []
    names: dict[str, str] = {}  # of tools, by their calls
    is_answering = False  # all that follows an answer's first words is part of it
    for row in content.splitlines():
        try:
            read = msgspec.json.decode(row, type=_RolloutLine)
            if read.type == "token_usage_record":
                last = found[-1] if found else None
                if isinstance(last, Assistant):
                    used = msgspec.convert(read.payload, _Used).usage
                    usage = Usage(
                        input=used.input_tokens,
                        cached=used.cached_input_tokens,
                        output=used.output_tokens,
                    )
                    found[-1] = msgspec.structs.replace(last, usage=usage)
                is_answering = False
            if read.type != "response_item":
                continue
            item = msgspec.convert(read.payload, _Item)
        except msgspec.MsgspecError:
            continue  # Codex itself passes over what it cannot read
        if item.type in _OUTPUTS:
            is_answering = False
            name, told = names.get(item.call_id, ""), _text(item.output)
            found.append(ToolResult(tool_call_id=item.call_id, name=name, text=told))
        elif item.type in _CALLS or item.role == "assistant":
            last = found[-1] if found and is_answering else None
            answer = last if isinstance(last, Assistant) else Assistant()
            if item.role == "assistant":
                words = "".join(part.text for part in item.content or ())
                text = "\n".join(filter(None, (answer.text, words)))
                answer = msgspec.structs.replace(answer, text=text)
            else:
                call = _tool_call(item)
                names[item.call_id] = call.name
                answer = msgspec.structs.replace(answer, tool_calls=(*answer.tool_calls, call))
            if isinstance(last, Assistant):
                found.pop()
            found.append(answer)
            is_answering = True
        elif item.role == "user":
            is_answering = False
            texts = [part.text for part in item.content or ()]
            found += [User(text=text) for text in texts if not text.startswith(_ADDED)]
    return found


def _tool_call(item: _Item) -> "ToolCall":
    from adjourn.core.agent.transcript import ToolCall  # a driver does without

    given = str(item.arguments or item.input or "")
    try:
        arguments: dict[str, Any] | str = msgspec.json.decode(given, type=dict[str, Any])
    except msgspec.MsgspecError:
        arguments = given
    return ToolCall(id=item.call_id, name=item.name or item.type, arguments=arguments)


# --- where it lies --------------------------------------------------------------------------------


def path_of(home: str, thread: str) -> str | None:
    """Return a thread's file, if it is there."""
    found = glob(f"{escape(home)}/sessions/*/*/*/rollout-*-{thread}.jsonl")
    return max(found) if found else None


def copy_of(path: str) -> bytes | None:
    """Return the whole file, if it is there."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except _NOT_THERE:
        return None


def provider_in(content: bytes) -> str | None:
    """Return the provider of models that a thread was made with, as its first line has it."""
    try:
        first = msgspec.json.decode(content.partition(b"\n")[0], type=_RolloutLine)
        return msgspec.convert(first.payload, _ThreadHead).model_provider
    except msgspec.MsgspecError:
        return None


def is_whole(path: str, *, copy: bytes | None, prompt: str) -> bool:
    """Say whether a thread's file can be resumed.

    The task is in it, and nothing that the copy has was cut off.
    """
    there = copy_of(path)
    if there is None or (copy and there.startswith(copy)):
        return there is not None
    return len(there) >= len(copy or b"") and Rollout(path, prompt=prompt).read_on().has_prompt


def obstacle(path: str) -> str | None:
    """Return what keeps a file from being put there, if anything."""
    above = os.path.dirname(path)
    while not os.path.lexists(above) and os.path.dirname(above) != above:
        above = os.path.dirname(above)
    return None if os.path.isdir(above) and os.access(above, os.W_OK | os.X_OK) else above


def put_back(path: str, copy: bytes, *, prompt: str) -> None:
    """Put the kept copy where the file is missing or damaged.

    What Codex wrote since the copy was made stays.
    """
    if is_whole(path, copy=copy, prompt=prompt):
        return
    directory = os.path.dirname(path)
    os.makedirs(os.path.dirname(directory), exist_ok=True)
    private_directory(directory)
    with suppress(FileNotFoundError):
        os.replace(path, f"{path}{_SET_ASIDE}")
    write_whole(path, copy)
