"""What every part of the controller works with: the store, and the world around it."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cached_property

from adjourn.controller.transaction import Transaction
from adjourn.controller.trust import Trust
from adjourn.core.ask import Ask
from adjourn.core.task import Run
from adjourn.ports.store import Store

TYPE_CHECKING = False

if TYPE_CHECKING:  # starting is a hot path: decisions need none of what these bring along
    from adjourn.ports.world import (
        Authoriser,
        Clock,
        CopyTexts,
        FindRunner,
        Gate,
        NewId,
        Processes,
        Signatures,
    )


class Context:
    """The store, the clock, new ids, processes, runners, policies, and who may do what."""

    def __init__(
        self,
        store: Store,
        *,
        clock: "Clock",
        new_id: "NewId",
        find_runner: "FindRunner",
        open_processes: "Callable[[], Processes]",
        open_gate: "Callable[[], Gate]",
        authoriser: "Authoriser",
        signatures: "Signatures",
        copy_texts: "CopyTexts | None" = None,
    ) -> None:
        self.store = store
        self.clock = clock  # shared by everybody who shares the store
        self.new_id = new_id
        self.find_runner = find_runner
        self.trust = Trust(authoriser, clock)
        self.signatures = signatures
        self._copy_texts = copy_texts
        self._open_processes = open_processes
        self._open_gate = open_gate

    @cached_property
    def processes(self) -> "Processes":
        """What knows the processes of this machine. Made on first use, as most only decide."""
        return self._open_processes()

    @cached_property
    def gate(self) -> "Gate":
        """What judges commands by policies and files. Made on first use: few commands need it."""
        return self._open_gate()

    @contextmanager
    def change(self) -> Generator[Transaction, None, None]:
        """Open a transaction: on disk when the block has ended, gone if the block raised."""
        with self.store.change() as rows:
            yield Transaction(
                rows, now=self.clock(), new_id=self.new_id, copy_texts=self._copy_texts
            )

    def find_unsettled(self) -> tuple[list[Run], list[Ask]]:
        """Return the runs whose supervisor is gone, and the open asks whose time is over."""
        with self.store.read() as view:
            running = view.current_runs()
            abandoned = {run.id for run in view.abandoned()}
            orphans = [
                run
                for run in running
                if run.id in abandoned or not self.processes.supervisor_lives(run.supervisor)
            ]
            return orphans, view.expired_asks(now=self.clock())
