"""The reference says what the code does.

Every verb, flag, exit code, error code, event, file and setting.
"""

import re
import subprocess
from pathlib import Path

import click
import pytest

from adjourn.core import exits
from docs import generate
from tests.docs.page import DOCS, ROOT, pages
from tests.needs import needs

REFERENCE = DOCS / "reference"


@pytest.mark.parametrize("name", generate.pages())
def test_a_page_is_what_the_code_says(name: str) -> None:
    assert (REFERENCE / name).read_text() == generate.pages()[name], "run docs/generate.py --write"


def test_the_man_page_is_what_the_help_says_and_roff_takes_it() -> None:
    assert generate.MANUAL.read_text() == generate.man_page(), "run docs/generate.py --write"
    needs("groff")
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", str(generate.MANUAL)],
        capture_output=True,
        text=True,
        check=True,
        errors="replace",
    )
    assert done.stderr == ""
    plain = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout)
    assert "adjourn approve @1 --resume" in plain


def test_no_page_of_the_reference_is_left_over() -> None:
    assert {path.name for path in REFERENCE.iterdir()} == set(generate.pages())


@pytest.mark.parametrize("path", [path for path, _ in generate.commands()])
def test_every_flag_of_a_verb_is_documented(path: str) -> None:
    page = (REFERENCE / "cli.md").read_text()
    section = page.partition(f"\n## adjourn {path}\n")[2].partition("\n## ")[0]
    common = page.partition("\n## Options of every verb\n")[2].partition("\n## ")[0]
    command = dict(generate.commands())[path]
    flags = [
        flag
        for option in command.params
        if isinstance(option, click.Option)
        for flag in option.opts
    ]
    assert section
    assert [flag for flag in flags if flag not in section + common] == []


def test_the_index_names_every_page() -> None:
    linked = set(re.findall(r"\]\(([^)#\s]+)\)", (DOCS / "README.md").read_text()))
    written = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    in_lists_of_their_own = {name for name in written if name.startswith("decisions/0")}
    assert written - in_lists_of_their_own - {"README.md"} - linked == set()


def test_no_help_shows_how_its_lines_are_kept() -> None:
    assert [
        path
        for path, command in generate.commands()
        if "\\b" in command.get_help(click.Context(command))
    ] == []


@pytest.mark.parametrize("page", ["docs/README.md", "docs/reference/exit-codes.md"])
def test_every_exit_code_is_documented(page: str) -> None:
    rows = re.findall(r"^\| (\d+) \|", (ROOT / page).read_text(), re.MULTILINE)
    assert {int(code) for code in rows} == set(exits.MEANINGS)


def test_every_verb_is_in_the_index_of_the_docs() -> None:
    text = (DOCS / "README.md").read_text()
    assert [path for path, _ in generate.commands() if f"`{path}" not in text] == []


def test_every_error_code_is_documented() -> None:
    text = (REFERENCE / "errors.md").read_text()
    assert [
        kind.code
        for kind in generate.errors()
        if f"| `{kind.code}` | {kind.exit_code} |" not in text
    ] == []


def test_every_variable_that_the_source_names_is_documented() -> None:
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    named = set(re.findall(r"\b_?ADJOURN_[A-Z_]*[A-Z]\b|\bAUTO_APPROVAL\b|\bNO_COLOR\b", source))
    assert named - {*generate.READ, *generate.GIVEN, *generate.AT_TIMES, *generate.GRANTED} == set()


def test_the_map_and_the_layers_are_drawn_from_the_source() -> None:
    page = (DOCS / "architecture.md").read_text()
    assert page == generate.architecture(), "run docs/generate.py --write"
    modules = [path for path in (ROOT / "src" / "adjourn").rglob("*.py") if path.stem != "__init__"]
    assert [path.name for path in modules if path.name not in page] == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    dead = [
        target
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text())
        if not leads_somewhere(page, target)
    ]
    assert dead == []


def leads_somewhere(page: Path, target: str) -> bool:
    """Say whether a link's file is there, and has the heading that it names."""
    if target.startswith("https://"):
        return True
    name, _, anchor = target.partition("#")
    path = (page.parent / name).resolve() if name else page
    if not path.is_file():
        return False
    if not anchor:
        return True
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return anchor in {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings
    }


def test_the_page_of_the_tui_has_the_table_of_its_keys() -> None:
    page = (DOCS / "how-to" / "tui.md").read_text()
    assert page == generate.keys_of_tui(), "run docs/generate.py --write"
    assert "`ctrl+c`" in page
