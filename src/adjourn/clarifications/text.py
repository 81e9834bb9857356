"""The request and the response as text.

YAML between marker lines is written. YAML with or without them, or JSON, is read.
"""

import re
from collections.abc import Mapping
from functools import cache

from adjourn.core.ask import Question
from adjourn.core.clarification import Clarification, Request, Response
from adjourn.core.errors import Misuse
from adjourn.core.text.render import visible
from adjourn.core.text.when import stamp
from adjourn.system import yaml
from adjourn.system.yaml import NotYet, Tree

NEEDED = "CLARIFICATION_NEEDED"
RESPONSE = "CLARIFICATION_RESPONSE"

_HELP = "adjourn clarify --help"
_CUT_OFF = (None, "t", "tr", "tru")
_TRUE = frozenset({"true", "True", "TRUE"})
# One class, once: nested ones try every way to part a line before they give up
_BLOCK = re.compile(r"[\n -~\u00a1-\u05ff]+")


@cache
def _plain() -> re.Pattern[str]:
    """Match a character that may stand in quotes as it is.

    Compiling it takes longer than importing this module, and most runs have no clarification.
    """
    return re.compile(
        r"[ !#-\[\]-~\u00a1-\u00ac\u00ae-\u05ff\u0900-\u1fff\u2030-\u205e\u2070-\ud7ff\uf900-\ufdff"
        r"\U00010000-\U000e0000]"
    )


# --- writing --------------------------------------------------------------------------------------


def request_text(clarification: Clarification, *, agent_id: str, checkpoint_path: str) -> str:
    """Return the request, marker lines included."""
    request = clarification.request
    lines = [
        f"[{NEEDED}]",
        f"agent_id: {quoted(agent_id)}",
        f"timestamp: {stamp(clarification.asked_at)}",
        f"blocked_at: {quoted(request.blocked_at)}",
        f"reason: {quoted(request.reason)}",
        "",
        "questions:",
    ]
    for question in request.questions:
        lines.append(f"  - question_id: {quoted(question.key)}")
        lines.append(f"    text: {quoted(question.prompt)}")
        if question.choices:
            lines += ["    choices:", *(f"      - {quoted(choice)}" for choice in question.choices)]
    lines += [
        "",
        "checkpoint_info:",
        f"  brief_poll_duration: {request.linger:g}s",
        f"  checkpoint_path: {quoted(checkpoint_path)}",
        "  agent_will_exit_after_poll: true",
        "  resume_required: true",
        "",
        f"work_continues: {'true' if request.parallel_work else 'false'}",
    ]
    work = request.parallel_work
    parallel = "\n".join(["Can implement:", *(f"- {item}" for item in work)]) if work else ""
    if _BLOCK.fullmatch(parallel):
        lines += ["parallel_work_available: |", *(f"  {line}" for line in parallel.split("\n"))]
    else:
        lines.append(f"parallel_work_available: {quoted(parallel)}")
    return "\n".join([*lines, f"[/{NEEDED}]"]) + "\n"


def response_text(
    answers: Mapping[str, str], *, agent_id: str, at: int, checkpoint_path: str
) -> str:
    """Return the response, marker lines included."""
    lines = [f"[{RESPONSE}]", f"agent_id: {quoted(agent_id)}", f"timestamp: {stamp(at)}", ""]
    lines.append("responses:")
    for key, answer in answers.items():
        lines += [f"  - question_id: {quoted(key)}", f"    answer: {quoted(answer)}"]
    lines += [
        "",
        "resume_signal: true",
        "resume_method: checkpoint",
        "",
        "resume_instructions:",
        f"  checkpoint_path: {quoted(checkpoint_path)}",
        "  use_task_resume: true",
        "  resume_prompt_includes: clarification_responses",
        f"[/{RESPONSE}]",
    ]
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    """Return a text as a double-quoted scalar that YAML reads back exactly.

    Not by PyYAML: it would leave characters as they are that change the direction of a line.
    """
    short = {"\n": r"\n", "\t": r"\t", "\\": r"\\", '"': r"\""}
    pieces: list[str] = []
    for letter in text:
        if _plain().fullmatch(letter):
            pieces.append(letter)
        elif letter in short:
            pieces.append(short[letter])
        else:
            number = ord(letter)
            pieces.append(f"\\u{number:04x}" if letter <= "\uffff" else f"\\U{number:08x}")
    return f'"{"".join(pieces)}"'


