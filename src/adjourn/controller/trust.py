"""Whether a reply counts: who may give it, on which terms, and where it is sealed."""

from collections.abc import Sequence

import msgspec

from adjourn.controller.transaction import approved_command, parent_of
from adjourn.core.ask import RESUME_KEY, ApprovalAsk, Ask, Principal, Reply, Verb
from adjourn.core.authority.scopes import (
    AGENT,
    Level,
    Rights,
    level_of,
    needs_outside,
    person_of,
    refuse_inside,
    refuse_terms,
    refuse_without,
)
from adjourn.core.call import (
    AUTO_APPROVAL,
    COMMAND,
    DEFAULT_VALUE,
    Call,
    command_body,
    command_of,
)
from adjourn.core.errors import AdjournError, NotAllowed
from adjourn.core.task import SESSION_RUNNER, Task, task_of_run
from adjourn.core.trail.events import Receipt, receipt_of
from adjourn.ports.store import Change, View

TYPE_CHECKING = False

if TYPE_CHECKING:  # starting is a hot path: decisions need none of what these bring along
    from adjourn.ports.world import Authoriser, Clock

_EVENTS_PER_REPLY = 2  # at most so many are written with the one that settles an ask


class Trust:
    """Asks the authoriser, which knows the scopes. An authoriser that fails has denied."""

    def __init__(self, authoriser: "Authoriser", now: "Clock") -> None:
        self._authoriser = authoriser
        self._now = now

    def caller(self) -> str:
        """Return the name of the caller, as the channel says."""
        return self._authoriser.caller()

    def rights(self, by: Principal) -> Rights:
        """Return what somebody may do."""
        try:
            return self._authoriser.rights(by)
        except AdjournError as error:
            raise NotAllowed(
                f"whether {by.name} may do this cannot be told: {error.sentence}",
                way_out=error.way_out,
            ) from error
        except Exception as error:
            sentence = (
                f"whether {by.name} may do this cannot be told: {type(error).__name__}: {error}"
            )
            raise NotAllowed(sentence, way_out="adjourn doctor") from error

    def authorise(self, by: Principal, verb: str, task: Task | None = None) -> None:
        """Refuse a caller who may not do this.

        A process inside a run may act on the tasks that its own task started.
        """
        if by.inside_run and not (task and task.parent_task == task_of_run(by.inside_run)):
            refuse_inside(by, verb)
        refuse_without(self.rights(by).scopes, by, verb)

    def require_outside(self, view: View, by: Principal, verb: str) -> None:
        """Refuse a caller who may be part of a run without our knowing, as of this view."""
        if by.inside_run or not needs_outside(verb):
            return
        try:
            self._authoriser.require_outside(view, by, verb)
        except AdjournError:
            raise
        except Exception as error:
            sentence = (
                f"whether {by.name} is inside a run cannot be told: {type(error).__name__}: {error}"
            )
            raise NotAllowed(sentence, way_out="adjourn doctor") from error

    def authorise_change(
        self, rows: Change, by: Principal, verb: str, task: Task | None = None
    ) -> None:
        """Refuse a caller who may not do this, in the transaction that does it.

        So no run can begin between the check and the change.
        """
        self.authorise(by, verb, task)
        if task:
            self.require_subtree(rows, by, verb, task.id)
        self.require_outside(rows, by, verb)
        self.note_place(rows, by)

    def note_place(self, rows: Change, by: Principal) -> None:
        """Remember from where the store is used, unless a run of it is alive."""
        self._authoriser.note_place(rows, by)

    def require_subtree(self, view: View, by: Principal, verb: str, task_id: str) -> None:
        """Refuse an agent that started neither this task nor one above it.

        A delegation names an agent for a task and all below it. A question to people is for people.
        """
        if by.kind != AGENT:
            return
        # Only agents need it, and deciding is a hot path
        from adjourn.core.kept_documents import DELEGATIONS

        given = {
            one.task for one in DELEGATIONS.read(view) or () if one.holds_for(by.name, self._now())
        }
        current: Task | None = view.task(task_id)
        way_out = f"adjourn show {task_id}"
        if current and current.spec.runner == SESSION_RUNNER and verb != "cancel":
            raise NotAllowed(
                f"{by.name} may not {verb} task {task_id}: it is a question to people",
                way_out=way_out,
            )
        while current:
            is_own_child = by.inside_run and current.parent_task == task_of_run(by.inside_run)
            if is_own_child or current.id in given or view.requester(current.id) == by.name:
                return
            current = parent_of(view, current)
        raise NotAllowed(
            f"{by.name} may not {verb} task {task_id}: it started neither it nor a task above it",
            way_out=way_out,
        )

    def weigh(
        self, view: View, ask: Ask, verb: Verb, *, by: Principal, override: str | None = None
    ) -> Level:
        """Return the level of trust of a reply, or refuse one that would not count."""
        self.require_subtree(view, by, verb, ask.task_id)
        requester, rights = view.requester(ask.task_id), self.rights(by)
        if isinstance(ask, ApprovalAsk) and verb is Verb.APPROVE:
            refuse_terms(
                ask.terms,
                by,
                rights,
                requester=requester,
                override=override,
                way_out=f"adjourn approve {ask.id}",
            )
        return level_of(by, rights, requester=requester)

    def person(self, ask: ApprovalAsk, by: Principal) -> str:
        """Return as which person a principal approves, or refuse one who is nobody."""
        person = person_of(ask.terms, by, self.rights(by))
        if person is None:
            raise NotAllowed(
                f"{by.name} is not among those who may approve this",
                way_out=f"adjourn show {ask.task_id}",
            )
        return person


def runs_as_shown(ask: ApprovalAsk, call: Call, reply: Reply) -> bool:
    """Return whether an approval starts the bytes that were shown: it brings no value."""
    return call.tool != COMMAND or ask.gate or reply.text in {None, "", DEFAULT_VALUE}


def body_to_run(task: Task, ask: ApprovalAsk, call: Call, reply: Reply) -> bytes:
    """Return the bytes that an approval starts: what was shown, with the value of the approval."""
    if runs_as_shown(ask, call, reply):
        return call.body
    if ask.key == RESUME_KEY:
        # It is not the task's own command that runs
        env = {AUTO_APPROVAL: reply.text or DEFAULT_VALUE}
        return command_body(msgspec.structs.replace(command_of(call.body), env=env))
    return command_body(
        approved_command(task.spec, reply.text or DEFAULT_VALUE, files=command_of(call.body).files)
    )


def receipts(view: View, asks: Sequence[Ask]) -> list[Receipt]:
    """Return where in the trail each of these replies is sealed."""
    by_task: dict[str, dict[str, Ask]] = {}
    for ask in asks:
        by_task.setdefault(ask.task_id, {})[ask.id] = ask
    found: dict[str, Receipt] = {}
    for task_id, wanted in by_task.items():
        # What was just recorded is at the end of the trail; only an older reply needs all of it
        for limit in (_EVENTS_PER_REPLY * len(wanted), -1):
            for happened in view.last_events(task_id, limit=limit):
                ask_id = str(happened.event.facts.get("ask"))
                if ask_id in wanted and ask_id not in found:
                    receipt = receipt_of(wanted[ask_id], happened)
                    found |= {receipt.ask: receipt} if receipt else {}
            if wanted.keys() <= found.keys():
                break
    return [found[ask.id] for ask in asks if ask.id in found]
