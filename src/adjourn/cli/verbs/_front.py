"""adjourn alone: what waits and what runs here, or how to begin."""

from adjourn.cli.options import verb
from adjourn.cli.session import Session
from adjourn.core.states import TaskState
from adjourn.core.text.render import title
from adjourn.core.text.when import ago
from adjourn.views.ask_row import ask_row
from adjourn.views.block import BLANK, Block, CommandBlock, Table, line
from adjourn.views.call import GIST, unique_name

_MOST = 8  # rows of each table


@verb("_front")
def command(session: Session) -> None:
    """Show what waits for a person and what runs; where nothing ever ran, how to begin."""
    session.require_named_store()
    if not session.has_store:
        session.show(_beginning(session))
        return
    decisions = session.open_decisions()
    moment, redactor = decisions.now(), session.redactor_of_text
    with decisions.store.read() as view:
        asks = view.open_asks(limit=_MOST + 1, awake_at=moment)
        rows = [ask_row(view, ask, now=moment, redactor=redactor) for ask in asks[:_MOST]]
        shown = (TaskState.PAUSED, TaskState.RUNNING, TaskState.QUEUED)
        tasks = view.tasks(states=shown, limit=_MOST + 1)
        names = {task.id: unique_name(view.tasks_like, task.id) for task in tasks}
    blocks: list[Block] = []
    if rows:
        head = ("ASK", "KIND", "TASK", "SINCE", "WHAT")
        blocks.append(Table(head=head, rows=rows, state_column=1))
    if tasks:
        table: list[tuple[str, str, str, str]] = []
        for task in tasks[:_MOST]:
            spec = (redactor.task(task) if redactor else task).spec
            when = ago(task.updated_at, now=moment)
            table.append((names[task.id], task.state, when, title(spec, columns=GIST)))
        blocks += [BLANK] if blocks else []
        blocks.append(Table(head=("TASK", "STATE", "CHANGED", "WHAT"), rows=table, state_column=1))
    if not blocks:
        blocks.append(line("Nothing waits and nothing runs here."))
    blocks.append(BLANK)
    if rows:
        blocks.append(CommandBlock("Settle them:  ", session.commands("inbox", "-i")))
    if len(asks) > _MOST:
        blocks.append(CommandBlock("All of them:  ", session.commands("inbox")))
    elif not rows:
        blocks.append(CommandBlock("What was:     ", session.commands("tasks")))
    if tasks:
        blocks.append(CommandBlock("Watch it:     ", session.commands("watch")))
    blocks.append(CommandBlock("All verbs:    ", session.commands("--help")))
    session.show(blocks)


def _beginning(session: Session) -> list[Block]:
    write = session.commands
    return [
        line("Nothing has run here yet. This is how to begin:"),
        BLANK,
        CommandBlock("See it work:        ", write("demo")),
        CommandBlock("Your first policy:  ", write("setup")),
        CommandBlock("Gate a command:     ", write("run", "--pause-on-approval", "--", "ls")),
        CommandBlock("Gate an agent:      ", write("run", "--runner", "claude", "Fix the typo")),
        CommandBlock("Your other stores:  ", write("inbox", "--everywhere")),
        CommandBlock("All verbs:          ", write("--help")),
    ]
