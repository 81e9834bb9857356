"""Plain values for tests; every field can be given."""

from typing import Any, TypeVar

from msgspec.structs import replace

from adjourn.core.ask import ApprovalAsk, Ask, QuestionAsk, Settlement, UncertainAsk
from adjourn.core.call import Call, Command, command_body, digest_of
from adjourn.core.states import AskState, CallState, TaskState
from adjourn.core.task import Run, RunState, Spec, Task
from adjourn.core.trail.events import Event

AnyAsk = TypeVar("AnyAsk", bound=Ask)

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


def an_ask(
    ask_id: str = "ask-a", task_id: str = "task-a", number: int = 1, **fields: Any
) -> QuestionAsk:
    """Return an open question."""
    plain = QuestionAsk(
        id=ask_id,
        task_id=task_id,
        number=number,
        run=1,
        prompt="Which region?",
        created_at=NOON,
    )
    return replace(plain, **fields)


def an_approval(
    ask_id: str = "ask-a", *, call: int = 1, number: int = 1, **fields: Any
) -> ApprovalAsk:
    """Return an open approval of a call."""
    plain = ApprovalAsk(
        id=ask_id,
        task_id="task-a",
        number=number,
        run=1,
        prompt="run again?",
        created_at=NOON,
        call=call,
    )
    return replace(plain, **fields)


def an_uncertain_ask(
    ask_id: str = "ask-a", *, call: int = 1, number: int = 1, **fields: Any
) -> UncertainAsk:
    """Return an open ask about a call that nobody saw end."""
    plain = UncertainAsk(
        id=ask_id,
        task_id="task-a",
        number=number,
        run=1,
        prompt="did it run?",
        created_at=NOON,
        call=call,
    )
    return replace(plain, **fields)


def settled(ask: AnyAsk, state: AskState, **settlement: Any) -> AnyAsk:
    """Return an ask as it is once it was settled."""
    given: dict[str, Any] = {"by": "uid:1000", "at": NOON, **settlement}
    return replace(ask, settlement=Settlement(state=state, **given))


def settlement_of(ask: Ask) -> Settlement:
    """Return how an ask was settled."""
    if ask.settlement is None:
        raise AssertionError(f"ask {ask.id} is pending")
    return ask.settlement


def an_event(task_id: str = "task-a", kind: str = "task_created", **fields: Any) -> Event:
    """Return an event."""
    return replace(Event(task_id=task_id, kind=kind, by="uid:1000", at=NOON), **fields)
