"""A desk with all that runs need of the world.

The gate, the runners, the processes and the signatures.
"""

from collections.abc import Callable
from functools import cached_property

from adjourn.controller.decisions import Desk
from adjourn.controller.proofs import Proofs
from adjourn.core.call import Command
from adjourn.core.policy.surroundings import Surroundings
from adjourn.ports.store import Store
from adjourn.ports.world import Authoriser, Clock, FindRunner, Gate, NewId, Processes, Signatures


class Equipped(Desk):
    """What every part of the controller that has to do with runs is built on."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        new_id: NewId,
        find_runner: FindRunner,
        processes: Processes,
        open_gate: Callable[[], Gate],
        authoriser: Authoriser,
        signatures: Signatures,
    ) -> None:
        super().__init__(
            store,
            clock=clock,
            new_id=new_id,
            supervisors=processes,
            look=self._look_by_gate,
            authoriser=authoriser,
        )
        self._open_gate = open_gate
        self._proofs = Proofs(self._trust, signatures)
        self._find_runner = find_runner
        self._processes = processes

    @cached_property
    def _gate(self) -> Gate:
        """What judges commands.

        Made when the first is judged, for most who open a store only decide.
        """
        return self._open_gate()

    def _look_by_gate(self, command: Command) -> Surroundings:
        return self._gate.look(command)
