"""Every example of the documentation runs, and prints what its page says."""

from pathlib import Path

import pytest

from tests.docs.page import ROOT, blocks, pages, steps
from tests.docs.shell import Shell
from tests.docs.transcript import Transcript

PAGES = [page for page in pages() if any(block.language == "console" for block in blocks(page))]
NOT_RUN = ("./dev ", "pip install ", "eval ")  # what makes environments is tested elsewhere, or changes the reader's own


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_works_as_it_stands(page: Path, tmp_path: Path) -> None:
    place = tmp_path / "project"
    place.mkdir()
    transcript = Transcript(str(place))
    with Shell(place) as shell:
        for block in blocks(page):
            if block.file:
                (place / block.file).write_text(block.text)
            for step in steps(block) if block.language == "console" else []:
                happened = shell.do(transcript.typed(step.command))
                wrong = transcript.difference(step.output, happened)
                assert wrong is None, f"{page.relative_to(ROOT)}:{step.line}: $ {step.command}\n{wrong}"


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
