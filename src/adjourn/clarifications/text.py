"""The request and the response as text.

YAML with marker lines is written; YAML with or without them, or JSON, is read.
"""

import re
from collections.abc import Mapping, Sequence
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

_CUT_OFF = (None, "t", "tr", "tru")
_TRUE = frozenset({"true", "True", "TRUE"})
# One class, once: nested ones try every way to part a line before they give up
_BLOCK = re.compile(r"[\n -~\u00a1-\u05ff]+")


@cache
def _plain() -> re.Pattern[str]:
    """Match what YAML lets stand in quotes as it is; a line break or an invisible character is spelled out.

    Compiling it costs more than all else that a run imports for clarifications, and most runs have none.
    """
    return re.compile(
        r"[ !#-\[\]-~\u00a1-\u00ac\u00ae-\u05ff\u0900-\u1fff\u2030-\u205e\u2070-\ud7ff\uf900-\ufdff\U00010000-\U000e0000]"
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
        *(line for question in request.questions for line in _question_lines(question)),
        "",
        "checkpoint_info:",
        f"  brief_poll_duration: {request.linger:g}s",
        f"  checkpoint_path: {quoted(checkpoint_path)}",
        "  agent_will_exit_after_poll: true",
        "  resume_required: true",
        "",
        f"work_continues: {'true' if request.parallel_work else 'false'}",
        *_parallel_lines(request.parallel_work),
        f"[/{NEEDED}]",
    ]
    return "\n".join(lines) + "\n"


def _question_lines(question: Question) -> list[str]:
    lines = [f"  - question_id: {quoted(question.key)}", f"    text: {quoted(question.prompt)}"]
    if question.choices:
        lines += ["    choices:", *(f"      - {quoted(choice)}" for choice in question.choices)]
    return lines


def _parallel_lines(work: Sequence[str]) -> list[str]:
    text = "\n".join(["Can implement:", *(f"- {item}" for item in work)]) if work else ""
    if not _BLOCK.fullmatch(text):
        return [f"parallel_work_available: {quoted(text)}"]
    return ["parallel_work_available: |", *(f"  {line}" for line in text.split("\n"))]


def response_text(
    answers: Mapping[str, str], *, agent_id: str, at: int, checkpoint_path: str
) -> str:
    """Return the response, marker lines included."""
    lines = [
        f"[{RESPONSE}]",
        f"agent_id: {quoted(agent_id)}",
        f"timestamp: {stamp(at)}",
        "",
        "responses:",
        *(
            f"  - question_id: {quoted(key)}\n    answer: {quoted(answer)}"
            for key, answer in answers.items()
        ),
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
    """Return a text as a double-quoted scalar that YAML reads back exactly."""
    return (
        '"'
        + "".join(letter if _plain().fullmatch(letter) else _escaped(letter) for letter in text)
        + '"'
    )


def _escaped(letter: str) -> str:
    short = {"\n": r"\n", "\t": r"\t", "\\": r"\\", '"': r"\""}.get(letter)
    return short or (f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}")  # noqa: PLR2004 -- four digits


# --- reading --------------------------------------------------------------------------------------


def read_request(content: bytes) -> Request:
    """Read what an agent wants to know. Anything that is not a request is refused."""
    found = _mapping(_parsed(content, marker=NEEDED), "the request")
    questions = [
        _mapping(item, "a question") for item in _list(found.get("questions"), "questions")
    ]
    if not questions:
        raise Misuse("it asks nothing", way_out="give it at least one question")
    asked = tuple(_question(item) for item in questions)
    repeated = {
        question.key for question in asked if [other.key for other in asked].count(question.key) > 1
    }
    if repeated:
        raise Misuse(
            f"question_id {', '.join(map(visible, sorted(repeated)))} is there twice",
            way_out="name each question once",
        )
    return Request(
        questions=asked,
        blocked_at=_optional(found, "blocked_at"),
        reason=_optional(found, "reason"),
        parallel_work=_parallel_work(_optional(found, "parallel_work_available")),
    )


def _question(found: Mapping[str, Tree]) -> Question:
    choices = tuple(_text(choice, "a choice") for choice in _list(found.get("choices"), "choices"))
    key = _text(_either(found, "question_id"), "a question_id")
    return Question(
        key=key, prompt=_text(found.get("text"), f"the text of {visible(key)}"), choices=choices
    )


def _parallel_work(text: str) -> tuple[str, ...]:
    return tuple(line.removeprefix("- ") for line in text.splitlines() if line.startswith("- "))


def read_response(content: bytes) -> Response:
    """Read what somebody answered.

    A text that is not whole is not yet there; anything else that is no response is refused.
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
    items = [_mapping(item, "a response") for item in _list(found.get("responses"), "responses")]
    return Response(
        agent_id=_text(_either(found, "agent_id"), "agent_id"),
        answers=tuple(map(_answer, items)),
        resume_signal=True,
    )


def _answer(found: Mapping[str, Tree]) -> tuple[str, str]:
    question_id = _text(_either(found, "question_id"), "a question_id")
    return question_id, _text(found.get("answer"), f"the answer to {visible(question_id)}")


def _either(found: Mapping[str, Tree], name: str) -> Tree:
    """Return a value under either spelling of its name."""
    first, *rest = name.split("_")
    return found.get(name, found.get(first + "".join(word.capitalize() for word in rest)))


def _optional(found: Mapping[str, Tree], name: str) -> str:
    value = found.get(name)
    return value if isinstance(value, str) else ""


def _mapping(value: Tree, what: str) -> dict[str, Tree]:
    if not isinstance(value, dict):
        raise Misuse(f"{what} is not a mapping", way_out="see docs/how-to/clarifications.md")
    return value


def _list(value: Tree, what: str) -> list[Tree]:
    if value is not None and not isinstance(value, list):
        raise Misuse(f"{what} is not a list", way_out="see docs/how-to/clarifications.md")
    return value or []


def _text(value: Tree, what: str) -> str:
    if not isinstance(value, str):
        raise Misuse(
            f"{what} is {'missing' if value is None else 'not a text'}",
            way_out="see docs/how-to/clarifications.md",
        )
    return value


def _parsed(content: bytes, *, marker: str) -> Tree:
    """Return what a text says, as texts, lists and mappings: no value has any other type."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise NotYet("it is not UTF-8") from error
    text = _without_markers(text.removeprefix("\ufeff"), marker)
    return yaml.parsed(text)


def _without_markers(text: str, marker: str) -> str:
    body = text.strip()
    if not body:
        raise NotYet("it is empty")
    if not body.startswith(f"[{marker}]"):
        return text
    if not body.endswith(f"[/{marker}]"):
        raise NotYet(f"its last line is not [/{marker}]")
    return body.removeprefix(f"[{marker}]").removesuffix(f"[/{marker}]")
