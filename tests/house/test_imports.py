"""Importing costs nothing that the importer did not ask for."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.house.project import PACKAGE, pyproject

# An extra: the packages it brings, and the only places that may import them when they are
# themselves imported.
HOMES = {
    "agent": (
        {"pydantic_ai", "openai", "anthropic"},
        ["runners/agent/model", "pydantic_ai"],
    ),
    "langgraph": ({"langgraph", "langchain_core"}, ["langgraph"]),
    "notify": ({"apprise"}, ["notifiers/apprise"]),
    "slack": ({"slack_sdk"}, ["hearing/slack"]),
    "openai-agents": ({"agents"}, ["openai_agents"]),
    "pydantic-ai": ({"pydantic_ai"}, ["pydantic_ai", "runners/agent/model"]),
    "mcp": ({"mcp", "mcp_types"}, ["runners/agent/tools/mcp"]),
    "postgres": ({"psycopg", "absurdctl"}, ["stores/postgres"]),
    "tui": ({"textual", "rich"}, ["tui"]),
    "web": ({"starlette", "uvicorn", "jinja2", "markupsafe"}, ["mcp_server/http", "web"]),
    "passkeys": ({"webauthn", "cryptography"}, ["passkeys"]),
}

NEWLY_IMPORTED = """
import sys
import msgspec  # with what it brings along
before = set(sys.modules)
import adjourn
print(*{name.partition(".")[0] for name in set(sys.modules) - before})
"""

# What a person waits for: these are started often, and by scripts in a loop. What only runs,
# policies, signatures and
# machines need stays away from them.
SHORT = {
    "inbox": [],
    "approve": ["{ask}"],
    "reject": ["{ask}"],
    "answer": ["{ask}", "here"],
    "snooze": ["{ask}", "--for", "1h"],
}
HEAVY = {
    *(
        "psutil",
        "yaml",
        "tomllib",
        "json",
        "socket",
        "subprocess",
        "pathlib",
        "difflib",
        "logging",
    ),
    *(
        f"adjourn.controller.{part}"
        for part in ("agents", "asks", "batches", "controller", "edits", "endings")
    ),
    *(
        f"adjourn.controller.{part}"
        for part in ("gate", "plans", "reasons", "runs", "signing", "standing", "tasks")
    ),
    *(
        f"adjourn.core.{part}"
        for part in ("clarification", "documents", "outcome", "resumption", "scene", "settings")
    ),
    *("adjourn.core.policy.judgement", "adjourn.core.policy.opening"),
    *("adjourn.core.authority.signed", "adjourn.core.edit.edit"),
    *(
        "adjourn.views.task",
        "adjourn.views.task",
        "adjourn.views.task",
        "adjourn.wiring.scenes",
    ),
    *(
        "adjourn.clarifications.exchange",
        "adjourn.supervision.workspace_notes",
        "adjourn.ports.world",
        "adjourn.process.processes",
        "adjourn.workspace.command_files",
        "adjourn.wiring.controller",
    ),
}

# What only agents, workers, notifiers and copies of a command need, and what is slow to load.
NOT_TO_RESUME = {
    *(
        "psutil",
        "yaml",
        "tomllib",
        "json",
        "subprocess",
        "pathlib",
        "difflib",
        "logging",
    ),
    *(
        "adjourn.supervision.agent_calls",
        "adjourn.process.forks.server",
        "adjourn.process.forks.warm",
    ),
    *("adjourn.core.outbox", "adjourn.core.review", "adjourn.core.agent.transcript"),
    # What is shown of a task that has not ended well, or taken from files
    *("adjourn.core.documents", "adjourn.core.redact", "adjourn.core.edit.edit"),
    *("adjourn.views.task", "adjourn.views.task", "adjourn.cli.verbs._replies"),
    *("adjourn.clarifications.exchange", "adjourn.clarifications.protocol_files"),
    *("adjourn.supervision.worker", "adjourn.supervision.manifest_file"),
}

LOADED = """
import sys
from adjourn.cli.app import run
code = run(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
sys.exit(code)
"""


def test_importing_adjourn_brings_the_standard_library_and_msgspec_only() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", NEWLY_IMPORTED], capture_output=True, text=True, check=True
    ).stdout
    assert set(shown.split()) - sys.stdlib_module_names - {"adjourn", "msgspec"} == set()


def test_the_modules_that_are_named_here_are_there() -> None:
    ours = {name for name in HEAVY | NOT_TO_RESUME if name.startswith("adjourn.")}
    assert [name for name in sorted(ours) if find_spec(name) is None] == []


@pytest.mark.parametrize("verb", SHORT)
def test_a_short_verb_loads_nothing_that_it_does_not_need(verb: str, tmp_path: Path) -> None:
    question = [sys.executable, "-m", "adjourn", "ask", "Where?"]
    adjourn(
        ["run", "--", *(question if verb == "answer" else ["sh", "-c", "exit 90"])],
        tmp_path,
        code=10,
    )
    ask = adjourn(["inbox"], tmp_path).stdout.splitlines()[1].split()[0]
    loaded = loaded_by([verb, *(word.format(ask=ask) for word in SHORT[verb])], tmp_path)
    assert loaded & HEAVY == set()
    # Where nobody looks, as here, the inbox is a copy: secrets are taken out of it
    assert ("adjourn.core.redact" in loaded) is (verb == "inbox")


def test_a_command_is_resumed_without_what_only_others_need(tmp_path: Path) -> None:
    adjourn(["run", "--", "sh", "-c", '[ "$AUTO_APPROVAL" ] || exit 90'], tmp_path, code=10)
    task = adjourn(["tasks"], tmp_path).stdout.splitlines()[1].split()[0]
    assert loaded_by(["resume", task, "--approve-all"], tmp_path) & NOT_TO_RESUME == set()


def loaded_by(words: list[str], place: Path) -> set[str]:
    """Return the modules that a command line has loaded when it is done."""
    return set(adjourn(words, place).stderr.splitlines()[-1].split())


def adjourn(words: list[str], place: Path, *, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command line in an interpreter that says at its end what it has loaded."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("ADJOURN_")}
    command = [sys.executable, "-c", LOADED, *words]
    done = subprocess.run(
        command, cwd=place, env=outside, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    return done


def test_every_extra_has_a_home_that_imports_it() -> None:
    assert HOMES.keys() == pyproject()["project"]["optional-dependencies"].keys()
    for extra, (packages, homes) in HOMES.items():
        sources = "\n".join(
            path.read_text() for path in PACKAGE.rglob("*.py") if is_in(path, homes)
        )
        assert any(re.search(rf"\b{name}\b", sources) for name in packages), extra


def test_what_an_extra_brings_is_imported_in_its_home_only() -> None:
    strays = [
        f"{path.relative_to(PACKAGE)} imports {name}, which only {extra} brings"
        for path in PACKAGE.rglob("*.py")
        for name in imported_on_import(path)
        for extra, (packages, homes) in HOMES.items()
        if name in packages and not is_in(path, homes)
    ]
    assert not strays, "\n".join(strays)


def test_only_the_shipped_suites_need_pytest() -> None:
    users = {path for path in PACKAGE.rglob("*.py") if "pytest" in set(imported_on_import(path))}
    assert users
    assert all(is_in(path, ["testing"]) for path in users), users


def is_in(path: Path, homes: list[str]) -> bool:
    """Say whether a file is one of these modules, or in one of them."""
    places = {path.with_suffix(""), *path.parents}
    return any(PACKAGE / home in places for home in homes)


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


def test_an_import_inside_a_function_says_why() -> None:
    """An optional package, or a comment: that it is slow and seldom needed, best with a bench."""
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line in unexplained_imports(path.read_text())
    ]
    assert found == []


def test_an_import_without_a_reason_is_found() -> None:
    source = """
import os

def explained():
    # Slow to import
    import json
    import yaml

    import psycopg
    from shutil import (  # slow
        rmtree,
    )

def unexplained():
    import json
    from os import (
        path,
    )
"""
    assert unexplained_imports(source) == [15, 16]


def unexplained_imports(source: str) -> list[int]:
    """Return the lines of imports inside functions without a comment on them or right above."""
    optional = {package for packages, _ in HOMES.values() for package in packages}
    lines = source.splitlines()
    imports: dict[int, ast.Import | ast.ImportFrom] = {}
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    imports[node.lineno] = node
    found: list[int] = []
    explained: set[int] = set()  # the last line of each import that has its reason
    for line, node in sorted(imports.items()):
        last = node.end_lineno or line
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if (
            {module.partition(".")[0] for module in modules} <= optional
            or any("#" in each for each in lines[line - 1 : last])
            or lines[line - 2].lstrip().startswith("#")
            or line - 1 in explained
        ):
            explained.add(last)
        else:
            found.append(line)
    return found
