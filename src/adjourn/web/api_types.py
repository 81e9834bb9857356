"""What clients of the API send, and what they get beside the documents of `--output json`."""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from adjourn.core.ask import Verdict
from adjourn.core.documents import AskDoc, EventDoc
from adjourn.core.states import TaskState
from adjourn.wiring.json_documents import InboxDoc, TasksDoc

_LONGEST = 100_000

Text = Annotated[str, Meta(max_length=_LONGEST)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Digest = Annotated[
    str, Meta(description="The digest that was shown with the call.", pattern="^[0-9a-f]{64}$")
]
Cursor = Annotated[Name, Meta(description="The `next` of the page before.")]
Limit = Annotated[int, Meta(ge=1, le=200)]
Place = Annotated[int, Meta(description="A place of the trail.", ge=0, le=2**53)]


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a request carries; a key that is not known is refused."""


class Query(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stands behind the question mark; what is left out is unset, and never null."""


# --- replies --------------------------------------------------------------------------------------


class Approve(Body, frozen=True, kw_only=True, tag_field="verb", tag="approve"):
    """Let a call run once: the one whose digest was shown."""

    digest: Digest
    value: Annotated[Text, Meta(description="What a command gets in its environment.")] | None = (
        None
    )
    edited: (
        Annotated[dict[str, Any], Meta(description="The arguments that it runs with instead.")]
        | None
    ) = None
    comment: Text | None = None


class Reject(Body, frozen=True, kw_only=True, tag_field="verb", tag="reject"):
    """Keep a call from running."""

    reason: Text | None = None


class Answer(Body, frozen=True, kw_only=True, tag_field="verb", tag="answer"):
    """Answer a question."""

    text: Text


class ApproveAsk(Approve, frozen=True, kw_only=True, tag_field="verb", tag="approve"):
    """Approve one of several."""

    ask: Name


class RejectAsk(Reject, frozen=True, kw_only=True, tag_field="verb", tag="reject"):
    """Reject one of several."""

    ask: Name


class AnswerAsk(Answer, frozen=True, kw_only=True, tag_field="verb", tag="answer"):
    """Answer one of several."""

    ask: Name


AnyReply = Approve | Reject | Answer


class Replies(Body, frozen=True, kw_only=True):
    """Replies to several asks: all of them count, or none."""

    replies: Annotated[
        tuple[ApproveAsk | RejectAsk | AnswerAsk, ...], Meta(min_length=1, max_length=200)
    ]


class Snooze(Body, frozen=True, kw_only=True):
    """Hide an ask until a moment; without one it is shown again."""

    until: (
        Annotated[datetime, Meta(tz=True, description="RFC 3339, with Z or an offset.")] | None
    ) = None


class Settle(Body, frozen=True, kw_only=True):
    """Whether a call ran that nobody saw end."""

    verdict: Verdict


# --- tasks ----------------------------------------------------------------------------------------


class StartTask(Body, frozen=True, kw_only=True):
    """A command, or a prompt for an agent: one of both."""

    command: (
        Annotated[
            tuple[Annotated[str, Meta(max_length=_LONGEST)], ...],
            Meta(min_length=1, max_length=10_000),
        ]
        | msgspec.UnsetType
    ) = msgspec.UNSET
    prompt: Annotated[str, Meta(min_length=1, max_length=_LONGEST)] | msgspec.UnsetType = (
        msgspec.UNSET
    )
    runner: Annotated[str, Meta(description="Who works on a prompt.", max_length=100)] = "agent"
    options: Annotated[
        tuple[Annotated[str, Meta(max_length=1000)], ...],
        Meta(description="Settings of the runner: KEY=VALUE.", max_length=100),
    ] = ()
    cwd: (
        Annotated[str, Meta(description="An absolute path; else the server's.", max_length=4096)]
        | None
    ) = None
    pause_on_approval: bool | None = None


class ApproveCall(Body, frozen=True, kw_only=True, tag_field="verb", tag="approve"):
    """Let a pending call run once: the one whose digest was shown."""

    tool_call_id: Name
    digest: Digest


class RejectCall(Body, frozen=True, kw_only=True, tag_field="verb", tag="reject"):
    """Keep a pending call from running."""

    tool_call_id: Name


class Resume(Body, frozen=True, kw_only=True):
    """What a resume carries: decisions or a prompt, or nothing."""

    prompt: Text | msgspec.UnsetType = msgspec.UNSET
    decisions: (
        Annotated[tuple[ApproveCall | RejectCall, ...], Meta(min_length=1, max_length=200)]
        | msgspec.UnsetType
    ) = msgspec.UNSET
    reason: Text | None = None


# --- queries --------------------------------------------------------------------------------------


class AsksQuery(Query, frozen=True, kw_only=True):
    """Which asks."""

    state: Literal["open", "snoozed", "settled"] = "open"
    kind: Literal["approval", "question", "uncertain"] | msgspec.UnsetType = msgspec.UNSET
    task: Name | msgspec.UnsetType = msgspec.UNSET
    after: Cursor | msgspec.UnsetType = msgspec.UNSET
    limit: Limit = 50


class TasksQuery(Query, frozen=True, kw_only=True):
    """Which tasks."""

    state: TaskState | msgspec.UnsetType = msgspec.UNSET
    after: Cursor | msgspec.UnsetType = msgspec.UNSET
    limit: Limit = 50


class OutputQuery(Query, frozen=True, kw_only=True):
    """Which part of what a run printed."""

    offset: Place = 0
    limit: Annotated[int, Meta(ge=1, le=1_000_000)] = 250_000


class EventsQuery(Query, frozen=True, kw_only=True):
    """From where on; without a place, from now on."""

    after: Place | msgspec.UnsetType = msgspec.UNSET
    task: Name | msgspec.UnsetType = msgspec.UNSET


class AuditQuery(Query, frozen=True, kw_only=True):
    """Which events of the trail."""

    after: Place = 0
    task: Name | msgspec.UnsetType = msgspec.UNSET
    limit: Annotated[int, Meta(ge=1, le=2000)] = 500


# --- answers --------------------------------------------------------------------------------------


class InboxPage(InboxDoc, frozen=True, kw_only=True):
    """A page of asks; `next` leads to the one behind it."""

    next: str | None


class TasksPage(TasksDoc, frozen=True, kw_only=True):
    """A page of tasks; `next` leads to the one behind it."""

    next: str | None


class OneAsk(AskDoc, frozen=True, kw_only=True):
    """One ask, whole."""

    schema_version: Literal[1] = 1
    tool: str | None = None
    arguments: dict[str, Any] | None = None
    you_may_decide: bool
    why_not: str | None = None


class EventsPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the audit trail, oldest first; `next` is the place behind which to go on."""

    schema_version: Literal[1] = 1
    events: tuple[EventDoc, ...]
    next: int | None


class WorkerDoc(msgspec.Struct, frozen=True, kw_only=True):
    """A worker or another supervisor that is alive."""

    name: str
    pid: int
    pool: str | None


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the store can be read, how far its trail is, and who is at work."""

    schema_version: Literal[1] = 1
    status: Literal["ok"] = "ok"
    version: str
    store: str
    place: int
    open_asks: int
    workers: tuple[WorkerDoc, ...]
    you: str
