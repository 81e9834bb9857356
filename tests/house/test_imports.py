"""Importing costs nothing that the importer did not ask for."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.house.project import PACKAGE, pyproject

# An extra: the packages it brings, and the only place that may import them when it is itself imported.
HOMES = {
    "agent": ({"pydantic_ai"}, PACKAGE / "runners" / "agent"),
    "tui": ({"textual"}, PACKAGE / "tui"),
    "web": ({"starlette", "uvicorn", "jinja2"}, PACKAGE / "web"),
    "mcp": ({"mcp"}, PACKAGE / "mcp_server"),
    "postgres": ({"psycopg", "absurdctl"}, PACKAGE / "stores" / "postgres"),
    "notify": ({"apprise"}, PACKAGE / "notifiers"),
    "acp": ({"acp"}, PACKAGE / "runners" / "acp"),
}

NEWLY_IMPORTED = """
import sys
import msgspec  # with what it brings along
before = set(sys.modules)
import adjourn
print(*{name.partition(".")[0] for name in set(sys.modules) - before})
"""


def test_importing_adjourn_brings_the_standard_library_and_msgspec_only() -> None:
    shown = subprocess.run([sys.executable, "-c", NEWLY_IMPORTED], capture_output=True, text=True, check=True).stdout
    assert set(shown.split()) - sys.stdlib_module_names - {"adjourn", "msgspec"} == set()


def test_every_extra_has_a_home() -> None:
    assert HOMES.keys() == pyproject()["project"]["optional-dependencies"].keys()


def test_what_an_extra_brings_is_imported_in_its_home_only() -> None:
    strays = [
        f"{path.relative_to(PACKAGE)} imports {name}, which only {extra} brings"
        for path in PACKAGE.rglob("*.py")
        for name in imported_on_import(path)
        for extra, (packages, home) in HOMES.items()
        if name in packages and home != path.with_suffix("") and home not in path.parents
    ]
    assert not strays, "\n".join(strays)


def imported_on_import(path: Path) -> Iterator[str]:
    """Yield the top-level packages that importing this file imports."""
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        match waiting.pop():
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                continue
            case ast.Import(names=names):
                yield from (alias.name.partition(".")[0] for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0]
            case node:
                waiting.extend(ast.iter_child_nodes(node))
