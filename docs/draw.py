#!/usr/bin/env python3
"""Draws docs/pictures/ from real runs in a terminal of 80 columns.

The agent is the real Claude Code; the
model that it talks to plays a script.
"""

import contextlib
import fcntl
import html
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

import pyte
from pyte.screens import Char

from tests.claude.model import claude_model
from tests.claude.scene import QUIET
from tests.model.script import ToolUse, Turn
from tests.programs import program

PICTURES = Path(__file__).resolve().parent / "pictures"
COLUMNS, LINES = 80, 200
SECONDS = 120
HOME = b"/srv/anna"  # in the place of the temporary directory

# One palette for light and dark pages: the picture brings its own background.
BACKGROUND, FOREGROUND = "#16181d", "#d7dae0"
COLOURS = {
    "black": "#5c6370",
    "red": "#f07178",
    "green": "#98c379",
    "brown": "#e5c07b",
    "blue": "#6fb3f2",
    "magenta": "#c792ea",
    "cyan": "#67c1c9",
    "white": "#d7dae0",
    "default": FOREGROUND,
}
CELL_WIDTH, LINE_HEIGHT, MARGIN = 8.4, 18, 16
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


class Terminal:
    """A terminal in a directory of its own, and all that it has shown."""

    def __init__(self, place: Path) -> None:
        self.place = place / "shop"
        self.place.mkdir()
        self._screen = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.ByteStream(self._screen)
        programs = f"{os.path.dirname(sys.executable)}:{place / 'bin'}:{os.defpath}"
        self.environment = {
            "PATH": programs,
            "HOME": str(place),
            "XDG_STATE_HOME": str(place / "state"),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "ADJOURN_PROMPT": "0",
            **QUIET,
        }

    def type(self, command: str) -> None:
        """Show a command as a person types it, run it, and show what it prints."""
        self._stream.feed(f"\x1b[1;32m$\x1b[0m \x1b[1m{command}\x1b[0m\r\n".encode())
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        process = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-c", command],
            cwd=self.place,
            env=self.environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        with contextlib.suppress(OSError):  # the last program has closed the terminal
            while piece := os.read(ours, 65536):
                self._stream.feed(piece.replace(os.fsencode(self.place.parent), HOME))
        process.wait(SECONDS)
        os.close(ours)

    def read(self, *words: str) -> dict[str, list[dict[str, str]]]:
        """Return what a verb prints for machines; the picture does not show it."""
        done = subprocess.run(
            ["adjourn", *words, "--output", "json"],
            cwd=self.place,
            env=self.environment,
            capture_output=True,
            timeout=SECONDS,
            check=True,
        )
        document: dict[str, list[dict[str, str]]] = json.loads(done.stdout)
        return document

    def first_ask(self) -> str:
        """Return the beginning of the id of the ask that waits longest."""
        return self.read("inbox")["asks"][0]["id"][:8]

    def rows(self) -> list[list[Char]]:
        """Return the rows that show something, cell by cell."""
        buffer = self._screen.buffer
        rows = [[buffer[line][column] for column in range(COLUMNS)] for line in range(LINES)]
        while rows and not text_of(rows[-1]).strip():
            del rows[-1]
        return rows


def text_of(row: list[Char]) -> str:
    """Return the characters of a row."""
    return "".join(cell.data for cell in row).rstrip()


def draw(title: str, rows: list[list[Char]]) -> str:
    """Return the rows as SVG; each run of equal cells is one piece of text at its own place."""
    width = COLUMNS * CELL_WIDTH + 2 * MARGIN
    height = len(rows) * LINE_HEIGHT + 2 * MARGIN
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">',
        f"<title>{html.escape(title)}</title>",
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
        f'<g font-family="{FONT}" font-size="14" xml:space="preserve">',
    ]
    for number, row in enumerate(rows):
        column = 0
        y = MARGIN + number * LINE_HEIGHT + 13
        for look, group in groupby(row, key=lambda cell: (cell.fg, cell.bold, cell.reverse)):
            cells = list(group)
            text = "".join(cell.data for cell in cells)
            colour, is_bold, _ = look
            if text.strip():
                x = MARGIN + column * CELL_WIDTH
                fill = COLOURS.get(colour, f"#{colour}")
                weight = ' font-weight="700"' if is_bold else ""
                length = len(cells) * CELL_WIDTH
                drawn.append(
                    f'<text x="{x:g}" y="{y:g}" fill="{fill}"{weight}'
                    f' textLength="{length:g}">{html.escape(text)}</text>'
                )
            column += len(cells)
    return "\n".join([*drawn, "</g>", "</svg>", ""])


