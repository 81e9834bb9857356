"""Writes the commands that a view tells a person to run next."""

from collections.abc import Callable, Sequence
from typing import Protocol

from adjourn.core.task import Task
from adjourn.core.text.render import WHOLE, Cut, command_line
from adjourn.views.block import Line, Span, line

_SHOWN = 2_000  # characters of a value


class Id(str):
    """An id among the words of a command; where a person reads it, its beginning is enough."""

    __slots__ = ()


class CommandWriter(Protocol):
    """Writes what a person does next; a surface without a shell has its own."""

    def __call__(self, *words: str) -> str:
        """Return the verb and its arguments as this surface writes them."""
        ...


class Commands:
    """Writes command lines of a program, for a store if it has to be named."""

    def __init__(
        self,
        program: str,
        store: str | None,
        *,
        shorten: Callable[[str], str] = str,
    ) -> None:
        self._program = program
        self._shorten = shorten
        self._store = ["--store", store] if store else []

    def __call__(self, *words: str) -> str:
        """Return a command line, ready to paste."""
        words = tuple(self._shorten(word) if isinstance(word, Id) else word for word in words)
        end = words.index("--") if "--" in words else len(words)
        return command_line([self._program, *words[:end], *self._store, *words[end:]])


def cut_of(task_id: str, commands: CommandWriter, *, shows_all: bool = False) -> Cut:
    """Return how much of a value is shown, with the command that shows the rest."""
    if shows_all:
        return WHOLE
    return Cut(limit=_SHOWN, rest=commands("show", task_id, "--full"))


def unattended_block(tasks: Sequence[Task], commands: CommandWriter) -> Line:
    """Name queued tasks that nobody is about to start, oldest last, and what starts one."""
    first = tasks[-1]
    others = f" (and {len(tasks) - 1} more)" if len(tasks) > 1 else ""
    start = Span(commands("resume", Id(first.id)), "code")
    name = Span(first.id, "id")
    return line("Task ", name, f"{others} is queued, and no worker is alive to start it: ", start)
