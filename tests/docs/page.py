"""A page of the documentation as a reader follows it.

Files to save, commands to type, output to expect.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_FENCE = re.compile(r"^```(?P<language>\w*)(?: (?P<rest>.*))?$")


class Block(NamedTuple):
    """One fenced block, and the line of the page that it begins at."""

    language: str
    file: str
    lines: tuple[str, ...]
    line: int

    @property
    def text(self) -> str:
        """What stands in it."""
        return "".join(f"{line}\n" for line in self.lines)


class Step(NamedTuple):
    """A command and what it prints."""

    command: str
    output: tuple[str, ...]
    line: int


def pages() -> list[Path]:
    """Return every page, the first one first."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    return list(_blocks(page.read_text().splitlines()))


def _blocks(lines: list[str]) -> Iterator[Block]:
    begun: Block | None = None
    for number, line in enumerate(lines, start=1):
        fence = _FENCE.match(line)
        if begun is None and fence:
            file = re.search(r"\bfile=(\S+)", fence["rest"] or "")
            begun = Block(fence["language"], file[1] if file else "", (), number)
        elif begun is not None and line == "```":
            yield begun
            begun = None
        elif begun is not None:
            begun = begun._replace(lines=(*begun.lines, line))


def steps(block: Block) -> list[Step]:
    """Return the commands of a console block.

    `$ ` begins one, `> ` goes on with it, everything else is output.
    """
    found: list[Step] = []
    for offset, line in enumerate(block.lines, start=1):
        if line.startswith("$ "):
            found.append(Step(line[2:], (), block.line + offset))
        elif line.startswith("> "):
            found[-1] = found[-1]._replace(command=f"{found[-1].command}\n{line[2:]}")
        else:
            found[-1] = found[-1]._replace(output=(*found[-1].output, line))
    return found
