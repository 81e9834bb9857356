"""Documents of tasks, for those who have no transaction of their own."""

from typing import TypeVar

from adjourn.controller.context import Context
from adjourn.core.kept_documents import TaskDocument

T = TypeVar("T")


class Documents:
    """Reads and keeps documents of tasks, one transaction each."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def read(self, task_id: str, document: TaskDocument[T]) -> T | None:
        """Return what a task keeps, if anything."""
        with self._context.store.read() as view:
            return document.read(view, task_id)

    def keep(self, task_id: str, document: TaskDocument[T], value: T | None) -> None:
        """Keep a value in the place of what was there; None keeps nothing."""
        with self._context.change() as tx:
            if value is None:
                document.drop(tx.rows, task_id)
            else:
                document.keep(tx.rows, task_id, value)

    def read_named(self, task_id: str, name: str) -> bytes | None:
        """Return what a driver keeps with its task under a name, if anything."""
        with self._context.store.read() as view:
            return view.document(task_id, name)

    def keep_named(self, task_id: str, name: str, body: bytes | None) -> None:
        """Keep what a driver wants to keep with its task; None keeps nothing."""
        with self._context.change() as tx:
            tx.rows.keep_document(task_id, name, body)
