"""What is kept with a task beside its record: drafts, checkpoints, sessions, notes."""

from adjourn.controller.context import Context


class Documents:
    """Reads and keeps documents of tasks, one transaction each."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def read(self, task_id: str, name: str) -> bytes | None:
        """Return a document of a task."""
        with self._context.store.read() as view:
            return view.document(task_id, name)

    def keep(self, task_id: str, name: str, body: bytes | None) -> None:
        """Keep a document of a task in the place of what was there; None keeps nothing."""
        with self._context.change() as tx:
            tx.rows.keep_document(task_id, name, body)
