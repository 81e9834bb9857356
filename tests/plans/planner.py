"""A shell that writes plans, and looks at how they stand."""

from typing import Any

import msgspec

from tests.e2e.shell import Document, Shell


class Planner(Shell):
    """Writes plan.toml and executes it."""

    def plan(self, *tasks: dict[str, Any], name: str = "plan.toml", **settings: Any) -> None:
        """Write a plan.

        A task's `run` is a line of shell; what it notes down goes into the file `effects`.
        """
        path = self.place / name
        path.write_text(
            _toml(settings) + "".join(f"\n[[task]]\n{_toml(_spelled(task))}" for task in tasks)
        )

    def execute(self, *words: str, expect: int | None = 0) -> Document:
        """Execute plan.toml and return how it stands."""
        return self.json("execute", *words, expect=expect if expect is not None else 0)

    def states(self, name: str = "plan.toml") -> dict[str, str]:
        """Return how each task of a plan stands."""
        return {task["id"]: task["state"] for task in self.json("plan", "show", name)["tasks"]}

    def task(self, item: str, name: str = "plan.toml") -> str:
        """Return the id of the task of an item."""
        found: dict[str, str] = {task["id"]: task["task_id"] for task in self.shown(name)["tasks"]}
        return found[item]

    def shown(self, name: str = "plan.toml") -> Document:
        """Return what `plan show` says."""
        return self.adjourn("plan", "show", name, "--output", "json").doc

    def json(self, verb: str, *words: str | bytes, expect: int = 0, env: Any = None) -> Document:
        """Run a verb with `--output json` and return the document."""
        below = words[:1] if verb == "plan" else ()
        return self.adjourn(
            verb, *below, "--output", "json", *words[len(below) :], expect=expect, env=env
        ).doc

    @property
    def effects(self) -> list[str]:
        """Return what the tasks noted down, in order."""
        return self.lines("effects")


def _spelled(task: dict[str, Any]) -> dict[str, Any]:
    line = task.pop("run", None)
    return task | ({"command": ["sh", "-c", line]} if line else {})


def _toml(table: dict[str, Any]) -> str:
    return "".join(
        f"{key} = {msgspec.json.encode(value).decode()}\n" for key, value in table.items()
    )


def noted(name: str, *needs: str, **more: Any) -> dict[str, Any]:
    """Return a task that notes its name down."""
    return {"id": name, "run": f"echo {name} >> effects", "needs": list(needs), **more}
