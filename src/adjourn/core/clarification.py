"""Several questions at once.

The request, the checkpoint that is left with it, the response, and the prompt to go on.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from adjourn.core.ask import Ask, Question, QuestionAsk, Reply, Verb, require_open
from adjourn.core.errors import Misuse
from adjourn.core.task import Milliseconds
from adjourn.core.text.render import visible
from adjourn.core.text.when import span, stamp

PHASE = "waiting_clarification"
BRIEF_POLL_DURATION = 60.0
POLL_INTERVAL = 5.0
MAX_POLLS = 12

_KB = 1024


class WorkState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is done, under way, held up, and possible without an answer."""

    completed: Sequence[str] = ()
    in_progress: Sequence[str] = ()
    blocked: Sequence[str] = ()
    parallel_work_available: Sequence[str] = ()


class Context(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a process knows, and what it has made so far."""

    session_context: Any = None
    decisions: Sequence[Any] = ()
    files_created: Sequence[str] = ()
    files_modified: Sequence[str] = ()


class ResumeInstructions(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How to go on when the answers are there."""

    read_clarification_from: str = ""
    apply_responses_to: str = "workState.blocked"
    next_phase: str = "implementation"
    estimated_remaining_work: str = "unknown"


class Metadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the work has cost so far."""

    total_duration: str = ""
    wait_start_time: str = ""
    tokens_burned: int = 0
    checkpoint_size: str = ""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """All that any process needs to go on."""

    agent_id: str
    timestamp: str = ""
    phase: str = PHASE
    clarification_request_id: str = ""
    work_state: WorkState = WorkState()
    context: Context = Context()
    resume_instructions: ResumeInstructions = ResumeInstructions()
    metadata: Metadata = Metadata()


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a process wants to know before it can go on."""

    questions: tuple[Question, ...]
    blocked_at: str = ""
    reason: str = ""
    parallel_work: tuple[str, ...] = ()
    linger: float = BRIEF_POLL_DURATION


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """What a process left in the protocol's files: its checkpoint, byte for byte, and what it asks.

    `problem` says why the request cannot be read. `response` is the digest of a response that was
    there before: it cannot answer this request.
    """

    checkpoint: bytes
    request: Request | None = None
    problem: str | None = None
    response: bytes | None = None


class Clarification(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it was registered: the newest of a task, with the asks it became."""

    id: str
    request: Request
    asks: tuple[str, ...]
    asked_at: Milliseconds


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wrote into a response file."""

    agent_id: str
    answers: tuple[tuple[str, str], ...]
    resume_signal: bool


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why a response was not taken, and which one it was.

    One that could not be read has no digest.
    """

    task_id: str
    digest: str
    why: str

    @property
    def sentence(self) -> str:
        """What its author is told."""
        return f"the response for {visible(self.task_id)} is refused: {self.why}"


# --- reading and writing a checkpoint -------------------------------------------------------------


def encoded_checkpoint(checkpoint: Checkpoint) -> bytes:
    """Return a checkpoint as JSON, indented by two; it says its own size."""
    content, size = b"", ""
    for _ in range(4):  # a longer size makes a longer file, at most twice
        metadata = msgspec.structs.replace(checkpoint.metadata, checkpoint_size=size)
        sized = msgspec.structs.replace(checkpoint, metadata=metadata)
        content = msgspec.json.format(msgspec.json.encode(sized), indent=2) + b"\n"
        if readable_size(len(content)) == size:
            break
        size = readable_size(len(content))
    return content


def checkpoint_schema() -> dict[str, Any]:
    """Return the JSON Schema of the checkpoint file, as adjourn writes it."""
    structs = (Checkpoint, WorkState, Context, ResumeInstructions, Metadata)
    _, components = msgspec.json.schema_components(structs, ref_template="#/$defs/{name}")
    for struct in structs:
        # What has a default may be left out by others; adjourn writes all of it
        components[struct.__name__]["required"] = list(struct.__struct_encode_fields__)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **components.pop("Checkpoint"),
        "title": "The checkpoint of an agent that waits for a clarification",
        "$defs": components,
    }


def readable_size(count: int) -> str:
    """Return a size as people write it: 812B, 47KB."""
    return f"{count}B" if count < _KB else f"{round(count / _KB)}KB"


def read_checkpoint(content: bytes) -> Checkpoint:
    """Read a checkpoint in either spelling; its context may be a section or at the top."""
    found = msgspec.json.decode(content, type=dict[str, Any])
    top = _respelled(found, Checkpoint)
    context = {
        "sessionContext": found.get("extractedContext", found.get("extracted_context"))
    } | _respelled(found, Context)
    if isinstance(top.get("context"), dict):
        context |= _respelled(top["context"], Context)
    top["context"] = {name: value for name, value in context.items() if value is not None}
    for name, kind in (
        ("workState", WorkState),
        ("resumeInstructions", ResumeInstructions),
        ("metadata", Metadata),
    ):
        if isinstance(top.get(name), dict):
            top[name] = _respelled(top[name], kind)
    return msgspec.convert(top, Checkpoint)


def _respelled(found: Mapping[str, Any], kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the fields that `kind` knows under the names that it writes."""
    names = zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    return {
        camel: found.get(camel, found.get(snake))
        for snake, camel in names
        if camel in found or snake in found
    }


def checkpoint_of(
    clarification: Clarification,
    draft: Checkpoint,
    *,
    created_at: Milliseconds,
    now: Milliseconds,
    response_path: str,
) -> Checkpoint:
    """Fill in what a process cannot know of itself: names, times and places."""
    return msgspec.structs.replace(
        draft,
        timestamp=stamp(now),
        phase=PHASE,
        clarification_request_id=clarification.id,
        resume_instructions=msgspec.structs.replace(
            draft.resume_instructions, read_clarification_from=response_path
        ),
        metadata=msgspec.structs.replace(
            draft.metadata,
            total_duration=span(now - created_at),
            wait_start_time=stamp(clarification.asked_at),
        ),
    )


# --- the brief wait -------------------------------------------------------------------------------


def looks(linger: float) -> list[float]:
    """Return when to look at the response file, in seconds from the start.

    At most twelve times, however long the wait.
    """
    interval = max(POLL_INTERVAL, linger / MAX_POLLS)
    moments = [
        interval * number for number in range(1, MAX_POLLS + 1) if interval * number < linger
    ]
    return [*moments[: MAX_POLLS - 1], linger] if linger > 0 else []


# --- the response ---------------------------------------------------------------------------------


def replies_to(response: Response, asks: Sequence[Ask]) -> list[Reply]:
    """Match answers to the questions of a task by their ids.

    Each open one gets one answer, or nothing is taken.
    """
    # Files answer, and decide nothing
    questions = [ask for ask in asks if isinstance(ask, QuestionAsk) and not ask.review]
    wanted = {ask.name: ask for ask in reversed(questions) if ask.is_open}
    given = [question_id for question_id, _ in response.answers]
    _refuse_repeated(given)
    for question_id in given:
        if question_id not in wanted:
            _refuse_unknown(question_id, questions)
    missing = [visible(key) for key in wanted if key not in given]
    if missing:
        raise Misuse(
            f"no answer to {', '.join(sorted(missing))}", way_out="answer every open question"
        )
    return [
        Reply(ask_id=wanted[key].id, verb=Verb.ANSWER, text=answer)
        for key, answer in response.answers
    ]


def _refuse_repeated(given: Sequence[str]) -> None:
    repeated = sorted({question_id for question_id in given if given.count(question_id) > 1})
    if repeated:
        raise Misuse(
            f"more than one answer to {', '.join(map(visible, repeated))}",
            way_out="answer every question once",
        )


def _refuse_unknown(question_id: str, questions: Sequence[QuestionAsk]) -> None:
    settled = [ask for ask in questions if ask.name == question_id]
    if settled:
        require_open(settled[-1])
    raise Misuse(
        f"no question is called {visible(question_id)}",
        way_out="use the question_id of the request",
    )


# How the prompt begins with which an agent resumes
RESUME_FROM_CLARIFICATION = "## RESUME FROM CLARIFICATION"

# --- what a person and an agent read --------------------------------------------------------------


def formatted_questions(questions: Iterable[Question]) -> list[str]:
    """Return questions as a person reads them."""
    return [
        f"  {visible(question.key)}: {visible(question.prompt)}{_formatted_choices(question)}"
        for question in questions
    ]


def _formatted_choices(question: Question) -> str:
    return f" ({' | '.join(map(visible, question.choices))})" if question.choices else ""


def formatted_answers(answers: Mapping[str, str]) -> str:
    """Return answers as an agent reads them."""
    return "\n".join(f"- {question_id}: {answer}" for question_id, answer in answers.items())


def resume_prompt(checkpoint: Checkpoint, responses: str) -> str:
    """Return what an agent is told when it goes on."""
    state = msgspec.json.format(msgspec.json.encode(checkpoint.work_state), indent=2).decode()
    return f"""\
{RESUME_FROM_CLARIFICATION}

You were waiting for clarification and checkpointed your state.

### Previous State
{state}

### Clarification Responses
{responses}

### Resume Instructions
{checkpoint.resume_instructions.next_phase}

### Next Steps
1. Apply clarification responses to blocked work
2. Continue implementation with answers
3. Complete remaining work (estimated: {checkpoint.resume_instructions.estimated_remaining_work})

### Context Preserved
- Session context: Available in checkpoint
- Decisions made: {len(checkpoint.context.decisions)} recorded
- Files created: {", ".join(checkpoint.context.files_created)}

## Continue Work
"""
