"""Every example of the documentation runs, and prints what its page says."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from shlex import quote

import pytest

from tests.claude.model import claude_model
from tests.claude.scene import QUIET
from tests.docs.page import ROOT, blocks, pages, steps
from tests.docs.shell import Shell
from tests.docs.transcript import DATABASE, NEW_DATABASES, Transcript
from tests.model.script import ToolUse, Turn
from tests.postgres import Server
from tests.programs import program

PAGES = [page for page in pages() if any(block.language == "console" for block in blocks(page))]
# What makes environments is tested elsewhere, or changes the reader's own
NOT_RUN = ("./dev ", "pip install ", "eval ", "python3 -m venv ", "~/.adjourn-env/", "export PATH=")


def _wants(text: str, command: str) -> Turn:
    return Turn(text=text, calls=(ToolUse(name="Bash", arguments={"command": command}),))


# What the model says on pages that run the real Claude Code, by run
OF_CLAUDE = {
    "docs/tutorials/claude-code.md": [
        [
            _wants("I run the checks first.", "make check > report.txt"),
            Turn(text="Done: report.txt has the result."),
        ],
        [
            _wants("I remove what was built.", "rm -rf report.txt"),
            Turn(text="I keep report.txt and change nothing."),
        ],
        [_wants("I run the checks.", "make check"), Turn(text="All 3 checks pass.")],
    ],
}


def _put_claude_on(shell: Shell, stack: ExitStack, runs: list[list[Turn]]) -> Iterator[None]:
    """Have the page find Claude Code; at each step, the next run has its own model."""
    variables = {"ADJOURN_CLAUDE": program("claude"), **QUIET}
    shell.do("export " + " ".join(f"{name}={quote(value)}" for name, value in variables.items()))
    for turns in runs:
        model = stack.enter_context(claude_model(turns))
        shell.do(f"export ANTHROPIC_BASE_URL={model.url}")
        yield


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_works_as_it_stands(
    request: pytest.FixtureRequest, page: Path, tmp_path: Path
) -> None:
    place = tmp_path / "project"
    place.mkdir()
    with ExitStack() as stack:
        shell = stack.enter_context(Shell(place))
        claude = _put_claude_on(shell, stack, OF_CLAUDE.get(str(page.relative_to(ROOT)), []))
        transcript = Transcript(str(place), _databases(request, page, shell, stack))
        for block in blocks(page):
            if block.file:
                (place / block.file).write_text(block.text)
            for step in steps(block) if block.language == "console" else []:
                if "adjourn run --runner claude" in step.command:
                    next(claude)
                happened = shell.do(transcript.typed(step.command))
                wrong = transcript.difference(step.output, happened)
                assert wrong is None, (
                    f"{page.relative_to(ROOT)}:{step.line}: $ {step.command}\n{wrong}"
                )


def _databases(
    request: pytest.FixtureRequest, page: Path, shell: Shell, stack: ExitStack
) -> dict[str, str]:
    """Return the databases that are here, by the names that a page has for them.

    Those to restore into are empty.
    """
    text = page.read_text()
    if DATABASE not in text:
        return {}
    server: Server = request.getfixturevalue("postgres")
    if server.programs:
        shell.do(f"PATH={server.programs}:$PATH")
    named = {
        name: stack.enter_context(server.empty_database()) for name in NEW_DATABASES if name in text
    }
    return {DATABASE: request.getfixturevalue("database"), **named}


def test_a_shell_block_that_is_not_run_says_nothing_that_could_be() -> None:
    loose = [
        f"{page.relative_to(ROOT)}:{block.line}: {line}"
        for page in pages()
        for block in blocks(page)
        if block.language in {"sh", "bash", "shell"} and not block.file
        for line in block.lines
        if not line.startswith(NOT_RUN)
    ]
    assert not loose, "\n".join(loose)


EXAMPLES = {
    "deploy.sh": "how-to/python-library.md",
    "migrate.py": "how-to/python-library.md",
    "research.py": "how-to/clarifications.md",
}
# Run by tests/frameworks: they need an extra each
OF_FRAMEWORKS = {"langgraph_agent.py", "openai_agents_agent.py", "pydantic_ai_agent.py"}


def test_every_example_is_on_a_page_that_runs_it() -> None:
    assert EXAMPLES.keys() | OF_FRAMEWORKS == {
        path.name for path in (ROOT / "examples").iterdir() if path.is_file()
    }


@pytest.mark.parametrize(("name", "page"), EXAMPLES.items())
def test_an_example_is_what_its_page_shows(name: str, page: str) -> None:
    """The page's own console blocks run it, in the test above."""
    (block,) = [block for block in blocks(ROOT / "docs" / page) if block.file == name]
    assert block.text == (ROOT / "examples" / name).read_text()
