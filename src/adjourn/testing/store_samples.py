"""Full values, and how the contract tests keep them and read them all back."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from adjourn.core.ask import ApprovalAsk, Ask, QuestionAsk, Settlement, UncertainAsk
from adjourn.core.call import Call, digest_of, slot_of
from adjourn.core.states import AskState, CallState, TaskState
from adjourn.core.task import OnRejection, PauseReason, ProcessId, Run, RunState, Spec, Task, Wish
from adjourn.ports.store import Change, Store
from adjourn.testing.values import NOON

FULL_SPEC = Spec(
    runner="command",
    argv=("./deploy.sh", "", "--env=prod", "naïve ☃ \x1b[31m\0"),
    workspace="/srv/place with blanks",
    decision_arg=True,
    on_rejection=OnRejection.TELL,
    grace=0.25,
    parent_run="task-p.3",
    pool="there",
    expires_after=90_000,
)
FULL_TASK = Task(
    id="task-a",
    spec=FULL_SPEC,
    state=TaskState.WAITING,
    session_id="session",
    created_at=NOON,
    updated_at=NOON + 1,
    version=7,
    runs=3,
    calls=4,
    asks=5,
    next_call=4,
    tries=2,
    wish=Wish.CANCEL,
    message="why",
    slot=slot_of("session", "key", 1),
)
FULL_RUN = Run(
    task_id="task-a",
    number=3,
    state=RunState.PAUSED,
    call=4,
    supervisor="supervisor",
    created_at=NOON,
    updated_at=NOON + 1,
    version=2,
    session_id="session",
    shim=ProcessId(boot_id="boot", pid=2**22, start_time=2**40),
    exit_code=10,
    signal=9,
    message="why",
    checkpoint_id="checkpoint",
    paused_at=NOON + 1,
    pause_reason=PauseReason.USER_INTERRUPT,
    resumed_from=2,
    restart_of=1,
    superseded_by=4,
)
FULL_CALL = Call(
    task_id="task-a",
    number=4,
    tool="command",
    body=b"any bytes \xff\0",
    digest=digest_of(b"any bytes \xff\0"),
    nonce="nonce",
    state=CallState.EXECUTING,
    claimed_by="supervisor",
    approved_by="uid:1000",
    ask=5,
    version=3,
)
FULL_SETTLEMENT = Settlement(
    state=AskState.APPROVED, at=NOON + 2, by="uid:1000", reply="eu", level="L1"
)
FULL_ASK = ApprovalAsk(
    id="ask-a",
    task_id="task-a",
    number=5,
    run=3,
    prompt="Deploy?\x1b]52;c;AAAA\x07",
    created_at=NOON,
    key="region",
    slot=slot_of("session", "key", 2),
    call=4,
    label="toolu_4",
    manifest='{"plan": 1}',
    expires_at=NOON + 9,
    settlement=FULL_SETTLEMENT,
)
FULL_QUESTION = QuestionAsk(
    id="ask-a",
    task_id="task-a",
    number=5,
    run=3,
    prompt="Deploy?\x1b]52;c;AAAA\x07",
    created_at=NOON,
    key="region",
    slot=slot_of("session", "key", 2),
    choices=("eu", "", "us"),
    review=True,
    expires_at=NOON + 9,
    settlement=FULL_SETTLEMENT,
)
FULL_UNCERTAIN = UncertainAsk(
    id="ask-a",
    task_id="task-a",
    number=5,
    run=3,
    prompt="did it run?",
    created_at=NOON,
    call=4,
    label="toolu_4",
    snoozed_until=NOON + 3,
)


def keep(store: Store, *things: Task | Run | Call | Ask) -> None:
    """Put things into the store; those of a task come after it."""
    with store.change() as tx:
        for thing in things:
            add(tx, thing)


def add(tx: Change, thing: Task | Run | Call | Ask) -> None:
    """Add a thing by its type."""
    match thing:
        case Task():
            tx.add_task(thing)
        case Run():
            tx.add_run(thing)
        case Call():
            tx.add_call(thing)
        case ApprovalAsk() | QuestionAsk() | UncertainAsk():
            tx.add_ask(thing)


def everything(store: Store, *task_ids: str) -> Any:
    """Return all there is to read of some tasks and of the whole store."""
    with store.read() as view:
        return (
            view.tasks(limit=1000),
            view.open_asks(limit=1000),
            view.count_open_asks(),
            view.trail(),
            [
                (view.runs(name), view.calls(name), view.asks(name), view.events(name))
                for name in task_ids
            ],
        )


class Disaster(BaseException):
    """Something nobody catches, as a Ctrl+C is."""


@contextmanager
def given_up(
    store: Store, *, because: type[BaseException] = Disaster
) -> Generator[Change, None, None]:
    """Open a change that ends badly."""
    try:
        with store.change() as tx:
            yield tx
            raise because("no")
    except because:
        return
