"""Delegations: for which task, and all below it, an agent may decide that did not start it."""

import msgspec

from adjourn.core.task import Milliseconds


class Delegation(msgspec.Struct, frozen=True, kw_only=True):
    """An agent, a task, and until when."""

    id: str
    agent: str  # `agent:NAME`
    task: str
    until: Milliseconds
    by: str
    at: Milliseconds

    def holds_for(self, agent: str, now: Milliseconds) -> bool:
        """Return whether it is about that agent and not over."""
        return self.agent == agent and now < self.until
