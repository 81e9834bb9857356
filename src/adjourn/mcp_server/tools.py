"""The tools: their arguments, descriptions, and who may call them. There are no tools but these.

The arguments are checked as they are read, and the schema that hosts get is made of the same types.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from adjourn.mcp_server.protocol import is_list, is_object

INSTRUCTIONS = (
    "adjourn runs commands and sub-agents that may need a person's approval or answer, survives "
    "restarts, and runs an approved call once. Start with run_command_task or subagent_task; then "
    "wait_for_tasks. When a task is Paused, read its asks: decide with resume_task if "
    "you_may_decide, otherwise tell the user and wait again. Paused is not a failure and costs "
    "nothing. Never start the same work twice: wait for the task id you have. Use ask_human for a "
    "question of your own."
)

_TASK_ID = "A task id, as run_command_task, subagent_task or list_tasks returned it."
_KEY = (
    "A name of your own for this call. A second call with the same key returns the same task "
    "(default: the host's id of the tool call)."
)
_FOLDER = "Absolute path of the directory to work in (default: where this server was started)."
_MOST_TASKS = 100
_LONGEST_ARGUMENT = 100_000
_LONGEST_QUESTION = 20_000
_MOST_DECISIONS = 1_000

Key = Annotated[str, Meta(max_length=200)]
LongText = Annotated[str, Meta(max_length=_LONGEST_ARGUMENT)]
TaskId = Annotated[str, Meta(description=_TASK_ID, min_length=4, max_length=64)]


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every tool's arguments have in common: an unknown one is an error."""


class RunCommandTask(Arguments, frozen=True, kw_only=True):
    """The arguments of run_command_task."""

    command: Annotated[
        list[str],
        Meta(
            description='Program and arguments, one each: ["make", "deploy"]. No shell reads them.',
            min_length=1,
            max_length=1_000,
        ),
    ]
    cwd: Annotated[str | None, Meta(description=_FOLDER)] = None
    pause_on_approval: Annotated[
        bool | None,
        Meta(
            description="Ask before it starts, unless the policy lets it (default: the settings)."
        ),
    ] = None
    key: Annotated[Key | None, Meta(description=_KEY)] = None


class SubagentTask(Arguments, frozen=True, kw_only=True):
    """The arguments of subagent_task."""

    prompt: Annotated[
        str,
        Meta(
            description="What the agent is to do, in full: it knows nothing of your conversation.",
            min_length=1,
            max_length=_LONGEST_ARGUMENT,
        ),
    ]
    runner: Annotated[
        str, Meta(description="Who works on it: agent (built in, the default), claude or codex.")
    ] = "agent"
    options: Annotated[
        list[str], Meta(description='Settings of the runner as KEY=VALUE, e.g. "model=NAME".')
    ] = []
    cwd: Annotated[str | None, Meta(description=_FOLDER)] = None
    pause_on_approval: Annotated[
        bool | None,
        Meta(description="Ask before each call that the policy does not let pass (default: yes)."),
    ] = None
    key: Annotated[Key | None, Meta(description=_KEY)] = None


class WaitForTasks(Arguments, frozen=True, kw_only=True):
    """The arguments of wait_for_tasks."""

    task_ids: Annotated[
        Annotated[list[TaskId], Meta(min_length=1, max_length=_MOST_TASKS)] | TaskId,
        Meta(description=f"One task id or a list of them, at most {_MOST_TASKS}."),
    ]
    until: Annotated[
        Literal["any", "all"],
        Meta(description="Return when one of them has ended or paused (any), or when all have."),
    ] = "any"
    timeout: Annotated[
        float,
        Meta(description="Seconds to wait at most; longer than your host allows is cut.", ge=0),
    ] = 50.0


class GetTaskDetails(Arguments, frozen=True, kw_only=True):
    """The arguments of get_task_details."""

    task_id: TaskId
    include: Annotated[
        list[Literal["stdout", "stderr", "transcript", "events"]],
        Meta(description="What else to return: output of the last run, conversation, history."),
    ] = []
    offset: Annotated[
        int, Meta(description="Where the included text begins, for the rest of a long one.", ge=0)
    ] = 0


