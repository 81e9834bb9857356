"""Who decides for a task that another started: what people delegate to agents, and take back."""

from adjourn.controller.context import Context
from adjourn.core.ask import Principal
from adjourn.core.authority.delegation import Delegation
from adjourn.core.errors import Ambiguous, NotFound
from adjourn.core.kept_documents import DELEGATIONS
from adjourn.core.task import Milliseconds

_SHORT = 8  # characters of an id


class Delegations:
    """Names agents for tasks and all below them, until a moment."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def list(self) -> tuple[Delegation, ...]:
        """Return all that were made and not taken back, also those that are over."""
        with self._context.store.read() as view:
            return DELEGATIONS.read(view) or ()

    def add(self, agent: str, task_id: str, *, lasts: Milliseconds, by: Principal) -> Delegation:
        """Let an agent decide for a task and all below it. Those that are over are dropped."""
        with self._context.change() as tx:
            self._context.trust.authorise_change(tx.rows, by, "delegate")
            task = tx.rows.task(task_id)
            made = Delegation(
                id=tx.new_id()[:_SHORT],
                agent=agent,
                task=task.id,
                until=tx.now + lasts,
                by=by.name,
                at=tx.now,
            )
            kept = [one for one in DELEGATIONS.read(tx.rows) or () if tx.now < one.until]
            DELEGATIONS.keep(tx.rows, (*kept, made))
            tx.tell(task.id, "delegated", by=by.name, agent=agent, until=made.until, id=made.id)
            return made

    def revoke(self, name: str, *, by: Principal) -> Delegation:
        """Take a delegation back; what was decided by it stays decided."""
        with self._context.change() as tx:
            self._context.trust.authorise_change(tx.rows, by, "delegate")
            every = DELEGATIONS.read(tx.rows) or ()
            found = [one for one in every if one.id.startswith(name)]
            if len(found) > 1:
                raise Ambiguous(
                    f"several delegations begin with {name}", way_out="adjourn delegate list"
                )
            if not found:
                raise NotFound(f"no delegation {name}", way_out="adjourn delegate list")
            DELEGATIONS.keep(tx.rows, tuple(one for one in every if one.id != found[0].id))
            tx.tell(
                found[0].task,
                "delegation_revoked",
                by=by.name,
                agent=found[0].agent,
                id=found[0].id,
            )
            return found[0]
