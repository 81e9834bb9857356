"""An ask as a row of a list."""

from typing import assert_never

from adjourn.core.ask import ApprovalAsk, Ask, QuestionAsk, UncertainAsk
from adjourn.core.call import COMMAND
from adjourn.core.errors import UnreadableRow
from adjourn.core.task import Milliseconds, Task
from adjourn.core.text.render import clipped, prose, title
from adjourn.core.text.when import ago, span
from adjourn.ports.store import View
from adjourn.views.call import GIST, gist, short, unique_name

TYPE_CHECKING = False

if TYPE_CHECKING:  # start-up is a hot path; at a terminal no secrets are taken out
    from adjourn.core.redact import Redactor


def ask_row(
    view: View,
    ask: Ask,
    *,
    now: Milliseconds,
    redactor: "Redactor | None",
    full_ids: bool = False,
    checks_names: bool = True,
) -> tuple[str, str, str, str, str]:
    """Return the id, the kind, the task, the age and the gist of an ask.

    With a redactor, secrets are taken out.
    """
    until = ask.snoozed_until
    when = ago(ask.created_at, now=now)
    if until is not None and until > now:
        when = f"in {span(until - now)}"
    try:
        what = ask_gist(view, ask, view.task(ask.task_id), redactor)
        if redactor:
            from adjourn.core.redact import plainly  # only where nobody looks

            what = plainly(what)
    except UnreadableRow as error:
        error.note_in(view.unreadable)
        what = f"({error.kind} cannot be read)"
    if full_ids:
        return (ask.id, ask.kind, ask.task_id, when, what)
    if not checks_names:  # a name that is not unique decides nothing, and says so
        return (short(ask.id), ask.kind, short(ask.task_id), when, what)
    name = unique_name(view.asks_like, ask.id)
    return (name, ask.kind, unique_name(view.tasks_like, ask.task_id), when, what)


def ask_gist(view: View, ask: Ask, task: Task, redactor: "Redactor | None") -> str:
    """Return the question, the call of an agent, or the command that waits for a start."""
    if redactor:
        ask, task = redactor.ask(ask), redactor.task(task)
    match ask:
        case QuestionAsk():
            return clipped(prose(ask.prompt), columns=GIST)
        case UncertainAsk() if task.spec.is_driven:
            return clipped(prose(ask.prompt), columns=GIST)
        case UncertainAsk():
            return title(task.spec, columns=GIST)
        case ApprovalAsk():
            # Of a command's own asks only those that its program makes have a key
            is_own = task.spec.is_driven or ask.key is not None
            call = view.call(task.id, ask.call) if is_own else None
            if call and redactor:
                call = redactor.call(call)
            what = gist(call) if call and call.tool != COMMAND else title(task.spec, columns=GIST)
            if ask.count_words:
                what = f"{what}  [{ask.count_words}]"
            return f"never: {what}" if ask.terms.override else what
        case _:
            assert_never(ask)