class ListTasks(Arguments, frozen=True, kw_only=True):
    """The arguments of list_tasks."""

    states: Annotated[
        list[Literal["queued", "running", "waiting", "paused", "succeeded", "failed", "canceled"]],
        Meta(description="Only tasks in these states (default: all)."),
    ] = []
    limit: Annotated[int, Meta(description="How many, newest first.", ge=1, le=100)] = 20
    before: Annotated[
        str | None, Meta(description="Only tasks older than this one: the last id of a page.")
    ] = None


class ListAsks(Arguments, frozen=True, kw_only=True):
    """The arguments of list_asks."""

    limit: Annotated[int, Meta(description="How many, oldest first.", ge=1, le=100)] = 20
    after: Annotated[
        str | None, Meta(description="Only asks after this one: the last ask id of a page.")
    ] = None


class ToolDecision(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is decided of one call."""

    tool_call_id: Annotated[str, Meta(description="The call, as its ask names it.", max_length=200)]
    approved: Annotated[bool, Meta(description="true lets it run once, false rejects it.")]
    digest: Annotated[
        str | None, Meta(description="The digest that was shown with it (default: the last one).")
    ] = None


class ResumeTask(Arguments, frozen=True, kw_only=True):
    """The arguments of resume_task."""

    task_id: TaskId
    tool_decisions: Annotated[
        Annotated[list[ToolDecision], Meta(max_length=_MOST_DECISIONS)] | None,
        Meta(description="A decision for each pending call; one that is not named is rejected."),
    ] = None
    prompt: Annotated[
        LongText | None,
        Meta(description="The answer to its one question, or what an agent shall do next."),
    ] = None


class Answer(Arguments, frozen=True, kw_only=True):
    """The arguments of answer."""

    ask_id: Annotated[str, Meta(description="The question's ask_id.", min_length=4, max_length=64)]
    text: Annotated[
        str,
        Meta(
            description="The answer; one of its choices where it has some.",
            max_length=_LONGEST_ARGUMENT,
        ),
    ]


class CancelTask(Arguments, frozen=True, kw_only=True):
    """The arguments of cancel_task."""

    task_id: TaskId


class RestartTask(Arguments, frozen=True, kw_only=True):
    """The arguments of restart_task."""

    task_id: TaskId


class AskHuman(Arguments, frozen=True, kw_only=True):
    """The arguments of ask_human."""

    question: Annotated[
        str,
        Meta(
            description="The question, with all that a person needs to answer it.",
            min_length=1,
            max_length=_LONGEST_QUESTION,
        ),
    ]
    choices: Annotated[
        list[str], Meta(description="The only answers that it takes (default: any text).")
    ] = []
    expires_after: Annotated[
        str | None, Meta(description="How long it may stay open: 90s, 15m, 8h, 2d (default: ever).")
    ] = None
    key: Annotated[Key | None, Meta(description=_KEY)] = None


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool as hosts see it, and where it may be called."""

    arguments: type[Arguments]
    description: str
    reads_only: bool = False
    always_loaded: bool = False
    inside: bool = True  # whether what is part of a run may call it


TOOLS: dict[str, Tool] = {
    "run_command_task": Tool(
        arguments=RunCommandTask,
        always_loaded=True,
        description=(
            "Start a command as a task that may stop for a person and go on later. Use it for work"
            " that needs approval, takes long, or must survive this session. Returns at once with"
            " the task_id; then call wait_for_tasks. The same call twice returns the same task."
        ),
    ),
    "subagent_task": Tool(
        arguments=SubagentTask,
        always_loaded=True,
        description=(
            "Start another agent on a prompt, as a task. It stops before calls that need approval"
            " and when it has a question. Returns at once with the task_id; then call"
            " wait_for_tasks. The same call twice returns the same task."
        ),
    ),
    "wait_for_tasks": Tool(
        arguments=WaitForTasks,
        reads_only=True,
        always_loaded=True,
        description=(
            "Wait until tasks have ended or paused for a person. Returns status (Pending, Running,"
            " Paused, Completed, Failed, Cancelled) and what is asked; timed_out means: call it"
            " again. A pause that you have seen does not end the next wait; a decision does."
        ),
    ),
    "get_task_details": Tool(
        arguments=GetTaskDetails,
        reads_only=True,
        always_loaded=True,
        description=(
            "Show one task: status, result, the pending tool calls with their arguments and"
            " digests, open questions, and who may decide. Use it before resume_task. With include"
            " it also returns output, conversation or history, in pieces by offset."
        ),
    ),
    "list_tasks": Tool(
        arguments=ListTasks,
        reads_only=True,
        description=(
            "List tasks of this store, newest first, with their status. Use it to find a task id"
            " again; then get_task_details or wait_for_tasks."
        ),
    ),
    "list_asks": Tool(
        arguments=ListAsks,
        reads_only=True,
        description=(
            "List everything that waits for somebody, oldest first: approvals and questions of all"
            " tasks, each with you_may_decide and who may otherwise."
        ),
    ),
    "resume_task": Tool(
        arguments=ResumeTask,
        always_loaded=True,
        inside=False,
        description=(
            "Go on with a paused task: tool_decisions for its pending calls, or prompt for its"
            " question or its agent; exactly one of both. Only where you_may_decide. Look at the"
            " calls with get_task_details first. Then wait_for_tasks."
        ),
    ),
    "answer": Tool(
        arguments=Answer,
        inside=False,
        description=(
            "Answer one open question of a task that you started, by its ask_id. The task goes on"
            " when nothing else is open; then wait_for_tasks."
        ),
    ),
    "cancel_task": Tool(
        arguments=CancelTask,
        inside=False,
        description=(
            "End a task that you started: a running one is stopped, a waiting one is closed and its"
            " asks are withdrawn. It can only be restarted from nothing."
        ),
    ),
    "restart_task": Tool(
        arguments=RestartTask,
        inside=False,
        description=(
            "Run a task that you started again from nothing, under the same task id; its history"
            " stays. Approvals are asked for again. Then wait_for_tasks."
        ),
    ),
    "ask_human": Tool(
        arguments=AskHuman,
        always_loaded=True,
        description=(
            "Put a question of your own into people's inbox. Returns at once with a task_id; the"
            " answer is its final_message: call wait_for_tasks. No agent can answer it."
        ),
    ),
}

# What a task looks like in results; all tools that return a task return one of these
TASK_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "task_id": {"type": "string"},
        "status": {
            "enum": ["Pending", "Running", "Paused", "Completed", "Failed", "Cancelled"],
        },
        "state": {"type": "string"},
        "asks": {"type": "array", "items": {"type": "object"}},
        "next": {"type": "string", "description": "What to do now."},
    },
    "required": ["task_id", "status", "state", "next"],
}
_LIST_OF_TASKS = {
    "type": "object",
    "properties": {"tasks": {"type": "array", "items": TASK_SCHEMA}},
    "required": ["tasks"],
}
_OUTPUTS = {
    "wait_for_tasks": _LIST_OF_TASKS,
    "list_tasks": _LIST_OF_TASKS,
    "list_asks": {
        "type": "object",
        "properties": {"asks": {"type": "array", "items": {"type": "object"}}},
        "required": ["asks"],
    },
}


