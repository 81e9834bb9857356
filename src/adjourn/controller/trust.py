"""Whether a reply counts: who may give it, on which terms, and where it is sealed."""

from collections.abc import Sequence

from adjourn.controller.transaction import approved_command
from adjourn.core.ask import Ask, Principal, Reply, Verb
from adjourn.core.authority.scopes import (
    Level,
    Rights,
    level_of,
    needs_outside,
    refuse_inside,
    refuse_terms,
    refuse_without,
)
from adjourn.core.call import COMMAND, DEFAULT_VALUE, Call, command_body, command_of
from adjourn.core.errors import AdjournError, NotAllowed
from adjourn.core.task import Task, task_of_run
from adjourn.core.trail.receipt import Receipt, receipt_of
from adjourn.ports.store import Change, View
from adjourn.ports.world import Authoriser

# So many are told for one ask in the transaction that settles it; where there are more, all are
# read
_EVENTS_OF_A_REPLY = 2


class Trust:
    """Asks the authoriser, who knows the scopes. Who cannot tell has said no."""

    def __init__(self, authoriser: Authoriser) -> None:
        self._authoriser = authoriser

    def caller(self) -> str:
        """Return the name of whoever speaks to us."""
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
        """Refuse whoever may not do this.

        Inside a run, what the run's own task started is its own.
        """
        if by.inside_run and not (task and task.parent_task == task_of_run(by.inside_run)):
            refuse_inside(by, verb)
        refuse_without(self.rights(by).scopes, by, verb)

    def require_outside(self, view: View, by: Principal, verb: str) -> None:
        """Refuse whoever may be part of a run, as of the moment of this view.

        Whoever is known to be has been judged.
        """
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

    def note_place(self, tx: Change, by: Principal) -> None:
        """Remember from where the store is used, unless a run of it is alive."""
        self._authoriser.note_place(tx, by)

    def weigh(self, view: View, ask: Ask, verb: Verb, *, by: Principal) -> Level:
        """Say what a reply is worth, or refuse one that would not count."""
        requester, rights = view.requester(ask.task_id), self.rights(by)
        if verb is Verb.APPROVE:
            refuse_terms(
                ask.terms, by, rights, requester=requester, way_out=f"adjourn approve {ask.id}"
            )
        return level_of(by, rights, requester=requester)


def runs_as_shown(ask: Ask, call: Call, reply: Reply) -> bool:
    """Say whether an approval starts the very bytes that were shown.

    It brings no value of its own.
    """
    return call.tool != COMMAND or ask.gate or reply.text in {None, "", DEFAULT_VALUE}


def body_to_run(task: Task, ask: Ask, call: Call, reply: Reply) -> bytes:
    """Return the bytes that an approval starts: what was shown, with the value of the approval."""
    if runs_as_shown(ask, call, reply):
        return call.body
    return command_body(
        approved_command(task.spec, reply.text or DEFAULT_VALUE, files=command_of(call.body).files)
    )


def receipts(view: View, asks: Sequence[Ask]) -> list[Receipt]:
    """Return where in the trail each of these replies is sealed.

    What was just recorded is found at its end.
    """
    by_task: dict[str, dict[str, Ask]] = {}
    for ask in asks:
        by_task.setdefault(ask.task_id, {})[ask.id] = ask
    found: dict[str, Receipt] = {}
    for task_id, wanted in by_task.items():
        found |= _receipts_of(view, task_id, wanted, limit=_EVENTS_OF_A_REPLY * len(wanted))
    return [found[ask.id] for ask in asks if ask.id in found]


def _receipts_of(
    view: View, task_id: str, wanted: dict[str, Ask], *, limit: int
) -> dict[str, Receipt]:
    found: dict[str, Receipt] = {}
    for happened in view.last_events(task_id, limit=limit):
        ask = wanted.get(str(happened.event.facts.get("ask")))
        receipt = receipt_of(ask, happened) if ask and ask.id not in found else None
        if receipt:
            found[receipt.ask] = receipt
    return (
        found
        if len(found) == len(wanted) or limit < 0
        else _receipts_of(view, task_id, wanted, limit=-1)
    )
