"""Plain values for tests; every field can be given."""

from typing import Any

from msgspec.structs import replace

from adjourn.core.ask import Ask, AskKind
from adjourn.core.call import Call, Command, command_body, digest_of
from adjourn.core.states import AskState, CallState, TaskState
from adjourn.core.task import Run, RunState, Spec, Task
from adjourn.core.trail.events import Event

NOON = 1_700_000_000_000
A_DAY = 86_400_000
BODY = command_body(Command(argv=("./deploy.sh",), cwd="/srv/place"))


def a_spec(**fields: Any) -> Spec:
    """Return what a task runs."""
    return replace(
        Spec(runner="command", argv=("./deploy.sh", "--env", "prod"), workspace="/srv/place"),
        **fields,
    )


def a_task(task_id: str = "task-a", **fields: Any) -> Task:
    """Return a task that can be started."""
    plain = Task(
        id=task_id,
        spec=a_spec(),
        state=TaskState.QUEUED,
        session_id=f"session-of-{task_id}",
        created_at=NOON,
        updated_at=NOON,
        calls=1,
        next_call=1,
    )
    return replace(plain, **fields)


def a_run(task_id: str = "task-a", number: int = 1, **fields: Any) -> Run:
    """Return a run that runs."""
    plain = Run(
        task_id=task_id,
        number=number,
        state=RunState.RUNNING,
        call=1,
        supervisor="supervisor-1",
        session_id=f"session-of-{task_id}",
        created_at=NOON,
        updated_at=NOON,
    )
    return replace(plain, **fields)


def a_call(task_id: str = "task-a", number: int = 1, *, body: bytes = BODY, **fields: Any) -> Call:
    """Return a call that was approved."""
    plain = Call(
        task_id=task_id,
        number=number,
        tool="command",
        body=body,
        digest=digest_of(body),
        nonce=f"nonce-{number}",
        state=CallState.APPROVED,
    )
    return replace(plain, **fields)


def an_ask(ask_id: str = "ask-a", task_id: str = "task-a", number: int = 1, **fields: Any) -> Ask:
    """Return an open question."""
    plain = Ask(
        id=ask_id,
        task_id=task_id,
        number=number,
        run=1,
        kind=AskKind.QUESTION,
        prompt="Which region?",
        created_at=NOON,
    )
    return replace(plain, **fields)


def an_approval(ask_id: str = "ask-a", *, call: int = 1, **fields: Any) -> Ask:
    """Return an open approval of a call."""
    return replace(an_ask(ask_id, kind=AskKind.APPROVAL, call=call, prompt="run again?"), **fields)


def settled(ask: Ask, state: AskState, *, reply: str | None = None) -> Ask:
    """Return an ask as it is once it was settled."""
    return replace(ask, state=state, reply=reply, settled_by="uid:1000", settled_at=NOON)


def an_event(task_id: str = "task-a", kind: str = "task_created", **fields: Any) -> Event:
    """Return an event."""
    return replace(Event(task_id=task_id, kind=kind, by="uid:1000", at=NOON), **fields)
