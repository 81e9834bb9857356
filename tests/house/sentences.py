"""What the package may say to a person: its texts, and whether a command in them exists."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click

from adjourn.cli.app import VERBS, cli
from tests.house.project import PACKAGE, ROOT

A_COMMAND = re.compile(r"\badjourn ([a-z]+)((?: (?!--)[a-z]+\b)?)((?: +[^\s,;&|)]+)*)")


def sentences(path: Path) -> Iterator[tuple[str, str]]:
    """Yield every text of a module that is not a docstring, with its place; values are …"""
    tree = ast.parse(path.read_text())
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts |= {id(part) for part in node.values}
            pieces = [
                str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values
            ]
            yield f"{path.relative_to(ROOT)}:{node.lineno}", "".join(pieces)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings | parts
        ):
            yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


ALL = [found for path in sorted(PACKAGE.rglob("*.py")) for found in sentences(path)]


def is_there(verb: str, second: str, rest: str) -> bool:
    """Return whether a verb exists and takes these options; words about adjourn are no commands."""
    if verb not in VERBS:
        return not rest.strip().startswith("--")
    command = cli.get_command(click.Context(cli), verb)
    if isinstance(command, click.Group) and second.strip():
        command = command.commands.get(second.strip())
    if command is None:
        return False
    known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    known |= {"--help", "--"}
    return {word for word in rest.split() if re.fullmatch(r"--[a-z-]*", word)} <= known
