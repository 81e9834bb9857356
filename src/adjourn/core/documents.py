"""The JSON that machines read: one shape for the manifest file, stdout and every other surface."""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Literal, assert_never

import msgspec

from adjourn.core.agent.calls import Report, SessionCheck, Spent, files_of
from adjourn.core.ask import (
    ApprovalAsk,
    Approver,
    Ask,
    AskReason,
    QuestionAsk,
    Terms,
    UncertainAsk,
    expiry_of,
)
from adjourn.core.call import Call, Fate, arguments_of, digest_of
from adjourn.core.diffstat import Diffstat
from adjourn.core.errors import AdjournError, NothingRecorded, UnreadableRow
from adjourn.core.people import still_missing
from adjourn.core.scene import Scene
from adjourn.core.states import TaskState
from adjourn.core.task import PauseReason, Run, RunState, Task, run_id
from adjourn.core.text.render import spelled
from adjourn.core.text.when import stamp
from adjourn.core.trail.events import Happened, Sealed

SCHEMA_VERSION: Literal[1] = 1


def _version() -> Literal[1]:
    return SCHEMA_VERSION


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that needs a decision."""

    id: str
    name: str
    arguments: dict[str, Any]
    # Of an agent's call: those that a link leads elsewhere
    files: dict[str, str] | msgspec.UnsetType = msgspec.UNSET


class CallDoc(msgspec.Struct, frozen=True, kw_only=True):
    """A call of an agent, and how it ended."""

    id: str
    name: str
    digest: str
    fate: Fate
    # Only of a call that was approved and never made
    arguments: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class QuestionDoc(msgspec.Struct, frozen=True, kw_only=True):
    """A question that needs an answer."""

    question_id: str
    text: str
    choices: tuple[str, ...] = ()


class PauseType(StrEnum):
    """Why a task is paused: why its run left, or that it waits for tasks which the run started."""

    TOOL_APPROVAL_REQUIRED = "tool_approval_required"
    INPUT_REQUIRED = "input_required"
    USER_INTERRUPT = "user_interrupt"
    UNAVAILABLE = "unavailable"
    LIMIT_REACHED = "limit_reached"
    WAITING_ON = "waiting_on"


class ReasonDoc(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run left."""

    type: PauseType
    pending_tool_calls: tuple[ToolCall, ...] = ()
    questions: tuple[QuestionDoc, ...] = ()


class TermsDoc(msgspec.Struct, frozen=True, kw_only=True):
    """What an approval needs to count."""

    approver: Approver
    not_requester: bool
    signed: bool
    by_name: bool
    override: bool
    approvals: int
    approvers: tuple[str, ...] | None


class ApprovalDoc(msgspec.Struct, frozen=True, kw_only=True):
    """One person's approval of an ask that counts them by person."""

    person: str
    by: str
    level: str
    at: str


class CountDoc(msgspec.Struct, frozen=True, kw_only=True):
    """How many approvals an ask needs, which it has, and who can give those that are missing."""

    needed: int
    given: tuple[ApprovalDoc, ...]
    missing: int
    missing_from: tuple[str, ...]


class AskDoc(msgspec.Struct, frozen=True, kw_only=True):
    """One ask, and its reply if it has one."""

    id: str
    task_id: str
    run_id: str
    kind: str
    state: str
    why: tuple[str, ...]
    last_lines: str | None
    prompt: str
    choices: tuple[str, ...]
    key: str | None
    tool_call_id: str | None
    digest: str | None
    manifest: str | None
    created_at: str
    settled_at: str | None
    settled_by: str | None
    level: str | None
    reply: str | None
    gate: bool
    terms: TermsDoc
    replaces: str | None
    expires_at: str | None
    snoozed_until: str | None
    original_digest: str | None
    approvals: CountDoc | None
    remind_at: str | None