# ── Scenes ───────────────────────────────────────────────────────────────────────────────────────


def draw_claude(terminal: Terminal) -> None:
    """Claude Code stops before `terraform apply`."""
    shutil.copy(Path(__file__).with_name("pictures") / "terraform", terminal.place.parent / "bin")
    apply = ToolUse(name="Bash", arguments={"command": "terraform apply -auto-approve"})
    turns = [
        Turn(text="The plan adds one firewall rule. I apply it now.", calls=(apply,)),
        Turn(text="Applied: port 443 is open."),
    ]
    with claude_model(turns) as model:
        terminal.environment |= {
            "ANTHROPIC_BASE_URL": model.url,
            "ADJOURN_CLAUDE": program("claude"),
        }
        terminal.type('adjourn run --runner claude "Open port 443 in staging"')
        terminal.type(f"adjourn approve {terminal.first_ask()} --resume")


def _write_script(terminal: Terminal, name: str, text: str) -> None:
    path = terminal.place / name
    path.write_text(text)
    path.chmod(0o755)


def draw_quickstart(terminal: Terminal) -> None:
    """Show a script that asks for a region, leaves, and comes back with the answer."""
    _write_script(terminal, "deploy.sh", DEPLOY)
    terminal.type("cat deploy.sh")
    terminal.type("adjourn run -- ./deploy.sh")
    terminal.type(f"adjourn answer {terminal.first_ask()} eu --resume")


def draw_approval(terminal: Terminal) -> None:
    """Show a command that waits at the gate, is approved, and runs once."""
    _write_script(terminal, "apply.sh", '#!/bin/sh\necho "applied $1"\n')
    (terminal.place / "main.tf").write_text('port = "443"\n')
    terminal.type("adjourn run --pause-on-approval -- ./apply.sh main.tf")
    terminal.type(f"adjourn approve {terminal.first_ask()} --resume")


def draw_inbox(terminal: Terminal) -> None:
    """Show the inbox: what waits for a person, in one place."""
    _write_script(terminal, "deploy.sh", DEPLOY)
    for command in ("-- ./deploy.sh", "--pause-on-approval -- git push origin main"):
        subprocess.run(
            ["bash", "-c", f"adjourn run {command}"],
            cwd=terminal.place,
            env=terminal.environment,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    terminal.type("adjourn inbox")


def draw_plan(terminal: Terminal) -> None:
    """Show a plan that runs what is ready, and stops where a person is needed."""
    (terminal.place / "plan.toml").write_text(PLAN)
    terminal.type("cat plan.toml")
    terminal.type("adjourn execute")


DEPLOY = """\
#!/bin/sh
region=$(adjourn ask "Which region?" --choice eu --choice us) || exit $?
echo "deploying to $region"
"""
PLAN = """\
[[task]]
id = "test"
command = ["echo", "12 tests pass"]

[[task]]
id = "deploy"
command = ["echo", "deployed"]
needs = ["test"]
pause_on_approval = true
"""
SCENES: dict[str, Callable[[Terminal], None]] = {
    "claude.svg": draw_claude,
    "quickstart.svg": draw_quickstart,
    "approval.svg": draw_approval,
    "inbox.svg": draw_inbox,
    "plan.svg": draw_plan,
}


@contextlib.contextmanager
def played(name: str) -> Iterator[list[list[Char]]]:
    """Play a scene in a directory of its own, and yield what the terminal shows."""
    with tempfile.TemporaryDirectory(prefix="anna-") as place:
        (Path(place) / "bin").mkdir()
        terminal = Terminal(Path(place))
        SCENES[name](terminal)
        yield terminal.rows()


def shown_in(picture: str) -> list[str]:
    """Return the words of each row of a picture."""
    rows: dict[str, str] = {}
    for y, text in re.findall(r'<text x="[^"]*" y="([^"]*)"[^>]*>([^<]*)</text>', picture):
        rows[y] = f"{rows.get(y, '')} {html.unescape(text)}"
    return [" ".join(row.split()) for row in rows.values()]


def main() -> int:
    """Draw every scene, or those that are named, and write them."""
    for name, scene in SCENES.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        with played(name) as rows:
            (PICTURES / name).write_text(draw(scene.__doc__ or name, rows))
            sys.stdout.write(f"{name}: {len(rows)} rows\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
