"""One controller below every surface: it alone moves tasks, by operations that have their names."""

import ast

import pytest

from adjourn.controller.plans import Plans
from adjourn.controller.tasks import Tasks
from tests.house.project import PACKAGE

OPERATIONS = {
    "cli/verbs/execute.py": "execution.execute_ready(",
    "cli/verbs/pause.py": "controller.tasks.pause(",
    "cli/verbs/resume.py": "controller.tasks.resume(",
    "cli/verbs/restart.py": "controller.tasks.restart(",
}


@pytest.mark.parametrize("file", OPERATIONS)
def test_a_surface_calls_the_operations_of_the_controller(file: str) -> None:
    """D-R55: ExecuteReady, PauseActiveRun, ResumeTask and RestartTask, each in one place below every surface."""
    assert OPERATIONS[file] in (PACKAGE / file).read_text()
    for operation in (Tasks.pause, Tasks.resume, Tasks.restart, Plans.begin_item):
        assert callable(operation)


def test_only_the_controller_and_what_is_beneath_it_writes_to_the_store() -> None:
    """D-R57: no surface opens a transaction, so that none can differ."""
    beneath = ("controller", "stores", "ports", "testing")
    files = [
        path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in beneath
    ]
    # That one keeps its own place in the trail, and moves no task
    assert [
        str(path.relative_to(PACKAGE)) for path in files if ".change()" in path.read_text()
    ] == ["supervision/notify_loop.py"]


def test_the_parts_of_the_controller_inherit_from_nothing() -> None:
    """Composition: a part is given what it needs, and no method hides in a base class."""
    shapes = {"msgspec.Struct", "TypedDict", "Protocol"}
    bases = {
        f"{node.name}({ast.unparse(base)})"
        for path in (PACKAGE / "controller").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        if ast.unparse(base) not in shapes
    }
    assert bases == set()
