"""What a plan's file may contain, and where a file breaks that."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from adjourn.core.plan.plan import Item
from adjourn.core.text.toml import (
    NotToml,
    Path,
    Problem,
    TableReader,
    TextPlace,
    as_list,
    as_table,
    as_tables,
    tables_of,
    unknown_key,
)

MOST_TASKS = 1_000
_LONGEST_GRACE = 3600
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

PLAN_KEYS = {
    "workspace": (
        "Where its tasks run, as a path relative to the plan's file. Without it, the "
        "directory of that file."
    ),
    "review": "`true`: stop after each task, for a person to look at what it did.",
    "pause_on_approval": (
        "`true`: no command starts before the policy or a person has let it."
        " Tasks of `claude` and `codex` ask unless it is `false`."
    ),
    "task": (
        "The tasks, each a table `[[task]]`. Of those that are ready, the one that stands "
        "first is started first."
    ),
}
TASK_KEYS = {
    "id": "Its name in the plan: letters, digits, `.`, `-`, `_`.",
    "command": 'What the runner `command` runs, word by word: `["make", "all"]`.',
    "prompt": "What an agent is told.",
    "runner": "Who does it: {runners}. Without it, `{command}` where there is a `command`, else "
    "`{agent}`.",
    "options": (
        'Settings of an agent\'s runner, as `--option` of `run` takes them: `{ model = "…" }`.'
    ),
    "needs": 'The ids of the tasks that must have succeeded before it starts: `["build"]`.',
    "review": "As above, for this task alone.",
    "pause_on_approval": "As above, for this task alone.",
    "grace": (
        "How many seconds it may take to leave when it is interrupted, before it is killed. "
        "Without it, 5."
    ),
}
"""What each key means, for the reference, which puts in the names of the runners."""


class Runners(msgspec.Struct, frozen=True, kw_only=True):
    """The names of all runners, of the one that runs commands, and of the one for mere prompts."""

    names: Sequence[str]
    command: str
    agent: str


class PlanContent(msgspec.Struct, frozen=True, kw_only=True):
    """What one file says."""

    items: tuple[Item, ...] = ()
    workspace: str = "."
    problems: tuple[Problem, ...] = ()


def read_plan(text: str, *, source: str, runners: Runners) -> PlanContent:
    """Read a plan; what is wrong with it is in the problems, with line and column."""
    try:
        tables = tables_of(text, source=source)
    except NotToml as wrong:
        return PlanContent(problems=(wrong.problem,))
    return _PlanReader(text, tables, source=source, runners=runners).content()


class _PlanReader(TableReader):
    """Reads the tables of a plan."""

    def __init__(self, text: str, tables: dict[str, Any], *, source: str, runners: Runners) -> None:
        super().__init__(text, tables, source=source)
        self._runners = runners

    def content(self) -> PlanContent:
        self._unknown_keys((), self._tables, PLAN_KEYS)
        workspace = self._text(("workspace",), self._tables.get("workspace", ".")) or "."
        items = list(self._items())
        if not self._problems:
            self._check_names(items)
        if not self._problems:
            self._check_circles(items)
        return PlanContent(items=tuple(items), workspace=workspace, problems=self._in_order())

    # --- telling what is wrong --------------------------------------------------------------------

    def _unknown_keys(self, path: Path, table: dict[str, Any], known: dict[str, str]) -> None:
        for key in table.keys() - known.keys():
            self._wrong(self._places.of_key((*path, key)), unknown_key(key, known))

    # --- tasks ------------------------------------------------------------------------------------

    def _items(self) -> Iterator[Item]:
        tables = as_tables(self._tables.get("task", []))
        if tables is None:
            self._wrong(
                self._places.of_key(("task",)),
                "`task` must be tables: write [[task]], with two brackets",
            )
        elif not tables:
            self._wrong(
                TextPlace(1, 1),
                "there is no task: write [[task]], with an id and a command or a prompt",
            )
        elif len(tables) > MOST_TASKS:
            self._wrong(
                TextPlace(1, 1), f"it has {len(tables):,} tasks, and {MOST_TASKS:,} are the most"
            )
        else:
            yield from (self._item(number, table) for number, table in enumerate(tables))

    def _item(self, number: int, table: dict[str, Any]) -> Item:
        path: Path = ("task", number)
        self._unknown_keys(path, table, TASK_KEYS)
        command = self._words((*path, "command"), table["command"]) if "command" in table else ()
        prompt = self._text((*path, "prompt"), table["prompt"]) if "prompt" in table else None
        return Item(
            id=self._id((*path, "id"), table.get("id")),
            line=self._places.of_key(path).line,
            runner=self._runner(path, table),
            command=command,
            prompt=prompt,
            options=self._options((*path, "options"), table["options"])
            if "options" in table
            else {},
            needs=self._names((*path, "needs"), table.get("needs", [])),
            review=self._yes_or_no(path, table, "review"),
            pause_on_approval=self._yes_or_no(path, table, "pause_on_approval")
            if "pause_on_approval" in {*table, *self._tables}
            else None,
            grace=self._seconds((*path, "grace"), table["grace"]) if "grace" in table else None,
        )

    def _runner(self, path: Path, table: dict[str, Any]) -> str:
        """Return who does it; a command has words, and everybody else is told what to do."""
        known = self._runners
        runner: Any = table.get("runner", known.command if "command" in table else known.agent)
        if not isinstance(runner, str) or runner not in known.names:
            names = ", ".join(f'"{name}"' for name in known.names)
            self._wrong_value((*path, "runner"), f"`runner` must be one of {names}")
            return known.command
        wanted, others = "prompt", ["command"]
        if runner == known.command:
            wanted, others = "command", ["prompt", "options"]
        strays = [other for other in others if other in table]
        for other in strays:
            self._wrong(
                self._places.of_key((*path, other)),
                f"the runner `{runner}` takes a `{wanted}`, and no `{other}`",
            )
        if wanted not in table and not strays:
            both = "a `command` or a `prompt`" if "runner" not in table else f"a `{wanted}`"
            self._wrong(self._places.of_key(path), f"this task has nothing to do: give it {both}")
        return runner

    # --- values -----------------------------------------------------------------------------------

    def _id(self, path: Path, given: Any) -> str:
        if given is None:
            self._wrong(self._places.of_key(path), "this task has no `id`")
        elif not isinstance(given, str) or not _ID.fullmatch(given):
            self._wrong_value(
                path, "`id` must be a word of at most 64 letters, digits, `.`, `-`, `_`"
            )
        else:
            return given
        return ""

    def _text(self, path: Path, given: Any) -> str | None:
        if isinstance(given, str) and given.strip() and "\0" not in given:
            return given
        self._wrong_value(path, f"`{path[-1]}` must be text, in quotes, and not empty")
        return None

    def _words(self, path: Path, given: Any) -> tuple[str, ...]:
        words = as_list(given)
        if (
            not words
            or not words[0]
            or not all(isinstance(word, str) and "\0" not in word for word in words)
        ):
            self._wrong_value(
                path, f'`{path[-1]}` must be a list of words, such as ["make", "all"]'
            )
            return ()
        return tuple(words)

    def _options(self, path: Path, given: Any) -> dict[str, str]:
        table = as_table(given)
        if table is None or not all(
            isinstance(value, str | int | float) for value in table.values()
        ):
            self._wrong_value(
                path, f'`{path[-1]}` must be a table of settings, such as {{ model = "…" }}'
            )
            return {}
        return {key: _as_option(value) for key, value in table.items()}

    def _names(self, path: Path, given: Any) -> tuple[str, ...]:
        names = as_list(given)
        if names is None or not all(isinstance(name, str) for name in names):
            self._wrong_value(path, f'`{path[-1]}` must be a list of ids, such as ["build"]')
            return ()
        if len(set(names)) < len(names):
            self._wrong_value(path, f"`{path[-1]}` names a task twice")
        return tuple(names)

    def _yes_or_no(self, path: Path, table: dict[str, Any], key: str) -> bool:
        """Return what a task says, or the plan where the task says nothing."""
        at = (*path, key) if key in table else (key,)
        given = table.get(key, self._tables.get(key, False))
        if not isinstance(given, bool):
            self._wrong_value(at, f"`{key}` must be true or false")
        return given is True

    def _seconds(self, path: Path, given: Any) -> float:
        if (
            isinstance(given, bool)
            or not isinstance(given, int | float)
            or not 0 <= given <= _LONGEST_GRACE
        ):
            self._wrong_value(
                path, f"`{path[-1]}` must be a number of seconds, at most {_LONGEST_GRACE:,}"
            )
            return 0.0
        return float(given)

    # --- what they say of one another -------------------------------------------------------------

    def _check_names(self, items: list[Item]) -> None:
        first: dict[str, Item] = {}
        for number, item in enumerate(items):
            if item.id in first:
                self._wrong_value(
                    ("task", number, "id"),
                    f"the id `{item.id}` is taken by the task of line {first[item.id].line}",
                )
            first.setdefault(item.id, item)
        for number, item in enumerate(items):
            for place, need in enumerate(item.needs):
                if need not in first:
                    self._wrong_value(("task", number, "needs", place), _unknown_need(need, first))

    def _check_circles(self, items: list[Item]) -> None:
        circle = _circle({item.id: item.needs for item in items})
        if circle:
            number = next(at for at, item in enumerate(items) if item.id == circle[0])
            place = items[number].needs.index(circle[1])
            round_and_round = " needs ".join(f"`{name}`" for name in circle)
            self._wrong_value(
                ("task", number, "needs", place),
                f"the needs form a circle: {round_and_round}",
            )


def _as_option(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _unknown_need(need: str, known: dict[str, Item]) -> str:
    # Slow to import, and seldom needed
    from difflib import get_close_matches

    near = get_close_matches(need, known, n=1)
    return f"no task is called `{need}`" + (f": did you mean `{near[0]}`?" if near else "")


def _circle(needs: dict[str, tuple[str, ...]]) -> list[str]:
    """Return tasks each of which needs the next, the last being the first again.

    Or nothing if there is no such circle.
    """
    sound: set[str] = set()
    left = dict(needs)
    while freed := [name for name, wanted in left.items() if sound.issuperset(wanted)]:
        sound.update(freed)
        left = {name: wanted for name, wanted in left.items() if name not in sound}
    if not left:
        return []
    way = [next(iter(left))]
    while way.count(way[-1]) == 1:
        way.append(next(need for need in left[way[-1]] if need in left))
    return way[way.index(way[-1]) :]