def describe_tools() -> list[dict[str, Any]]:
    """Return all tools in the form of `tools/list`."""
    return [
        {
            "name": name,
            "description": tool.description,
            "inputSchema": schema_of(tool.arguments),
            "outputSchema": _OUTPUTS.get(name, TASK_SCHEMA),
            # What they start is judged by adjourn's own policy. Codex runs nothing else headless.
            "annotations": {
                "readOnlyHint": tool.reads_only,
                "destructiveHint": False,
                "openWorldHint": False,
                "idempotentHint": True,
            },
            **({"_meta": {"anthropic/alwaysLoad": True}} if tool.always_loaded else {}),
        }
        for name, tool in TOOLS.items()
    ]


def schema_of(arguments: type[Arguments]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments, with nothing behind a reference."""
    whole = msgspec.json.schema(arguments)
    parts: dict[str, Any] = whole.get("$defs", {})

    def resolved(part: Any) -> Any:
        if is_object(part) and "$ref" in part:
            return resolved(parts[part["$ref"].rpartition("/")[2]])
        if is_object(part):
            return {
                key: resolved(value)
                for key, value in part.items()
                if not (key == "title" and isinstance(value, str))
            }
        return [resolved(each) for each in part] if is_list(part) else part

    found: dict[str, Any] = resolved(whole)
    found.pop("$defs", None)
    found.pop("description", None)
    return found