# --- reading --------------------------------------------------------------------------------------


def read_request(content: bytes) -> Request:
    """Read what an agent wants to know; raise Misuse for anything that is not a request."""
    found = _mapping(_parsed(content, marker=NEEDED), "the request")
    questions: list[Question] = []
    for value in _list(found.get("questions"), "questions"):
        item = _mapping(value, "a question")
        choices = _list(item.get("choices"), "choices")
        key = _text(_either(item, "question_id"), "a question_id")
        questions.append(
            Question(
                key=key,
                prompt=_text(item.get("text"), f"the text of {visible(key)}"),
                choices=tuple(_text(choice, "a choice") for choice in choices),
            )
        )
    if not questions:
        raise Misuse("it asks nothing", way_out="give it at least one question")
    keys = [question.key for question in questions]
    repeated = sorted({key for key in keys if keys.count(key) > 1})
    if repeated:
        raise Misuse(
            f"question_id {', '.join(map(visible, repeated))} is there twice",
            way_out="name each question once",
        )
    parallel = _optional(found, "parallel_work_available").splitlines()
    return Request(
        questions=tuple(questions),
        blocked_at=_optional(found, "blocked_at"),
        reason=_optional(found, "reason"),
        parallel_work=tuple(line.removeprefix("- ") for line in parallel if line.startswith("- ")),
    )


def read_response(content: bytes) -> Response:
    """Read what somebody answered.

    Raise NotYet for a text that is not complete, Misuse for anything else that is no response.
    """
    parsed = _parsed(content, marker=RESPONSE)
    if isinstance(parsed, str):
        raise NotYet("it is only a word")
    found = _mapping(parsed, "the response")
    signal = _either(found, "resume_signal")
    if signal in _CUT_OFF:
        raise NotYet("it has no resume_signal")
    if signal not in _TRUE:
        raise Misuse(
            f"resume_signal is {visible(str(signal))}, not true",
            way_out="say resume_signal: true when all is answered",
        )
    answers: list[tuple[str, str]] = []
    for value in _list(found.get("responses"), "responses"):
        item = _mapping(value, "a response")
        key = _text(_either(item, "question_id"), "a question_id")
        answers.append((key, _text(item.get("answer"), f"the answer to {visible(key)}")))
    agent_id = _text(_either(found, "agent_id"), "agent_id")
    return Response(agent_id=agent_id, answers=tuple(answers), resume_signal=True)


def _either(found: Mapping[str, Tree], name: str) -> Tree:
    """Return a value under either spelling of its name: snake_case or camelCase."""
    first, *rest = name.split("_")
    return found.get(name, found.get(first + "".join(word.capitalize() for word in rest)))


def _optional(found: Mapping[str, Tree], name: str) -> str:
    value = found.get(name)
    return value if isinstance(value, str) else ""


def _mapping(value: Tree, what: str) -> dict[str, Tree]:
    if not isinstance(value, dict):
        raise Misuse(f"{what} is not a mapping", way_out=_HELP)
    return value


def _list(value: Tree, what: str) -> list[Tree]:
    if value is not None and not isinstance(value, list):
        raise Misuse(f"{what} is not a list", way_out=_HELP)
    return value or []


def _text(value: Tree, what: str) -> str:
    if not isinstance(value, str):
        raise Misuse(f"{what} is {'missing' if value is None else 'not a text'}", way_out=_HELP)
    return value


def _parsed(content: bytes, *, marker: str) -> Tree:
    """Return what a file says, without its marker lines; every scalar is a text."""
    try:
        text = content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise NotYet("it is not UTF-8") from error
    body = text.strip()
    if not body:
        raise NotYet("it is empty")
    if body.startswith(f"[{marker}]"):
        if not body.endswith(f"[/{marker}]"):
            raise NotYet(f"its last line is not [/{marker}]")
        text = body.removeprefix(f"[{marker}]").removesuffix(f"[/{marker}]")
    return yaml.parse(text)