class ErrorDoc(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong, why, and what helps."""

    code: str
    message: str
    way_out: str | None


class WorkspaceDoc(msgspec.Struct, frozen=True, kw_only=True):
    """What changed in the workspace since the pause."""

    head_then: str | None
    head_now: str | None
    ref_then: str | None
    ref_now: str | None
    changed: tuple[str, ...]
    changed_count: int
    looked_at: int
    is_whole: bool


class ResumabilityDoc(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the session of an agent can still go on where it left, and what was checked."""

    can_be_resumed: bool
    looks: tuple[SessionCheck, ...]
    way_out: str | None


class UsageDoc(msgspec.Struct, frozen=True, kw_only=True):
    """What a model took for its work: in the newest run, and in all runs of the task."""

    run: Spent
    task: Spent


class ClarificationDoc(msgspec.Struct, frozen=True, kw_only=True):
    """A clarification that waits for its answers, and where its files are."""

    agent_id: str
    request_id: str
    timestamp: str
    clarification_path: str
    response_path: str
    checkpoint_path: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a task stands, for machines."""

    schema_version: Literal[1] = msgspec.field(default_factory=_version)
    outcome: Literal["completed", "paused", "failed", "canceled", "queued", "running"]
    task_id: str
    run_id: str | None
    checkpoint_id: str | None
    session_id: str
    state: TaskState
    # Of the newest run's process, once it has left
    exit_code: int | msgspec.UnsetType = msgspec.UNSET
    signal: int | msgspec.UnsetType = msgspec.UNSET
    pause_reason: ReasonDoc | msgspec.UnsetType = msgspec.UNSET
    paused_at: str | msgspec.UnsetType = msgspec.UNSET
    agent_message: str | msgspec.UnsetType | None = msgspec.UNSET
    resume_hint: str | msgspec.UnsetType = msgspec.UNSET
    resumable: Literal[False] | msgspec.UnsetType = msgspec.UNSET
    final_message: str | msgspec.UnsetType | None = msgspec.UNSET
    steps_taken: int | msgspec.UnsetType = msgspec.UNSET
    usage: UsageDoc | msgspec.UnsetType = msgspec.UNSET
    error: ErrorDoc | msgspec.UnsetType = msgspec.UNSET
    waiting_on: tuple[str, ...] = ()
    clarification: ClarificationDoc | msgspec.UnsetType = msgspec.UNSET
    workspace: WorkspaceDoc | msgspec.UnsetType = msgspec.UNSET
    changes: Diffstat | msgspec.UnsetType = msgspec.UNSET
    resumability: ResumabilityDoc | msgspec.UnsetType = msgspec.UNSET
    # A lambda, so that it is told even when empty
    asks: tuple[AskDoc, ...] = msgspec.field(default_factory=lambda: ())
    calls: tuple[CallDoc, ...] = ()


class RunDoc(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run, with the names that run records have everywhere."""

    run_id: str
    task_id: str
    state: RunState
    provider: str
    provider_session_ref: str | None = None
    resumable: bool = msgspec.field(default_factory=bool)
    repo_root: str
    created_at: str
    updated_at: str
    paused_at: str | None = None
    pause_reason: PauseType | None = None
    resumed_from_run_id: str | None = None
    restart_of_run_id: str | None = None
    superseded_by_run_id: str | None = None
    checkpoint_id: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    message: str | None = None
    usage: Spent | None = None
    ended_at: str | None = None
    # Of a task of a plan: the plan, and the task's own id in it
    plan: str | None = None
    plan_task_id: str | None = None


class TaskDoc(msgspec.Struct, frozen=True, kw_only=True):
    """A task as a list has it."""

    task_id: str
    state: TaskState
    runner: str
    argv: tuple[str, ...]
    prompt: str | None
    workspace: str
    runs: int
    session_id: str
    parent_run_id: str | None
    created_at: str
    updated_at: str
    message: str | None
    calls_not_made: int


class UnreadableDoc(msgspec.Struct, frozen=True, kw_only=True):
    """What a list leaves out because it cannot be read."""

    kind: str
    name: str


class EventDoc(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event of the trail, and where it is sealed."""

    place: int
    task_id: str | msgspec.UnsetType = msgspec.UNSET
    kind: str | msgspec.UnsetType = msgspec.UNSET
    by: str | msgspec.UnsetType = msgspec.UNSET
    at: str | msgspec.UnsetType = msgspec.UNSET
    facts: dict[str, str | int | None] | msgspec.UnsetType = msgspec.UNSET
    link: str | msgspec.UnsetType | None = msgspec.UNSET
    seal: str


class ItemDoc(msgspec.Struct, frozen=True, kw_only=True):
    """One of several replies that were given at once, none of which was recorded."""

    ask_id: str
    result: str
    error: ErrorDoc | None


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A command that could not do what it was asked."""

    schema_version: Literal[1] = SCHEMA_VERSION
    outcome: Literal["failed"] = "failed"
    error: ErrorDoc
    items: tuple[ItemDoc, ...] | msgspec.UnsetType = msgspec.UNSET


_OUTCOMES: dict[
    TaskState, Literal["completed", "paused", "failed", "canceled", "queued", "running"]
] = {
    TaskState.QUEUED: "queued",
    TaskState.RUNNING: "running",
    TaskState.WAITING: "paused",
    TaskState.PAUSED: "paused",
    TaskState.SUCCEEDED: "completed",
    TaskState.FAILED: "failed",
    TaskState.CANCELED: "canceled",
}


_NOT_A_PERSONS = frozenset({PauseReason.UNAVAILABLE, PauseReason.LIMIT_REACHED})


def manifest_of(scene: Scene, *, hint: str) -> Manifest:
    """Say how a task stands; `hint` is the command that goes on."""
    task, run, report = scene.task, scene.run, scene.report
    manifest = Manifest(
        outcome=_OUTCOMES[task.state],
        task_id=task.id,
        run_id=run.id if run else None,
        checkpoint_id=run.checkpoint_id if run else None,
        session_id=(run.session_ref if run else None) or task.session_id,
        state=task.state,
        exit_code=msgspec.UNSET if run is None or run.exit_code is None else run.exit_code,
        signal=msgspec.UNSET if run is None or run.signal is None else run.signal,
        waiting_on=scene.waiting_on,
        usage=UsageDoc(run=report.spent, task=report.task or report.spent)
        if report
        else msgspec.UNSET,
        asks=tuple(
            ask_doc(
                ask,
                scene.call_of(ask),
                original=scene.original_of(ask),
                why=scene.why.get(ask.id),
            )
            for ask in scene.asks
        ),
        calls=tuple(_call_doc(call, scene) for call in scene.all_calls),
    )
    match task.state:
        case TaskState.WAITING | TaskState.PAUSED:
            return _paused(manifest, scene, hint=hint)
        case TaskState.SUCCEEDED:
            steps = scene.report.steps if scene.report else task.runs
            return msgspec.structs.replace(manifest, final_message=task.message, steps_taken=steps)
        case TaskState.FAILED | TaskState.CANCELED:
            error = ErrorDoc(code=task.state, message=task.message or task.state, way_out=hint)
            return msgspec.structs.replace(manifest, error=error)
        case TaskState.QUEUED | TaskState.RUNNING:
            return msgspec.structs.replace(manifest, resume_hint=hint)


def _call_doc(call: Call, scene: Scene) -> CallDoc:
    is_unmade = call.number in scene.not_made
    return CallDoc(
        id=call.tool_call_id,
        name=call.tool,
        digest=call.digest,
        fate=Fate.NOT_MADE if is_unmade else Fate(call.state.value),
        arguments=arguments_of(call.body) if is_unmade else msgspec.UNSET,
    )


def _paused(manifest: Manifest, scene: Scene, *, hint: str) -> Manifest:
    run = scene.run
    told = scene.report.message if scene.report else None
    words = told or next((_words(ask) for ask in scene.open_asks), None)
    return msgspec.structs.replace(
        manifest,
        pause_reason=_reason(scene),
        paused_at=stamp((run.paused_at if run else None) or scene.task.updated_at),
        agent_message=words,
        resume_hint=hint,
        resumable=msgspec.UNSET if run is None or is_resumable(scene.task, run) else False,
        changes=scene.changes or msgspec.UNSET,
    )


def _words(ask: Ask) -> str:
    """Return what the process says to an ask, or what adjourn says if it says nothing."""
    return (ask.manifest if isinstance(ask, ApprovalAsk) else None) or ask.prompt


def _reason(scene: Scene) -> ReasonDoc:
    calls: list[ToolCall] = []
    questions: list[QuestionDoc] = []
    for ask in scene.open_asks:
        match ask:
            case ApprovalAsk():
                calls.append(_tool_call(scene.calls[ask.call]))
            case QuestionAsk():
                questions.append(
                    QuestionDoc(question_id=ask.name, text=ask.prompt, choices=ask.choices)
                )
            case UncertainAsk():
                questions.append(QuestionDoc(question_id=ask.id, text=ask.prompt, choices=()))
            case _:
                assert_never(ask)
    if scene.task.state is TaskState.PAUSED:
        kind = PauseType(pause_cause(scene.task, scene.run))
    elif scene.waiting_on and not scene.open_asks:
        kind = PauseType.WAITING_ON
    else:
        kind = PauseType.TOOL_APPROVAL_REQUIRED if calls else PauseType.INPUT_REQUIRED
    return ReasonDoc(
        type=kind,
        pending_tool_calls=tuple(calls),
        questions=tuple(questions),
    )


def pause_cause(task: Task, run: Run | None) -> PauseReason:
    """Return why a paused task is paused: as its last run left it, unless a person did it since."""
    is_of_run = run is not None and run.message is not None and run.message == task.message
    reason = run.pause_reason if run and is_of_run else None
    if reason is not None and reason in _NOT_A_PERSONS:
        return reason
    return PauseReason.USER_INTERRUPT


def _tool_call(call: Call) -> ToolCall:
    links: dict[str, str] = {}
    if files := files_of(call.body):
        # It can read shell text; most commands show no such call
        from adjourn.core.policy.locations import links_in

        links = links_in(files)
    arguments = arguments_of(call.body)
    return ToolCall(
        id=call.tool_call_id, name=call.tool, arguments=arguments, files=links or msgspec.UNSET
    )


def ask_doc(
    ask: Ask,
    call: Call | None,
    *,
    original: bytes | None = None,
    why: AskReason | None = None,
) -> AskDoc:
    """Describe one ask and the call that it is about.

    `original` is the call as it was before somebody edited it. Every ask has every key: what its
    kind does not have is empty.
    """
    document = AskDoc(
        id=ask.id,
        task_id=ask.task_id,
        run_id=run_id(ask.task_id, ask.run),
        kind=ask.kind,
        state=ask.state,
        why=why.reasons if why else (),
        last_lines=why.last_lines if why else None,
        prompt=ask.prompt,
        choices=(),
        key=None,
        tool_call_id=call.tool_call_id if call else None,
        digest=call.digest if call else None,
        manifest=None,
        created_at=stamp(ask.created_at),
        settled_at=stamp(ask.settlement.at) if ask.settlement else None,
        settled_by=ask.settlement.by if ask.settlement else None,
        level=ask.settlement.level if ask.settlement else None,
        reply=ask.reply,
        gate=False,
        terms=_terms_doc(Terms()),
        replaces=None,
        expires_at=_moment(expiry_of(ask)),
        snoozed_until=_moment(ask.snoozed_until),
        original_digest=digest_of(original) if original is not None else None,
        approvals=None,
        remind_at=None,
    )
    match ask:
        case ApprovalAsk():
            return msgspec.structs.replace(
                document,
                key=ask.key,
                manifest=ask.manifest,
                gate=ask.gate,
                terms=_terms_doc(ask.terms),
                replaces=ask.replaces,
                approvals=_count_doc(ask),
                remind_at=_moment(ask.remind_at),
            )
        case QuestionAsk():
            return msgspec.structs.replace(document, key=ask.key, choices=ask.choices)
        case UncertainAsk():
            return document
        case _:
            assert_never(ask)


def _terms_doc(terms: Terms) -> TermsDoc:
    people = terms.people
    return TermsDoc(
        approver=terms.approver,
        not_requester=terms.not_requester,
        signed=terms.signed,
        by_name=terms.by_name,
        override=terms.override,
        approvals=terms.approvals,
        approvers=None if people is None else tuple(person.name for person in people),
    )


def _count_doc(ask: ApprovalAsk) -> CountDoc | None:
    """Describe who has approved and who is missing, where approvals count by person."""
    people = ask.terms.people
    if people is None:
        return None
    missing, others = still_missing(ask.terms.approvals, people, ask.given)
    return CountDoc(
        needed=ask.terms.approvals,
        given=tuple(
            ApprovalDoc(person=each.person, by=each.by, level=each.level, at=stamp(each.at))
            for each in ask.given
        ),
        missing=missing if ask.is_open else 0,
        missing_from=others if ask.is_open else (),
    )


def _moment(at: int | None) -> str | None:
    return None if at is None else stamp(at)


def resumability_doc(looks: Sequence[SessionCheck], *, restart: str) -> ResumabilityDoc | None:
    """Describe what a resume would find.

    `restart` is the command that helps where it would fail.
    """
    can = all(look.fine for look in looks)
    return (
        ResumabilityDoc(can_be_resumed=can, looks=tuple(looks), way_out=None if can else restart)
        if looks
        else None
    )


def run_doc(
    task: Task,
    run: Run,
    *,
    workspace: str | None = None,
    report: Report | None = None,
    ended_at: int | None = None,
) -> RunDoc:
    """Describe one run; `workspace` is where it ran, `report` what it said of itself."""
    return RunDoc(
        run_id=run.id,
        task_id=task.id,
        state=run.state,
        provider=task.spec.runner,
        provider_session_ref=run.session_ref,
        resumable=is_resumable(task, run),
        repo_root=spelled(workspace or task.spec.workspace),
        created_at=stamp(run.created_at),
        updated_at=stamp(run.updated_at),
        paused_at=stamp(run.paused_at) if run.paused_at is not None else None,
        pause_reason=_run_reason(run),
        resumed_from_run_id=_other(run, run.resumed_from),
        restart_of_run_id=_other(run, run.restart_of),
        superseded_by_run_id=_other(run, run.superseded_by),
        checkpoint_id=run.checkpoint_id,
        exit_code=run.exit_code,
        signal=run.signal,
        message=run.message,
        usage=report.spent if report else None,
        ended_at=stamp(ended_at) if ended_at is not None else None,
        plan=task.spec.plan,
        plan_task_id=task.spec.item,
    )


def _run_reason(run: Run) -> PauseType | None:
    """Return why a run left. One that waits for other tasks has no reason of its own."""
    if run.pause_reason:
        return PauseType(run.pause_reason)
    return PauseType.WAITING_ON if run.state is RunState.WAITING else None


def is_resumable(task: Task, run: Run) -> bool:
    """Say whether a resume of the task goes on from that run.

    Not once it was canceled, restarted, or gone on from already.
    """
    is_last = run.number == task.runs and run.session_id == task.session_id
    if task.spec.is_driven and not run.resumable:
        return False
    return (
        is_last
        and task.state in {TaskState.PAUSED, TaskState.WAITING}
        and run.state in {RunState.PAUSED, RunState.WAITING}
    )


def _other(run: Run, number: int | None) -> str | None:
    return run_id(run.task_id, number) if number else None


def failure(error: AdjournError) -> Failure:
    """Describe an error."""
    if isinstance(error, NothingRecorded) and error.items:
        items = [
            ItemDoc(
                ask_id=one.ask_id, result=one.result, error=_error(one.error) if one.error else None
            )
            for one in error.items
        ]
        return Failure(error=_error(error), items=tuple(items))
    return Failure(error=_error(error))


def unreadable_docs(left_out: Sequence[UnreadableRow]) -> tuple[UnreadableDoc, ...]:
    """Describe what a list leaves out because it cannot be read; most often there is nothing."""
    return tuple(UnreadableDoc(kind=error.kind, name=spelled(error.name)) for error in left_out)


def event_doc(row: Sealed | Happened) -> EventDoc:
    """Describe an event of the trail; of one that was pruned only its place and seals are left."""
    seal, event = row.seal.hex(), row.event
    if event is None:
        link = row.link.hex() if isinstance(row, Sealed) and row.link else None
        return EventDoc(place=row.place, link=link, seal=seal)
    return EventDoc(
        place=row.place,
        task_id=event.task_id,
        kind=event.kind,
        by=event.by,
        at=stamp(event.at),
        facts=event.facts,
        seal=seal,
    )


def _error(error: AdjournError) -> ErrorDoc:
    return ErrorDoc(code=error.code, message=error.sentence, way_out=error.way_out or None)


def encoded(document: object) -> str:
    """Return a document as JSON text, indented by two, that a terminal can be shown."""
    return plain_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())


def plain_json(text: str) -> str:
    """Return JSON text with every character escaped that would do something instead of be seen."""
    if text.isascii() and "\x7f" not in text:
        return text
    return re.sub(_UNSEEN, lambda found: json_escape(found[0]), text)


# Controls, format characters (bidi, zero-width, tags), separators of lines, and what is no
# character.
_UNSEEN = (
    "[\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\uffff\U0001d159\U000e0000-\U000e0fff]"
)


def json_escape(char: str) -> str:
    """Spell a character as JSON does, by its code units."""
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def task_doc(task: Task, *, calls_not_made: int) -> TaskDoc:
    """Return a task as a list has it."""
    return TaskDoc(
        task_id=task.id,
        state=task.state,
        runner=task.spec.runner,
        argv=tuple(spelled(word) for word in task.spec.argv),
        prompt=task.spec.prompt,
        workspace=spelled(task.spec.workspace),
        runs=task.runs,
        session_id=task.session_id,
        parent_run_id=task.spec.parent_run,
        created_at=stamp(task.created_at),
        updated_at=stamp(task.updated_at),
        message=task.message,
        calls_not_made=calls_not_made,
    )
